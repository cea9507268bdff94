//! What is spent: CPU time of the whole process, which neighbours of the machine lengthen least, and time by the
//! clock. Two threads that share a core take more CPU time for the same than one that has it alone. Knows nothing of
//! what is measured.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

/// What something has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// Of all threads of the process.
    pub(crate) cpu: Duration,
    pub(crate) clock: Duration,
}

/// Tells what the process has spent since the start.
pub(crate) struct Stopwatch(Duration, Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(cpu_time(), Instant::now())
    }

    pub(crate) fn read(&self) -> Spent {
        let Self(cpu, clock) = *self;
        Spent { cpu: cpu_time() - cpu, clock: clock.elapsed() }
    }
}

/// CPU time of all threads that the process has, or has had.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is this function's own.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the process has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
