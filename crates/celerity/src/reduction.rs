//! Reductions as tasks: what becomes of the partial results of a kernel, and when. Knows neither
//! how kernels make them nor what tasks are lowered from.
//!
//! A buffer that has been reduced into holds what is to be done before anybody reads it: to *fold*
//! the partial results on each node, and to *combine* what is left of them on all. See
//! [`Tiling`] for why the result does not depend on how many nodes there are.
#![allow(unsafe_code)]

use std::any::type_name;
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use celerity_executor::{HostFunction, HostKernel, NodeFrontend, Payload};
use celerity_kernel::Operator;
use celerity_regions::Region;
use celerity_tdag::{
    Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, SourceLocation, StreamHash,
    Subtree, TaskSpec, Tiling, Work, fold,
};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::buffer::{BufferHandle, Element};
use crate::error::Result;
use crate::partials::PartialResults;
use crate::pending::Pending;
use crate::spares::{SpareBuffer, SpareBuffers, SpareLayout};

/// The partial results of a kernel for one of its reductions.
#[derive(Debug)]
pub(crate) struct Partials {
    /// Until it is put back.
    buffer: Option<SpareBuffer<BufferHandle>>,
    /// Where the buffer is put when the tasks that read it have been submitted, or are not wanted.
    spares: Arc<SpareBuffers<BufferHandle>>,
    tiling: Tiling,
    /// The kernel's index space, of whole tiles.
    space: IndexSpace,
    /// Of each.
    bytes: u64,
}

/// What a reduction is into, and with what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReductionTarget<O> {
    pub(crate) result: BufferId,
    /// Elements of the result.
    pub(crate) elements: usize,
    pub(crate) operator: O,
    pub(crate) includes_current: bool,
}

/// Partial results of an unordered reduction into a large array take about so much on a node.
const MOST_BYTES: u64 = 1 << 20;

/// Tiles of a node with unordered reductions: enough for the threads and devices that it may have, also for a GPU that takes
/// them in blocks of 64 threads …
const TILES: RangeInclusive<u64> = 256..=4096;

/// … of so many items each, if there are: then the accumulators of a tile cost little beside them.
const FULL_TILE: u64 = 1 << 14;

/// The tiles of a space with reductions, the largest into so many bytes. If none of them is ordered,
/// as few as keep `nodes` busy.
pub(crate) fn tiling(space: &IndexSpace, bytes: u64, unordered_on: Option<usize>) -> Tiling {
    let Some(nodes) = unordered_on else { return Tiling::of(space, bytes) };
    let nodes = nodes as u64;
    let wanted = (space.extent.volume() / FULL_TILE / nodes).clamp(*TILES.start(), *TILES.end());
    Tiling::coarse(space, wanted.min(Tiling::fitting(space, bytes, MOST_BYTES)) * nodes)
}

/// What the tasks of a reduction are called, and where the user has asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Title {
    pub(crate) name: Arc<str>,
    pub(crate) location: SourceLocation,
}

/// Partial results of so much in all are sent as they are: that takes less than a host task on each
/// node, which would fold them before.
const FEW_BYTES: u64 = 4 << 10;

/// The steps from partial results to a result, to be taken when somebody needs it.
pub(crate) fn pending<T: Element, O: Operator<T>>(
    title: Title,
    partials: Partials,
    reduction: ReductionTarget<O>,
) -> Pending {
    Pending::new(move |frontend| {
        let shares = Shares::of(&partials, frontend.nodes());
        if shares.are_folded {
            partials.submit_fold::<T, O>(&title, frontend, &reduction)?;
        }
        partials.submit_combine::<T, O>(title, frontend, reduction, shares)
    })
}

/// What every node reads of the partial results in the last step.
struct Shares {
    /// Whether nodes fold theirs before.
    are_folded: bool,
    reads: Mapper,
    /// Ascending, each with its place.
    roots: Vec<(Subtree, u64)>,
}

impl Shares {
    fn of(Partials { tiling, space, bytes, .. }: &Partials, nodes: usize) -> Self {
        let all = tiling.tiles();
        if nodes == 1 || all.saturating_mul(*bytes) <= FEW_BYTES {
            let roots = (0..all).map(|tile| (Subtree::leaf(tile), tile)).collect();
            return Self { are_folded: false, reads: Mapper::All, roots };
        }
        let (mut read, mut roots) = (Region::empty(), Vec::new());
        for chunk in space.split(&space.extent, nodes).iter() {
            read.union_with(&tiling.folded(&chunk));
            for tiles in tiling.touching(&chunk) {
                let places = tiles.start..;
                roots.extend(Subtree::covering(tiles, all).zip(places));
            }
        }
        roots.sort_unstable_by_key(|(root, _)| root.first());
        Self { are_folded: true, reads: Mapper::fixed(read), roots }
    }
}

