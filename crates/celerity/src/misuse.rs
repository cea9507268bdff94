//! What programs reach for and is not there, so that the compiler says why, and what to do
//! instead. Nothing in here can be called: each bound is one that no type meets.

use std::ops::Index;

use crate::buffer::{Buffer, Element};
use crate::fence::Fence;

/// What indexes a fence: nothing.
#[diagnostic::on_unimplemented(
    message = "a fence has no elements before it has been waited for",
    label = "indexes a fence, which is a promise of elements",
    note = "wait for its snapshot, which has them: `queue.fence(&buffer)?.wait()?[index]`"
)]
pub trait IndexOfFence {}

#[doc(hidden)]
impl<T, I: IndexOfFence, const D: usize> Index<I> for Fence<T, D> {
    type Output = T;

    fn index(&self, _: I) -> &T {
        unreachable!("no type indexes a fence")
    }
}

/// What indexes a buffer: nothing.
#[diagnostic::on_unimplemented(
    message = "a buffer has no elements by index: tasks declare what they touch of it",
    label = "indexes a buffer, which is no place in memory",
    note = "let the kernel have a view: name the access in the tuple, `u.read(one_to_one())` or \
            `u.read(all())` for elements anywhere, and take the view as a parameter of the closure, \
            `|item, (u, v)|`",
    note = "in the program itself, wait for a snapshot: `queue.fence(&u)?.wait()?[index]`"
)]
pub trait IndexOfBuffer {}

#[doc(hidden)]
impl<T, I: IndexOfBuffer, const D: usize> Index<I> for Buffer<T, D> {
    type Output = T;

    fn index(&self, _: I) -> &T {
        unreachable!("no type indexes a buffer")
    }
}

/// What has neighbours that a kernel can look at: nothing that is a plain element or row.
#[diagnostic::on_unimplemented(
    message = "this view has no neighbours to look at: it is `{Self}`",
    label = "what a kernel gets for `read(one_to_one())`: its own elements",
    note = "read the buffer through `neighborhood` or `neighborhood_along_axes`, with a border as \
            wide as the kernel looks: the kernel then gets a `NeighborhoodItem` or \
            `NeighborhoodRow`, which have `clamped` and `get`"
)]
pub trait Surrounded {}

/// The name of a method that only views of a neighbourhood have, on elements and rows of them.
pub trait Unsurrounded {
    /// What the method would return.
    type Neighbor;

    /// See [`NeighborhoodItem::clamped`](crate::NeighborhoodItem::clamped).
    fn clamped<O>(&self, _: O) -> Self::Neighbor
    where
        Self: Surrounded,
    {
        unreachable!("only neighbourhoods have neighbours")
    }
}

impl<T: Element> Unsurrounded for T {
    type Neighbor = T;
}

impl<T: Element> Unsurrounded for [T] {
    type Neighbor = &'static [T];
}
