//! Views as kernels on devices get them: for each type of view, how it is called
//! in a signature and how it is made from the parameters of a launch.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use crate::abi::{
    AccessBlock, DevicePointer, ExclusivePointer, Inside, Place, SharedPointer, ViewKind,
    ViewParameter,
};
use crate::atomic::{Atomic, AtomicView};
use crate::bounds::{Bounds, Layout};
use crate::neighborhood::{Limits, NeighborhoodItem, NeighborhoodRow, Reach};
use crate::outside::RowOf;
use crate::part::PartView;
use crate::part_mut::PartViewMut;
use crate::periodic::{PeriodicItem, PeriodicRow};
use crate::whole::WholeView;

/// A type of view that a kernel over `K` dimensions can have; sealed.
///
/// The hidden part is between the code that `#[kernel]` generates and the views.
#[diagnostic::on_unimplemented(
    message = "a {K}-dimensional kernel cannot have the view `{Self}`",
    label = "not a view that this kernel can have",
    note = "`&T`, `&mut T`, `&[T]`, `&mut [T]`, neighbourhoods and `PartViewMut` need an index space and a buffer \
            of equal dimensionality, such as [1, n] for n columns; `WholeView`, `PartView` and `AtomicView` may differ \
            from it"
)]
pub trait View<const K: usize>: sealed::Sealed {
    /// The view in a signature.
    const PARAMETER: ViewParameter;

    /// The base address in a signature.
    #[doc(hidden)]
    type Pointer: DevicePointer;

    /// What a view borrows from.
    #[doc(hidden)]
    type State;

    /// # Safety
    /// `pointer` and `block` come from [`write_parameters`], for a launch that
    /// `place` belongs to, and the memory is there while the state lives.
    ///
    /// [`write_parameters`]: crate::abi::write_parameters
    #[doc(hidden)]
    unsafe fn state(
        pointer: &mut Self::Pointer,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> Self::State;

    /// # Safety
    /// The view is gone before the state is, and there is one at a time.
    #[doc(hidden)]
    unsafe fn view(state: &mut Self::State) -> Self;

    /// What is to be done when the kernel has been called.
    ///
    /// # Safety
    /// As [`View::state`], and the view is gone.
    #[doc(hidden)]
    #[inline]
    unsafe fn finish(_: Self::State) {}
}

/// What elements of views on devices are.
pub trait DeviceElement: Copy + Send + Sync + 'static {}

impl<T: Copy + Send + Sync + 'static> DeviceElement for T {}

const fn parameter<T>(kind: ViewKind, writes: bool, dims: usize) -> ViewParameter {
    ViewParameter { kind, writes, dims, size: size_of::<T>(), align: align_of::<T>() }
}

/// The address of the first element that belongs to `place`.
///
/// # Safety
/// As [`View::state`], for a view of elements that belong to items.
#[inline]
unsafe fn own<P: DevicePointer, const K: usize>(
    pointer: &mut P,
    block: &AccessBlock,
    place: &Place<K>,
) -> *mut P::Element {
    // SAFETY: the allocation holds the element of every item of the launch, so also of the first one of a
    // run, behind which all others of it have theirs. No address of an element is null, which the compiler does not see.
    unsafe {
        let run = pointer.address().add(block.position(place.run_at(), place.run));
        core::hint::assert_unchecked(!run.is_null());
        run.add(place.within)
    }
}

impl<T: DeviceElement, const K: usize> View<K> for &T {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Own, false, K);
    type Pointer = SharedPointer<T>;
    type State = *const T;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> *const T {
        // SAFETY: passed on.
        unsafe { own(pointer, block, place) }
    }

    #[inline]
    unsafe fn view(state: &mut *const T) -> Self {
        // SAFETY: an element of the allocation, which the launch only reads.
        unsafe { &**state }
    }
}

impl<T: DeviceElement, const K: usize> View<K> for &mut T {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Own, true, K);
    type Pointer = ExclusivePointer<T>;
    type State = OwnElement<T>;

    #[inline]
    unsafe fn state(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> OwnElement<T> {
        // SAFETY: passed on; it is an element that this thread alone handles, whatever it holds.
        unsafe {
            let address = own(pointer, block, place);
            let is_kept = place.run > 1;
            let value = match is_kept {
                true => address.cast::<MaybeUninit<T>>().read(),
                false => MaybeUninit::uninit(),
            };
            OwnElement { address, value, is_kept }
        }
    }

    #[inline]
    unsafe fn view(state: &mut OwnElement<T>) -> Self {
        let address = if state.is_kept { state.value.as_mut_ptr() } else { state.address };
        // SAFETY: the element of an item that this thread alone handles, or what it held.
        unsafe { &mut *address }
    }

    #[inline]
    unsafe fn finish(OwnElement { address, value, is_kept }: OwnElement<T>) {
        if is_kept {
            // SAFETY: as in `state`.
            unsafe { address.cast::<MaybeUninit<T>>().write(value) }
        }
    }
}

