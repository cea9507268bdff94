//! The minimum effective task granularity (Slaughter et al., Task Bench, SC 2020, §4): from times of the same
//! graph with shorter and shorter tasks to the length of those that are half overhead.

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

/// The highest rate of all, which is taken for efficiency 1.
pub(super) fn peak<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> f64 {
    samples.into_iter().map(Sample::rate).fold(0.0, f64::max)
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

/// The granularity, in seconds, at which tasks come to half of `peak`, between the two samples around it; `None`
/// if all are above, or all below. `samples` ascend by iterations.
pub(super) fn metg(samples: &[Sample], peak: f64) -> Option<f64> {
    let efficiency = |sample: &Sample| sample.rate() / peak;
    // From long tasks down: noise among short ones does not count.
    let last_below = samples.iter().rposition(|sample| efficiency(sample) < 0.5)?;
    let [below, above] = [samples.get(last_below)?, samples.get(last_below + 1)?];
    let part = (0.5 - efficiency(below)) / (efficiency(above) - efficiency(below));
    let [low, high] = [below, above].map(|sample| sample.granularity().ln());
    Some((low + part * (high - low)).exp())
}

/// The time of a task that does nothing, in seconds of a core.
pub(super) fn of_empty(samples: &[Sample]) -> Option<f64> {
    samples.iter().map(Sample::granularity).min_by(f64::total_cmp)
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
        let peak = peak(fast.iter().chain(&slow));
        assert!((peak - 5e8).abs() < 1.0);
        let found = metg(&slow, peak).expect("between the samples");
        assert!((found / 2e-6 - 1.0).abs() < 0.05, "{found}");
        assert_eq!(metg(&fast, peak), None);
        assert_eq!(metg(&slow[..3], peak), None);
        assert_eq!(metg(&[], peak), None);
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
        assert_eq!(of_empty(&[empty]), Some(5e-6));
    }
}
