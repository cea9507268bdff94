//! Memory that the items of a group share while they run. The one unsafe module of
//! the host's side that hands out memory to several items at once: as cells, never
//! as references.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

mod slice;

pub use slice::LocalSlice;

#[cfg(not(target_arch = "nvptx64"))]
use crate::abi::local::ALIGNMENT;
use crate::atomic::Integer;
use crate::plain::Scalar;

/// `N` values that the items of a group share: a parameter of the kernel. Where only the launch knows how
/// many there are, take a [`LocalSlice`].
///
/// Values are moved in and out, one at a time. What is in there at the start is
/// unspecified; on hosts all bits are set, which makes numbers NaN. Items that read
/// what another item writes, or write the same value, must have a
/// [barrier](crate::Group::barrier) in between, or get any value.
///
/// A device has 48 KiB for a group at the least, newer ones more: 163 KiB of compute capability 8.0,
/// 227 KiB of 9.0. What a device does not have is an error when a task is submitted.
#[derive(Clone, Copy)]
pub struct Local<'g, T, const N: usize> {
    #[cfg(not(target_arch = "nvptx64"))]
    cells: &'g [core::cell::Cell<T>; N],
    /// In the block's shared memory.
    #[cfg(target_arch = "nvptx64")]
    address: u32,
    memory: PhantomData<&'g core::cell::Cell<T>>,
}

impl<'g, T: Scalar, const N: usize> Local<'g, T, N> {
    /// The same values, their number forgotten: for functions that take any number of them.
    #[must_use]
    #[inline(always)]
    pub fn as_slice(&self) -> LocalSlice<'g, T> {
        #[cfg(not(target_arch = "nvptx64"))]
        return LocalSlice::new(self.cells);
        // SAFETY: these are as many values, and whoever made `self` knew that nothing else uses them.
        #[cfg(target_arch = "nvptx64")]
        return unsafe { LocalSlice::at_address(self.address, N as u32) };
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        self.as_slice().get(index)
    }

    /// Replaces the value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        self.as_slice().set(index, value);
    }

    /// The `L` values from `start` on, in as wide steps as there are: of four `f32` in one. `start` is a
    /// multiple of `L`.
    ///
    /// # Panics
    /// If it is none, or if not all of them are there.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn run<const L: usize>(&self, start: usize) -> [T; L] {
        const { assert!(L <= N, "a run has no more values than there are") };
        self.as_slice().run(start)
    }

    /// Replaces the `L` values from `start` on, as [`run`](Self::run) gets them.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[inline]
    #[track_caller]
    pub fn set_run<const L: usize>(&self, start: usize, values: [T; L]) {
        const { assert!(L <= N, "a run has no more values than there are") };
        self.as_slice().set_run(start, values);
    }

    /// Adds to the value at `index`, as one step that no other item comes between, and
    /// returns what it was. Wraps around where `T` ends.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    #[track_caller]
    pub fn fetch_add(&self, index: usize, value: T) -> T
    where
        T: Integer,
    {
        self.as_slice().fetch_add(index, value)
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T: Scalar, const N: usize> Local<'_, T, N> {
    /// The array that begins so many bytes into the launch's dynamic memory.
    ///
    /// # Safety
    /// The launch has that much, nothing else uses it, and `offset` is a multiple of 16.
    #[inline(always)]
    pub unsafe fn at(offset: usize) -> Self {
        Self { address: crate::machine::shared::base() + offset as u32, memory: PhantomData }
    }
}

impl<T, const N: usize> fmt::Debug for Local<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local({N} values)")
    }
}

/// Bytes of a type of local memory; sealed.
pub trait LocalArray: sealed::Sealed {
    /// Size of an array of the type, in bytes.
    const BYTES: usize;
}

impl<T: Scalar, const N: usize> LocalArray for Local<'_, T, N> {
    const BYTES: usize = {
        assert!(N > 0, "local memory has at least one value");
        size_of::<T>() * N
    };
}

/// A type of local memory whose number of values the launch says; sealed.
pub trait LocalValues: sealed::Sealed {
    /// Size of a value, in bytes.
    const SIZE: usize;
}

impl<T: Scalar> LocalValues for LocalSlice<'_, T> {
    const SIZE: usize = size_of::<T>();
}

mod sealed {
    pub trait Sealed {}
    impl<T, const N: usize> Sealed for super::Local<'_, T, N> {}
    impl<T> Sealed for super::LocalSlice<'_, T> {}
}

/// The memory of one group on a host, from which a kernel takes its arrays.
#[derive(Clone, Copy, Debug)]
pub struct LocalMemory<'g> {
    base: *mut u8,
    bytes: usize,
    memory: PhantomData<&'g core::cell::Cell<u8>>,
}

