//! Little memory for this process.
#![allow(unsafe_code)]

use std::thread::sleep;
use std::time::Duration;

/// Leaves this process 16 MiB more than it has: more than it had at the least, of some looks. Each thread's first
/// allocation maps 128 MiB for a moment, of which 64 remain; what is counted then is free right after.
pub(crate) fn limit_memory() {
    let looks = std::iter::repeat_with(|| {
        sleep(Duration::from_millis(1));
        mapped()
    });
    let most = looks.take(50).min().expect("some looks") + (16 << 20);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: it reads the limit that it is given.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

/// Bytes of addresses that this process has, which is what the limit is about.
fn mapped() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
    let size: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    size << 10
}
