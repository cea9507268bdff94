//! Copies boxes of elements between two row-major arrays: the one place that
//! moves bytes. Knows geometry and addresses, neither buffers nor devices.
#![allow(unsafe_code)]

use celerity_regions::{Box3, Region, split_along};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use crate::memory::BasePtr;

mod cut;

pub use cut::cut_elements;

/// Elements of a box, row-major and dense from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementArray {
    /// The first element of `extent`.
    pub base: BasePtr,
    /// Which elements are there.
    pub extent: Box3,
}

/// Below this many bytes a copy is not worth splitting: a core moves them in
/// about 100 µs, some twenty times what waking another thread costs.
const SPLIT_ABOVE: u64 = 1 << 20;

/// Copies `elements` of `elem_size` bytes each from `source` to `target`.
///
/// Dimensions that are contiguous in both arrays collapse into one `memcpy`;
/// what is left goes row by row.
///
/// # Safety
/// Both extents contain `elements`; both arrays are live over their whole
/// extents; the elements do not overlap in memory; nobody writes those of
/// `source` and nobody touches those of `target` meanwhile.
pub unsafe fn copy_elements(
    source: ElementArray,
    target: ElementArray,
    elements: &Box3,
    elem_size: u64,
) {
    debug_assert!(source.extent.contains(elements), "{elements} is not in {}", source.extent);
    debug_assert!(target.extent.contains(elements), "{elements} is not in {}", target.extent);
    if elements.is_empty() {
        return;
    }
    let plan = CopyPlan::new(&source.extent, &target.extent, elements, elem_size);
    #[cfg(feature = "mutants")]
    let plan = celerity_mutants::Mutant::CopyMissesLastRow.alter(plan, CopyPlan::without_last_row);
    for outer in 0..plan.rows[0] {
        for inner in 0..plan.rows[1] {
            let from = plan.source.offset(outer, inner);
            let to = plan.target.offset(outer, inner);
            // SAFETY: rows of `elements` lie in both extents, which are live;
            // the caller rules out overlap and races.
            unsafe {
                let (from, to) = (source.base.as_ptr().add(from), target.base.as_ptr().add(to));
                std::ptr::copy_nonoverlapping(from, to, plan.run);
            }
        }
    }
}

/// [`copy_elements`] of each box of a region, spread over the `rayon` pool that the thread is in, if there is one and the region is
/// large.
///
/// # Safety
/// As for [`copy_elements`].
pub unsafe fn copy_region(
    source: ElementArray,
    target: ElementArray,
    region: &Region,
    elem_size: u64,
) {
    let copy_all = |parts: &[Box3]| {
        for part in parts {
            // SAFETY: passed on; the boxes of a region are disjoint.
            unsafe { copy_elements_spread(source, target, part, elem_size) };
        }
    };
    match (region.boxes(), pieces_for(region.volume(), elem_size)) {
        ([_] | [], _) | (_, 0 | 1) => copy_all(region.boxes()),
        (parts, pieces) => parts.par_chunks(parts.len().div_ceil(pieces)).for_each(copy_all),
    }
}

/// In how many pieces so many elements are copied, by the `rayon` pool that the thread is in.
fn pieces_for(elements: u64, elem_size: u64) -> usize {
    let bytes = elements.saturating_mul(elem_size);
    let pieces = usize::try_from(bytes / SPLIT_ABOVE).unwrap_or(usize::MAX);
    // A thread outside of a pool must not ask `rayon`, which would start another pool.
    pieces.min(rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads()))
}

/// [`copy_elements`], spread over the `rayon` pool that the thread is in, if there is one and the box is large.
///
/// # Safety
/// As for [`copy_elements`].
pub unsafe fn copy_elements_spread(
    source: ElementArray,
    target: ElementArray,
    elements: &Box3,
    elem_size: u64,
) {
    let pieces = pieces_for(elements.volume(), elem_size);
    if pieces < 2 {
        // SAFETY: passed on.
        return unsafe { copy_elements(source, target, elements, elem_size) };
    }
    let range = elements.range();
    let dim = (0..3).find(|&dim| range[dim] >= pieces as u64).unwrap_or(0);
    split_along(elements, dim, [1; 3], pieces).into_par_iter().for_each(|piece| {
        // SAFETY: pieces are disjoint parts of `elements`.
        unsafe { copy_elements(source, target, &piece, elem_size) }
    });
}

/// A copy as up to two loops around one contiguous run.
#[derive(Debug, PartialEq, Eq)]
struct CopyPlan {
    /// Bytes per run.
    run: usize,
    /// Number of runs, outer and inner.
    rows: [usize; 2],
    source: Strides,
    target: Strides,
}

/// Byte offsets of runs in one array.
#[derive(Debug, PartialEq, Eq)]
struct Strides {
    first: usize,
    steps: [usize; 2],
}

impl CopyPlan {
    fn new(source: &Box3, target: &Box3, elements: &Box3, elem_size: u64) -> Self {
        let [planes, lines, columns] = elements.range();
        let spans = |dim: usize| {
            let length = elements.range()[dim];
            length == source.range()[dim] && length == target.range()[dim]
        };
        let (run, rows) = match (spans(2), spans(1)) {
            (true, true) => (planes * lines * columns, [1, 1]),
            (true, false) => (lines * columns, [1, planes]),
            (false, _) => (columns, [planes, lines]),
        };
        // A step of the inner loop is a plane if lines have collapsed.
        let inner_dim = if spans(2) { 0 } else { 1 };
        Self {
            run: bytes(run * elem_size),
            rows: rows.map(bytes),
            source: Strides::new(source, elements, inner_dim, elem_size),
            target: Strides::new(target, elements, inner_dim, elem_size),
        }
    }
}

#[cfg(feature = "mutants")]
impl CopyPlan {
    fn without_last_row(self) -> Self {
        let [outer, inner] = self.rows;
        Self { rows: [outer, inner.max(2) - 1], ..self }
    }
}

impl Strides {
    fn new(extent: &Box3, elements: &Box3, inner_dim: usize, elem_size: u64) -> Self {
        let [_, lines, columns] = extent.range();
        let steps = [lines * columns, columns, 1];
        let (origin, min) = (extent.min(), elements.min());
        let first: u64 = (0..3).map(|dim| (min[dim] - origin[dim]) * steps[dim]).sum();
        Self {
            first: bytes(first * elem_size),
            steps: [bytes(steps[0] * elem_size), bytes(steps[inner_dim] * elem_size)],
        }
    }

    fn offset(&self, outer: usize, inner: usize) -> usize {
        self.first + outer * self.steps[0] + inner * self.steps[1]
    }
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).expect("live memory fits the address space")
}

#[cfg(test)]
mod tests;
