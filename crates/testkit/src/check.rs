//! One check per layer: a program and a configuration in, a verdict out. What
//! all property tests, the corpus and the bug tests call.

use celerity_cdag::NodeId;
use celerity_checker::{Depth, NodeCheckerConfig};
use celerity_executor::{ClusterConfig, Run};
use celerity_idag::{DeviceMemory, Lookahead};
use proptest::prelude::*;

pub use crate::configuration::Configuration;
use crate::forwards::Forwards;
use crate::model;
use crate::program::Program;
use crate::run::{run, run_on};
use crate::trace::{CommandTrace, GeneratorInput, InstructionTrace, TaskTrace};
use crate::truth::Truth;
use crate::twin::{Observation, ObservedElements, interpret};
use crate::violation::Violation;

/// Configurations of up to 4 nodes and 3 devices, with horizons of all sizes,
/// any lookahead, memories and links, any idea of a short row, and any forwards.
pub fn any_configuration() -> impl Strategy<Value = Configuration> {
    let lookahead = prop_oneof![
        2 => Just(Lookahead::None),
        2 => Just(Lookahead::Auto),
        1 => Just(Lookahead::Infinite),
    ];
    let links = prop_oneof![3 => Just(u64::MAX), 1 => any::<u64>()];
    let linearize_below = prop_oneof![2 => Just(0), 1 => 8..100u64];
    let device_memory = prop_oneof![2 => Just(DeviceMemory::Own), 1 => Just(DeviceMemory::Host)];
    let cluster =
        (1..5usize, 1..4usize, device_memory).prop_map(|(nodes, devices, device_memory)| {
            Configuration { device_memory, ..Configuration::new(nodes, devices) }
        });
    let grow_from = prop_oneof![2 => Just(0), 1 => 1..500u64];
    let wires_from = prop_oneof![2 => Just(0), 1 => Just(1), 1 => 1..500u64];
    let collectives_from = prop_oneof![1 => Just(0), 1 => Just(1), 1 => 1..500u64];
    let wired = prop_oneof![3 => Just(u64::MAX), 1 => any::<u64>()];
    let wires = (wires_from, wired, collectives_from);
    let share_from = prop_oneof![1 => Just(0), 1 => 1..50u64];
    let piece = prop_oneof![1 => Just(0), 1 => 1..200u64];
    let memory = (links, linearize_below, (share_from, piece), grow_from, wires);
    let forwards = (0..Forwards::ALL.len()).prop_map(|nth| Forwards::ALL[nth]);
    let graphs = (1..6u64, 2..10u64, lookahead, forwards);
    (cluster, graphs, memory, 0..1000u64).prop_map(|(cluster, graphs, memory, seed)| {
        let (horizon_step, horizon_max_parallelism, lookahead, forwards) = graphs;
        let (links, linearize_below, (share_from, piece), grow_from, wires) = memory;
        let (wires_from, wired, collectives_from) = wires;
        Configuration {
            horizon_step,
            horizon_max_parallelism,
            lookahead,
            links,
            linearize_below,
            share_from,
            piece,
            grow_from,
            wires_from,
            wired,
            collectives_from,
            forwards,
            seed,
            ..cluster
        }
    })
}

/// A failed check, with everything that is needed to repeat it.
#[derive(Debug, thiserror::Error)]
#[error("{violation}\n{configuration:?}\n{program}")]
pub struct FailedCheck {
    /// What was found.
    pub violation: Violation,
    /// On what.
    pub configuration: Configuration,
    /// The program.
    pub program: Program,
}

/// The result of a check.
pub type Verdict = Result<(), Box<FailedCheck>>;

/// Checks the task graph.
///
/// # Errors
/// The first broken promise.
pub fn check_tdag(program: &Program, configuration: &Configuration) -> Verdict {
    judge(program, configuration, || {
        let trace = TaskTrace::on(program, configuration)?;
        model::tdag::check(&Truth::of(program), &trace)
    })
}

