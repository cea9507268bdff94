//! Checks random programs in random configurations, one after the other, on all cores.
//!
//! Owns which program and configuration belong to a seed, what is checked of them, and what to
//! count. Refuses to know who asks: the terminal is the business of the program `check`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::{AddAssign, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use celerity_executor::contain;
use celerity_idag::{DeviceMemory, Lookahead};

use crate::check::{Configuration, FailedCheck, check_run, check_schedule};
use crate::forwards::Forwards;
use crate::model;
use crate::program::{Program, Sizes, seeded};
use crate::random::Random;
use crate::shrink::shrink;
use crate::supervise::Notes;
use crate::trace::{CommandTrace, InstructionTrace, TaskTrace};
use crate::truth::Truth;
use crate::violation::Violation;

/// A seed to begin with where none is asked for: short enough to be typed, and a new one
/// every second.
#[must_use]
pub fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() % 1_000_000_000 * 1000
}

/// What to check.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Pairs of a program and a configuration.
    pub programs: u64,
    /// The seed of the first; the others follow.
    pub seed: u64,
    /// Nodes of a cluster.
    pub nodes: RangeInclusive<usize>,
    /// Devices of a node.
    pub devices: RangeInclusive<usize>,
    /// One of so many programs is also run, on real threads; 0 for none.
    pub run_every: u64,
}

/// What has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CampaignCounts {
    /// Pairs of a program and a configuration.
    pub programs: u64,
    /// Those that were also run, on real threads.
    pub runs: u64,
    /// Tasks of the task graphs.
    pub tasks: u64,
    /// Commands of all nodes.
    pub commands: u64,
    /// Instructions of all nodes.
    pub instructions: u64,
    /// Programs by numbers of nodes and devices.
    pub covered: BTreeMap<(usize, usize), u64>,
}

/// The end of a campaign.
#[derive(Debug)]
pub struct CampaignReport {
    /// What has been checked, by all threads.
    pub counts: CampaignCounts,
    /// How long that took.
    pub time: Duration,
    /// The first failure that was found, as small as it could be made, with its seed.
    pub failure: Option<(u64, Box<FailedCheck>)>,
}

impl Campaign {
    /// The program and the configuration that belong to a seed: the same on every machine.
    #[must_use]
    pub fn case(&self, seed: u64) -> (Program, Configuration) {
        let mut draws = Draws(Random::new(seed));
        let nodes = draws.usize_in(&self.nodes);
        let devices = draws.usize_in(&self.devices);
        let configuration = Configuration {
            horizon_step: 1 + draws.below(6),
            horizon_max_parallelism: 2 + draws.below(9),
            lookahead: draws.lookahead(),
            links: draws.links(),
            linearize_below: draws.linearize_below(),
            grow_from: draws.grow_from(),
            device_memory: draws.device_memory(),
            wires_from: draws.wires_from(),
            wired: draws.links(),
            forwards: draws.forwards(),
            share_from: draws.share_from(),
            piece: draws.piece(),
            collectives_from: draws.wires_from(),
            seed,
            ..Configuration::new(nodes, devices)
        };
        // Others keep the programs that they have had before there were host objects.
        let sizes = match seed % 4 {
            3 => Sizes::default().with_objects(),
            _ => Sizes::default(),
        };
        (seeded(sizes, seed), configuration)
    }

    /// Checks everything, and calls `begin` before each program, with its seed, and `end` after
    /// it, from any thread. Ends with the first failure. What it is at is in `notes`.
    pub fn run(
        &self,
        notes: &Notes,
        begin: impl Fn(u64) + Sync,
        end: impl Fn() + Sync,
    ) -> CampaignReport {
        let start = Instant::now();
        let (next, counts) = (AtomicU64::new(0), Mutex::new(CampaignCounts::default()));
        let failure = Mutex::new(None);
        let work = |thread| {
            let mut own = CampaignCounts::default();
            loop {
                let nth = next.fetch_add(1, Relaxed);
                if nth >= self.programs || failure.lock().expect("nobody panics").is_some() {
                    break;
                }
                let seed = self.seed.wrapping_add(nth);
                let check = || {
                    begin(seed);
                    self.check(nth, seed)
                };
                match notes.at(thread, seed, check) {
                    Ok(counted) => own += counted,
                    Err(found) => {
                        failure.lock().expect("nobody panics").get_or_insert((seed, found));
                    }
                }
                end();
            }
            *counts.lock().expect("nobody panics") += own;
        };
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let work = &work;
        thread::scope(|scope| (0..threads).for_each(|nth| drop(scope.spawn(move || work(nth)))));
        let failure = failure.into_inner().expect("nobody panics");
        let failure =
            failure.map(|(seed, failure)| (seed, notes.at(0, seed, || smallest(*failure))));
        let counts = counts.into_inner().expect("nobody panics");
        CampaignReport { counts, time: start.elapsed(), failure }
    }

