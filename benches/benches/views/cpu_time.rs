//! CPU time of the whole process: what a comparison on a machine with neighbours can stand on.
//! Knows nothing of what is measured.
#![allow(unsafe_code)]

use std::time::Duration;

/// CPU time that all threads of the process have taken since the start.
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(cpu_time())
    }

    pub(crate) fn read(&self) -> Duration {
        cpu_time() - self.0
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
