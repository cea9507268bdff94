//! What only code on a device can do: ask where it stands, and fail. The one
//! module that exists for one target alone.
#![allow(unsafe_code)]

use core::arch::{asm, nvptx};
use core::panic::{Location, PanicInfo};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::abi::record::{CLAIMED, COMPLETE, EMPTY, FILE, KERNEL, MESSAGE, Source, TEXT_BYTES};
use crate::abi::{LaunchBlock, Place, Seat, Thread, seat, visit};
use crate::group::NdItem;
use crate::item::Item;

pub use crate::abi::Record;
pub use tiles::{Block, run_tile, run_tile_groups, tile};

pub(crate) mod convert;
pub(crate) mod elements;
pub(crate) mod global;
pub(crate) mod shared;
mod tiles;
pub(crate) mod warp;

/// Stands for a message that would have to be formatted.
const NUMBERS: &str = "a check failed; its message holds numbers, see the line in the source";

/// Calls `call` for all runs of items that this thread takes.
#[inline(always)]
pub fn run<const K: usize>(
    kernel: &'static str,
    launch: &LaunchBlock,
    rows: bool,
    bordered: bool,
    call: impl FnMut(Place<K>),
) {
    leave_launch(kernel, launch, if rows { launch.run } else { 1 }, K);
    visit(launch, &thread(), rows, bordered, call);
}

