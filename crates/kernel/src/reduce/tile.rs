//! Reducers as the threads of a block have them: accumulators in registers, and how those of a tile
//! become its partial result. Knows neither which items a thread takes nor how a block meets.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;

#[cfg(target_arch = "nvptx64")]
use super::elements::TileAccumulators;
use super::{ArrayReducer, Operator, Reducer};
use crate::abi::{AccessBlock, DevicePointer, ExclusivePointer, RUN, ViewKind, ViewParameter};
use crate::view::DeviceElement;

/// A view through which the items of a tile combine values; sealed.
///
/// The hidden part is between the code that `#[kernel]` generates and the views.
#[diagnostic::on_unimplemented(
    message = "a compiled kernel cannot reduce through `{Self}`",
    label = "devices make no such reduction",
    note = "`Reducer<'_, T, O>` and `ArrayReducer<'_, T, O, D>` combine values of type `T` by the \
            operator `O`, which implements `Operator<T>` and `Default`: devices make it anew"
)]
pub trait Reduction: sealed::Sealed {
    /// The view in a signature.
    const PARAMETER: ViewParameter;

    /// The base address of partial results in a signature.
    #[doc(hidden)]
    type Pointer: DevicePointer;
}

/// What the threads of a block do with a [`Reduction`] for a tile.
#[doc(hidden)]
pub trait InTile: Reduction {
    /// What a thread keeps while items are combined.
    type Tile;

    /// Before the first item; then the threads meet.
    ///
    /// # Safety
    /// `pointer` and `block` come from [`write_parameters`](crate::abi::write_parameters), for a
    /// launch that computes the tile `number` in this block alone, and the memory is there until
    /// the tile has ended. `team` is the block.
    unsafe fn begin(
        pointer: &mut Self::Pointer,
        block: &AccessBlock,
        number: u64,
        team: &impl Team,
    ) -> Self::Tile;

    /// The view of an item that is combined into the `nth` accumulator of the thread.
    ///
    /// # Safety
    /// The view is gone before the tile is.
    unsafe fn view(tile: &Self::Tile, nth: usize) -> Self;

    /// When the threads have met behind the last item, each with so many accumulators: 1, 2, or 4. All of them call this.
    ///
    /// # Safety
    /// As [`begin`](Self::begin).
    unsafe fn end(tile: &Self::Tile, lanes: usize, team: &impl Team);
}

/// How many threads meet without waiting for the rest of the block.
pub(crate) const WARP: u32 = 32;

/// A block's threads, and the memory in which they combine what they have.
pub trait Team {
    /// This thread's number.
    fn thread(&self) -> u32;

    /// How many there are.
    fn threads(&self) -> u32;

    /// Waits for all of them, after which each sees what others have stored.
    fn meet(&self);

    /// The same for threads whose numbers have the same quotient by 32, which alone call it.
    fn meet_in_warp(&self);

    /// The value at a place.
    ///
    /// # Safety
    /// A value of this type was stored there, or by another thread before they last met.
    unsafe fn load<T: Copy>(&self, place: u32) -> T;

    /// Replaces the value at a place.
    ///
    /// # Safety
    /// The memory has room for it: a value of any reduction for each accumulator that a block of the
    /// kernel can have. No other thread uses the place until they meet.
    unsafe fn store<T: Copy>(&self, place: u32, value: T);
}

/// A thread's accumulators of a tile, as many as there are items in a run, and where the tile's partial result goes.
pub struct Accumulators<T> {
    cells: [Cell<T>; RUN],
    result: *mut T,
}

impl<T> fmt::Debug for Accumulators<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accumulators")
    }
}

/// The operator on a device, which is made anew there.
#[inline(always)]
fn operator<O: Default>() -> O {
    const { assert!(size_of::<O>() == 0, "the operator of a compiled kernel has no fields") };
    O::default()
}

impl<T: DeviceElement, O: Operator<T> + Default> Reduction for Reducer<'_, T, O> {
    const PARAMETER: ViewParameter = ViewParameter {
        kind: ViewKind::Reducer { commutes: O::IS_COMMUTATIVE },
        writes: true,
        dims: 0,
        size: size_of::<T>(),
        align: align_of::<T>(),
    };
    type Pointer = ExclusivePointer<T>;
}

