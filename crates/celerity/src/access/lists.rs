//! Lists of accesses of one type, whose number a program need not know: of a host task.
#![allow(unsafe_code)]

use celerity_executor::BoundMemory;

use super::Lowering;
use super::host::{HostAccess, HostAccesses, Memories, single_host_access};
use super::kernel::sealed::Sealed;
use crate::error::Result;

impl<A: Sealed> Sealed for Vec<A> {}
impl<A: Sealed, const N: usize> Sealed for [A; N] {}

impl<A: HostAccess<K>, const K: usize> HostAccess<K> for Vec<A> {
    type View<'a> = Vec<A::View<'a>>;
    type Plan = Vec<A::Plan>;
    type Bound<'m> = Vec<A::Bound<'m>>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        self.into_iter().map(|access| access.lower(lowering)).collect()
    }

    unsafe fn bind<'m>(plans: Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; each access takes as much of the memory as is its own, in order.
        plans.into_iter().map(|plan| unsafe { A::bind(plan, memory) }).collect()
    }

    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
        bound.iter_mut().map(A::view).collect()
    }
}

impl<A: HostAccess<K>, const K: usize, const N: usize> HostAccess<K> for [A; N] {
    type View<'a> = [A::View<'a>; N];
    type Plan = [A::Plan; N];
    type Bound<'m> = [A::Bound<'m>; N];

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        let plans = <Vec<A> as HostAccess<K>>::lower(self.into(), lowering)?;
        Ok(plans.try_into().unwrap_or_else(|_| unreachable!("there is a plan for each access")))
    }

    unsafe fn bind<'m>(plans: Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; each access takes as much of the memory as is its own, in order.
        plans.map(|plan| unsafe { A::bind(plan, memory) })
    }

    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
        bound.each_mut().map(A::view)
    }
}

single_host_access!([A] Vec<A>);
single_host_access!([A, const N: usize] [A; N]);
