//! What the threads of this process have done, as Linux tells it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

/// By thread: name, nanoseconds on a core, and how often it went to sleep.
#[derive(Default)]
pub(crate) struct Snapshot(BTreeMap<u64, (String, u64, u64)>);

impl Snapshot {
    /// Now. Empty where the system does not tell.
    pub(crate) fn take() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let read = |entry: fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let file = |name| fs::read_to_string(entry.path().join(name)).ok();
            let busy = file("schedstat")?.split_whitespace().next()?.parse().ok()?;
            let status = file("status")?;
            let sleeps =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            Some((id, (file("comm")?.trim().to_owned(), busy, sleeps?.trim().parse().ok()?)))
        };
        Self(tasks.filter_map(read).collect())
    }

    /// What has happened since, of threads that did something, per kernel of `launches`.
    pub(crate) fn since(&self, before: &Self, launches: u32) -> Vec<Usage> {
        let launches = f64::from(launches);
        let usage = |(id, (name, busy, sleeps)): (&u64, &(String, u64, u64))| {
            let (busy_before, sleeps_before) =
                before.0.get(id).map_or((0, 0), |(_, busy, sleeps)| (*busy, *sleeps));
            let busy = (busy - busy_before) as f64 / 1e3 / launches;
            let sleeps = (sleeps - sleeps_before) as f64 * 1e3 / launches;
            Usage { name: name.clone(), busy, sleeps }
        };
        let all = self.0.iter().map(usage);
        all.filter(|usage| usage.busy >= 0.01 || usage.sleeps >= 1.0).collect()
    }
}

/// What a thread did.
pub(crate) struct Usage {
    name: String,
    /// µs on a core per kernel.
    busy: f64,
    /// Per thousand kernels.
    sleeps: f64,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, busy, sleeps } = self;
        write!(f, "{name}: {busy:.2} µs on a core per kernel, {sleeps:.1} sleeps per 1000")
    }
}
