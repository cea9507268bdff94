//! How long kernels have run on devices, summed up by the names of their tasks. Knows
//! nothing of where the times come from.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::sync::lock;

/// The kernels of a run, or of several: a table that all nodes of a process share.
///
/// Displays as one line per kernel under a line of titles, those that took longest
/// first. Adding to it costs a lock and a look-up per launch.
///
/// ```
/// use celerity_executor::{ClusterConfig, KernelTimes, Run, RunError};
/// let times = KernelTimes::default();
/// let config = ClusterConfig::default();
/// Run::new(&config).timing(&times).execute(|_| Ok::<_, RunError>(()))?;
/// assert_eq!(times.to_string(), "no kernel has run\n");
/// # Ok::<(), RunError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KernelTimes(Arc<Mutex<BTreeMap<Arc<str>, KernelTime>>>);

/// What is known of the launches of one kernel. A launch is one chunk on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// How many have completed.
    pub launches: u64,
    /// Of how many of them the device has told the time. What follows is about these.
    pub timed: u64,
    /// How long they took, all together.
    pub total: Duration,
    /// How long the shortest took.
    pub least: Duration,
    /// How long the longest took.
    pub most: Duration,
    /// Bytes of all elements that their accesses name: each access counts once, whatever
    /// its mode, and however often a kernel looks at an element.
    pub bytes: u64,
}

impl KernelTime {
    const NONE: Self = Self {
        launches: 0,
        timed: 0,
        total: Duration::ZERO,
        least: Duration::MAX,
        most: Duration::ZERO,
        bytes: 0,
    };

    /// How long a launch took on average; `None` if no time is known.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.timed))?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Bytes touched per second of a device; `None` if no time is known, or no bytes are
    /// touched.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let seconds = self.total.as_secs_f64();
        (seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / seconds)
    }

    fn add(&mut self, took: Option<Duration>, bytes: u64) {
        self.launches += 1;
        let Some(took) = took else { return };
        self.timed += 1;
        self.total += took;
        self.least = self.least.min(took);
        self.most = self.most.max(took);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl KernelTimes {
    /// What is known of the tasks of this name; `None` if none has run on a device.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<KernelTime> {
        lock(&self.0).get(name).copied()
    }

    /// A launch has completed.
    pub(crate) fn add(&self, name: &Arc<str>, took: Option<Duration>, bytes: u64) {
        let mut table = lock(&self.0);
        // Looked up first: the name is cloned for the first launch only.
        match table.get_mut(name) {
            Some(known) => known.add(took, bytes),
            None => table.entry(name.clone()).or_insert(KernelTime::NONE).add(took, bytes),
        }
    }
}

impl fmt::Display for KernelTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = lock(&self.0);
        if table.is_empty() {
            return f.write_str("no kernel has run\n");
        }
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_by_key(|(_, time)| Reverse(time.total));
        let rows: Vec<_> = rows.into_iter().map(|(name, time)| (title(name), time)).collect();
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(6);
        let titles = ["launches", "total", "mean", "least", "most", "touched"];
        row(f, width, "kernel", titles.map(str::to_owned))?;
        rows.iter().try_for_each(|(name, time)| row(f, width, name, columns(time)))
    }
}

/// A task's name as it stands in the table: in one line, and no longer than leaves room for what was measured.
fn title(name: &str) -> String {
    const LONGEST: usize = 48;
    let shown = name.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    match name.chars().nth(LONGEST) {
        None => shown.collect(),
        Some(_) => shown.take(LONGEST - 1).chain(['…']).collect(),
    }
}

fn row(f: &mut fmt::Formatter<'_>, width: usize, name: &str, columns: [String; 6]) -> fmt::Result {
    write!(f, "{name:width$}")?;
    columns.iter().try_for_each(|column| write!(f, "  {column:>10}"))?;
    f.write_str("\n")
}

fn columns(time: &KernelTime) -> [String; 6] {
    let duration = |duration: Option<Duration>| {
        duration.map_or_else(|| "-".to_owned(), |duration| format!("{duration:.1?}"))
    };
    let if_timed = |value| (time.timed > 0).then_some(value);
    let touched = time.bytes_per_second().map_or_else(|| "-".to_owned(), rate);
    [
        time.launches.to_string(),
        duration(if_timed(time.total)),
        duration(time.mean()),
        duration(if_timed(time.least)),
        duration(if_timed(time.most)),
        touched,
    ]
}

fn rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second {
        rate if rate >= 1e9 => (rate / 1e9, "GB/s"),
        rate if rate >= 1e6 => (rate / 1e6, "MB/s"),
        rate => (rate / 1e3, "kB/s"),
    };
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_took_longest_first() {
        let times = KernelTimes::default();
        let (step, fill) = ("wave step".into(), "fill".into());
        for (name, micros, bytes) in [(&fill, 50, 400), (&step, 100, 1_000_000), (&step, 300, 0)] {
            times.add(name, Some(Duration::from_micros(micros)), bytes);
        }
        let table = times.to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].split_whitespace().next(), Some("kernel"));
        let wave =
            "wave step           2     400.0µs     200.0µs     100.0µs     300.0µs    2.5 GB/s";
        assert_eq!(lines[1], wave);
        let fill =
            "fill                1      50.0µs      50.0µs      50.0µs      50.0µs    8.0 MB/s";
        assert_eq!(lines[2], fill);
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn any_name_takes_one_line_of_the_table() {
        let times = KernelTimes::default();
        for name in ["x".repeat(70_000), "two\nlines".to_owned(), "\u{1b}[31mred".to_owned()] {
            times.add(&name.into(), None, 0);
        }
        let table = times.to_string();
        assert_eq!(table.lines().count(), 4);
        let titles = ["x".repeat(47) + "…", "two\u{fffd}lines".into(), "\u{fffd}[31mred".into()];
        for title in titles {
            assert!(table.lines().any(|line| line.starts_with(&format!("{title} "))), "{table}");
        }
        assert!(table.lines().all(|line| line.chars().count() < 128), "{table}");
    }

    #[test]
    fn launches_without_a_time_are_counted() {
        let times = KernelTimes::default();
        let name: Arc<str> = "empty".into();
        times.add(&name, None, 8);
        let known = times.of("empty").unwrap();
        assert_eq!((known.launches, known.timed, known.mean()), (1, 0, None));
        assert_eq!(known.bytes_per_second(), None);
        let row: Vec<String> = times.to_string().lines().map(str::to_owned).collect();
        assert_eq!(
            row[1].split_whitespace().collect::<Vec<_>>(),
            ["empty", "1", "-", "-", "-", "-", "-"]
        );
        times.add(&name, Some(Duration::from_nanos(10)), 8);
        let known = times.of("empty").unwrap();
        assert_eq!((known.launches, known.mean()), (2, Some(Duration::from_nanos(10))));
        assert_eq!((known.least, known.most), (known.total, known.total));
        assert_eq!(times.of("another"), None);
    }
}