/// Calls `call` for the one item that this thread takes of a launch whose blocks are
/// groups. Every thread has one, and all go the same way: nothing here may branch,
/// since threads must reach a barrier together.
#[inline(always)]
pub fn run_groups<const K: usize>(
    kernel: &'static str,
    launch: &LaunchBlock,
    call: impl FnOnce(Place<K>, NdItem<'static, K>),
) {
    leave_launch(kernel, launch, 1, K);
    let Seat { place, local, group, size } = seat(launch, &thread());
    call(place, NdItem::from_parts(Item::new(place.start, place.global), local, group, size));
}

/// Waits for all threads of the block, and makes what they wrote to shared memory
/// visible to all of them.
#[inline(always)]
pub fn barrier() {
    // SAFETY: the caller's contract is the hardware's; threads that have ended are
    // not waited for.
    unsafe { nvptx::_syncthreads() }
}

/// Leaves the name, the chunk and the shape of the launch in the block's shared
/// memory for [`fail`]: every thread writes the same, so none has to wait. That
/// is three stores a thread, and nothing that a panic-free path looks at.
#[inline(always)]
fn leave_launch(kernel: &'static str, launch: &LaunchBlock, step: u64, dims: usize) {
    let [z, y, x] = launch.offset;
    // SAFETY: writes 48 bytes of shared memory that the module has set aside,
    // and that no Rust code looks at.
    unsafe {
        asm!(
            "st.shared.v2.u64 [celerity_launch], {{{name}, {len}}};",
            "st.shared.v2.u64 [celerity_launch+16], {{{z}, {y}}};",
            "st.shared.v2.u64 [celerity_launch+32], {{{x}, {shape}}};",
            name = in(reg64) kernel.as_ptr(),
            len = in(reg64) kernel.len(),
            z = in(reg64) z,
            y = in(reg64) y,
            x = in(reg64) x,
            shape = in(reg64) step | (dims as u64) << 32,
            options(nostack, nomem, preserves_flags),
        );
    }
}

/// Where this thread stands.
#[inline(always)]
fn thread() -> Thread {
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

/// Ends the thread with a message, as a panic does, but without a call: a kernel
/// that calls anything, be it never, is compiled worse by the driver. A product of
/// 4096² matrices takes 53 ms with a call for bounds that do not hold, 22 without.
#[inline(always)]
#[track_caller]
pub fn stop(message: &'static str) -> ! {
    let record: *mut Record;
    // SAFETY: reads the variable that `module!` defines.
    unsafe {
        asm!(
            "ld.global.u64 {record}, [celerity_record];",
            record = out(reg64) record,
            options(nostack, readonly, preserves_flags),
        );
    }
    end(record, Location::caller(), message)
}

/// Ends the thread after a panic.
pub fn fail(info: &PanicInfo<'_>, record: *mut Record) -> ! {
    let message = info.message().as_str().unwrap_or(NUMBERS);
    end(record, info.location().unwrap_or(Location::caller()), message)
}

/// Records who failed, if it is the first and there is a record, and ends the
/// thread. The launch goes on without it; what it has written is worthless.
#[inline(always)]
fn end(record: *mut Record, location: &Location<'_>, message: &str) -> ! {
    if !record.is_null() {
        // SAFETY: the host has pointed it at a record that lives as long as the
        // module; whoever claims it is alone with the rest.
        unsafe {
            let state = AtomicU32::from_ptr(&raw mut (*record).state);
            let claim =
                state.compare_exchange(EMPTY, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
            if claim.is_ok() {
                fill(record, location, message);
                state.store(COMPLETE, Ordering::Release);
            }
        }
    }
    // SAFETY: ends this thread and nothing else.
    unsafe { asm!("exit;", options(noreturn, nostack)) }
}

/// Writes down who failed, where and why. What goes in here counts: a kernel is
/// given as many registers as anything in it takes. So nothing is formatted, no
/// function called, and everything goes to memory at once, to be read back for the
/// texts: 32 registers instead of the 56 that formatting takes, which would halve
/// the threads at work.
///
/// # Safety
/// The record is there, and nobody else writes it.
#[inline(always)]
unsafe fn fill(record: *mut Record, location: &Location<'_>, message: &str) {
    let (name, offset, shape) = left_launch();
    let source = |text: &str| Source { address: text.as_ptr() as u64, len: text.len() as u64 };
    // SAFETY: all of it is inside of the record, and the sources are texts that
    // stay; volatile, so that nothing is kept in registers on the way.
    unsafe {
        let sources = &raw mut (*record).sources;
        (*sources)[KERNEL] = name;
        (*record).offset = offset;
        (*record).step = shape as u32;
        (*record).dims = (shape >> 32) as u32;
        let Thread { block, thread, threads } = thread();
        for axis in 0..3 {
            (*record).position[axis] = block[axis] * threads[axis] + thread[axis];
        }
        (*record).line = location.line();
        (*record).column = location.column();
        (*sources)[FILE] = source(location.file());
        (*sources)[MESSAGE] = source(message);
        // A number that the compiler cannot see keeps the loop one: this stands
        // wherever a check may fail.
        let texts: usize;
        asm!("mov.u64 {texts}, 3;", texts = out(reg64) texts, options(pure, nomem, nostack));
        let mut which = 0;
        while which < texts {
            let Source { address, len } = sources.cast::<Source>().add(which).read_volatile();
            let to = (&raw mut (*record).texts).cast::<u8>().add(which * TEXT_BYTES);
            let from = address as *const u8;
            for at in 0..(len as usize).min(TEXT_BYTES) {
                to.add(at).write_volatile(from.add(at).read_volatile());
            }
            which += 1;
        }
    }
}

/// What [`leave_launch`] has left: the kernel's name, the chunk's first item, and items per
/// thread (low half) and dimensions (high half).
#[inline(always)]
fn left_launch() -> (Source, [u64; 3], u64) {
    let (address, len, z, y, x, shape): (u64, u64, u64, u64, u64, u64);
    // SAFETY: reads what `leave_launch` has written before anything could panic.
    unsafe {
        asm!(
            "ld.shared.v2.u64 {{{address}, {len}}}, [celerity_launch];",
            "ld.shared.v2.u64 {{{z}, {y}}}, [celerity_launch+16];",
            "ld.shared.v2.u64 {{{x}, {shape}}}, [celerity_launch+32];",
            address = out(reg64) address,
            len = out(reg64) len,
            z = out(reg64) z,
            y = out(reg64) y,
            x = out(reg64) x,
            shape = out(reg64) shape,
            options(nostack, readonly, preserves_flags),
        );
    }
    (Source { address, len }, [z, y, x], shape)
}