/// An item's own element, which a kernel may write.
///
/// Of items in runs it is kept in registers until the kernel has returned. So nothing has been stored when a
/// kernel looks around for the last time, and what that checks is found out before the first run; of a kernel that
/// writes several elements, all that a run loads and stores is in one piece of code then, and moves 16 bytes at a time. An item that is
/// one by itself may be one of many that leave their elements as they are: that element stays where it is.
#[doc(hidden)]
#[derive(Debug)]
pub struct OwnElement<T> {
    address: *mut T,
    value: MaybeUninit<T>,
    is_kept: bool,
}

impl<T: DeviceElement, const K: usize> View<K> for &[T] {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Own, false, K);
    type Pointer = SharedPointer<T>;
    type State = (*const T, usize);

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> (*const T, usize) {
        // SAFETY: passed on.
        (unsafe { own(pointer, block, place) }, place.len)
    }

    #[inline]
    unsafe fn view(&mut (first, len): &mut (*const T, usize)) -> Self {
        // SAFETY: elements of the allocation, side by side, which are only read.
        unsafe { core::slice::from_raw_parts(first, len) }
    }
}

impl<T: DeviceElement, const K: usize> View<K> for &mut [T] {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Own, true, K);
    type Pointer = ExclusivePointer<T>;
    type State = (*mut T, usize);

    #[inline]
    unsafe fn state(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> (*mut T, usize) {
        // SAFETY: passed on.
        (unsafe { own(pointer, block, place) }, place.len)
    }

    #[inline]
    unsafe fn view(&mut (first, len): &mut (*mut T, usize)) -> Self {
        // SAFETY: elements of items that this thread alone handles.
        unsafe { core::slice::from_raw_parts_mut(first, len) }
    }
}

impl<'a, T: DeviceElement, const D: usize> View<D> for NeighborhoodRow<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Neighborhood, false, D);
    type Pointer = SharedPointer<T>;
    type State = NeighborhoodRow<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<D>,
    ) -> Self::State {
        let mut border = crate::abi::first(block.border);
        if let (Inside::Run, Some(fastest)) = (place.inside, border.last_mut()) {
            // As it is. What a kernel does for larger borders is left out then.
            *fastest = usize::min(*fastest, 1);
        }
        let reach = match block.axes_only {
            0 => Reach::boxed(border),
            _ => Reach::along_axes(border),
        };
        let strides = block.layout().strides();
        #[cfg(target_arch = "nvptx64")]
        let place = &place.on_the_ground();
        let limits = match place.inside {
            Inside::All => Limits::UNREACHED,
            Inside::Row | Inside::Run => {
                let (below, above) = block.room(place.run_at());
                let limits = Limits::inside_rows(place.run, below, above, strides);
                #[cfg(target_arch = "nvptx64")]
                let limits = limits.from_level(place.level, above, strides);
                match place.inside {
                    Inside::Run => limits.at_edges(place.run, place.within, below, above),
                    _ => limits,
                }
            }
            Inside::Unknown => Limits::of(crate::abi::first(block.buffer), place.start, place.len),
        };
        // SAFETY: the allocation holds what `reach` allows from every item.
        unsafe {
            let first = own(pointer, block, place);
            NeighborhoodRow::from_parts(first, strides, reach, limits, place.len)
        }
    }

    #[inline]
    unsafe fn view(state: &mut Self::State) -> Self {
        *state
    }
}

impl<'a, T: DeviceElement, const D: usize> View<D> for NeighborhoodItem<'a, T, D> {
    const PARAMETER: ViewParameter = <NeighborhoodRow<'a, T, D> as View<D>>::PARAMETER;
    type Pointer = SharedPointer<T>;
    type State = NeighborhoodRow<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<D>,
    ) -> Self::State {
        // SAFETY: passed on.
        unsafe { <NeighborhoodRow<'a, T, D> as View<D>>::state(pointer, block, place) }
    }

    #[inline]
    unsafe fn view(row: &mut Self::State) -> Self {
        let row: *const NeighborhoodRow<'a, T, D> = row;
        // SAFETY: the caller keeps the state longer than the view.
        unsafe { (*row).first_item() }
    }
}

impl<'a, T: DeviceElement, const D: usize> View<D> for PeriodicRow<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Periodic, false, D);
    type Pointer = SharedPointer<T>;
    type State = PeriodicRow<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<D>,
    ) -> Self::State {
        let along = core::array::from_fn(|dim| block.detail >> dim & 1 == 1);
        // SAFETY: passed on; the allocation holds what the border reaches from every item, at both
        // edges if it reaches over one.
        unsafe {
            let row = <NeighborhoodRow<'a, T, D> as View<D>>::state(pointer, block, place);
            PeriodicRow::from_parts(row, crate::abi::first(block.buffer), along)
        }
    }

    #[inline]
    unsafe fn view(state: &mut Self::State) -> Self {
        *state
    }
}

