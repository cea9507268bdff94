//! Reads of several boxes, by kernels and host tasks alike: the one view that leads to all of them.
#![allow(unsafe_code)]

use celerity_executor::BoundMemory;
use celerity_kernel::{Bounds, RegionView, Row};

use super::host::HostAccess;
use super::kernel::copied_view;
use super::memories::{Memories, next};
use super::{AccessedElements, KernelAccess, Lowering, ReadAccess, Rows};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::{Gapped, Periodic, RegionMapper};

/// The memory of a read, and the boxes in it that were declared.
#[doc(hidden)]
pub struct BoundRegion<'m, T, const D: usize> {
    elements: AccessedElements<'m, T, D>,
    boxes: Vec<Bounds<D>>,
}

impl<'m, T: Element, const D: usize> BoundRegion<'m, T, D> {
    /// # Safety
    /// As [`KernelAccess::bind`], for a read.
    unsafe fn new(memory: &BoundMemory<'m>) -> Self {
        // SAFETY: passed on.
        let elements = unsafe { AccessedElements::new(memory) };
        Self { boxes: elements.all_boxes(), elements }
    }

    #[inline]
    fn view(&self) -> RegionView<'_, T, D> {
        // SAFETY: nobody writes what is bound to a read, which `new` is told that it is, not through
        // another access of the task either: see `BoundMemory`.
        unsafe { self.elements.region(&self.boxes) }
    }
}

macro_rules! read_region {
    ($mapper:ty, $k:ident, $d:ident) => {
        impl<T: Element, const $k: usize, const $d: usize> KernelAccess<$k>
            for ReadAccess<T, $d, $mapper>
        {
            type ItemView<'a> = RegionView<'a, T, $d>;
            type RowView<'a> = RegionView<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = BoundRegion<'m, T, $d>;
            type Rows<'r> = RegionView<'r, T, $d>;
            type Cursor<'r> = RegionView<'r, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<$k>(lowering)
            }

            unsafe fn bind<'m>((): &'m (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { BoundRegion::new(next(memory)) }
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<$k>) -> Self::Rows<'r> {
                bound.view()
            }

            copied_view!($k);
        }

        host_region!([const $k: usize, const $d: usize] $mapper, $k, $d);
    };
}

/// What host tasks get of several boxes.
macro_rules! host_region {
    ([$($generics:tt)*] $mapper:ty, $k:ident, $d:ident) => {
        impl<T: Element, $($generics)*> HostAccess<$k> for ReadAccess<T, $d, $mapper> {
            type View<'a> = RegionView<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = BoundRegion<'m, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<$k>(lowering)
            }

            unsafe fn bind<'m>((): (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { BoundRegion::new(next(memory)) }
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
                BoundRegion::view(bound)
            }
        }
    };
}

read_region!(RegionMapper<K, D>, K, D);
read_region!(Gapped<D>, K, D);
// Items of a kernel look around themselves, parts of a host task have no centre.
host_region!([const N: usize] Periodic<N>, N, N);
