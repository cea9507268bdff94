//! Memory of partial results: for each of some consecutive places, so many elements of one type. The
//! places are tiles; of a result that is already made there is one. Knows neither who makes them
//! nor what becomes of them.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use celerity_executor::BoundMemory;

/// The partial results that a task may touch.
pub(crate) struct PartialResults<'m, T> {
    base: *mut T,
    /// The first place.
    first: u64,
    places: u64,
    /// In each place.
    elements: usize,
    memory: PhantomData<&'m mut [T]>,
}

impl<'m, T> PartialResults<'m, T> {
    /// What an access to partial results is bound to.
    ///
    /// # Safety
    /// `memory` keeps the executor's promise (see [`BoundMemory`]) during `'m`, for a buffer of
    /// which each element is so many of type `T`, or which is all of them.
    pub(crate) unsafe fn new(memory: &BoundMemory<'m>, elements: usize) -> Self {
        let extent = memory.extent();
        let (first, places) = (extent.min()[0], extent.range()[0]);
        Self { base: memory.base().cast(), first, places, elements, memory: PhantomData }
    }

    /// How many elements a place has.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Where a place begins, whose elements may be read, and written if the access writes.
    ///
    /// # Panics
    /// If the place is elsewhere; of places without elements none is.
    pub(crate) fn of(&self, place: u64) -> *mut T {
        if self.elements == 0 {
            return self.base;
        }
        let is_here = (self.first..self.first + self.places).contains(&place);
        assert!(is_here, "partial result {place} is elsewhere");
        // SAFETY: the allocation holds that many elements for each of its places.
        unsafe { self.base.add((place - self.first) as usize * self.elements) }
    }

    /// The elements of a place.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub(crate) fn at(&self, place: u64) -> &[T] {
        // SAFETY: they are there, and nobody writes them but through `at_mut`, which borrows.
        unsafe { std::slice::from_raw_parts(self.of(place), self.elements) }
    }

    /// The elements of a place, of an access that writes.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub(crate) fn at_mut(&mut self, place: u64) -> &mut [T] {
        // SAFETY: as above, and nobody else touches them.
        unsafe { std::slice::from_raw_parts_mut(self.of(place), self.elements) }
    }
}