impl<T: DeviceElement, O: Operator<T> + Default> InTile for Reducer<'_, T, O> {
    type Tile = Accumulators<T>;

    #[inline(always)]
    unsafe fn begin(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        number: u64,
        _team: &impl Team,
    ) -> Accumulators<T> {
        let identity = operator::<O>().identity();
        let place = (number - block.origin[0]) as usize;
        // SAFETY: the allocation holds the partial result of every tile of the launch.
        let result = unsafe { pointer.address().add(place) };
        Accumulators { cells: core::array::from_fn(|_| Cell::new(identity)), result }
    }

    #[inline(always)]
    unsafe fn view(tile: &Accumulators<T>, nth: usize) -> Self {
        let cell: *const Cell<T> = &raw const tile.cells[nth];
        // SAFETY: the caller keeps the tile longer than the view.
        Self::new(unsafe { &*cell }, operator())
    }

    #[inline(always)]
    unsafe fn end(tile: &Accumulators<T>, lanes: usize, team: &impl Team) {
        let (operator, [a, b, c, d]) = (operator::<O>(), tile.cells.each_ref().map(Cell::get));
        // SAFETY: passed on.
        let value = unsafe {
            match lanes {
                1 => halved([a], operator, team)[0],
                2 => {
                    let [a, b] = halved([a, b], operator, team);
                    operator.combine(a, b)
                }
                _ => {
                    let [a, b, c, d] = halved([a, b, c, d], operator, team);
                    operator.combine(operator.combine(a, c), operator.combine(b, d))
                }
            }
        };
        if team.thread() == 0 {
            // SAFETY: the tile's partial result, which this block alone writes.
            unsafe { tile.result.write(value) };
        }
    }
}

/// The values of the threads, which are neighbours, as those of thread 0: halved from the top until one thread's are left.
/// If threads are no power of two, some have no other at first.
///
/// # Safety
/// As [`InTile::end`].
#[inline(always)]
unsafe fn halved<T: Copy, O: Operator<T>, const N: usize>(
    mut values: [T; N],
    operator: O,
    team: &impl Team,
) -> [T; N] {
    let (thread, threads) = (team.thread(), team.threads());
    let mut half = threads.next_power_of_two() / 2;
    // The memory may still hold what another reduction is being read from.
    team.meet();
    // Threads beside each other store side by side.
    let place = |thread: u32, nth: usize| thread + nth as u32 * threads;
    for (nth, &value) in values.iter().enumerate() {
        // SAFETY: here and below, a place belongs to one thread, and is read by another only when they have met.
        unsafe { team.store(place(thread, nth), value) };
    }
    let mut combine = |half: u32| {
        for (nth, value) in values.iter_mut().enumerate() {
            // SAFETY: as above; the other has met this thread since it stored its value, and stores no
            // more, since it is beyond the half.
            unsafe {
                *value = operator.combine(*value, team.load(place(thread + half, nth)));
                team.store(place(thread, nth), *value);
            }
        }
    };
    while half >= WARP {
        team.meet();
        if thread < half && thread + half < threads {
            combine(half);
        }
        half /= 2;
    }
    // What is left belongs to the first warp, which need not wait for others.
    if thread < WARP {
        while half > 0 {
            team.meet_in_warp();
            if thread < half && thread + half < threads {
                combine(half);
            }
            half /= 2;
        }
    }
    values
}

impl<T: DeviceElement, O: Operator<T> + Default, const D: usize> Reduction
    for ArrayReducer<'_, T, O, D>
{
    const PARAMETER: ViewParameter = ViewParameter {
        kind: ViewKind::ArrayReducer { exact: O::IS_EXACT, commutes: O::IS_COMMUTATIVE },
        writes: true,
        dims: D,
        size: size_of::<T>(),
        align: align_of::<T>(),
    };
    type Pointer = ExclusivePointer<T>;
}

#[cfg(target_arch = "nvptx64")]
impl<T: DeviceElement, O: Operator<T> + Default, const D: usize> InTile
    for ArrayReducer<'_, T, O, D>
{
    type Tile = ArrayReducer<'static, T, O, D>;

    #[inline(always)]
    unsafe fn begin(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        number: u64,
        team: &impl Team,
    ) -> Self::Tile {
        let (operator, range) = (operator::<O>(), crate::abi::first(block.buffer));
        let place = (number - block.origin[0]) as usize * block.strides[0] as usize;
        // SAFETY: the allocation holds so many elements for every tile of the launch.
        let result = unsafe { pointer.address().add(place) };
        // SAFETY: passed on: this block's alone, in which all threads touch it through this.
        let elements = unsafe { TileAccumulators::new(result, block.detail) };
        let count = block.strides[0] as u32;
        for element in (team.thread()..count).step_by(team.threads() as usize) {
            // SAFETY: an element of the tile's, and no other thread's until they meet.
            unsafe { elements.set(element, operator.identity()) };
        }
        ArrayReducer { accumulators: elements, range, operator }
    }

    #[inline(always)]
    unsafe fn view(tile: &Self::Tile, _nth: usize) -> Self {
        ArrayReducer { accumulators: tile.accumulators, range: tile.range, operator: operator() }
    }

    #[inline(always)]
    unsafe fn end(tile: &Self::Tile, _lanes: usize, team: &impl Team) {
        let count = tile.range.iter().product::<usize>() as u32;
        for element in (team.thread()..count).step_by(team.threads() as usize) {
            // SAFETY: an element of the tile's, and no other thread's now.
            unsafe { tile.accumulators.publish(element) };
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T, O> Sealed for super::Reducer<'_, T, O> {}
    impl<T, O, const D: usize> Sealed for super::ArrayReducer<'_, T, O, D> {}
}
