//! Side effects in the tuple of a host task: what they are lowered to, and what the task gets.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_executor::BoundMemory;

use super::Lowering;
use super::host::{HostAccess, HostAccesses, single_host_access};
use super::kernel::sealed::Sealed;
use super::memories::Memories;
use crate::error::Result;
use crate::object::{
    Borrowed, BorrowedMut, Exclusive, ObjectCell, Order, Relaxed, Sequential, SideEffect,
};

impl<T, O> Sealed for SideEffect<T, O> {}

/// What changes the object gets it alone.
macro_rules! changing {
    ($order:ty) => {
        impl<T: Send + 'static, const K: usize> HostAccess<K> for SideEffect<T, $order> {
            type View<'a> = &'a mut T;
            type Plan = Arc<ObjectCell<T>>;
            type Bound<'m> = BorrowedMut<T>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.push_object(&self.object, <$order>::ORDER)
            }

            unsafe fn bind<'m>(plan: Self::Plan, _: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                ObjectCell::borrow_mut(plan)
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> &'a mut T {
                bound
            }
        }
    };
}

changing!(Sequential);
changing!(Exclusive);

impl<T: Send + Sync + 'static, const K: usize> HostAccess<K> for SideEffect<T, Relaxed> {
    type View<'a> = &'a T;
    type Plan = Arc<ObjectCell<T>>;
    type Bound<'m> = Borrowed<T>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        lowering.push_object(&self.object, Relaxed::ORDER)
    }

    unsafe fn bind<'m>(plan: Self::Plan, _: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        ObjectCell::borrow(plan)
    }

    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> &'a T {
        bound
    }
}

single_host_access!([T, O] SideEffect<T, O>);
