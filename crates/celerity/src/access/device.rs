//! What calls on devices get for their accesses: where each lies, and on CPU devices a view of it.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use celerity_executor::BoundMemory;
use celerity_kernel::{Bounds, Layout, PartView, PartViewMut};
use celerity_regions::Subrange;

use super::elements::AccessedElements;
use super::kernel::sealed::Sealed;
use super::memories::{Memories, next};
use super::{Lowering, ReadAccess, WriteAccess};
use crate::buffer::Element;
use crate::device_call::DeviceCallError;
use crate::error::Result;
use crate::mapper::{
    All, DisjointMapper, Fixed, MapperFor, OneToOne, PerDimension, Shifted, Slice,
};
use crate::range::{bounds, subrange};
use crate::tuples::for_tuples;

/// The part of a buffer that a [call on a device](crate::TaskBuilder::device_call) may read: its
/// address on the device, and how it lies there.
///
/// The part lies in an *allocation*, a box of the buffer that may be larger. Both are row-major,
/// the last dimension dense: the element at index `i` of the buffer is
/// `Σ (i[d] - subrange().offset[d]) · strides()[d]` elements behind [`as_ptr`](Self::as_ptr).
///
/// On CPU devices [`on_host`](Self::on_host) is the same part as a view like those of host tasks.
pub struct DeviceView<'a, T, const D: usize> {
    memory: BoundMemory<'a>,
    on_host: bool,
    elements: PhantomData<&'a [T]>,
}

/// The part of a buffer that a [call on a device](crate::TaskBuilder::device_call) writes, or reads
/// and writes: as a [`DeviceView`], which it can be used as.
pub struct DeviceViewMut<'a, T, const D: usize> {
    view: DeviceView<'a, T, D>,
    exclusive: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element, const D: usize> DeviceView<'a, T, D> {
    /// # Safety
    /// `memory` keeps the executor's promise during `'a`, for a buffer of `D` dimensions with
    /// elements of type `T`; on the host, if it says so.
    unsafe fn new(memory: BoundMemory<'a>, on_host: bool) -> Self {
        Self { memory, on_host, elements: PhantomData }
    }

    /// The address of the first element of [`subrange`](Self::subrange), in the device's memory: a
    /// `CUdeviceptr` on GPUs. Without an element it must not be followed.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.first()
    }

    /// Elements between neighbours in each dimension of the buffer; 1 in the last. Of a matrix, the
    /// first is what BLAS calls the leading dimension.
    #[must_use]
    pub fn strides(&self) -> [usize; D] {
        self.layout().strides()
    }

    /// The box that was accessed, in indices of the buffer; what surrounds it, if there are several
    /// [boxes](Self::boxes).
    #[must_use]
    pub fn subrange(&self) -> Subrange<D> {
        subrange(&self.part())
    }

    /// The boxes that were accessed, which do not overlap: one, but for neighbourhoods along axes
    /// and periodic ones. What lies between them must not be touched.
    pub fn boxes(&self) -> impl Iterator<Item = Subrange<D>> + use<'a, T, D> {
        self.memory.region().boxes().iter().map(|part| subrange(&bounds(part)))
    }

    /// The box of the buffer that the allocation holds, around the part.
    #[must_use]
    pub fn allocation(&self) -> Subrange<D> {
        subrange(&self.extent())
    }

    /// How many elements were accessed.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.memory.region().volume()).unwrap_or(usize::MAX)
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory.region().is_empty()
    }

    /// Elements from the first of [`subrange`](Self::subrange) to the last, those that lie between
    /// its rows counted as well.
    #[must_use]
    pub fn span(&self) -> usize {
        let (part, layout) = (self.part(), self.layout());
        if self.is_empty() {
            return 0;
        }
        let last = part.max().map(|end| end - 1);
        layout.position(last) - layout.position(part.min()) + 1
    }

    /// Whether the part is one box whose elements lie side by side.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.memory.region().boxes().len() <= 1 && self.span() == self.len()
    }

    /// The part as a view, on a device whose memory is the host's.
    ///
    /// # Errors
    /// [`DeviceCallError`], if it is a GPU's, or of several boxes.
    pub fn on_host(&self) -> Result<PartView<'_, T, D>, DeviceCallError> {
        self.check_host()?;
        // SAFETY: `new` was promised that the memory is live, and on the host. Nobody writes what
        // is bound to a read; what is bound to a write is reached through `DeviceViewMut` alone,
        // which is borrowed meanwhile.
        Ok(unsafe { AccessedElements::new(&self.memory).part() })
    }

    fn check_host(&self) -> Result<(), DeviceCallError> {
        match self.memory.region().boxes().len() {
            _ if !self.on_host => Err(DeviceCallError::OnDevice),
            0 | 1 => Ok(()),
            boxes => Err(DeviceCallError::SeveralBoxes { boxes }),
        }
    }

    fn first(&self) -> *mut T {
        let position = if self.is_empty() { 0 } else { self.layout().position(self.part().min()) };
        self.memory.base().cast::<T>().wrapping_add(position)
    }

    fn part(&self) -> Bounds<D> {
        match self.is_empty() {
            true => Bounds::EMPTY,
            false => bounds(&self.memory.region().bounding_box()),
        }
    }

    fn extent(&self) -> Bounds<D> {
        let extent = self.memory.extent();
        if extent.is_empty() { Bounds::EMPTY } else { bounds(extent) }
    }

    fn layout(&self) -> Layout<D> {
        Layout::row_major(&self.extent())
    }
}

