//! A kernel as a value: an entry point of a module, and what `celerity.cuh`
//! expects it to be launched with. Plain data; knows no driver.
#![allow(unsafe_code)]

use std::error::Error;
use std::sync::Arc;

use bytemuck::{NoUninit, Pod, Zeroable};
use celerity_executor::{
    BoundMemory, CodeModule, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::Box3;

/// The header that kernels in CUDA C++ include as `celerity.cuh`.
pub const HEADER: &str = include_str!("../include/celerity.cuh");

/// A kernel for GPUs, with the values that it is given.
///
/// Its function takes a `celerity::chunk<D>`, a `celerity::view<T, D>` per
/// access of its task, and then the [values](Self::with_value), in order.
#[derive(Clone, Debug)]
pub struct CudaKernel {
    module: Arc<CodeModule>,
    entry: Box<str>,
    dims: usize,
    global: Box3,
    threads: Threads,
    shared_bytes: u32,
    /// Laid out behind the views, each at a multiple of its alignment.
    values: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Value {
    bytes: Box<[u8]>,
    alignment: usize,
}

/// How items are dealt to threads. Sizes in x, y, z: x is the last dimension.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// One thread for so many items in the last dimension.
    Items { block: [u32; 3], per_thread: u32 },
    /// One block per work-group.
    Groups { block: [u32; 3] },
}

/// What the header calls `chunk`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ChunkParameter {
    offset: [u64; 3],
    range: [u64; 3],
    global: [u64; 3],
}

/// What the header calls `view`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ViewParameter {
    base: u64,
    access: u64,
    min: [u64; 3],
    extent: [u64; 3],
    low: [u64; 3],
    high: [u64; 3],
}

/// Blocks in y and z, at most; kernels loop over the rest.
const MOST_BLOCKS: u64 = 65_535;
/// The same in x.
const MOST_BLOCKS_IN_X: u64 = (1 << 31) - 1;

/// A chunk that does not consist of whole work-groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{chunk} is not made of whole work-groups of {block:?} items (last dimension first); make the \
     index space and its splits multiples of the group"
)]
struct BrokenGroups {
    chunk: Box3,
    block: [u32; 3],
}

impl CudaKernel {
    /// The kernel `entry` of a module, for the index space `global` of `dims`
    /// dimensions.
    ///
    /// # Safety
    /// The code takes these parameters. It touches memory only through its
    /// views, which it indexes where its task has declared accesses, and writes
    /// only where these write. It does so whatever the chunk, for all values
    /// that elements and its own values may have. It ends.
    ///
    /// # Panics
    /// If there are not 1 to 3 dimensions.
    #[must_use]
    pub unsafe fn new(
        module: &Arc<CodeModule>,
        entry: impl Into<Box<str>>,
        dims: usize,
        global: Box3,
    ) -> Self {
        let block = match dims {
            1 => [256, 1, 1],
            2 => [32, 8, 1],
            3 => [32, 4, 2],
            _ => panic!("kernels have 1 to 3 dimensions, not {dims}"),
        };
        Self {
            module: module.clone(),
            entry: entry.into(),
            dims,
            global,
            threads: Threads::Items { block, per_thread: 1 },
            shared_bytes: 0,
            values: Vec::new(),
        }
    }

    /// With a value behind the views and the values before it.
    #[must_use]
    pub fn with_value<T: NoUninit>(mut self, value: T) -> Self {
        let bytes = bytemuck::bytes_of(&value).into();
        self.values.push(Value { bytes, alignment: align_of::<T>() });
        self
    }

    /// With so many threads per block in x, y and z, each of which runs
    /// `per_thread` items that follow each other in the last dimension. For
    /// kernels that do not use `for_each_item`, these numbers are part of what
    /// they expect.
    ///
    /// # Panics
    /// If one of the numbers is 0.
    #[must_use]
    pub fn with_block(mut self, block: [u32; 3], per_thread: u32) -> Self {
        assert!(block.iter().all(|&side| side > 0) && per_thread > 0, "no threads: {block:?}");
        self.threads = Threads::Items { block, per_thread };
        self
    }

    /// With work-groups of this size, in the order of the dimensions, for
    /// `for_each_group`. Chunks must consist of whole groups.
    ///
    /// # Panics
    /// If there is not one number per dimension, or one is 0.
    #[must_use]
    pub fn with_groups(mut self, size: &[u32]) -> Self {
        assert!(size.len() == self.dims && !size.contains(&0), "no group: {size:?}");
        let mut block = [1; 3];
        size.iter().rev().zip(&mut block).for_each(|(&side, threads)| *threads = side);
        self.threads = Threads::Groups { block };
        self
    }

    /// With so many bytes of dynamic shared memory per block.
    #[must_use]
    pub fn with_shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    fn parameters(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.push(ChunkParameter {
            offset: chunk.min(),
            range: chunk.range(),
            global: self.global.range(),
        });
        for (access, memory) in memory.iter().enumerate() {
            parameters.push(view(access, memory));
        }
        for Value { bytes, alignment } in &self.values {
            parameters.push_bytes(bytes, *alignment);
        }
        parameters
    }

