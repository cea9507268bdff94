//! What kernels and host tasks cost per item, as measured runs tell. Owns which sample
//! counts for which launch.

use std::collections::{BTreeMap, HashMap};

use crate::cluster::Nanos;
use crate::kernels::KernelCosts;
use crate::recorded::{MeasuredLaunch, RecordedRun};

/// The costs of kernels and host tasks by name, in ns per item.
///
/// A task costs per item what the task of its name in its position cost in the measured runs: the third
/// `step` what the third `step` cost, so kernels may do more from step to step. If the program does not
/// run as many tasks of the name as the measured runs did, each costs the mean. Of several runs, the
/// median counts, of those in which the task had half as many items, at least, as in any other.
///
/// ```
/// use celerity_predict::{CostedWork, MeasuredLaunch, RecordedRun, WorkCosts};
/// let launch = |task, took| {
///     MeasuredLaunch { name: "step".to_owned(), task, on_device: true, items: 10, took }
/// };
/// let launches = vec![launch(1, 150), launch(2, 350)];
/// let run = RecordedRun { launches, ..RecordedRun::default() };
/// let costs = WorkCosts::of([&run], 50);
/// assert_eq!(costs.of_launch(CostedWork::Kernel("step"), (1, 2), 20), Some(650)); // 30 ns per item, 50 for the launch
/// assert_eq!(costs.of_launch(CostedWork::Kernel("step"), (0, 7), 20), Some(450)); // 20 ns per item on average
/// assert_eq!(costs.of_launch(CostedWork::Host("step"), (0, 1), 20), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkCosts {
    /// Of kernels, and of what runs on the host.
    by_name: [HashMap<String, Vec<f64>>; 2],
    /// Items of each kernel's greatest launch.
    most_items: HashMap<String, u64>,
    launch: Nanos,
    /// Of kernels that a file has, which counts before what was measured.
    given: Vec<KernelCosts>,
}

/// What costs something, by the name of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostedWork<'a> {
    /// A kernel.
    Kernel(&'a str),
    /// A host task, a fence, or what is combined on the host.
    Host(&'a str),
}

impl WorkCosts {
    /// The costs that runs tell, of which each launch took `launch` ns beside its items.
    #[must_use]
    pub fn of<'r>(runs: impl IntoIterator<Item = &'r RecordedRun>, launch: Nanos) -> Self {
        let runs: Vec<_> = runs.into_iter().collect();
        let by_name = [true, false].map(|on_device| {
            let launch = if on_device { launch } else { 0 };
            let of_kind = |run: &&RecordedRun| {
                let launches = run.launches.iter().filter(|one| one.on_device == on_device);
                of_run(launches, launch)
            };
            medians(&runs.iter().map(of_kind).collect::<Vec<_>>())
        });
        let mut most_items = HashMap::new();
        for one in runs.iter().flat_map(|run| &run.launches).filter(|one| one.on_device) {
            let most = most_items.entry(one.name.clone()).or_default();
            *most = one.items.max(*most);
        }
        Self { by_name, most_items, launch, given: Vec::new() }
    }

    /// The same with the kernels of a file, which count before those of runs, and of files given before.
    #[must_use]
    pub fn given(mut self, kernels: KernelCosts) -> Self {
        self.given.insert(0, kernels);
        self
    }

    fn of_given(&self, kernel: &str, items: u64) -> Option<Nanos> {
        self.given.iter().find_map(|given| given.of_launch(kernel, items, self.launch))
    }

    /// The items of the greatest launch of a kernel that was measured; 0 if none was. A file knows any number.
    pub(crate) fn most_items(&self, kernel: &str) -> u64 {
        if self.of_given(kernel, 1).is_some() {
            return u64::MAX;
        }
        self.most_items.get(kernel).copied().unwrap_or(0)
    }

    /// What a launch of so many items takes, in ns, of the `nth` of so many tasks of its name; `None`
    /// if the measured runs had no such task.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn of_launch(
        &self,
        work: CostedWork<'_>,
        (nth, of): (usize, usize),
        items: u64,
    ) -> Option<Nanos> {
        if let CostedWork::Kernel(name) = work
            && let Some(given) = self.of_given(name, items)
        {
            return Some(given);
        }
        let [kernels, host] = &self.by_name;
        let (tasks, launch) = match work {
            CostedWork::Kernel(name) => (kernels.get(name)?, self.launch),
            CostedWork::Host(name) => (host.get(name)?, 0),
        };
        let per_item = match tasks.get(nth) {
            Some(own) if tasks.len() == of => *own,
            _ => tasks.iter().sum::<f64>() / tasks.len() as f64,
        };
        Some(launch.saturating_add((per_item * items as f64).round() as Nanos))
    }
}

/// By name, what the tasks of a run cost per item, and how many items they had, in order.
fn of_run<'r>(
    launches: impl Iterator<Item = &'r MeasuredLaunch>,
    launch: Nanos,
) -> HashMap<String, Vec<(f64, u64)>> {
    let mut tasks = BTreeMap::<u64, (&str, Nanos, u64)>::new();
    for MeasuredLaunch { name, task, items, took, .. } in launches {
        let (_, sum, all) = tasks.entry(*task).or_insert((name, 0, 0));
        *sum += took.saturating_sub(launch);
        *all += items;
    }
    let mut by_name = HashMap::<String, Vec<(f64, u64)>>::new();
    for (name, sum, items) in tasks.into_values() {
        by_name.entry(name.to_owned()).or_default().push((sum as f64 / items.max(1) as f64, items));
    }
    by_name
}

/// By name and task, the medians of those runs in which the task had half as many items, at least, as in
/// any other: what a launch of one item takes says nothing of a thousand.
fn medians(runs: &[HashMap<String, Vec<(f64, u64)>>]) -> HashMap<String, Vec<f64>> {
    let names = runs.iter().flat_map(HashMap::keys);
    let of_name = |name: &String| {
        let samples: Vec<_> = runs.iter().filter_map(|run| run.get(name)).collect();
        let tasks = samples.iter().map(|sample| sample.len()).min().unwrap_or(0);
        let of_task = |nth: usize| {
            let most = samples.iter().map(|sample| sample[nth].1).max().unwrap_or(0);
            let enough = samples.iter().filter(|sample| sample[nth].1 >= most.div_ceil(2));
            median(enough.map(|sample| sample[nth].0).collect())
        };
        (name.clone(), (0..tasks).map(of_task).collect())
    };
    names.map(of_name).collect()
}

/// The middle of some values, the greater of two; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
