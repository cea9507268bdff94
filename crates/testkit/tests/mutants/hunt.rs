//! Programs and configurations, the checks that they are put through, and the hunt for one bug.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use celerity_cdag::{Command, verify_cluster};
use celerity_idag::{DeviceMemory, Lookahead};
use celerity_mutants::{Layer, Mutant};
use celerity_regions::Box3;
use celerity_tdag::{IndexSpace, Split};
use celerity_testkit::check::{self, Configuration, Verdict};
use celerity_testkit::forwards::Forwards;
use celerity_testkit::hash::Mixer;
use celerity_testkit::program::{Program, Sizes, seeded};
use celerity_testkit::reduction::ReductionCase;
use celerity_testkit::sim;
use celerity_testkit::trace::{CommandTrace, TaskTrace};

use crate::{dry_run, parts};

/// So many programs may pass before a check counts as blind.
const PROGRAMS: u64 = 400;

/// Another program that is among them: `GrowthStopsEarly` shows in one of some thousand, where an
/// allocation that has grown comes to touch one that it has passed by.
const RARE: u64 = 1105;

/// Many statements about one buffer: what needs several overlapping accesses to show, shows
/// tens of times sooner than in programs of the default sizes.
const DENSE: Sizes = Sizes { buffers: 1, ops: 32, extents: [1, 32, 9, 4], objects: 0 };

/// One of so many programs is followed by another one, with side effects on host objects, and by a
/// reduction, as the facade lowers one.
const WITH_OBJECTS: u64 = 8;

/// A program, and what it is scheduled for.
pub(crate) struct Case {
    seed: u64,
    program: Program,
    configuration: Configuration,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} on {:?}", self.seed, self.configuration)
    }
}

impl Case {
    /// The reduction that comes with some of the programs: over a line or a plane.
    fn reduction(&self) -> Option<ReductionCase> {
        let draw = |what: u64, bound| Mixer::for_item(4, [self.seed, what, 0]).below(bound);
        let Configuration { nodes, devices, .. } = self.configuration;
        let space = match draw(0, 2) {
            0 => IndexSpace::new(1, Box3::from_range([1 + draw(1, 50_000)])),
            _ => {
                let extent = Box3::from_range([1 + draw(1, 300), 1 + draw(2, 200)]);
                IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, extent) }
            }
        };
        let reduction = ReductionCase { space, nodes, devices };
        self.seed.is_multiple_of(WITH_OBJECTS).then_some(reduction)
    }
}

/// The cases, the same in every run: one to eight nodes, one to four devices each.
pub(crate) fn cases() -> Vec<Case> {
    let of = |seed: u64| {
        let objects = seed.is_multiple_of(WITH_OBJECTS).then(|| case_with_objects(seed));
        [Some(case(seed)), objects].into_iter().flatten()
    };
    (0..PROGRAMS).chain([RARE]).flat_map(of).collect()
}

fn case_with_objects(seed: u64) -> Case {
    let sizes = Sizes { buffers: 2, ops: 12, objects: 2, ..Sizes::default() };
    Case { program: seeded(sizes, seed), ..case(seed) }
}

fn case(seed: u64) -> Case {
    let draw = |what: u64, bound| Mixer::for_item(0, [seed, what, 0]).below(bound);
    let configuration = Configuration {
        horizon_step: 1 + draw(2, 5) as u64,
        horizon_max_parallelism: 2 + draw(3, 8) as u64,
        lookahead: [Lookahead::None, Lookahead::Auto, Lookahead::Infinite][draw(4, 3)],
        links: if draw(5, 3) > 0 { u64::MAX } else { draw(6, usize::MAX) as u64 },
        linearize_below: if draw(7, 2) > 0 { 0 } else { 8 + draw(8, 92) as u64 },
        device_memory: if draw(9, 3) > 0 { DeviceMemory::Own } else { DeviceMemory::Host },
        grow_from: if draw(10, 2) > 0 { 0 } else { 1 + draw(11, 128) as u64 },
        wires_from: if draw(12, 4) > 0 || seed == RARE { 0 } else { 1 + draw(13, 64) as u64 },
        wired: if draw(14, 4) > 0 { u64::MAX } else { draw(15, usize::MAX) as u64 },
        forwards: Forwards::ALL[draw(16, Forwards::ALL.len())],
        piece: if draw(19, 2) > 0 { 0 } else { 1 + draw(20, 128) as u64 },
        share_from: if draw(17, 2) > 0 { 0 } else { 1 + draw(18, 32) as u64 },
        collectives_from: if draw(21, 2) > 0 { 0 } else { 1 + draw(22, 128) as u64 },
        seed,
        ..Configuration::new(1 + draw(0, 8), 1 + draw(1, 4))
    };
    let sizes = if seed.is_multiple_of(2) { Sizes::default() } else { DENSE };
    Case { seed, program: seeded(sizes, seed), configuration }
}