    /// Blocks, and threads per block.
    fn grid(&self, chunk: &Box3) -> Result<([u32; 3], [u32; 3]), BrokenGroups> {
        let sides = self.sides(chunk);
        match self.threads {
            Threads::Items { block, per_thread } => {
                let items = [block[0].saturating_mul(per_thread), block[1], block[2]];
                let blocks = |dim: usize| sides[dim].div_ceil(items[dim].into());
                let most = [MOST_BLOCKS_IN_X, MOST_BLOCKS, MOST_BLOCKS];
                Ok((std::array::from_fn(|dim| count(blocks(dim), most[dim])), block))
            }
            Threads::Groups { block } => {
                if (0..3).any(|dim| !sides[dim].is_multiple_of(block[dim].into())) {
                    return Err(BrokenGroups { chunk: *chunk, block });
                }
                let groups: u64 = (0..3).map(|dim| sides[dim] / u64::from(block[dim])).product();
                Ok(([count(groups, MOST_BLOCKS_IN_X), 1, 1], block))
            }
        }
    }

    /// The chunk's range in x, y and z.
    fn sides(&self, chunk: &Box3) -> [u64; 3] {
        let range = chunk.range();
        std::array::from_fn(|axis| match axis < self.dims {
            true => range[self.dims - 1 - axis],
            false => 1,
        })
    }
}

// SAFETY: the promise of whoever has called `CudaKernel::new`.
unsafe impl DeviceCode for CudaKernel {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &str {
        &self.entry
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let (grid, block) = self.grid(chunk)?;
        let parameters = self.parameters(chunk, memory);
        Ok(Launch { grid, block, shared_bytes: self.shared_bytes, parameters })
    }
}

impl DeviceKernel for CudaKernel {
    /// # Panics
    /// Always: there is nothing that a CPU could run.
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
        panic!("kernel `{}` has code for GPUs only", self.entry);
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}

fn view(access: usize, memory: &BoundMemory<'_>) -> ViewParameter {
    let may_touch = memory.region().bounding_box();
    ViewParameter {
        base: memory.base() as u64,
        access: access as u64,
        min: memory.extent().min(),
        extent: memory.extent().range(),
        low: may_touch.min(),
        high: may_touch.max(),
    }
}

fn count(blocks: u64, most: u64) -> u32 {
    u32::try_from(blocks.min(most)).expect("bounds fit")
}

#[cfg(test)]
mod tests {
    use celerity_executor::{BasePtr, CodeSource};
    use celerity_regions::Region;

    use super::*;

    fn kernel(dims: usize, global: Box3) -> CudaKernel {
        let module = CodeModule::new("test", CodeSource::CudaCpp("".into()));
        // SAFETY: it is never run.
        unsafe { CudaKernel::new(&module, "step", dims, global) }
    }

    #[test]
    fn x_is_the_last_dimension() {
        let chunk = Box3::new([10, 0, 0], [30, 100, 1]);
        let launch = kernel(2, Box3::from_range([40, 100])).launch(&chunk, &[]).unwrap();
        assert_eq!((launch.grid, launch.block), ([4, 3, 1], [32, 8, 1]));
        let launch = kernel(1, Box3::from_range([1000])).with_block([128, 1, 1], 4);
        let launch = launch.launch(&Box3::from_range([1000]), &[]).unwrap();
        assert_eq!(launch.grid, [2, 1, 1]);
    }

    #[test]
    fn no_launch_is_larger_than_a_gpu_takes() {
        let high = Box3::from_range([10_000_000, 3]);
        assert_eq!(kernel(2, high).launch(&high, &[]).unwrap().grid, [1, 65_535, 1]);
        let groups = kernel(2, high).with_groups(&[8, 3]).launch(&high, &[]).unwrap();
        assert_eq!((groups.grid, groups.block), ([1_250_000, 1, 1], [3, 8, 1]));
    }

    #[test]
    fn groups_are_not_cut() {
        let kernel = kernel(1, Box3::from_range([100])).with_groups(&[32]);
        let error = kernel.launch(&Box3::from_range([100]), &[]).unwrap_err();
        assert!(error.to_string().contains("whole work-groups of [32, 1, 1]"), "{error}");
    }

    #[test]
    fn parameters_are_chunk_views_and_values() {
        let region = Region::from(Box3::from_range([5]));
        let extent = Box3::new([2, 0, 0], [9, 1, 1]);
        // SAFETY: nobody follows the address.
        let memory = [unsafe { BoundMemory::new(BasePtr::dangling().as_ptr(), extent, &region) }];
        let kernel = kernel(1, Box3::from_range([20])).with_value(3_u8).with_value(0.5_f64);
        let chunk = Box3::new([4, 0, 0], [6, 1, 1]);
        let launch = kernel.launch(&chunk, &memory).unwrap();
        let bytes = launch.parameters.as_bytes();
        let word = |index: usize| bytemuck::pod_read_unaligned::<u64>(&bytes[8 * index..][..8]);
        assert_eq!(bytes.len(), size_of::<ChunkParameter>() + size_of::<ViewParameter>() + 16);
        assert_eq!([word(0), word(3), word(6)], [4, 2, 20], "offset, range, global range");
        assert_eq!([word(11), word(14), word(20)], [2, 7, 5], "min, extent, high");
        assert_eq!((bytes[23 * 8], word(24)), (3, 0.5_f64.to_bits()));
    }
}
