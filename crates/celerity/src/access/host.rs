//! What host tasks get for their accesses.
#![allow(unsafe_code)]

use celerity_executor::BoundMemory;
use celerity_kernel::{Bounds, PartView, PartViewMut, WholeView, WholeViewMut};

use super::elements::Elements;
use super::kernel::sealed::Sealed;
use super::{Lowering, ReadAccess, WriteAccess};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::{All, CustomMapper, DisjointMapper, Fixed, OneToOne};

/// An access that a host task can have; sealed.
///
/// A task that runs once has an index space of 0 dimensions, so `all`, `fixed`
/// and mappers over 0 dimensions fit.
#[diagnostic::on_unimplemented(
    message = "a host task cannot have the access `{Self}`",
    label = "not an access that a host task can have",
    note = "a task that runs once has no index space to map: use `all()` or `fixed(..)`"
)]
pub trait HostAccess: Sealed {
    /// What the host task gets.
    type View<'a>;
    #[doc(hidden)]
    type Plan: Send + 'static;
    #[doc(hidden)]
    type Bound<'m>;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// # Safety
    /// `memory` keeps the executor's promise for this access.
    #[doc(hidden)]
    unsafe fn bind<'m>(plan: Self::Plan, memory: &BoundMemory<'m>) -> Self::Bound<'m>;

    #[doc(hidden)]
    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a>;
}

impl<T: Element, const D: usize> HostAccess for ReadAccess<T, D, All> {
    type View<'a> = WholeView<'a, T, D>;
    type Plan = [usize; D];
    type Bound<'m> = (Elements<'m, T, D>, [usize; D]);

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<[usize; D]> {
        let range = self.buffer.range();
        self.lower_to::<0>(lowering)?;
        Ok(range)
    }

    unsafe fn bind<'m>(range: [usize; D], memory: &BoundMemory<'m>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        (unsafe { Elements::new(memory) }, range)
    }

    fn view<'a>((elements, range): &'a mut Self::Bound<'_>) -> WholeView<'a, T, D> {
        // SAFETY: nobody writes what is bound to a read, not through another access of the
        // task either: see `BoundMemory`.
        unsafe { elements.whole(*range) }
    }
}

impl<T: Element, const D: usize> HostAccess for WriteAccess<T, D, All> {
    type View<'a> = WholeViewMut<'a, T, D>;
    type Plan = [usize; D];
    type Bound<'m> = (Elements<'m, T, D>, [usize; D]);

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<[usize; D]> {
        let range = self.buffer.range();
        self.lower_to::<0>(lowering)?;
        Ok(range)
    }

    unsafe fn bind<'m>(range: [usize; D], memory: &BoundMemory<'m>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        (unsafe { Elements::new(memory) }, range)
    }

    fn view<'a>((elements, range): &'a mut Self::Bound<'_>) -> WholeViewMut<'a, T, D> {
        // SAFETY: nobody else touches what is bound to a write, see `BoundMemory`, and
        // `elements` is borrowed exclusively.
        unsafe { elements.whole_mut(*range) }
    }
}

/// Through the remaining mappers, host tasks see the declared part.
macro_rules! host_part {
    ([$($generics:tt)*] $mapper:ty, $d:tt) => {
        impl<T: Element, $($generics)*> HostAccess for ReadAccess<T, $d, $mapper> {
            type View<'a> = PartView<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = Elements<'m, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<0>(lowering)
            }

            unsafe fn bind<'m>((): (), memory: &BoundMemory<'m>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { Elements::new(memory) }
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
                // SAFETY: nobody writes what is bound to a read, not through another access of the
                // task either: see `BoundMemory`.
                unsafe { bound.part() }
            }
        }

        impl<T: Element, $($generics)*> HostAccess for WriteAccess<T, $d, $mapper> {
            type View<'a> = PartViewMut<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = Elements<'m, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<0>(lowering)
            }

            unsafe fn bind<'m>((): (), memory: &BoundMemory<'m>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { Elements::new(memory) }
            }

            fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
                let part: Bounds<$d> = bound.single_box();
                // SAFETY: nobody else touches what is bound to a write, see
                // `BoundMemory`, and `bound` is borrowed exclusively.
                unsafe { bound.part_mut(part) }
            }
        }
    };
}

host_part!([] OneToOne, 0);
host_part!([const D: usize] Fixed<D>, D);
host_part!([const D: usize] CustomMapper<0, D>, D);
host_part!([const D: usize] DisjointMapper<0, D>, D);

/// The accesses of a host task: one access, or a tuple of up to eight; sealed.
/// The function gets the views in the same order.
#[diagnostic::on_unimplemented(
    message = "a host task cannot have the accesses `{Self}`",
    label = "not accesses that a host task can have",
    note = "a task that runs once has no index space to map: use `all()` or `fixed(..)`"
)]
pub trait HostAccesses: Sealed {
    /// What the host task gets.
    type Views<'a>;
    #[doc(hidden)]
    type Plan: Send + 'static;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// # Safety
    /// As [`HostAccess::bind`], for one memory per access, in order.
    #[doc(hidden)]
    unsafe fn call<F, R>(plan: Self::Plan, memory: &[BoundMemory<'_>], function: F) -> R
    where
        F: for<'a> FnOnce(Self::Views<'a>) -> R;
}

macro_rules! tuple_host_accesses {
    ($($access:ident $bound:ident $index:tt),*) => {
        impl<$($access: HostAccess),*> HostAccesses for ($($access,)*) {
            type Views<'a> = ($($access::View<'a>,)*);
            type Plan = ($($access::Plan,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.reserve(<[usize]>::len(&[$($index),*]));
                Ok(($(self.$index.lower(lowering)?,)*))
            }

            #[allow(unused_variables)]
            unsafe fn call<Function, R>(
                plan: Self::Plan,
                memory: &[BoundMemory<'_>],
                function: Function,
            ) -> R
            where
                Function: for<'a> FnOnce(Self::Views<'a>) -> R,
            {
                // SAFETY: passed on.
                $(let mut $bound = unsafe { $access::bind(plan.$index, &memory[$index]) };)*
                function(($($access::view(&mut $bound),)*))
            }
        }
    };
}

tuple_host_accesses!();
tuple_host_accesses!(A0 b0 0);
tuple_host_accesses!(A0 b0 0, A1 b1 1);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2, A3 b3 3);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2, A3 b3 3, A4 b4 4);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2, A3 b3 3, A4 b4 4, A5 b5 5);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2, A3 b3 3, A4 b4 4, A5 b5 5, A6 b6 6);
tuple_host_accesses!(A0 b0 0, A1 b1 1, A2 b2 2, A3 b3 3, A4 b4 4, A5 b5 5, A6 b6 6, A7 b7 7);

/// A single access is a tuple of one whose function gets the view bare.
macro_rules! single_host_access {
    ($access:ident) => {
        impl<T, M, const D: usize> HostAccesses for $access<T, D, M>
        where
            Self: HostAccess,
        {
            type Views<'a> = <Self as HostAccess>::View<'a>;
            type Plan = <(Self,) as HostAccesses>::Plan;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                (self,).lower(lowering)
            }

            unsafe fn call<F, R>(plan: Self::Plan, memory: &[BoundMemory<'_>], function: F) -> R
            where
                F: for<'a> FnOnce(Self::Views<'a>) -> R,
            {
                // SAFETY: passed on.
                unsafe { <(Self,)>::call(plan, memory, |(view,)| function(view)) }
            }
        }
    };
}

single_host_access!(ReadAccess);
single_host_access!(WriteAccess);
