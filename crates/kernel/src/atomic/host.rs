//! Updates in one step as hosts make them: integers as the processor has them, floats
//! by comparing bits until nobody has come in between.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize};

use super::steps::{IntegerSteps, Steps};

macro_rules! integers {
    ($($number:ty: $atomic:ident,)*) => {$(
        impl Steps for $number {
            #[inline]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: passed on, here and below.
                unsafe { $atomic::from_ptr(at) }.load(Relaxed)
            }

            #[inline]
            unsafe fn store(at: *mut Self, value: Self) {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(at) }.store(value, Relaxed);
            }

            #[inline]
            unsafe fn swap(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(at) }.swap(value, Relaxed)
            }

            #[inline]
            unsafe fn add(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(at) }.fetch_add(value, Relaxed)
            }
        }

        impl IntegerSteps for $number {
            #[inline]
            unsafe fn min(at: *mut Self, value: Self) -> Self {
                // SAFETY: passed on, here and below.
                unsafe { $atomic::from_ptr(at) }.fetch_min(value, Relaxed)
            }

            #[inline]
            unsafe fn max(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(at) }.fetch_max(value, Relaxed)
            }

            #[inline]
            unsafe fn compare_exchange(at: *mut Self, current: Self, new: Self) -> Self {
                // SAFETY: as above.
                let cell = unsafe { $atomic::from_ptr(at) };
                match cell.compare_exchange(current, new, Relaxed, Relaxed) {
                    Ok(before) | Err(before) => before,
                }
            }
        }
    )*};
}

integers! {
    u32: AtomicU32,
    i32: AtomicI32,
    u64: AtomicU64,
    i64: AtomicI64,
    usize: AtomicUsize,
    isize: AtomicIsize,
}

macro_rules! floats {
    ($($number:ty: $atomic:ident,)*) => {$(
        impl Steps for $number {
            #[inline]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: passed on, here and below; bits have the float's size and
                // alignment.
                Self::from_bits(unsafe { $atomic::from_ptr(at.cast()) }.load(Relaxed))
            }

            #[inline]
            unsafe fn store(at: *mut Self, value: Self) {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(at.cast()) }.store(value.to_bits(), Relaxed);
            }

            #[inline]
            unsafe fn swap(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                let cell = unsafe { $atomic::from_ptr(at.cast()) };
                Self::from_bits(cell.swap(value.to_bits(), Relaxed))
            }

            #[inline]
            unsafe fn add(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                let cell = unsafe { $atomic::from_ptr(at.cast()) };
                let sum = |bits| Some((Self::from_bits(bits) + value).to_bits());
                match cell.fetch_update(Relaxed, Relaxed, sum) {
                    Ok(before) | Err(before) => Self::from_bits(before),
                }
            }
        }
    )*};
}

floats! {
    f32: AtomicU32,
    f64: AtomicU64,
}
