//! Values that the items of a group share, however many: what every access to local memory goes through.
//! As cells, never as references. Knows no launch.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::atomic::Integer;
use crate::plain::Scalar;

/// Values that the items of a group share, as many as the launch says: a parameter of the kernel, and a
/// number of values beside what the kernel takes by value.
///
/// ```
/// # use celerity_kernel::Module;
/// use celerity_kernel::{LocalSlice, NdItem, kernel};
///
/// /// Turns around what the items of a group have.
/// #[kernel]
/// fn turn(item: NdItem<'_, 1>, x: &mut f32, values: LocalSlice<'_, f32>) {
///     let at = item.local_id()[0];
///     values.set(at, *x);
///     item.group().barrier();
///     *x = values.get(values.len() - 1 - at);
/// }
///
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {
/// // To be launched in groups of 256.
/// let kernel = turn { values: 256 };
/// # assert_eq!(celerity_kernel::Kernel::slice_bytes(&kernel), 1024);
/// # }
/// ```
///
/// What is in there at the start, what comes of values that several items write, and how much a device has
/// is as of [`Local`](crate::Local), whose number of values the kernel knows: take that one where it can be
/// known, since checks of constant indices then cost nothing.
#[derive(Clone, Copy)]
pub struct LocalSlice<'g, T> {
    #[cfg(not(target_arch = "nvptx64"))]
    cells: &'g [core::cell::Cell<T>],
    /// In the block's shared memory.
    #[cfg(target_arch = "nvptx64")]
    address: u32,
    #[cfg(target_arch = "nvptx64")]
    len: u32,
    memory: PhantomData<&'g core::cell::Cell<T>>,
}

impl<T: Scalar> LocalSlice<'_, T> {
    /// The value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        self.check(index);
        self.load(index)
    }

    /// Replaces the value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    #[inline]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        self.check(index);
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
        self.check_run::<L>(start);
        self.load_run(start)
    }

    /// Replaces the `L` values from `start` on, as [`run`](Self::run) gets them.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[inline]
    #[track_caller]
    pub fn set_run<const L: usize>(&self, start: usize, values: [T; L]) {
        self.check_run::<L>(start);
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
        self.check(index);
        self.add(index, value)
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, index: usize) {
        if index >= self.len() {
            fail!(
                "an index into local memory is out of bounds",
                "local memory has {} values, so none at {}",
                self.len(),
                index
            );
        }
    }

    #[inline(always)]
    #[track_caller]
    fn check_run<const L: usize>(&self, start: usize) {
        const { assert!(0 < L, "a run has a value at least") };
        let behind = self.len().checked_sub(L);
        if behind.is_none_or(|last| start > last) || !start.is_multiple_of(L) {
            fail!(
                "a run in local memory is out of bounds, or begins at no multiple of its length",
                "local memory has {} values, so no {} at {}: a run begins at a multiple of its length",
                self.len(),
                L,
                start
            );
        }
    }
}

impl<T> LocalSlice<'_, T> {
    /// How many values there are.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.cells.len();
        #[cfg(target_arch = "nvptx64")]
        return self.len as usize;
    }

    /// Whether there are none.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<'g, T: Scalar> LocalSlice<'g, T> {
    #[inline]
    pub(super) const fn new(cells: &'g [core::cell::Cell<T>]) -> Self {
        Self { cells, memory: PhantomData }
    }

    pub(super) const fn cells(&self) -> &'g [core::cell::Cell<T>] {
        self.cells
    }

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
impl<T: Scalar> LocalSlice<'_, T> {
    /// The values that begin so many bytes into the launch's dynamic memory.
    ///
    /// # Safety
    /// The launch has that much, nothing else uses it, and `offset` is a multiple of 16.
    #[inline(always)]
    pub unsafe fn at(offset: usize, len: usize) -> Self {
        // SAFETY: passed on.
        unsafe { Self::at_address(crate::machine::shared::base() + offset as u32, len as u32) }
    }

    /// The same by the address in the block's shared memory.
    ///
    /// # Safety
    /// As [`at`](Self::at).
    #[inline(always)]
    pub(super) unsafe fn at_address(address: u32, len: u32) -> Self {
        Self { address, len, memory: PhantomData }
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

impl<T> fmt::Debug for LocalSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalSlice({} values)", self.len())
    }
}
