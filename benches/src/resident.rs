//! How much memory the process holds, as the operating system sees it. Knows
//! nothing of what is in it.

/// Bytes of main memory that this process occupies now; `None` where the
/// operating system does not tell (anywhere but on Linux).
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    // The second field of `statm` counts pages (proc(5)). Rust's library cannot
    // ask for their size; 4 KiB is that of all common x86-64 and most ARM kernels.
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::resident_bytes;

    #[test]
    fn memory_that_is_touched_is_resident() {
        const MORE: usize = 64 << 20;
        let before = resident_bytes().expect("Linux tells");
        let touched = std::hint::black_box(vec![1u8; MORE]);
        let after = resident_bytes().expect("Linux tells");
        assert!(after >= before + MORE as u64 / 2, "{before} {after}");
        assert!(touched.iter().all(|&byte| byte == 1));
    }
}