impl Drop for Partials {
    fn drop(&mut self) {
        self.buffer.take().into_iter().for_each(|buffer| self.spares.put(buffer));
    }
}

impl Partials {
    /// A buffer for the partial results of `tiling`, of so many bytes each.
    pub(crate) fn new(
        frontend: &Arc<NodeFrontend>,
        spares: &Arc<SpareBuffers<BufferHandle>>,
        (tiling, space): (Tiling, IndexSpace),
        name: &str,
        element: (u64, u64),
    ) -> Self {
        let layout = SpareLayout { partials: tiling.tiles(), element };
        let make = || {
            let new = NewBuffer {
                name: Some(format!("partial results of {name}").into()),
                dims: 1,
                extent: tiling.partials(),
                elem_size: element.0.max(1),
                elem_align: element.1,
                host_initialized: false,
            };
            BufferHandle::new(frontend, frontend.create_buffer(new, None))
        };
        let buffer =
            Some(spares.take(layout).unwrap_or_else(|| SpareBuffer { handle: make(), layout }));
        Self { buffer, spares: spares.clone(), tiling, space, bytes: element.0 }
    }

    /// The buffer that they are in.
    fn buffer(&self) -> BufferId {
        self.buffer.as_ref().expect("it is put back at the end").handle.id()
    }

    /// How the kernel writes them.
    pub(crate) fn access(&self) -> Access {
        Access::buffer(self.buffer(), AccessMode::Write, Mapper::Tiles(Arc::new(self.tiling)))
    }

    fn submit_fold<T: Element, O: Operator<T>>(
        &self,
        title: &Title,
        frontend: &NodeFrontend,
        reduction: &ReductionTarget<O>,
    ) -> Result<()> {
        let mapper = Mapper::Tiles(Arc::new(self.tiling));
        let accesses = vec![Access::buffer(self.buffer(), AccessMode::ReadWrite, mapper)];
        let (all, ReductionTarget { elements, operator, .. }) = (self.tiling.tiles(), *reduction);
        // Of a node, about.
        let steps = (all / frontend.nodes() as u64).saturating_mul(elements as u64);
        let function = HostKernel::computing(steps, move |_, memory| {
            // SAFETY: this is called with what the access above is bound to, whose elements are so
            // many of type `T` each, and which nobody else touches.
            let mut partials = unsafe { PartialResults::<T>::new(&memory[0], elements) };
            for range in ranges(memory[0].region()) {
                fold_range(&mut partials, range, all, &operator);
            }
            Ok(())
        });
        let Title { name, location } = title.clone();
        let location = Some(location);
        // The kernel's chunks, so that each node finds what it has left.
        let space = IndexSpace { oversubscription: 1, ..self.space };
        let work = Work::HostSplit { space, group: None };
        let spec = TaskSpec { name, work, accesses, location };
        frontend.submit(spec, Payload::HostSplit(function))?;
        Ok(())
    }

    fn submit_combine<T: Element, O: Operator<T>>(
        &self,
        title: Title,
        frontend: &NodeFrontend,
        reduction: ReductionTarget<O>,
        Shares { reads, roots, .. }: Shares,
    ) -> Result<()> {
        let ReductionTarget { result, elements, operator, includes_current } = reduction;
        let mode = if includes_current { AccessMode::ReadWrite } else { AccessMode::Write };
        let accesses = vec![
            Access::buffer(result, mode, Mapper::All),
            Access::buffer(self.buffer(), AccessMode::Read, reads),
        ];
        let steps = (roots.len() as u64).saturating_mul(elements as u64);
        let function = HostFunction::computing(steps, move |memory| {
            // SAFETY: this is called with what the accesses above are bound to: elements of type
            // `T`, all of them, and so many of them for each partial result; nobody else writes the
            // ones or touches the others.
            let [mut whole, partials] = unsafe {
                [
                    PartialResults::<T>::new(&memory[0], elements),
                    PartialResults::new(&memory[1], elements),
                ]
            };
            let values = roots.iter().map(|&(root, place)| (root, partials.at(place)));
            let combined = tree(&operator, elements, values);
            let result = whole.at_mut(0);
            match includes_current {
                true => combine_each(&operator, result, &combined),
                false => result.copy_from_slice(&combined),
            }
            Ok(())
        });
        let Title { name, location } = title;
        let work = Work::Combine { operator: identity_of::<T, O>() };
        let spec = TaskSpec { name, work, accesses, location: Some(location) };
        frontend.submit(spec, Payload::Host(function))?;
        Ok(())
    }
}

