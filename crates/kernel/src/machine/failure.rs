//! The end of a thread that panics: what it leaves for the host to read.

use core::arch::asm;
use core::panic::{Location, PanicInfo};
use core::sync::atomic::{AtomicU32, Ordering};

use super::thread;
use crate::abi::record::{CLAIMED, COMPLETE, EMPTY, FILE, KERNEL, MESSAGE, Source, TEXT_BYTES};
use crate::abi::{ARE_VALUES, LaunchBlock, NUMBERS, PanicRecord, Teller};

/// Stands for a message that would have to be formatted.
const UNKNOWN: &str = "a check failed; its message holds numbers, see the line in the source";

/// Leaves the name, the chunk and the shape of the launch in the block's shared
/// memory for [`fail`]: every thread writes the same, so none has to wait. That
/// is three stores a thread, and nothing that a panic-free path looks at.
#[inline(always)]
pub(crate) fn leave_launch(kernel: &'static str, launch: &LaunchBlock, dims: usize) {
    let [z, y, x] = launch.offset;
    // SAFETY: reads the last eight bytes of the block, and writes 48 bytes of shared memory that
    // the module has set aside, and that no Rust code looks at.
    unsafe {
        let shape = (&raw const *launch).cast::<u64>().add(size_of::<LaunchBlock>() / 8 - 1).read();
        asm!(
            "st.shared.v2.u64 [celerity_launch], {{{name}, {len}}};",
            "st.shared.v2.u64 [celerity_launch+16], {{{z}, {y}}};",
            "st.shared.v2.u64 [celerity_launch+32], {{{x}, {shape}}};",
            name = in(reg64) kernel.as_ptr(),
            len = in(reg64) kernel.len() | dims << 32,
            z = in(reg64) z,
            y = in(reg64) y,
            x = in(reg64) x,
            shape = in(reg64) shape,
            options(nostack, nomem, preserves_flags),
        );
    }
}

/// Leaves which items of rows are in no run, in a block whose threads take those.
#[inline(always)]
pub(crate) fn leave_edges<const K: usize>(launch: &LaunchBlock) {
    let fastest = K.saturating_sub(1);
    // SAFETY: as above, the 32 bytes behind those.
    unsafe {
        asm!(
            "st.shared.v2.u64 [celerity_launch+48], {{{left}, {behind}}};",
            "st.shared.u64 [celerity_launch+64], {range};",
            left = in(reg64) launch.inner_min[fastest],
            behind = in(reg64) launch.inner_max[fastest],
            range = in(reg64) launch.range[fastest],
            options(nostack, nomem, preserves_flags),
        );
    }
}

/// Ends the thread with a message, as a panic does, but without a call: a kernel
/// that calls anything, be it never, is compiled worse by the driver. A product of
/// 4096² matrices takes 53 ms with a call for bounds that do not hold, 22 without.
///
/// The message names the numbers ([`PanicMessage`](crate::abi::PanicMessage)); lists of them have `dims`
/// each. They are stored as soon as this thread is known to be the one that tells, so that none
/// stays in a register for long.
#[inline(always)]
#[track_caller]
pub(crate) fn stop<const N: usize>(message: &'static str, dims: usize, numbers: [usize; N]) -> ! {
    stop_at(Location::caller(), message, dims, numbers)
}

/// The same, for what has happened elsewhere.
#[inline(always)]
pub(crate) fn stop_at<const N: usize>(
    location: &Location<'_>,
    message: &'static str,
    dims: usize,
    numbers: [usize; N],
) -> ! {
    const { assert!(N <= NUMBERS, "a record has no room for so many numbers") };
    end(left_record(), location, message, |record| {
        // SAFETY: inside of a record that this thread is alone with, as `end` says.
        unsafe {
            if N > 0 {
                (&raw mut (*record).lists).write_volatile(dims as u32 + 1);
            }
            let to = (&raw mut (*record).numbers).cast::<u64>();
            for nth in 0..N {
                to.add(nth).write_volatile(numbers[nth] as u64);
            }
        }
    })
}

/// What stands for `panic!` with a text alone in a kernel, and in what it calls.
#[inline(always)]
#[track_caller]
pub fn stop_with(message: &'static str) -> ! {
    stop(message, 0, [])
}