#[cfg(not(target_arch = "nvptx64"))]
impl<'g> LocalMemory<'g> {
    /// # Safety
    /// `base` is aligned to 16 bytes and leads to that many initialised bytes,
    /// which are used only through this while `'g` lasts, and on one thread.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        Self { base, bytes, memory: PhantomData }
    }

    /// The array that begins so many bytes into the memory.
    ///
    /// # Panics
    /// If it is not all inside, or not aligned.
    #[must_use]
    pub fn array<T: Scalar, const N: usize>(&self, offset: usize) -> Local<'g, T, N> {
        let cells = self.slice(offset, N).cells();
        Local { cells: cells.try_into().expect("as many as asked for"), memory: PhantomData }
    }

    /// So many values, which begin so many bytes into the memory.
    ///
    /// # Panics
    /// If they are not all inside, or not aligned.
    #[must_use]
    pub fn slice<T: Scalar>(&self, offset: usize, len: usize) -> LocalSlice<'g, T> {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        let end = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(
            offset.is_multiple_of(ALIGNMENT) && end.is_some_and(|end| end <= self.bytes),
            "local memory has {} bytes, so no {len} values at {offset}",
            self.bytes
        );
        // SAFETY: inside and aligned, and initialised bytes are a number, whatever
        // they are. Whoever shares it has cells as well, though maybe of other types.
        let cells = unsafe { core::slice::from_raw_parts(self.base.add(offset).cast(), len) };
        LocalSlice::new(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Aligned([u8; 64]);

    #[test]
    fn arrays_share_the_memory_of_their_group() {
        let mut memory = Aligned([0xff; 64]);
        // SAFETY: aligned, initialised, and borrowed for as long as it is used.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let (ones, others): (Local<'_, f32, 4>, Local<'_, [f64; 2], 2>) =
            (memory.array(0), memory.array(32));
        assert!(ones.get(3).is_nan());
        ones.set(3, 1.0);
        others.set(1, [2.0, 3.0]);
        assert_eq!((memory.array::<f32, 4>(0).get(3), others.get(1)), (1.0, [2.0, 3.0]));
    }

    #[test]
    fn runs_are_the_values_that_they_consist_of() {
        let mut memory = Aligned([0xff; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let values: Local<'_, f32, 12> = memory.array(0);
        values.set_run(8, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((values.get(10), values.run(10)), (3.0, [3.0, 4.0]));
        assert_eq!(values.run(9), [2.0, 3.0, 4.0]);
    }

    #[test]
    fn slices_are_as_long_as_asked_for() {
        let mut memory = Aligned([0xff; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let (values, none) = (memory.slice::<u32>(16, 12), memory.slice::<u32>(64, 0));
        values.set_run(8, [1, 2, 3, 4]);
        assert_eq!((values.len(), values.get(11), values.fetch_add(9, 5)), (12, 4, 2));
        assert_eq!(memory.array::<u32, 16>(0).as_slice().run(12), [1, 7, 3, 4]);
        assert!(none.is_empty() && !values.is_empty());
        assert_eq!(std::format!("{values:?}"), "LocalSlice(12 values)");
    }

    #[test]
    #[should_panic(expected = "local memory has 3 values, so no 4 at 0")]
    fn a_run_may_be_longer_than_a_slice() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let _ = memory.slice::<u32>(0, 3).run::<4>(0);
    }

    #[test]
    #[should_panic(expected = "local memory has 0 values, so none at 0")]
    fn an_empty_slice_has_nothing() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        memory.slice::<u32>(0, 0).set(0, 1);
    }

    #[test]
    #[should_panic(expected = "so no 4611686018427387904 values at 16")]
    fn slices_do_not_wrap_around() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let _ = memory.slice::<u32>(16, 1 << 62);
    }

    #[test]
    #[should_panic(expected = "so no 4 at 12")]
    fn runs_lie_inside() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let _ = memory.array::<u32, 14>(0).run::<4>(12);
    }

    #[test]
    #[should_panic(expected = "so no 4 at 2: a run begins at a multiple of its length")]
    fn runs_begin_at_multiples_of_their_length() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        memory.array::<u32, 14>(0).set_run(2, [0; 4]);
    }

    #[test]
    fn sums_wrap_around() {
        let mut memory = Aligned([0xff; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let count: Local<'_, u32, 2> = memory.array(0);
        assert_eq!((count.fetch_add(1, 3), count.get(1)), (u32::MAX, 2));
    }

    #[test]
    #[should_panic(expected = "local memory has 4 values, so none at 4")]
    fn an_index_outside_is_named() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        memory.array::<u32, 4>(0).set(4, 1);
    }

    #[test]
    #[should_panic(expected = "local memory has 64 bytes, so no 8 values at 48")]
    fn arrays_lie_inside() {
        let mut memory = Aligned([0; 64]);
        // SAFETY: as above.
        let memory = unsafe { LocalMemory::new(memory.0.as_mut_ptr(), 64) };
        let _ = memory.array::<u32, 8>(48);
    }
}
