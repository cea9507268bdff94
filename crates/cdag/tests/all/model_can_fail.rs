//! The model notices deliberate mistakes: a check that cannot fail checks
//! nothing.

use std::sync::Arc;

use celerity_cdag::{Command, CommandId, CommandKind, NodeId, TransferId};
use celerity_cpd::{Collective, Ends};
use celerity_regions::{Box3, Region};
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{BufferId, Conflicts, Dependencies, DependencyKind, IndexSpace, TaskId};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::forwards::Forwards;
use celerity_testkit::model::cdag;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::queries::{BufferNames, Dag};
use celerity_testkit::trace::{CommandTrace, TaskTrace};
use celerity_testkit::truth::Truth;
use celerity_testkit::violation::Violation;

/// A program with the command graphs of three nodes.
struct Case {
    program: Program,
    tasks: TaskTrace,
    nodes: Vec<CommandTrace>,
}

impl Case {
    fn new(program: Program) -> Self {
        Self::with(program, Forwards::None)
    }

    fn with(program: Program, forwards: Forwards) -> Self {
        let configuration = Configuration { forwards, ..Configuration::new(3, 1) };
        let tasks = TaskTrace::on(&program, &configuration);
        let tasks = tasks.expect("the program is lawful");
        let nodes = CommandTrace::of_all(&tasks, 3).expect("the program is lawful");
        let case = Self { program, tasks, nodes };
        assert_eq!(case.verdict(), Ok(()));
        case
    }

    fn verdict(&self) -> Result<(), Violation> {
        cdag::check(&Truth::of(&self.program), &self.tasks, &self.nodes, 7)
    }

    /// The commands of `node` that `is_wanted` accepts.
    fn position(&self, node: usize, is_wanted: impl Fn(&CommandKind) -> bool) -> usize {
        let mut commands = self.nodes[node].commands.iter();
        commands.position(|command| is_wanted(&command.kind)).expect("there is such a command")
    }
}

fn without(dependencies: &Dependencies<CommandId>, on: CommandId) -> Dependencies<CommandId> {
    let mut kept = Dependencies::default();
    dependencies.iter().filter(|dep| dep.on != on).for_each(|dep| kept.add(dep.on, dep.kind));
    kept
}

fn synchronizes(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Horizon | CommandKind::Epoch(_))
}

fn is_push(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Push { .. })
}

fn is_await_push(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::AwaitPush { .. })
}

#[test]
fn every_edge_that_orders_dataflow_is_missed() {
    let mut dropped_edges = 0;
    let ways = [Forwards::None, Forwards::Always];
    let programs =
        ways.into_iter().flat_map(|way| corpus::all(3).into_iter().map(move |one| (way, one)));
    for (forwards, (name, program)) in programs {
        let mut case = Case::with(program, forwards);
        for node in 0..case.nodes.len() {
            for position in 0..case.nodes[node].commands.len() {
                let sound = case.nodes[node].commands[position].dependencies.clone();
                for dep in sound.iter() {
                    let commands = &mut case.nodes[node].commands;
                    commands[position].dependencies = without(&sound, dep.on);
                    let earlier = dep.on.index() as usize;
                    // Horizons and epochs stand in for older commands, which
                    // may be ordered by other edges, too.
                    let stands_in = synchronizes(&commands[earlier].kind);
                    let reach =
                        Dag::of_commands("", commands, &BufferNames::default()).reachability();
                    if !stands_in && !reach.waits_for(position, earlier) {
                        let what = format!("{name}: N{node} C{position} without {}", dep.on);
                        assert!(case.verdict().is_err(), "{what}");
                        dropped_edges += 1;
                    }
                }
                case.nodes[node].commands[position].dependencies = sound;
            }
        }
    }
    assert!(dropped_edges > 100, "only {dropped_edges} edges were needed");
}

#[test]
fn a_push_that_brings_too_little_is_noticed() {
    let mut case = Case::new(corpus::nbody(9, 2));
    let push = case.position(0, is_push);
    let CommandKind::Push { targets, .. } = &mut case.nodes[0].commands[push].kind else {
        unreachable!("`position` finds a push")
    };
    let first = targets[0].1.bounding_box();
    let rest = Box3::new(first.min(), [first.max()[0] - 1, 1, 1]);
    targets[0].1 = Region::from(rest);
    assert!(matches!(case.verdict(), Err(Violation::Mismatched { .. })));
}

/// An all-gather per step, of which each node's commands are changed.
fn gathering(change: impl Fn(usize, &mut Collective)) -> Violation {
    let mut case = Case::with(corpus::nbody(9, 2), Forwards::Always);
    let mut changed = 0;
    for (node, trace) in case.nodes.iter_mut().enumerate() {
        for command in &mut trace.commands {
            if let CommandKind::Collective { collective, .. } = &mut command.kind {
                change(node, Arc::make_mut(collective));
                changed += 1;
            }
        }
    }
    assert!(changed > 0, "nothing is gathered");
    case.verdict().unwrap_err()
}

