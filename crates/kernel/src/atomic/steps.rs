//! What can be done to a number in one step. How, is a matter of the target: `host` for
//! processors, `device` for GPUs.
#![allow(unsafe_code)]

/// What every number can do. For all functions, `at` leads to a value that is valid to
/// read and write, aligned, and touched in single steps alone meanwhile; on GPUs, in global
/// memory.
pub trait Steps: Copy {
    /// # Safety
    /// As the trait says, here and below.
    unsafe fn load(at: *mut Self) -> Self;
    /// # Safety
    /// See [`load`](Self::load).
    unsafe fn store(at: *mut Self, value: Self);
    /// # Safety
    /// See [`load`](Self::load).
    unsafe fn swap(at: *mut Self, value: Self) -> Self;
    /// # Safety
    /// See [`load`](Self::load).
    unsafe fn add(at: *mut Self, value: Self) -> Self;
}

/// What integers can do besides.
pub trait IntegerSteps: Steps + Eq {
    /// # Safety
    /// See [`Steps::load`].
    unsafe fn min(at: *mut Self, value: Self) -> Self;
    /// # Safety
    /// See [`Steps::load`].
    unsafe fn max(at: *mut Self, value: Self) -> Self;
    /// # Safety
    /// See [`Steps::load`].
    unsafe fn compare_exchange(at: *mut Self, current: Self, new: Self) -> Self;
}
