//! Loads from and stores to a block's shared memory. By inline assembly: to the
//! compiler it would be memory of any kind, and instructions for any kind cost an
//! N-body kernel an eighth of its speed.

use core::arch::asm;
use core::mem::{MaybeUninit, transmute_copy};

/// Where a variable begins that `module!` declares.
macro_rules! address_of {
    ($variable:literal) => {{
        let address: u32;
        // SAFETY: it is there, and its address is all that is asked for.
        unsafe {
            asm!(
                concat!("mov.u32 {address}, ", $variable, ";"),
                address = out(reg32) address,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// Where the launch's dynamic shared memory begins.
#[inline(always)]
pub(crate) fn base() -> u32 {
    address_of!("celerity_local")
}

/// Where the memory begins in which the warps of a block exchange values: 256 bytes.
#[inline(always)]
pub(crate) fn group() -> u32 {
    address_of!("celerity_group")
}

/// Bytes that are moved at once, for values of `size` bytes that lie behind one
/// another from a multiple of 16 on.
const fn piece(size: usize) -> usize {
    let mut piece = 16;
    while !size.is_multiple_of(piece) {
        piece /= 2;
    }
    piece
}

/// The value at `address`.
///
/// # Safety
/// It lies in the block's shared memory, at a multiple of [`piece`], and any bits
/// are a `T`.
#[inline(always)]
pub(crate) unsafe fn load<T: Copy>(address: u32) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let piece = const { piece(size_of::<T>()) };
    for at in (0..size_of::<T>()).step_by(piece) {
        // SAFETY: the pieces make up the value.
        unsafe {
            load_piece(address + at as u32, value.as_mut_ptr().cast::<u8>().add(at), piece);
        }
    }
    // SAFETY: all of its bytes have been written.
    unsafe { value.assume_init() }
}

/// Replaces the value at `address`.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn store<T: Copy>(address: u32, value: T) {
    let from = (&raw const value).cast::<u8>();
    let piece = const { piece(size_of::<T>()) };
    for at in (0..size_of::<T>()).step_by(piece) {
        // SAFETY: the pieces make up the value.
        unsafe { store_piece(address + at as u32, from.add(at), piece) };
    }
}

/// Adds to the integer at `address`, as one step, and returns what it was.
///
/// # Safety
/// As [`load`], and `T` is an integer of 32 or 64 bits.
#[inline(always)]
pub(crate) unsafe fn add<T: Copy>(address: u32, value: T) -> T {
    macro_rules! add {
        ($instruction:literal, $class:ident, $bits:ty) => {
            // SAFETY: passed on; signed integers are added as unsigned ones are.
            unsafe {
                let before: $bits;
                asm!(
                    concat!($instruction, " {before}, [{address}], {value};"),
                    before = out($class) before,
                    address = in(reg32) address,
                    value = in($class) transmute_copy::<T, $bits>(&value),
                    options(nostack, preserves_flags),
                );
                transmute_copy(&before)
            }
        };
    }
    match size_of::<T>() {
        8 => add!("atom.shared.add.u64", reg64, u64),
        _ => add!("atom.shared.add.u32", reg32, u32),
    }
}

/// # Safety
/// There are `piece` bytes at both places, at `address` at a multiple of them.
#[inline(always)]
unsafe fn load_piece(address: u32, to: *mut u8, piece: usize) {
    // `pure`: what other threads write counts after the next barrier, which the
    // compiler takes to change memory.
    macro_rules! load {
        ($instruction:literal, $class:ident, $bits:ty) => {{
            let bits: $bits;
            // SAFETY: passed on.
            unsafe {
                asm!(
                    concat!($instruction, " {bits}, [{address}];"),
                    bits = out($class) bits,
                    address = in(reg32) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
                to.cast::<$bits>().write_unaligned(bits);
            }
        }};
    }
    match piece {
        16 => {
            let (a, b, c, d): (u32, u32, u32, u32);
            // SAFETY: passed on.
            unsafe {
                asm!(
                    "ld.shared.v4.b32 {{{a}, {b}, {c}, {d}}}, [{address}];",
                    a = out(reg32) a,
                    b = out(reg32) b,
                    c = out(reg32) c,
                    d = out(reg32) d,
                    address = in(reg32) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
                to.cast::<[u32; 4]>().write_unaligned([a, b, c, d]);
            }
        }
        8 => load!("ld.shared.b64", reg64, u64),
        4 => load!("ld.shared.b32", reg32, u32),
        2 => load!("ld.shared.b16", reg16, u16),
        _ => {
            let bits: u16;
            // SAFETY: passed on. There are no registers of a byte.
            unsafe {
                asm!(
                    "ld.shared.u8 {bits}, [{address}];",
                    bits = out(reg16) bits,
                    address = in(reg32) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
                to.write(bits as u8);
            }
        }
    }
}

/// # Safety
/// As [`load_piece`].
#[inline(always)]
unsafe fn store_piece(address: u32, from: *const u8, piece: usize) {
    macro_rules! store {
        ($instruction:literal, $class:ident, $bits:expr) => {
            asm!(
                concat!($instruction, " [{address}], {bits};"),
                bits = in($class) $bits,
                address = in(reg32) address,
                options(nostack, preserves_flags),
            )
        };
    }
    // SAFETY: passed on.
    unsafe {
        match piece {
            16 => {
                let [a, b, c, d] = from.cast::<[u32; 4]>().read_unaligned();
                asm!(
                    "st.shared.v4.b32 [{address}], {{{a}, {b}, {c}, {d}}};",
                    a = in(reg32) a,
                    b = in(reg32) b,
                    c = in(reg32) c,
                    d = in(reg32) d,
                    address = in(reg32) address,
                    options(nostack, preserves_flags),
                );
            }
            8 => store!("st.shared.b64", reg64, from.cast::<u64>().read_unaligned()),
            4 => store!("st.shared.b32", reg32, from.cast::<u32>().read_unaligned()),
            2 => store!("st.shared.b16", reg16, from.cast::<u16>().read_unaligned()),
            _ => store!("st.shared.u8", reg16, u16::from(from.read())),
        }
    }
}
