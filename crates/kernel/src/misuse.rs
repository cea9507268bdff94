//! What kernels reach for and is not there, so that the compiler says why, and what to do instead. Nothing in here can be
//! called: each bound is one that no type meets.

use core::ops::Index;

use crate::neighborhood::{NeighborhoodItem, NeighborhoodRow};
use crate::periodic::{PeriodicItem, PeriodicRow};

/// What indexes a neighbourhood: nothing.
#[diagnostic::on_unimplemented(
    message = "a neighbourhood has no elements by index, but by offset from the item",
    label = "indexes a view of what is around an item or a row",
    note = "the element above an item of two dimensions is `u.clamped([-1, 0])`, or \
            `u.get([-1, 0])`, which is `None` outside of the buffer; where opposite edges meet, \
            `u.at([-1, 0])`"
)]
pub trait IndexOfNeighborhood {}

/// Where a neighbourhood is clamped whose opposite edges meet: nowhere.
#[diagnostic::on_unimplemented(
    message = "opposite edges of this neighbourhood meet: there is nothing to clamp",
    label = "what a kernel gets for `read(neighborhood(..).periodic())`",
    note = "take `at(offset)`, which goes around, and is clamped along dimensions that do not; or \
            read the buffer without `.periodic()`"
)]
pub trait Clamped {}

/// Where a neighbourhood goes around whose edges do not meet: nowhere.
#[diagnostic::on_unimplemented(
    message = "edges of this neighbourhood do not meet: nothing goes around them",
    label = "what a kernel gets for `read(neighborhood(..))`",
    note = "take `clamped(offset)`, or `get(offset)`, which is `None` outside of the buffer; or read \
            the buffer through `neighborhood(..).periodic()`"
)]
pub trait Around {}

macro_rules! no_index {
    ($($view:ident)*) => {$(
        #[doc(hidden)]
        impl<T, I: IndexOfNeighborhood, const D: usize> Index<I> for $view<'_, T, D> {
            type Output = T;

            fn index(&self, _: I) -> &T {
                unreachable!()
            }
        }
    )*};
}

no_index!(NeighborhoodItem NeighborhoodRow PeriodicItem PeriodicRow);

#[doc(hidden)]
impl<T, const D: usize> PeriodicItem<'_, T, D> {
    pub fn clamped<O>(&self, _: O) -> T
    where
        Self: Clamped,
    {
        unreachable!()
    }
}

#[doc(hidden)]
impl<'a, T, const D: usize> PeriodicRow<'a, T, D> {
    pub fn clamped<O>(&self, _: O) -> &'a [T]
    where
        Self: Clamped,
    {
        unreachable!()
    }
}

#[doc(hidden)]
impl<T, const D: usize> NeighborhoodItem<'_, T, D> {
    pub fn at<O>(&self, _: O) -> T
    where
        Self: Around,
    {
        unreachable!()
    }
}

#[doc(hidden)]
impl<'a, T, const D: usize> NeighborhoodRow<'a, T, D> {
    pub fn at<O>(&self, _: O) -> &'a [T]
    where
        Self: Around,
    {
        unreachable!()
    }
}
