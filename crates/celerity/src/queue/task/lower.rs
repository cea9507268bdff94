//! From what was said of a kernel task to what the runtime takes. Every argument is checked here.

use std::marker::PhantomData;
use std::sync::Arc;

use celerity_executor::{DeviceKernel, Payload};
use celerity_kernel::abi::is_block;
use celerity_kernel::{Item, Row};
use celerity_regions::Subrange;
use celerity_tdag::{IndexSpace, Split, TaskId, Work};

use super::TaskBuilder;
use crate::access::{Closure, KernelAccesses, Lowered, Lowering};
use crate::error::{Error, Result};
use crate::launch::{CompiledKernel, ItemKernel, KernelSpec, Launched, RowKernel};
use crate::queue::LoweredTask;
use crate::range::{to_box, volume};

/// More chunks per device than this are a mistake: each costs a launch.
const MOST_CHUNKS: u32 = 1024;

impl<'q> TaskBuilder<'q> {
    pub(super) fn lower_items<A, F, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: F,
    ) -> Result<(LoweredTask<'q>, Arc<dyn DeviceKernel>)>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
    {
        let (task, launch) = self.lower(global, accesses)?;
        Ok((task, Arc::new(ItemKernel::new(launch, Closure(kernel)))))
    }

    pub(super) fn lower_rows<A, F, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: F,
    ) -> Result<(LoweredTask<'q>, Arc<dyn DeviceKernel>)>
    where
        A: KernelAccesses<K> + 'static,
        F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
    {
        let (task, launch) = self.lower(global, accesses)?;
        Ok((task, Arc::new(RowKernel::<_, _, false, K>::new(launch, Closure(kernel)))))
    }

    pub(super) fn submit_compiled<A, W, H, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
        kernel: W,
        on_host: impl FnOnce(KernelSpec<A, K>) -> H,
    ) -> Result<TaskId>
    where
        A: KernelAccesses<K>,
        W: celerity_kernel::Kernel,
        H: Launched + 'static,
    {
        let block = self.wanted_block();
        let (task, launch) = self.lower(global, accesses)?;
        let compiled = CompiledKernel::new(on_host(launch), kernel, block);
        task.submit(Payload::Kernel(Arc::new(compiled)))
    }

    fn lower<A: KernelAccesses<K>, const K: usize>(
        self,
        global: [usize; K],
        accesses: A,
    ) -> Result<(LoweredTask<'q>, KernelSpec<A, K>)> {
        let offset = self.beginning(global)?;
        let space = self.index_space(offset, global)?;
        let mut lowering = Lowering::new(&self.origin).over(space);
        let plan = accesses.lower(&mut lowering)?;
        let space = if self.split.is_none() { lowering.where_wide(space) } else { space };
        let (lowered, space, tiling) = lowering.finish_kernel(space)?;
        let Lowered { accesses, mappers, settling, unordered } = lowered;
        let launch =
            KernelSpec { plan, offset, global, mappers, tiling, unordered, accesses: PhantomData };
        let work = Work::Device(space);
        Ok((LoweredTask { origin: self.origin, work, accesses, settling }, launch))
    }

    /// Threads of a block, if any number is wanted.
    fn wanted_block(&self) -> Option<[usize; 3]> {
        let mut block = [1; 3];
        block.iter_mut().zip(&self.block).for_each(|(wide, &threads)| *wide = threads);
        (!self.block.is_empty()).then_some(block)
    }

    /// Where the index space begins, if all of it can be counted from there.
    pub(in crate::queue) fn beginning<const K: usize>(
        &self,
        range: [usize; K],
    ) -> Result<[usize; K]> {
        if self.offset.is_empty() {
            return Ok([0; K]);
        }
        let fits =
            |offset: &[usize; K]| (0..K).all(|dim| offset[dim].checked_add(range[dim]).is_some());
        let offset = self.offset.as_slice().try_into().ok().filter(fits);
        offset.ok_or_else(|| Error::Offset {
            task: self.origin.describe(),
            offset: self.offset.clone(),
            range: range.to_vec(),
        })
    }

    pub(in crate::queue) fn index_space<const K: usize>(
        &self,
        offset: [usize; K],
        global: [usize; K],
    ) -> Result<IndexSpace> {
        if volume(global).is_none() {
            let task = self.origin.describe();
            return Err(Error::IndexSpaceVolume { task, range: global.to_vec() });
        }
        let mut granularity = [1; 3];
        let given = &self.granularity;
        // All of nothing is what a task over nothing may be asked to leave together.
        let is_none = given.contains(&0) && !global.contains(&0);
        if !given.is_empty() && (given.len() != K || is_none) {
            let task = self.origin.describe();
            return Err(Error::Granularity { task, granularity: given.clone(), dims: K });
        }
        if !self.block.is_empty() && (self.block.len() != K || !is_block(&self.block)) {
            let task = self.origin.describe();
            return Err(Error::Block { task, block: self.block.clone(), dims: K });
        }
        granularity.iter_mut().zip(given).for_each(|(wide, &size)| *wide = size.max(1) as u64);
        let extent = to_box(Subrange { offset, range: global });
        let split = self.split.unwrap_or_default();
        let oversubscription = self.check_hints(K)?;
        Ok(IndexSpace { dims: K as u8, extent, granularity, split, oversubscription })
    }

    /// Chunks per device, if the hints fit an index space of `dims` dimensions.
    fn check_hints(&self, dims: usize) -> Result<u32> {
        let task = || self.origin.describe();
        let along = match self.split {
            Some(Split::Along(dim)) => Some(usize::from(dim)),
            _ => None,
        };
        if let Some(dim) = self.impossible_dim.or(along.filter(|&dim| dim >= dims)) {
            return Err(Error::SplitDimension { task: task(), dim, dims });
        }
        match u32::try_from(self.oversubscription) {
            Ok(chunks @ 1..=MOST_CHUNKS) => Ok(chunks),
            _ => Err(Error::Oversubscription { task: task(), chunks: self.oversubscription }),
        }
    }
}
