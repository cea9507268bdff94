//! CPU time of the whole process: what a comparison on a machine with neighbours can stand on.
//! Knows nothing of what is measured.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

/// The time that something took, by the wall's clock and summed over all threads.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// By the wall's clock.
    pub wall: Duration,
    /// Of all threads of the process together.
    pub cpu: Duration,
}

/// Starts measuring.
pub struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// From now on.
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    /// What has passed since the start.
    pub fn read(&self) -> Times {
        Times { wall: self.wall.elapsed(), cpu: cpu_time() - self.cpu }
    }
}

/// CPU time of all threads that the process has, or has had.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on all systems that have `clock_gettime`, and the structure is this
    // function's own.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "there is a clock for the process");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