impl<T: Element, const D: usize> DeviceViewMut<'_, T, D> {
    /// As [`DeviceView::as_ptr`], to write.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.view.first()
    }

    /// As [`DeviceView::on_host`], to write.
    ///
    /// # Errors
    /// As [`DeviceView::on_host`].
    pub fn on_host_mut(&mut self) -> Result<PartViewMut<'_, T, D>, DeviceCallError> {
        self.view.check_host()?;
        // SAFETY: `DeviceView::new` was promised that the memory is live, on the host, and, as it
        // is bound to a write, nobody else's; this view of it is borrowed exclusively. The call is
        // the only one for the chunk, so that `part_mut` is that of all its elements.
        let elements: AccessedElements<'_, T, D> =
            unsafe { AccessedElements::new(&self.view.memory) };
        let part = elements.single_box();
        // SAFETY: as above; `AccessedElements::part_mut` checks that the part was declared.
        Ok(unsafe { elements.into_part_mut(part) })
    }
}

impl<'a, T, const D: usize> Deref for DeviceViewMut<'a, T, D> {
    type Target = DeviceView<'a, T, D>;

    fn deref(&self) -> &Self::Target {
        &self.view
    }
}

impl<T: Element, const D: usize> fmt::Debug for DeviceView<'_, T, D> {
    /// As in `DeviceView(0x7f0000000400, [4, 0] + [2, 8], strides [8, 1])`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, strides) = (self.subrange(), self.strides());
        let (first, Subrange { offset, range }) = (self.first(), part);
        write!(f, "DeviceView({first:p}, {offset:?} + {range:?}, strides {strides:?})")
    }
}

impl<T: Element, const D: usize> fmt::Debug for DeviceViewMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

/// An access that a [call on a device](crate::TaskBuilder::device_call) over `K` dimensions can
/// have: reads through any mapper, writes through those that keep chunks apart; sealed.
#[diagnostic::on_unimplemented(
    message = "a call on a device over {K} dimensions cannot have the access `{Self}`",
    label = "not an access that a call on a device can have",
    note = "it reads through any range mapper, and writes through `one_to_one`, `slice`, \
            `per_dimension` or `disjoint_mapper`, or, if it is not cut, `all` or `fixed`"
)]
pub trait CallAccess<const K: usize>: Sealed {
    /// What the function gets.
    type View<'a>;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<()>;

    /// Takes its memory.
    ///
    /// # Safety
    /// The next of `memory` keeps the executor's promise for this access of a chunk, during `'a`; on the
    /// host, if it says so.
    #[doc(hidden)]
    unsafe fn view<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::View<'a>;
}

