//! Memory that the items of a group share while they run. The one unsafe module of
//! the host's side that hands out memory to several items at once: as cells, never
//! as references.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

#[cfg(not(target_arch = "nvptx64"))]
use crate::abi::local::ALIGNMENT;
use crate::atomic::Integer;
use crate::plain::Scalar;

/// `N` values that the items of a group share: a parameter of the kernel.
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

impl<T: Scalar, const N: usize> Local<'_, T, N> {
    /// The value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        check::<N>(index);
        self.load(index)
    }

    /// Replaces the value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        check::<N>(index);
        self.store(index, value);
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
        check_run::<N, L>(start);
        self.load_run(start)
    }

    /// Replaces the `L` values from `start` on, as [`run`](Self::run) gets them.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[inline]
    #[track_caller]
    pub fn set_run<const L: usize>(&self, start: usize, values: [T; L]) {
        check_run::<N, L>(start);
        self.store_run(start, values);
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
        check::<N>(index);
        self.add(index, value)
    }
}

#[inline]
#[track_caller]
fn check<const N: usize>(index: usize) {
    if index >= N {
        fail!(
            "an index into local memory is out of bounds",
            "local memory has {} values, so none at {}",
            N,
            index
        );
    }
}

#[inline]
#[track_caller]
fn check_run<const N: usize, const L: usize>(start: usize) {
    const { assert!(0 < L && L <= N, "a run has a value at least, and not more than there are") };
    if start > N - L || !start.is_multiple_of(L) {
        fail!(
            "a run in local memory is out of bounds, or begins at no multiple of its length",
            "local memory has {} values, so no {} at {}: a run begins at a multiple of its length",
            N,
            L,
            start
        );
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Scalar, const N: usize> Local<'_, T, N> {
    #[inline]
    fn load_run<const L: usize>(&self, start: usize) -> [T; L] {
        core::array::from_fn(|at| self.load(start + at))
    }

    #[inline]
    fn store_run<const L: usize>(&self, start: usize, values: [T; L]) {
        for (at, value) in values.into_iter().enumerate() {
            self.store(start + at, value);
        }
    }

    #[inline]
    fn load(&self, index: usize) -> T {
        self.cells[index].get()
    }

    #[inline]
    fn store(&self, index: usize, value: T) {
        self.cells[index].set(value);
    }

    /// All items of a group are on one thread, so nobody comes between.
    #[inline]
    fn add(&self, index: usize, value: T) -> T
    where
        T: Integer,
    {
        let before = self.load(index);
        self.store(index, before.plus(value));
        before
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

    #[inline(always)]
    fn load_run<const L: usize>(&self, start: usize) -> [T; L] {
        // SAFETY: `check_run` has found all of it inside, at a multiple of its size, and any bits are
        // numbers.
        unsafe { crate::machine::shared::load(self.address + (start * size_of::<T>()) as u32) }
    }

    #[inline(always)]
    fn store_run<const L: usize>(&self, start: usize, values: [T; L]) {
        // SAFETY: as in `load_run`.
        unsafe {
            crate::machine::shared::store(self.address + (start * size_of::<T>()) as u32, values);
        }
    }

    #[inline(always)]
    fn load(&self, index: usize) -> T {
        // SAFETY: `check` has found the index inside, and any bits are a number.
        unsafe { crate::machine::shared::load(self.address + (index * size_of::<T>()) as u32) }
    }

    #[inline(always)]
    fn store(&self, index: usize, value: T) {
        // SAFETY: `check` has found the index inside.
        unsafe {
            crate::machine::shared::store(self.address + (index * size_of::<T>()) as u32, value);
        }
    }

    #[inline(always)]
    fn add(&self, index: usize, value: T) -> T
    where
        T: Integer,
    {
        // SAFETY: `check` has found the index inside, and `T` is an integer.
        unsafe {
            crate::machine::shared::add(self.address + (index * size_of::<T>()) as u32, value)
        }
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

mod sealed {
    pub trait Sealed {}
    impl<T, const N: usize> Sealed for super::Local<'_, T, N> {}
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
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        let end = offset.checked_add(<Local<'_, T, N> as LocalArray>::BYTES);
        assert!(
            offset.is_multiple_of(ALIGNMENT) && end.is_some_and(|end| end <= self.bytes),
            "local memory has {} bytes, so no {N} values at {offset}",
            self.bytes
        );
        // SAFETY: inside and aligned, and initialised bytes are a number, whatever
        // they are. Whoever shares it has cells as well, though maybe of other types.
        let cells = unsafe { &*self.base.add(offset).cast() };
        Local { cells, memory: PhantomData }
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