/// One way to find bugs.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Whether code of a layer is exercised at all.
    exercises: fn(Layer) -> bool,
    pub(crate) run: fn(&Case) -> Result<(), String>,
}

/// All ways, from those that look at parts to those that look at all at once.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "parts",
        exercises: |layer| matches!(layer, Layer::Regions | Layer::Executor),
        run: |case| parts::check_regions(case.seed).and_then(|()| parts::check_executor(case.seed)),
    },
    Check {
        name: "tdag model",
        exercises: |layer| layer <= Layer::Tdag,
        run: |case| text(check::check_tdag(&case.program, &case.configuration)),
    },
    Check {
        name: "cdag model",
        exercises: |layer| layer <= Layer::Cdag,
        run: |case| text(check::check_cdag(&case.program, &case.configuration)),
    },
    Check {
        name: "collectives",
        exercises: |layer| layer == Layer::Cdag,
        run: |case| check_collectives(&case.program, &case.configuration),
    },
    Check {
        name: "exchanges",
        exercises: |layer| matches!(layer, Layer::Idag | Layer::Executor),
        run: |case| check_exchanges(&case.program, &case.configuration, case.seed),
    },
    Check {
        name: "idag model",
        exercises: |layer| layer <= Layer::Idag,
        run: |case| text(check::check_idag(&case.program, &case.configuration)),
    },
    Check {
        name: "checker",
        exercises: |layer| layer <= Layer::Idag,
        run: |case| {
            text(check::check_schedule(&case.program, &case.configuration))?;
            case.reduction().map_or(Ok(()), |reduction| {
                reduction.check(|left| left).map_err(|finding| finding.to_string())
            })
        },
    },
    Check {
        name: "dry run",
        exercises: |_| true,
        run: |case| dry_run::check(&case.program, &case.configuration),
    },
    Check {
        name: "simulation",
        exercises: |_| true,
        run: |case| {
            let outcome = sim::simulate(&case.program, &case.configuration, case.seed);
            outcome.map(drop).map_err(|failure| failure.breach.to_string())
        },
    },
];

/// Commands with collectives, of all nodes: the model, and the contract that commands have
/// without a program.
fn check_collectives(program: &Program, configuration: &Configuration) -> Result<(), String> {
    let configuration = Configuration { forwards: Forwards::Random, ..*configuration };
    text(check::check_cdag(program, &configuration))?;
    let tasks = TaskTrace::on(program, &configuration).map_err(|refused| refused.to_string())?;
    let nodes = CommandTrace::of_all(&tasks, configuration.nodes);
    let nodes = nodes.map_err(|refused| refused.to_string())?;
    let nodes: Vec<Vec<Command>> = nodes.into_iter().map(|node| node.commands).collect();
    let broken = verify_cluster(&tasks.tasks, &nodes).err();
    broken.map_or(Ok(()), |broken| Err(broken[0].to_string()))
}

/// Instructions of collectives, of all nodes, and how they are executed.
fn check_exchanges(
    program: &Program,
    configuration: &Configuration,
    seed: u64,
) -> Result<(), String> {
    let configuration = Configuration { forwards: Forwards::Random, ..*configuration };
    text(check::check_idag(program, &configuration))?;
    let outcome = sim::simulate(program, &configuration, seed);
    outcome.map(drop).map_err(|failure| failure.breach.to_string())
}

fn text(verdict: Verdict) -> Result<(), String> {
    verdict.map_err(|failure| failure.violation.to_string())
}

/// Who says that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The check.
    Check,
    /// An assertion of the code under test.
    Assertion,
}