    fn check(&self, nth: u64, seed: u64) -> Result<CampaignCounts, Box<FailedCheck>> {
        let (program, configuration) = self.case(seed);
        let mut counts = check_graphs(&program, &configuration)?;
        if self.run_every > 0 && nth.is_multiple_of(self.run_every) {
            caught(&program, &configuration, || check_run(&program, &configuration))?;
            counts.runs += 1;
        }
        Ok(counts)
    }
}

/// Checks task graph, command graphs and instruction graphs, by element-by-element models and by
/// the schedule checker. A panic is a failure, too.
///
/// # Errors
/// The first broken promise.
pub fn check_graphs(
    program: &Program,
    configuration: &Configuration,
) -> Result<CampaignCounts, Box<FailedCheck>> {
    caught(program, configuration, || {
        let counts = models(program, configuration)
            .map_err(|violation| failure(violation, program, configuration))?;
        check_schedule(program, configuration)?;
        Ok(counts)
    })
}

/// Checks all graphs and, on real threads, the run.
///
/// # Errors
/// The first broken promise.
pub fn check_everything(
    program: &Program,
    configuration: &Configuration,
) -> Result<CampaignCounts, Box<FailedCheck>> {
    let counts = check_graphs(program, configuration)?;
    caught(program, configuration, || check_run(program, configuration))?;
    Ok(CampaignCounts { runs: 1, ..counts })
}

/// Each graph is generated once, and each layer's model looks at it.
fn models(program: &Program, configuration: &Configuration) -> Result<CampaignCounts, Violation> {
    let Configuration { nodes, devices, seed, .. } = *configuration;
    let truth = Truth::of(program);
    let tasks = TaskTrace::on(program, configuration)?;
    model::tdag::check(&truth, &tasks)?;
    let commands = CommandTrace::of_all(&tasks, nodes)?;
    model::cdag::check(&truth, &tasks, &commands, seed)?;
    let instructions = InstructionTrace::on(&tasks, &commands, configuration)?;
    model::idag::check(&truth, &tasks, &instructions, configuration)?;
    Ok(CampaignCounts {
        programs: 1,
        runs: 0,
        tasks: tasks.tasks.len() as u64,
        commands: commands.iter().map(|node| node.commands.len() as u64).sum(),
        instructions: instructions.iter().map(|node| node.instructions.len() as u64).sum(),
        covered: BTreeMap::from([((nodes, devices), 1)]),
    })
}

/// A smaller program and a smaller cluster that fail, too. What fails on graphs is looked for on
/// graphs alone.
fn smallest(found: FailedCheck) -> Box<FailedCheck> {
    const ATTEMPTS: usize = 2_000;
    let FailedCheck { program, mut configuration, .. } = found;
    let on_graphs = check_graphs(&program, &configuration).is_err();
    let check = |program: &Program, configuration: &Configuration| match on_graphs {
        true => check_graphs(program, configuration).err(),
        false => check_everything(program, configuration).err(),
    };
    let attempts = if on_graphs { ATTEMPTS } else { ATTEMPTS / 10 };
    let program = shrink(&program, attempts, |smaller| check(smaller, &configuration).is_some());
    let clusters = (1..=configuration.nodes)
        .flat_map(|nodes| (1..=configuration.devices).map(move |devices| (nodes, devices)));
    let fails = |&(nodes, devices): &(usize, usize)| {
        check(&program, &Configuration { nodes, devices, ..configuration }).is_some()
    };
    if let Some((nodes, devices)) = clusters.into_iter().find(fails) {
        configuration = Configuration { nodes, devices, ..configuration };
    }
    check(&program, &configuration).unwrap_or_else(|| {
        let message = "it failed once, but does not any more: a race".to_owned();
        failure(Violation::RunFailed { message }, &program, &configuration)
    })
}

/// Makes a panic a failure.
fn caught<T>(
    program: &Program,
    configuration: &Configuration,
    check: impl FnOnce() -> Result<T, Box<FailedCheck>>,
) -> Result<T, Box<FailedCheck>> {
    // What a panic leaves behind belongs to `check` and is gone with it.
    contain::caught(check).unwrap_or_else(|message| {
        Err(failure(Violation::Panicked { message }, program, configuration))
    })
}