/// The same with values: a text in the language of `format!`, and what tells them.
#[inline(always)]
#[track_caller]
pub fn stop_telling(message: &'static str, tell: impl FnOnce(&mut Teller<'_>)) -> ! {
    end(left_record(), Location::caller(), message, |record| {
        // SAFETY: this thread is alone with it, as `end` says.
        unsafe {
            let mut teller = Teller::new(&mut (*record).numbers);
            tell(&mut teller);
            (&raw mut (*record).kinds).write_volatile(teller.kinds());
            (&raw mut (*record).lists).write_volatile(ARE_VALUES);
        }
    })
}

/// The record that the host has pointed `module!`'s variable at, or null.
#[inline(always)]
fn left_record() -> *mut PanicRecord {
    let record;
    // SAFETY: reads the variable that `module!` defines.
    unsafe {
        asm!(
            "ld.global.u64 {record}, [celerity_record];",
            record = out(reg64) record,
            options(nostack, readonly, preserves_flags),
        );
    }
    record
}

/// Ends the thread after a panic.
pub fn fail(info: &PanicInfo<'_>, record: *mut PanicRecord) -> ! {
    let message = info.message().as_str().unwrap_or(UNKNOWN);
    end(record, info.location().unwrap_or(Location::caller()), message, |_| ())
}

/// Records who failed, if it is the first and there is a record, which `numbers` gets then, and ends
/// the thread. The launch goes on without it; what it has written is worthless.
#[inline(always)]
fn end(
    record: *mut PanicRecord,
    location: &Location<'_>,
    message: &str,
    numbers: impl FnOnce(*mut PanicRecord),
) -> ! {
    if !record.is_null() {
        // SAFETY: the host has pointed it at a record that lives as long as the
        // module; whoever claims it is alone with the rest.
        unsafe {
            let state = AtomicU32::from_ptr(&raw mut (*record).state);
            let claim =
                state.compare_exchange(EMPTY, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
            if claim.is_ok() {
                numbers(record);
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
unsafe fn fill(record: *mut PanicRecord, location: &Location<'_>, message: &str) {
    let left = left_launch();
    let source = |text: &str| Source { address: text.as_ptr() as u64, len: text.len() as u64 };
    // SAFETY: all of it is inside of the record, and the sources are texts that
    // stay; volatile, so that nothing is kept in registers on the way.
    unsafe {
        let sources = &raw mut (*record).sources;
        (*sources)[KERNEL] = Source { address: left.name, len: left.len & u64::from(u32::MAX) };
        (*record).offset = left.offset;
        (*record).shape = left.shape;
        (*record).edges = left.edges;
        (*record).dims = (left.len >> 32) as u32;
        (*record).thread = thread();
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

/// What [`leave_launch`] and [`leave_edges`] have left.
struct Left {
    name: u64,
    /// Bytes of the name (low half) and dimensions (high half).
    len: u64,
    offset: [u64; 3],
    shape: u64,
    /// Of blocks of edges; anything in others.
    edges: [u64; 3],
}

#[inline(always)]
fn left_launch() -> Left {
    let (name, len, z, y, x, shape): (u64, u64, u64, u64, u64, u64);
    let (left, behind, range): (u64, u64, u64);
    // SAFETY: reads what `leave_launch` has written before anything could panic, and memory behind
    // it.
    unsafe {
        asm!(
            "ld.shared.v2.u64 {{{name}, {len}}}, [celerity_launch];",
            "ld.shared.v2.u64 {{{z}, {y}}}, [celerity_launch+16];",
            "ld.shared.v2.u64 {{{x}, {shape}}}, [celerity_launch+32];",
            "ld.shared.v2.u64 {{{left}, {behind}}}, [celerity_launch+48];",
            "ld.shared.u64 {range}, [celerity_launch+64];",
            name = out(reg64) name,
            len = out(reg64) len,
            z = out(reg64) z,
            y = out(reg64) y,
            x = out(reg64) x,
            shape = out(reg64) shape,
            left = out(reg64) left,
            behind = out(reg64) behind,
            range = out(reg64) range,
            options(nostack, readonly, preserves_flags),
        );
    }
    Left { name, len, offset: [z, y, x], shape, edges: [left, behind, range] }
}
