//! What only code on a device can do: its instructions, as functions. Exists for one target alone, and
//! knows neither items nor views.
#![allow(unsafe_code)]

use core::arch::{asm, nvptx};

use crate::abi::Thread;

pub(crate) mod approximate;
pub(crate) mod convert;
pub(crate) mod failure;
pub(crate) mod shared;
pub(crate) mod warp;
pub(crate) mod wide;

/// Waits for all threads of the block, and makes what they wrote to shared memory
/// visible to all of them.
#[inline(always)]
pub(crate) fn barrier() {
    // SAFETY: the caller's contract is the hardware's; threads that have ended are
    // not waited for.
    unsafe { nvptx::_syncthreads() }
}

/// Waits for all threads of the block, and says for how many of them `is_true`.
#[inline(always)]
pub(crate) fn count(is_true: bool) -> u32 {
    let count: u32;
    // SAFETY: as `barrier`.
    unsafe {
        asm!(
            "{{",
            ".reg .pred vote;",
            "setp.ne.u32 vote, {vote}, 0;",
            "bar.red.popc.u32 {count}, 0, vote;",
            "}}",
            count = out(reg32) count,
            vote = in(reg32) u32::from(is_true),
            options(nostack, preserves_flags),
        );
    }
    count
}

/// The same number, of which a compiler knows nothing but that it is the same wherever it is used.
#[inline(always)]
pub(crate) fn only_itself(number: usize) -> usize {
    let same: usize;
    // SAFETY: it only copies a register.
    unsafe {
        asm!(
            "mov.b64 {same}, {number};",
            same = out(reg64) same,
            number = in(reg64) number,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    same
}

/// What threads have exchanged. Hosts' items must wait for that; threads of a device are done with it.
pub(crate) struct Obtained<R>(pub(crate) R);

impl<R> Obtained<R> {
    #[inline(always)]
    pub(crate) fn wait(self) -> R {
        self.0
    }
}

/// Where this thread stands.
#[inline(always)]
pub(crate) fn thread() -> Thread {
    // SAFETY: they only read registers.
    unsafe {
        Thread {
            block: [nvptx::_block_idx_x(), nvptx::_block_idx_y(), nvptx::_block_idx_z()]
                .map(|index| index as u32),
            thread: [nvptx::_thread_idx_x(), nvptx::_thread_idx_y(), nvptx::_thread_idx_z()]
                .map(|index| index as u32),
            threads: [nvptx::_block_dim_x(), nvptx::_block_dim_y(), nvptx::_block_dim_z()]
                .map(|count| count as u32),
        }
    }
}

/// `value`, or 0 if `room` is. The compiler makes a choice between addresses of such a choice, loses
/// sight of what they are multiples of, and loads elements one by one.
#[inline(always)]
pub(crate) fn unless_zero(room: u32, value: isize) -> isize {
    let chosen: isize;
    // SAFETY: only computes.
    unsafe {
        asm!(
            "{{ .reg .pred none; setp.eq.u32 none, {room}, 0; selp.b64 {chosen}, 0, {value}, none; }}",
            chosen = out(reg64) chosen,
            room = in(reg32) room,
            value = in(reg64) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    chosen
}

/// Which of two byte strings is the larger one, as C's `memcmp` says it.
///
/// # Safety
/// Both have `len` bytes.
pub unsafe fn compare(left: *const u8, right: *const u8, len: usize) -> i32 {
    for i in 0..len {
        // SAFETY: the caller vouches for `len` bytes.
        let (left, right) = unsafe { (*left.add(i), *right.add(i)) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}