/// Checks the command graphs of all nodes.
///
/// # Errors
/// The first broken promise.
pub fn check_cdag(program: &Program, configuration: &Configuration) -> Verdict {
    judge(program, configuration, || {
        let tasks = TaskTrace::on(program, configuration)?;
        let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
        model::cdag::check(&Truth::of(program), &tasks, &commands, configuration.seed)
    })
}

/// Checks the instruction graphs of all nodes.
///
/// # Errors
/// The first broken promise.
pub fn check_idag(program: &Program, configuration: &Configuration) -> Verdict {
    judge(program, configuration, || {
        let tasks = TaskTrace::on(program, configuration)?;
        let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
        let instructions = InstructionTrace::on(&tasks, &commands, configuration)?;
        model::idag::check(&Truth::of(program), &tasks, &instructions, configuration)
    })
}

/// Proves the graphs of all nodes right with the schedule checker.
///
/// # Errors
/// The first broken rule, waste included.
pub fn check_schedule(program: &Program, configuration: &Configuration) -> Verdict {
    let Configuration { nodes, devices, device_memory, .. } = *configuration;
    judge(program, configuration, || {
        let tasks = TaskTrace::on(program, configuration)?;
        let commands = CommandTrace::of_all(&tasks, nodes)?;
        let instructions = InstructionTrace::on(&tasks, &commands, configuration)?;
        let config = NodeCheckerConfig {
            nodes,
            local: NodeId::from_index(0),
            devices,
            device_memory,
            device_wires: configuration.wires_from > 0,
            device_collectives: configuration.collectives_from > 0,
            depth: Depth::Full,
            eager_allocation: configuration.lookahead != Lookahead::None,
        };
        let nodes = commands.iter().zip(&instructions);
        let events = nodes.map(|(commands, instructions)| events(&tasks, commands, instructions));
        celerity_checker::check_schedule(config, events).map_err(Violation::Schedule)
    })
}

/// One node's whole graphs, as the schedule checker takes them. What belongs to
/// which event is told by the traces' own bookkeeping, and by the transfers
/// that pilots name.
#[must_use]
pub fn events<'a>(
    tasks: &'a TaskTrace,
    commands: &'a CommandTrace,
    instructions: &'a InstructionTrace,
) -> Vec<celerity_checker::CheckerCall<'a>> {
    use celerity_checker::CheckerCall as Checked;
    let mut begin = 0;
    let mut next_pilot = 0;
    let events = tasks.events.iter().zip(&commands.ends).enumerate();
    let events = events.map(|(position, (event, &end))| {
        let of_event = |origin: &crate::trace::InstructionOrigin| origin.event == position;
        let first = instructions.origins.partition_point(|origin| origin.event < position);
        let count = instructions.origins[first..].iter().take_while(|o| of_event(o)).count();
        let made = &instructions.instructions[first..first + count];
        let of_task = &commands.commands[std::mem::replace(&mut begin, end)..end];
        match event {
            GeneratorInput::Create(info) => {
                let mut users = instructions.user_allocations.iter();
                let provided = users.find(|(_, buffer)| *buffer == info.id).map(|(id, _)| *id);
                Checked::Create(info, provided)
            }
            GeneratorInput::Drop(buffer) => Checked::Drop(*buffer, made),
            GeneratorInput::Task(task) => {
                let pilots = &instructions.pilots[next_pilot..];
                let is_own = |pilot: &&celerity_idag::Pilot| pilot.transfer.consumer <= task.id;
                let own = pilots.iter().take_while(is_own).count();
                next_pilot += own;
                Checked::Task(task, of_task, made, &pilots[..own])
            }
        }
    });
    events.collect()
}

/// Runs the program and compares what each node observes with the sequential
/// twin.
///
/// # Errors
/// The run's failure, or the first word that differs.
pub fn check_run(program: &Program, configuration: &Configuration) -> Verdict {
    judge(program, configuration, || {
        let expected = interpret(program);
        let found = run(program, configuration)?;
        let nodes = found.iter().enumerate();
        nodes.into_iter().try_for_each(|(node, observation)| {
            compare(NodeId::from_index(node as u64), observation, &expected)
        })
    })
}

