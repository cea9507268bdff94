//! What a launch calls with items and rows: closures, and functions that are compiled for devices as
//! well. Knows no accesses.

use celerity_kernel::{Item, ItemKernel, Row, RowKernel};

/// How a kernel's code is put into the loops that call it.
pub trait Body {
    /// Whether it is joined with every loop that calls it. Then there is one loop for items at the edges
    /// of their buffers and one for all others, in which nothing has to be clamped along a row. A closure
    /// is joined with a loop for certain only where it has no other caller, so it has one loop.
    #[doc(hidden)]
    const ALWAYS_INLINED: bool;
}

/// What is called with an item and its views `V`.
pub trait ItemBody<V, const K: usize>: Body {
    #[doc(hidden)]
    fn item(&self, item: Item<K>, views: V);
}

/// What is called with a row of items and their views `V`.
pub trait RowBody<V, const K: usize>: Body {
    #[doc(hidden)]
    fn row(&self, row: Row<K>, views: V);
}

/// A closure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closure<F>(pub(crate) F);

impl<F> Body for Closure<F> {
    const ALWAYS_INLINED: bool = false;
}

impl<F: Fn(Item<K>, V), V, const K: usize> ItemBody<V, K> for Closure<F> {
    #[inline]
    fn item(&self, item: Item<K>, views: V) {
        (self.0)(item, views);
    }
}

impl<F: Fn(Row<K>, V), V, const K: usize> RowBody<V, K> for Closure<F> {
    #[inline]
    fn row(&self, row: Row<K>, views: V) {
        (self.0)(row, views);
    }
}

/// A function that `#[kernel]` has taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelFunction<W>(pub(crate) W);

impl<W> Body for KernelFunction<W> {
    const ALWAYS_INLINED: bool = true;
}

#[expect(clippy::inline_always, reason = "see `Body::ALWAYS_INLINED`")]
impl<W: ItemKernel<K, V>, V, const K: usize> ItemBody<V, K> for KernelFunction<W> {
    #[inline(always)]
    fn item(&self, item: Item<K>, views: V) {
        self.0.item(item, views);
    }
}

#[expect(clippy::inline_always, reason = "see `Body::ALWAYS_INLINED`")]
impl<W: RowKernel<K, V>, V, const K: usize> RowBody<V, K> for KernelFunction<W> {
    #[inline(always)]
    fn row(&self, row: Row<K>, views: V) {
        self.0.row(row, views);
    }
}

/// A body that wants its only view bare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bare<'k, B>(pub(super) &'k B);

impl<B: Body> Body for Bare<'_, B> {
    const ALWAYS_INLINED: bool = B::ALWAYS_INLINED;
}

#[expect(clippy::inline_always, reason = "it adds nothing")]
impl<B: ItemBody<V, K>, V, const K: usize> ItemBody<(V,), K> for Bare<'_, B> {
    #[inline(always)]
    fn item(&self, item: Item<K>, (view,): (V,)) {
        self.0.item(item, view);
    }
}

#[expect(clippy::inline_always, reason = "it adds nothing")]
impl<B: RowBody<V, K>, V, const K: usize> RowBody<(V,), K> for Bare<'_, B> {
    #[inline(always)]
    fn row(&self, row: Row<K>, (view,): (V,)) {
        self.0.row(row, view);
    }
}