impl<'a, T: DeviceElement, const D: usize> View<D> for PeriodicItem<'a, T, D> {
    const PARAMETER: ViewParameter = <PeriodicRow<'a, T, D> as View<D>>::PARAMETER;
    type Pointer = SharedPointer<T>;
    type State = PeriodicRow<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<D>,
    ) -> Self::State {
        // SAFETY: passed on.
        unsafe { <PeriodicRow<'a, T, D> as View<D>>::state(pointer, block, place) }
    }

    #[inline]
    unsafe fn view(row: &mut Self::State) -> Self {
        let row: *const PeriodicRow<'a, T, D> = row;
        // SAFETY: the caller keeps the state longer than the view.
        unsafe { (*row).first_item() }
    }
}

impl<'a, T: DeviceElement, const K: usize, const D: usize> View<K> for WholeView<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Whole, false, D);
    type Pointer = SharedPointer<T>;
    type State = WholeView<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        _: &Place<K>,
    ) -> Self::State {
        let range: [usize; D] = crate::abi::first(block.buffer);
        let len = range.iter().product();
        // SAFETY: the allocation is the whole buffer, and is only read.
        WholeView::from_parts(unsafe { core::slice::from_raw_parts(pointer.address(), len) }, range)
    }

    #[inline]
    unsafe fn view(state: &mut Self::State) -> Self {
        *state
    }
}

impl<'a, T: DeviceElement, const K: usize, const D: usize> View<K> for PartView<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Part, false, D);
    type Pointer = SharedPointer<T>;
    type State = PartView<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut SharedPointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> Self::State {
        // SAFETY: the allocation holds the declared box, which is only read and begins there.
        unsafe {
            // Where that is, is found out once for all that an item of a group does. With what the host says, a product of matrices in
            // blocks had 0.98 of its rate: its 128 registers did not suffice any more.
            if place.in_group {
                return PartView::new(pointer.address(), block.layout(), declared(block));
            }
            let start = pointer.address().add(block.first as usize);
            let part = (declared(block), RowOf::Nothing);
            PartView::from_parts(start, block.layout::<D>().strides(), part)
        }
    }

    #[inline]
    unsafe fn view(state: &mut Self::State) -> Self {
        *state
    }
}

impl<'a, T: DeviceElement, const K: usize, const D: usize> View<K> for PartViewMut<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::OwnPart, true, D);
    type Pointer = ExclusivePointer<T>;
    type State = (*mut T, Layout<D>, Bounds<D>);

    #[inline]
    unsafe fn state(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        place: &Place<K>,
    ) -> Self::State {
        (pointer.address(), block.layout(), block.own_part(place.at, place.len))
    }

    #[inline]
    unsafe fn view(&mut (base, layout, part): &mut Self::State) -> Self {
        // SAFETY: the box of items that this thread alone handles.
        unsafe { PartViewMut::new(base, layout, part) }
    }
}

impl<'a, T: Atomic, const K: usize, const D: usize> View<K> for AtomicView<'a, T, D> {
    const PARAMETER: ViewParameter = parameter::<T>(ViewKind::Shared, true, D);
    type Pointer = ExclusivePointer<T>;
    type State = AtomicView<'static, T, D>;

    #[inline]
    unsafe fn state(
        pointer: &mut ExclusivePointer<T>,
        block: &AccessBlock,
        _: &Place<K>,
    ) -> Self::State {
        // SAFETY: the allocation holds the declared box, to which the launch has no
        // other way.
        unsafe { AtomicView::new(pointer.address(), block.layout(), declared(block)) }
    }

    #[inline]
    unsafe fn view(state: &mut Self::State) -> Self {
        *state
    }
}

/// The box that a launch has declared, which was one where the block was written.
#[inline]
fn declared<const D: usize>(block: &AccessBlock) -> Bounds<D> {
    Bounds::from_corners(crate::abi::first(block.part_min), crate::abi::first(block.part_max))
}

mod sealed {
    use super::*;

    pub trait Sealed {}
    impl<T> Sealed for &T {}
    impl<T> Sealed for &mut T {}
    impl<T> Sealed for &[T] {}
    impl<T> Sealed for &mut [T] {}
    impl<T, const D: usize> Sealed for NeighborhoodRow<'_, T, D> {}
    impl<T, const D: usize> Sealed for NeighborhoodItem<'_, T, D> {}
    impl<T, const D: usize> Sealed for PeriodicRow<'_, T, D> {}
    impl<T, const D: usize> Sealed for PeriodicItem<'_, T, D> {}
    impl<T, const D: usize> Sealed for WholeView<'_, T, D> {}
    impl<T, const D: usize> Sealed for PartView<'_, T, D> {}
    impl<T, const D: usize> Sealed for PartViewMut<'_, T, D> {}
    impl<T, const D: usize> Sealed for AtomicView<'_, T, D> {}
}