/// Runs the program where each node is a process, `place` says how, and compares what this
/// process's `node` observes with the sequential twin. All processes must call it.
///
/// # Errors
/// As [`check_run`].
pub fn check_process(
    program: &Program,
    configuration: &Configuration,
    node: NodeId,
    place: impl FnOnce(&ClusterConfig) -> Run<'static>,
) -> Verdict {
    judge(program, configuration, || {
        let found = run_on(program, configuration, place, |_, kernel| kernel)?;
        compare(node, &found[node.slot()], &interpret(program))
    })
}

/// Runs `check` on every program of the corpus with loops of `steps`, on nodes
/// {1,2,3,4} × devices {1,2,3}, with other forwards on each diagonal of these.
///
/// # Panics
/// With the name of the first program that fails, and the failure.
pub fn check_corpus(steps: usize, check: impl Fn(&Program, &Configuration) -> Verdict) {
    for (name, program) in crate::corpus::all(steps) {
        for (nodes, devices) in
            (1..=4).flat_map(|nodes| (1..=3).map(move |devices| (nodes, devices)))
        {
            let forwards = Forwards::ALL[(nodes + devices) % Forwards::ALL.len()];
            let configuration = Configuration { forwards, ..Configuration::new(nodes, devices) };
            if let Err(failure) = check(&program, &configuration) {
                panic!("{name}: {failure}");
            }
        }
    }
}

/// The first difference between two observations.
pub(crate) fn compare(
    node: NodeId,
    found: &Observation,
    expected: &Observation,
) -> Result<(), Violation> {
    let (found, expected) = (&found.snapshots, &expected.snapshots);
    if found.len() != expected.len() {
        let message = format!("{node} took {} of {} snapshots", found.len(), expected.len());
        return Err(Violation::RunFailed { message });
    }
    for (found, expected) in found.iter().zip(expected) {
        let longest = found.words.len().max(expected.words.len());
        let word = |of: &ObservedElements, word: usize| of.words.get(word).copied();
        let differs = (0..longest).find(|&at| word(found, at) != word(expected, at));
        if let Some(at) = differs {
            return Err(Violation::Diverged {
                node,
                op: expected.op,
                buffer: expected.buffer,
                word: at,
                expected: word(expected, at),
                found: word(found, at),
            });
        }
    }
    Ok(())
}

fn judge(
    program: &Program,
    configuration: &Configuration,
    check: impl FnOnce() -> Result<(), Violation>,
) -> Verdict {
    check().map_err(|violation| {
        let (configuration, program) = (*configuration, program.clone());
        Box::new(FailedCheck { violation, configuration, program })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn one_changed_word_is_a_difference() {
        let expected = interpret(&corpus::nbody(4, 1));
        let node = NodeId::from_index(2);
        assert_eq!(compare(node, &expected, &expected), Ok(()));
        let mut found = expected.clone();
        found.snapshots[1].words[3] ^= 1;
        let violation = compare(node, &found, &expected).unwrap_err();
        assert!(violation.to_string().starts_with("N2, statement 5: word 3"), "{violation}");
    }

    #[test]
    fn a_missing_word_or_snapshot_is_a_difference() {
        let expected = interpret(&corpus::nbody(4, 1));
        let node = NodeId::from_index(0);
        let mut shorter = expected.clone();
        shorter.snapshots[0].words.pop();
        assert!(matches!(
            compare(node, &shorter, &expected),
            Err(Violation::Diverged { word: 3, found: None, .. })
        ));
        shorter.snapshots.pop();
        assert!(matches!(compare(node, &shorter, &expected), Err(Violation::RunFailed { .. })));
    }

    #[test]
    fn a_failure_shows_the_program_and_the_configuration() {
        // The second statement reads what nobody has written.
        let mut program = corpus::wave_sim([3, 3], 1);
        program.ops.retain(|op| !op.to_string().contains("fill"));
        let failure = check_tdag(&program, &Configuration::new(2, 1)).unwrap_err();
        let text = failure.to_string();
        assert!(text.starts_with("statement 2 is refused: "), "{text}");
        assert!(text.contains("nodes: 2") && text.contains("B1 = unwritten 2-D buffer"), "{text}");
    }
}