#[test]
fn nodes_that_exchange_something_else_are_noticed() {
    let one_differs = gathering(|node, collective| {
        if node == 1 {
            collective.to = Ends::One(NodeId::from_index(0));
        }
    });
    let is_expected =
        matches!(one_differs, Violation::Malformed { .. } | Violation::Spurious { .. });
    assert!(is_expected, "{one_differs}");
    let shifted = gathering(|_, collective| {
        if let Ends::Each(parts) = &collective.from {
            let mut parts = parts.to_vec();
            parts.rotate_left(1);
            collective.from = Ends::Each(parts.into());
        }
    });
    let is_expected = matches!(
        shifted,
        Violation::Stale { .. } | Violation::Unordered { .. } | Violation::Spurious { .. }
    );
    assert!(is_expected, "{shifted}");
    let to_one = gathering(|_, collective| collective.to = Ends::One(NodeId::from_index(0)));
    let is_expected = matches!(to_one, Violation::Stale { .. } | Violation::Spurious { .. });
    assert!(is_expected, "{to_one}");
}

#[test]
fn a_node_that_leaves_a_collective_out_is_noticed() {
    let mut case = Case::with(corpus::nbody(9, 2), Forwards::Always);
    let place = case.position(2, |kind| matches!(kind, CommandKind::Collective { .. }));
    let transfer = TransferId { consumer: TaskId::from_index(0), buffer: BufferId::from_index(0) };
    case.nodes[2].commands[place].kind =
        CommandKind::AwaitPush { transfer, region: Region::empty() };
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::Malformed { .. } | Violation::Spurious { .. }));
}

#[test]
fn forgetting_a_transfer_on_both_sides_leaves_stale_data() {
    let mut case = Case::new(corpus::nbody(9, 2));
    // Both sides leave out element 0, which N0 owns.
    let kept = |region: &Region| region.difference_box(&Box3::from_range([1]));
    for node in 0..3 {
        for command in &mut case.nodes[node].commands {
            match &mut command.kind {
                CommandKind::Push { targets, .. } => {
                    targets.iter_mut().for_each(|(_, region)| *region = kept(region));
                }
                CommandKind::AwaitPush { region, .. } => *region = kept(region),
                _ => {}
            }
        }
    }
    let violation = case.verdict().unwrap_err();
    let is_expected = matches!(
        violation,
        Violation::Stale { .. } | Violation::Unordered { .. } | Violation::Spurious { .. }
    );
    assert!(is_expected, "{violation}");
}

#[test]
fn reading_before_the_data_arrives_is_noticed() {
    let mut case = Case::new(corpus::nbody(9, 2));
    let arrival = case.position(1, is_await_push);
    let arrival = case.nodes[1].commands[arrival].id;
    let commands = &mut case.nodes[1].commands;
    let reader = commands
        .iter_mut()
        .find(|command| command.dependencies.kind_of(arrival) == Some(DependencyKind::True));
    let reader = reader.expect("somebody reads what arrives");
    reader.dependencies = without(&reader.dependencies, arrival);
    let violation = case.verdict().unwrap_err();
    assert!(
        matches!(&violation, Violation::Unordered { earlier, .. }
        if earlier.starts_with(&format!("N1 {arrival} "))),
        "{violation}"
    );
}

#[test]
fn sending_what_is_already_there_is_redundant() {
    let mut case = Case::new(corpus::nbody(9, 1));
    // After the last fence, everybody has everything.
    let (task, region) = (case.tasks.tasks[1].id, Region::from(Box3::from_range([1])));
    let transfer = TransferId { consumer: task, buffer: BufferId::from_index(0) };
    let to = NodeId::from_index(1);
    let kinds = [
        CommandKind::Push { transfer, targets: [(to, region.clone())].into_iter().collect() },
        CommandKind::AwaitPush { transfer, region },
    ];
    for (node, kind) in case.nodes.iter_mut().zip(kinds) {
        let epoch = node.commands.last().expect("there is a shutdown epoch").id;
        let mut dependencies = Dependencies::default();
        dependencies.add(epoch, DependencyKind::Order);
        node.commands.push(Command {
            id: epoch.next(),
            task,
            kind,
            dependencies,
            conflicts: Conflicts::default(),
        });
    }
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::Redundant { .. }), "{violation}");
}

#[test]
fn a_push_of_two_writers_is_noticed() {
    let mut program = ProgramBuilder::default();
    let buffer = program.buffer([6]);
    for half in [Box3::from_range([3]), Box3::from_offset_range([3], [3])] {
        let space = IndexSpace { granularity: [3, 1, 1], ..IndexSpace::new(1, half) };
        program.kernel("fill", space, &[(buffer, Write, MapperSpec::OneToOne)]);
    }
    let space = IndexSpace::new(1, Box3::from_range([6]));
    program.kernel("use", space, &[(buffer, Read, MapperSpec::All)]);
    let mut case = Case::new(program.finish());
    let push = case.position(0, is_push);
    let CommandKind::Push { targets, .. } = &mut case.nodes[0].commands[push].kind else {
        unreachable!("`position` finds a push")
    };
    targets[0].1 = Region::from(Box3::from_range([6]));
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::MixedWriters { .. }), "{violation}");
}

#[test]
fn chunks_must_partition_the_index_space() {
    let mut case = Case::new(corpus::wave_sim([6, 4], 1));
    let is_execute = |kind: &CommandKind| matches!(kind, CommandKind::Execute { .. });
    let execute = case.position(1, is_execute);
    let CommandKind::Execute { chunk } = &mut case.nodes[1].commands[execute].kind else {
        unreachable!("`position` finds an execution")
    };
    *chunk = Box3::new(chunk.min(), [chunk.max()[0], chunk.max()[1] - 1, 1]);
    // The first fill of the program has no edges that could give it away.
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::WrongAssignment { .. } | Violation::Spurious { .. }));
}
