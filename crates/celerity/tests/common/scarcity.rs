//! Little memory for this process.
#![allow(unsafe_code)]

/// Leaves this process 16 MiB more than it has.
pub(crate) fn limit_memory() {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
    let size: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    let most = (size << 10) + (16 << 20);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: it reads the limit that it is given.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}
