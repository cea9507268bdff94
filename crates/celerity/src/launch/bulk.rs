//! Filling boxes of elements, and copying them, as kernels: on CPUs a closure, on GPUs a few lines of
//! assembly for elements of any size. Knows no queue.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::{Box3, Coord3};

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;

/// The most bytes that an element may have for GPUs to be filled with it: it is a parameter.
const MOST_BYTES: usize = 1024;

/// Threads of a block, all along the fastest dimension.
const THREADS: u64 = 256;

/// The most blocks in y and z; the rest of rows and planes follow in turns.
const MOST_BLOCKS: u64 = 65_535;

/// What is done with each element of a chunk, in a buffer of at most three dimensions.
#[derive(Clone, Debug)]
pub(crate) enum Bulk {
    /// It gets a value, which has so many bytes as an element. The task has one access, which
    /// writes.
    Fill { value: Box<[u8]> },
    /// It gets the value of another. The task has two accesses: the first writes, the second reads
    /// what lies `distance` further on, which may be less than nothing and wraps around then.
    Copy { bytes: usize, distance: Coord3 },
}

/// A kernel that does that.
pub(crate) struct BulkKernel {
    host: Arc<dyn DeviceKernel>,
    bulk: Bulk,
    /// Dimensions of the buffer and of the index space.
    dims: usize,
    entry: &'static str,
}

impl BulkKernel {
    /// The kernel `host` with code for GPUs.
    ///
    /// # Safety
    /// `host` does `bulk`; it is submitted with accesses, each of one box per chunk, to buffers of
    /// `dims` dimensions that are as [`Bulk`] says, and of which the first is one to one.
    pub(crate) unsafe fn new(host: Arc<dyn DeviceKernel>, bulk: Bulk, dims: usize) -> Self {
        let entry = bulk.entry();
        Self { host, bulk, dims, entry }
    }
}

impl DeviceKernel for BulkKernel {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: passed on; both forms are of one task, with one list of accesses.
        unsafe { self.host.run(chunk, memory) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        self.host.is_serial(chunk)
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        match &self.bulk {
            Bulk::Fill { value } if value.len() > MOST_BYTES => {
                let bytes = value.len();
                let reason = format!(
                    "elements have {bytes} bytes, and GPUs are filled with {MOST_BYTES} at most; \
                     write them by a `#[kernel]` function"
                );
                Err(NoDeviceCode { reason: reason.into() })
            }
            _ => Ok(self),
        }
    }
}

// SAFETY: the code touches the elements of the chunk, and of the copied ones those at the same
// distance: what `BulkKernel::new` asks accesses to be. `launch` finds them in the allocations.
unsafe impl DeviceCode for BulkKernel {
    fn module(&self) -> &Arc<CodeModule> {
        module()
    }

    fn entry(&self) -> &str {
        self.entry
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let bytes = self.bulk.bytes() as u64;
        let mut parameters = Parameters::default();
        let target = Target::of(&memory[0], chunk.min(), self.dims, bytes);
        let [planes, rows, columns] = aligned(chunk.range(), self.dims, 1);
        target.push(&mut parameters);
        [columns, rows, planes, bytes].into_iter().for_each(|number| parameters.push(number));
        match &self.bulk {
            Bulk::Fill { value } => {
                let mut padded = [0; MOST_BYTES];
                padded[..value.len()].copy_from_slice(value);
                parameters.push_bytes(&padded, 8);
            }
            Bulk::Copy { distance, .. } => {
                let min = chunk.min();
                let first = [0, 1, 2].map(|dim: usize| min[dim].wrapping_add(distance[dim]));
                Target::of(&memory[1], first, self.dims, bytes).push(&mut parameters);
            }
        }
        let blocks = columns.div_ceil(THREADS);
        let grid = [blocks, rows.min(MOST_BLOCKS), planes.min(MOST_BLOCKS)];
        let [x, y, z] = grid.map(u32::try_from);
        let too_many = |_| format!("{columns} elements in a row are too many for one launch");
        let grid = [x.map_err(too_many)?, y.map_err(too_many)?, z.map_err(too_many)?];
        Ok(Launch { grid, block: [THREADS as u32, 1, 1], shared_bytes: 0, parameters })
    }
}

impl Bulk {
    /// Bytes of an element.
    fn bytes(&self) -> usize {
        match self {
            Self::Fill { value } => value.len(),
            Self::Copy { bytes, .. } => *bytes,
        }
    }

    /// For the widest words that elements consist of. Allocations begin at multiples of 16 bytes, so
    /// all words of an element lie at a multiple of their size.
    fn entry(&self) -> &'static str {
        let bytes = match self.bytes().trailing_zeros() {
            0 => 0,
            1 => 1,
            2 => 2,
            _ => 3,
        };
        match self {
            Self::Fill { .. } => ["fill_1", "fill_2", "fill_4", "fill_8"][bytes],
            Self::Copy { .. } => ["copy_1", "copy_2", "copy_4", "copy_8"][bytes],
        }
    }
}

/// Where elements lie, in bytes.
struct Target {
    address: u64,
    /// From one row, and one plane, to the next.
    row: u64,
    plane: u64,
}

impl Target {
    /// The elements from `first` on, in a buffer of so many dimensions. Where the memory holds none,
    /// as when somebody only asks how a launch is called, an address that nobody follows.
    fn of(memory: &BoundMemory<'_>, first: Coord3, dims: usize, bytes: u64) -> Self {
        let (min, range) = (memory.extent().min(), memory.extent().range());
        let strides = [range[1] * range[2] * bytes, range[2] * bytes, bytes];
        let along = |dim: usize| first[dim].wrapping_sub(min[dim]).wrapping_mul(strides[dim]);
        let address =
            [0, 1, 2].map(along).into_iter().fold(memory.base() as u64, u64::wrapping_add);
        let [plane, row, _] = aligned(strides, dims, 0);
        Self { address, row, plane }
    }

    fn push(&self, parameters: &mut Parameters) {
        [self.address, self.row, self.plane].into_iter().for_each(|number| parameters.push(number));
    }
}

/// The first `dims` numbers as the last of three, behind `missing` ones: rows lie along the last
/// dimension that there is.
fn aligned(numbers: Coord3, dims: usize, missing: u64) -> [u64; 3] {
    let mut aligned = [missing; 3];
    aligned[3 - dims..].copy_from_slice(&numbers[..dims]);
    aligned
}

/// The module with all entry points, always the same one.
fn module() -> &'static Arc<CodeModule> {
    static MODULE: OnceLock<Arc<CodeModule>> = OnceLock::new();
    MODULE.get_or_init(|| CodeModule::new("fill and copy", CodeSource::Ptx(Cow::Owned(text()))))
}

fn text() -> String {
    let of_words = |bytes: usize| {
        let text = include_str!("bulk.ptx").replace("$bytes", &bytes.to_string());
        text.replace("$bits", &(8 * bytes).to_string())
    };
    let head = ".version 7.0\n.target sm_80\n.address_size 64\n\n";
    head.to_owned() + &[1, 2, 4, 8].map(of_words).concat()
}