/// A number for an operator and what it combines, by the names of their types: the same on all nodes
/// that run one program.
fn identity_of<T, O>() -> u64 {
    let mut hash = StreamHash::default();
    hash.bytes(type_name::<(T, O)>().as_bytes());
    hash.value()
}

/// The tiles whose partial results are in a region, as ranges of consecutive ones.
fn ranges(region: &Region) -> impl Iterator<Item = Range<u64>> {
    region.boxes().iter().map(|part| part.min()[0]..part.max()[0])
}

/// Folds the partial results of a range of tiles to those of the largest subtrees in it, which take
/// the first places.
fn fold_range<T: Element, O: Operator<T>>(
    partials: &mut PartialResults<'_, T>,
    tiles: Range<u64>,
    all: u64,
    operator: &O,
) {
    let first = tiles.start;
    let of_root = |root: Subtree| {
        let leaves = root.first()..root.end().min(all);
        let leaves = leaves.map(|tile| (Subtree::leaf(tile), partials.at(tile)));
        tree(operator, partials.elements(), leaves)
    };
    let folded: Vec<_> = Subtree::covering(tiles, all).map(of_root).collect();
    for (place, value) in (first..).zip(folded) {
        partials.at_mut(place).copy_from_slice(&value);
    }
}

/// Of so many elements at a time all partial results are combined: what they have of these stays in a cache.
const TOGETHER: usize = 1024;

/// The values of consecutive subtrees as one; the identity of none. On a thread of a pool all of its threads take part
/// where there is enough to do.
fn tree<'v, T: Element, O: Operator<T>>(
    operator: &O,
    elements: usize,
    values: impl Iterator<Item = (Subtree, &'v [T])>,
) -> Vec<T> {
    if elements == 1 {
        let values = values.map(|(subtree, value)| (subtree, value[0]));
        let combined = fold(values, |earlier, later| operator.combine(earlier, later));
        return vec![combined.unwrap_or_else(|| operator.identity())];
    }
    let values: Vec<_> = values.collect();
    let mut combined = vec![operator.identity(); elements];
    let combine = |(block, target): (usize, &mut [T])| {
        let first = block * TOGETHER;
        let part = |value: &'v [T]| Cow::Borrowed(&value[first..first + target.len()]);
        let parts = values.iter().map(|&(subtree, value)| (subtree, part(value)));
        if let Some(whole) = fold(parts, |earlier, later| combine_parts(operator, earlier, later)) {
            target.copy_from_slice(&whole);
        }
    };
    // A thread outside of the pool must not ask `rayon`, which would start another pool.
    if rayon::current_thread_index().is_some() {
        combined.par_chunks_mut(TOGETHER).enumerate().for_each(combine);
    } else {
        combined.chunks_mut(TOGETHER).enumerate().for_each(combine);
    }
    combined
}

/// Combines each element of two arrays, in whichever of them is nobody else's.
fn combine_parts<'v, T: Element, O: Operator<T>>(
    operator: &O,
    earlier: Cow<'v, [T]>,
    later: Cow<'v, [T]>,
) -> Cow<'v, [T]> {
    match (earlier, later) {
        (Cow::Owned(mut earlier), later) => {
            combine_each(operator, &mut earlier, &later);
            Cow::Owned(earlier)
        }
        (earlier, Cow::Owned(mut later)) => {
            for (earlier, later) in earlier.iter().zip(&mut later) {
                *later = operator.combine(*earlier, *later);
            }
            Cow::Owned(later)
        }
        (earlier, later) => {
            let pairs = earlier.iter().zip(&*later);
            Cow::Owned(pairs.map(|(earlier, later)| operator.combine(*earlier, *later)).collect())
        }
    }
}

fn combine_each<T: Element, O: Operator<T>>(operator: &O, earlier: &mut [T], later: &[T]) {
    for (earlier, later) in earlier.iter_mut().zip(later) {
        *earlier = operator.combine(*earlier, *later);
    }
}