impl<T: Element, M, const K: usize, const D: usize> CallAccess<K> for ReadAccess<T, D, M>
where
    M: MapperFor<K, D>,
{
    type View<'a> = DeviceView<'a, T, D>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
        self.lower_to::<K>(lowering)
    }

    unsafe fn view<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::View<'a> {
        // SAFETY: passed on.
        unsafe { DeviceView::new(*next(memory), on_host) }
    }
}

/// Through mappers whose images of different chunks do not overlap, or that are refused when the
/// task is submitted, if they do.
macro_rules! call_writes {
    ([$($generics:tt)*] $mapper:ty, $k:tt, $d:tt) => {
        impl<T: Element, $($generics)*> CallAccess<$k> for WriteAccess<T, $d, $mapper> {
            type View<'a> = DeviceViewMut<'a, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<$k>(lowering)
            }

            unsafe fn view<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::View<'a> {
                // SAFETY: passed on.
                let view = unsafe { DeviceView::new(*next(memory), on_host) };
                DeviceViewMut { view, exclusive: PhantomData }
            }
        }
    };
}

call_writes!([const N: usize] OneToOne, N, N);
call_writes!([const N: usize] Shifted<N>, N, N);
call_writes!([const N: usize] Slice, N, N);
call_writes!([const K: usize, const D: usize] All, K, D);
call_writes!([const K: usize, const D: usize] Fixed<D>, K, D);
call_writes!([const K: usize, const D: usize] PerDimension<D>, K, D);
call_writes!([const K: usize, const D: usize] DisjointMapper<K, D>, K, D);

/// The accesses of a [call on a device](crate::TaskBuilder::device_call): one access, an array of accesses
/// of one type, or a tuple of up to twenty of these; sealed. The function gets the views in the same order.
#[diagnostic::on_unimplemented(
    message = "a call on a device over {K} dimensions cannot have the accesses `{Self}`",
    label = "not accesses that a call on a device can have",
    note = "it reads through any range mapper, and writes through `one_to_one`, `slice`, \
            `per_dimension` or `disjoint_mapper`, or, if it is not cut, `all` or `fixed`"
)]
pub trait CallAccesses<const K: usize>: Sealed {
    /// What the function gets.
    type Views<'a>;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<()>;

    /// # Safety
    /// As [`CallAccess::view`], for all of its accesses, in order.
    #[doc(hidden)]
    unsafe fn views<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::Views<'a>;
}

macro_rules! tuple_call_accesses {
    ($($access:ident $name:ident $index:tt),*) => {
        impl<const K: usize, $($access: CallAccess<K>),*> CallAccesses<K> for ($($access,)*) {
            type Views<'a> = ($($access::View<'a>,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                lowering.reserve(<[usize]>::len(&[$($index),*]));
                $(self.$index.lower(lowering)?;)*
                Ok(())
            }

            #[allow(unused_variables, clippy::unused_unit)]
            unsafe fn views<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::Views<'a> {
                ($({
                    // SAFETY: passed on.
                    unsafe { $access::view(memory, on_host) }
                },)*)
            }
        }
    };
}

for_tuples!(tuple_call_accesses);

/// A single access is a tuple of one whose function gets the view bare.
macro_rules! single_call_access {
    ([$($generics:tt)*] $access:ty) => {
        impl<$($generics)*, const K: usize> CallAccesses<K> for $access
        where
            Self: CallAccess<K>,
        {
            type Views<'a> = <Self as CallAccess<K>>::View<'a>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                <Self as CallAccess<K>>::lower(self, lowering)
            }

            unsafe fn views<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::Views<'a> {
                // SAFETY: passed on.
                unsafe { <Self as CallAccess<K>>::view(memory, on_host) }
            }
        }
    };
}

single_call_access!([T, M, const D: usize] ReadAccess<T, D, M>);
single_call_access!([T, M, const D: usize] WriteAccess<T, D, M>);
single_call_access!([A: Sealed, const N: usize] [A; N]);