fn failure(
    violation: Violation,
    program: &Program,
    configuration: &Configuration,
) -> Box<FailedCheck> {
    Box::new(FailedCheck { violation, configuration: *configuration, program: program.clone() })
}

impl AddAssign for CampaignCounts {
    fn add_assign(&mut self, other: Self) {
        self.programs += other.programs;
        self.runs += other.runs;
        self.tasks += other.tasks;
        self.commands += other.commands;
        self.instructions += other.instructions;
        for (cluster, programs) in other.covered {
            *self.covered.entry(cluster).or_default() += programs;
        }
    }
}

/// What a seed decides of a configuration.
struct Draws(Random);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next() % end
    }

    fn lookahead(&mut self) -> Lookahead {
        [Lookahead::None, Lookahead::Auto, Lookahead::Infinite][self.below(3) as usize]
    }

    /// All devices linked, or any pairs of them.
    fn links(&mut self) -> u64 {
        if self.below(3) > 0 { u64::MAX } else { self.0.next() }
    }

    /// Nothing, or rows of up to a dozen elements.
    fn linearize_below(&mut self) -> u64 {
        if self.below(2) > 0 { 0 } else { 8 + self.below(92) }
    }

    /// Nothing, or shares of some elements.
    fn share_from(&mut self) -> u64 {
        if self.below(2) > 0 { 0 } else { 1 + self.below(50) }
    }

    /// Transfers as a whole, or in pieces of some elements.
    fn piece(&mut self) -> u64 {
        if self.below(2) > 0 { 0 } else { 1 + self.below(200) }
    }

    /// None, or all from a size that separates small buffers from smaller ones.
    fn grow_from(&mut self) -> u64 {
        if self.below(3) > 0 { 0 } else { 1 + self.below(500) }
    }

    /// Host memory alone, or all payloads, or all from a small size.
    fn wires_from(&mut self) -> u64 {
        [0, 0, 1, 1 + self.below(200)][self.below(4) as usize]
    }

    fn device_memory(&mut self) -> DeviceMemory {
        if self.below(3) > 0 { DeviceMemory::Own } else { DeviceMemory::Host }
    }

    fn forwards(&mut self) -> Forwards {
        Forwards::ALL[self.below(Forwards::ALL.len() as u64) as usize]
    }

    fn usize_in(&mut self, range: &RangeInclusive<usize>) -> usize {
        let width = range.end() - range.start() + 1;
        range.start() + self.below(width as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use crate::program::Op;

    fn campaign(programs: u64) -> Campaign {
        Campaign { programs, seed: 7, nodes: 1..=8, devices: 1..=4, run_every: 10 }
    }

    #[test]
    fn random_programs_pass_and_are_counted() {
        let report = campaign(60).run(&Notes::nowhere(), |_| (), || ());
        if let Some((seed, failure)) = report.failure {
            panic!("seed {seed}: {failure}");
        }
        let CampaignCounts { programs, runs, covered, instructions, .. } = report.counts;
        assert_eq!((programs, runs), (60, 6));
        assert_eq!(covered.values().sum::<u64>(), 60);
        assert!(covered.len() > 15 && instructions > 1_000, "{covered:?}, {instructions}");
    }

    #[test]
    fn a_seed_always_gives_the_same_case() {
        let campaign = campaign(1);
        assert_eq!(campaign.case(9), campaign.case(9));
        assert_ne!(campaign.case(9).1, campaign.case(10).1);
    }

    #[test]
    fn a_failure_moves_to_the_smallest_cluster() {
        let mut program = corpus::nbody(6, 2);
        for op in &mut program.ops {
            if let Op::Create(spec) = op {
                spec.host_initialized = false;
            }
        }
        let found = check_graphs(&program, &Configuration::new(4, 3)).unwrap_err();
        assert!(matches!(found.violation, Violation::Refused { .. }), "{found}");
        let small = smallest(*found);
        assert!(matches!(small.violation, Violation::Refused { .. }), "{small}");
        assert_eq!((small.configuration.nodes, small.configuration.devices), (1, 1));
    }

    #[test]
    fn a_panic_is_a_failure() {
        let (program, configuration) = campaign(1).case(1);
        let found = caught::<()>(&program, &configuration, || panic!("{} nodes", 3)).unwrap_err();
        assert_eq!(found.violation.to_string(), "panic: 3 nodes");
    }
}
