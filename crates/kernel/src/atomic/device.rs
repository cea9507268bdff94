//! Updates in one step of elements of buffers, as GPUs make them. By inline assembly, so that the
//! instructions are those of global memory and of one device: chunks of a task have
//! no elements in common.

use core::arch::asm;

use super::steps::{IntegerSteps, Steps};

/// One instruction that returns what was there: its name, the register that holds a
/// value, the value's bits, and what it takes.
macro_rules! step {
    ($instruction:expr, $class:ident, $at:expr $(, $value:expr)*) => {{
        let before;
        asm!(
            "cvta.to.global.u64 {global}, {at};",
            concat!($instruction, " {before}, [{global}]" $(, step!(operand $value))*, ";"),
            $(in($class) $value,)*
            global = out(reg64) _,
            at = in(reg64) $at,
            before = out($class) before,
            options(nostack, preserves_flags),
        );
        before
    }};
    (operand $value:expr) => { ", {}" };
}

macro_rules! numbers {
    ($($number:ty: $bits:ty, $class:ident, $untyped:literal, $sum:literal,
        |$value:ident| $to:expr, $from:expr;)*) => {$(
        impl Steps for $number {
            #[inline(always)]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: passed on, here and below.
                let bits: $bits = unsafe { step!(concat!("ld.relaxed.gpu.global.", $untyped), $class, at) };
                $from(bits)
            }

            #[inline(always)]
            unsafe fn store(at: *mut Self, $value: Self) {
                let bits: $bits = $to;
                // SAFETY: as above.
                unsafe {
                    asm!(
                        "cvta.to.global.u64 {global}, {at};",
                        concat!("st.relaxed.gpu.global.", $untyped, " [{global}], {bits};"),
                        global = out(reg64) _,
                        at = in(reg64) at,
                        bits = in($class) bits,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn swap(at: *mut Self, $value: Self) -> Self {
                let bits: $bits = $to;
                // SAFETY: as above.
                let before: $bits = unsafe {
                    step!(concat!("atom.relaxed.gpu.global.exch.", $untyped), $class, at, bits)
                };
                $from(before)
            }

            #[inline(always)]
            unsafe fn add(at: *mut Self, $value: Self) -> Self {
                let bits: $bits = $to;
                // SAFETY: as above.
                let before: $bits = unsafe {
                    step!(concat!("atom.relaxed.gpu.global.add.", $sum), $class, at, bits)
                };
                $from(before)
            }
        }
    )*};
}

numbers! {
    u32: u32, reg32, "b32", "u32", |value| value, u32::from;
    i32: i32, reg32, "b32", "s32", |value| value, i32::from;
    u64: u64, reg64, "b64", "u64", |value| value, u64::from;
    // Signed and unsigned sums have the same bits, and there is no other instruction.
    i64: i64, reg64, "b64", "u64", |value| value, i64::from;
    usize: usize, reg64, "b64", "u64", |value| value, usize::from;
    isize: isize, reg64, "b64", "u64", |value| value, isize::from;
    f32: u32, reg32, "b32", "f32", |value| value.to_bits(), f32::from_bits;
    f64: u64, reg64, "b64", "f64", |value| value.to_bits(), f64::from_bits;
}

macro_rules! integers {
    ($($number:ty: $class:ident, $untyped:literal, $typed:literal;)*) => {$(
        impl IntegerSteps for $number {
            #[inline(always)]
            unsafe fn min(at: *mut Self, value: Self) -> Self {
                // SAFETY: passed on, here and below.
                unsafe {
                    step!(concat!("atom.relaxed.gpu.global.min.", $typed), $class, at, value)
                }
            }

            #[inline(always)]
            unsafe fn max(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    step!(concat!("atom.relaxed.gpu.global.max.", $typed), $class, at, value)
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange(at: *mut Self, current: Self, new: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    step!(concat!("atom.relaxed.gpu.global.cas.", $untyped), $class, at, current, new)
                }
            }
        }
    )*};
}

integers! {
    u32: reg32, "b32", "u32";
    i32: reg32, "b32", "s32";
    u64: reg64, "b64", "u64";
    i64: reg64, "b64", "s64";
    usize: reg64, "b64", "u64";
    isize: reg64, "b64", "s64";
}