/// What one check makes of one bug.
pub(crate) enum Finding {
    /// The check does not run the code with the bug.
    NotExercised,
    /// All programs pass that it was given.
    Blind,
    /// Program number `program` does not, from 1.
    Found { program: usize, by: By, what: String },
}

/// What all checks make of one bug.
pub(crate) struct Row {
    pub(crate) mutant: Mutant,
    /// In the order of [`CHECKS`].
    pub(crate) findings: Vec<Finding>,
    pub(crate) time: Duration,
}

impl Row {
    /// Puts the active bug through all checks, each until it finds it.
    pub(crate) fn of_all_checks(mutant: Mutant, cases: &[Case]) -> Self {
        let start = Instant::now();
        let next = AtomicUsize::new(0);
        let mut found = in_turns(|| {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(check) = CHECKS.get(at) else { return found };
                found.push((at, find(mutant, check, cases)));
            }
        });
        found.sort_by_key(|(at, _)| *at);
        let findings = found.into_iter().map(|(_, finding)| finding).collect();
        Self { mutant, findings, time: start.elapsed() }
    }

    /// Puts program after program through all checks, until one of these finds the active bug.
    pub(crate) fn of_first_check(mutant: Mutant, cases: &[Case]) -> Self {
        let start = Instant::now();
        let exercises = |at: &usize| (CHECKS[*at].exercises)(mutant.layer());
        let exercised: Vec<_> = (0..CHECKS.len()).filter(exercises).collect();
        let (next, is_found) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut found = in_turns(|| {
            let mut found = Vec::new();
            while !is_found.load(Ordering::Relaxed) {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let (program, at) = (turn / exercised.len(), exercised[turn % exercised.len()]);
                let Some(case) = cases.get(program) else { break };
                if let Some((by, what)) = finding(&CHECKS[at], case) {
                    is_found.fetch_or(by == By::Check, Ordering::Relaxed);
                    found.push((program + 1, at, by, what));
                }
            }
            found
        });
        let mut findings: Vec<_> = CHECKS.iter().map(|_| Finding::NotExercised).collect();
        exercised.iter().for_each(|&at| findings[at] = Finding::Blind);
        // What was found with the fewest programs stays.
        found.sort_by_key(|(program, ..)| std::cmp::Reverse(*program));
        for (program, at, by, what) in found {
            findings[at] = Finding::Found { program, by, what };
        }
        Self { mutant, findings, time: start.elapsed() }
    }

    /// The check that needs the fewest programs, with their number and what it says.
    pub(crate) fn first(&self, counts: impl Fn(By) -> bool) -> Option<(&'static str, usize, &str)> {
        let found =
            CHECKS.iter().zip(&self.findings).filter_map(|(check, finding)| match finding {
                Finding::Found { program, by, what } if counts(*by) => {
                    Some((check.name, *program, what.as_str()))
                }
                _ => None,
            });
        found.min_by_key(|(_, program, _)| *program)
    }
}

/// What two workers bring that share the processors.
fn in_turns<R: Send>(worker: impl Fn() -> Vec<R> + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(&worker));
        let found =
            workers.into_iter().flat_map(|worker| worker.join().expect("panics are caught"));
        found.collect()
    })
}

/// Until the first program that does not pass.
fn find(mutant: Mutant, check: &Check, cases: &[Case]) -> Finding {
    if !(check.exercises)(mutant.layer()) {
        return Finding::NotExercised;
    }
    let found = cases.iter().zip(1..).find_map(|(case, program)| {
        let (by, what) = finding(check, case)?;
        Some(Finding::Found { program, by, what })
    });
    found.unwrap_or(Finding::Blind)
}

/// Who says that something is wrong with one program, and what.
fn finding(check: &Check, case: &Case) -> Option<(By, String)> {
    match quietly(|| (check.run)(case)) {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some((By::Check, what)),
        Err(what) => Some((By::Assertion, what)),
    }
}

thread_local! {
    /// Whether panics of this thread are results, not news.
    static EXPECTS_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; a panic becomes its message and is not printed.
fn quietly<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTS_PANICS.get() {
                usual(info);
            }
        }));
    });
    EXPECTS_PANICS.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    EXPECTS_PANICS.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
    })
}
