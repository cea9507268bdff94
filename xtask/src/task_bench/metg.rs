//! The minimum effective task granularity (Slaughter et al., Task Bench, SC 2020, §4): from times of the same
//! graph with shorter and shorter tasks to the length of those that are half overhead.

use std::fmt;

/// A measure of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Of each task's kernel.
    pub(super) iterations: u64,
    /// In all steps.
    pub(super) tasks: u64,
    /// Cores that share them.
    pub(super) cores: u64,
    /// From the first step to the last one.
    pub(super) seconds: f64,
}

impl Sample {
    /// Iterations that a core does in a second.
    fn rate(&self) -> f64 {
        self.iterations as f64 * self.granularity().recip()
    }

    /// Seconds of a core for each task.
    fn granularity(&self) -> f64 {
        self.seconds * self.cores as f64 / self.tasks as f64
    }
}

/// For each number of iterations the fastest sample, in ascending order of iterations.
pub(super) fn least(samples: &[Sample]) -> Vec<Sample> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(|a, b| {
        a.iterations.cmp(&b.iterations).then(a.granularity().total_cmp(&b.granularity()))
    });
    sorted.dedup_by_key(|sample| sample.iterations);
    sorted
}

/// The granularity, in seconds, at which half of a core's time is overhead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Metg {
    At(f64),
    /// Even the shortest tasks, which are so long, are above half.
    Below(f64),
}

impl fmt::Display for Metg {
    /// In microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(seconds) => write!(f, "{:.2}", seconds * 1e6),
            Self::Below(seconds) => write!(f, "< {:.2}", seconds * 1e6),
        }
    }
}

/// Where tasks come to half of the rate of the longest ones, between the two samples around it; `None` if all are below, or there are
/// none. `samples` ascend by iterations.
///
/// The rate is that of the same program on the same cores: what a core does depends on what its neighbours do. Between
/// two samples the granularity grows as what is computed does: exact, if overhead does not depend on that.
pub(super) fn metg(samples: &[Sample]) -> Option<Metg> {
    let peak = samples.last()?.rate();
    let efficiency = |sample: &Sample| sample.rate() / peak;
    // From long tasks down: noise among short ones does not count.
    let Some(last_below) = samples.iter().rposition(|sample| efficiency(sample) < 0.5) else {
        return samples.first().map(|shortest| Metg::Below(shortest.granularity()));
    };
    let [below, above] = [samples.get(last_below)?, samples.get(last_below + 1)?];
    let point = |sample: &Sample| [sample.iterations as f64 / peak, sample.granularity()];
    let ([x0, y0], [x1, y1]) = (point(below), point(above));
    let slope = (y1 - y0) / (x1 - x0);
    Some(Metg::At(2.0 * (y0 - slope * x0) / (2.0 - slope)))
}

/// The time of a task that does nothing, in seconds of a core.
pub(super) fn of_empty(samples: &[Sample]) -> Option<Metg> {
    samples.iter().map(Sample::granularity).min_by(f64::total_cmp).map(Metg::At)
}

/// A line of our driver: iterations, tasks, seconds.
pub(super) fn of_line(line: &str, cores: u64) -> Option<Sample> {
    let mut fields = line.split(',');
    let (iterations, tasks) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let seconds = fields.next()?.parse().ok()?;
    Some(Sample { iterations, tasks, cores, seconds })
}

/// The suite's report.
pub(super) fn of_report(text: &str, iterations: u64, cores: u64) -> Option<Sample> {
    let value = |name| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()
    };
    let tasks = value("Total Tasks ")?.parse().ok()?;
    let seconds = value("Elapsed Time ")?.parse().ok()?;
    Some(Sample { iterations, tasks, cores, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks of 2 ns per iteration, and so much overhead in ns, on two cores.
    fn samples(overhead: f64) -> Vec<Sample> {
        let sample = |doublings| {
            let iterations = 1_u64 << doublings;
            let seconds = (2.0 * iterations as f64 + overhead) * 1e-9 * 500.0;
            Sample { iterations, tasks: 1000, cores: 2, seconds }
        };
        (5..=16).map(sample).collect()
    }

    #[test]
    fn half_of_the_time_is_overhead() {
        let (fast, slow) = (samples(0.0), samples(1000.0));
        let Some(Metg::At(found)) = metg(&slow) else { panic!("between the samples") };
        // The longest task, of 131 µs, is overhead for 1 µs, too.
        assert!((found / 2e-6 - 1.0).abs() < 0.02, "{found}");
        let Some(Metg::Below(shortest)) = metg(&fast) else { panic!("all are above") };
        assert!((shortest / 64e-9 - 1.0).abs() < 1e-6, "{shortest}");
        assert_eq!(metg(&[]), None);
        assert_eq!([Metg::At(2e-6), Metg::Below(6e-8)].map(|m| m.to_string()), ["2.00", "< 0.06"]);
    }

    #[test]
    fn the_fastest_of_each_counts() {
        let [slow, fast] = [900.0, 100.0].map(samples);
        let both: Vec<_> = slow.into_iter().chain(fast.clone()).collect();
        assert_eq!(least(&both), fast);
    }

    #[test]
    fn measures_are_read() {
        let expected = Sample { iterations: 64, tasks: 1000, cores: 2, seconds: 2.5e-3 };
        assert_eq!(of_line("64,1000,0.002500000", 2), Some(expected));
        let report = "Running\nTotal Tasks 1000\nTotal FLOPs 5\nElapsed Time 2.5e-03 seconds\n";
        assert_eq!(of_report(report, 64, 2), Some(expected));
        for wrong in ["", "64,1000", "a,b,c"] {
            assert_eq!(of_line(wrong, 2), None);
        }
        assert_eq!(of_report("Total Tasks 1000", 64, 2), None);
        let empty = Sample { iterations: 0, ..expected };
        assert_eq!(of_empty(&[empty]), Some(Metg::At(5e-6)));
    }
}
