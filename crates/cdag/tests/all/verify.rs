//! The contract of command graphs: random programs and the corpus keep it, and spoiled
//! streams do not.

use std::sync::Arc;

use celerity_cdag::{Broken, Command, CommandKind, NodeId, verify, verify_cluster};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BrokenEdge, Dependencies, Task, TaskId};
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::program::{Program, Sizes, any_program};
use celerity_testkit::trace::{CommandTrace, TaskTrace};
use proptest::prelude::*;

type Cluster = (Vec<Arc<Task>>, Vec<Vec<Command>>);

fn generate(program: &Program, configuration: &Configuration) -> Cluster {
    let tasks = TaskTrace::of(program, configuration.task_graph()).expect("programs are valid");
    let commands = CommandTrace::of_all(&tasks, configuration.nodes).expect("so are they here");
    (tasks.tasks, commands.into_iter().map(|trace| trace.commands).collect())
}

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
    ) {
        let (tasks, nodes) = generate(&program, &configuration);
        prop_assert_eq!(verify_cluster(&tasks, &nodes), Ok(()));
    }
}

#[test]
fn the_corpus_keeps_the_contract() {
    for (name, program) in corpus::all(6) {
        for count in [1, 2, 4] {
            let (tasks, nodes) = generate(&program, &Configuration::new(count, 1));
            assert_eq!(verify_cluster(&tasks, &nodes), Ok(()), "{name}");
        }
    }
}

/// A solver on three nodes, which has everything but host tasks.
fn jacobi() -> Cluster {
    let configuration = Configuration { horizon_step: 2, ..Configuration::new(3, 1) };
    let (tasks, nodes) = generate(&corpus::jacobi([12, 8], 6), &configuration);
    assert_eq!(verify_cluster(&tasks, &nodes), Ok(()));
    (tasks, nodes)
}

/// What is wrong with the commands of `N0` after `change`, which gets the place of the last
/// command that `is`.
fn broken(
    is: impl Fn(&CommandKind) -> bool,
    change: impl FnOnce(&mut Vec<Command>, usize),
) -> Vec<Broken> {
    let mut commands = jacobi().1.remove(0);
    let place = commands.iter().rposition(|command| is(&command.kind)).expect("there is one");
    change(&mut commands, place);
    verify(&commands, NodeId::from_index(0)).expect_err("something has been broken")
}

fn is_push(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Push { .. })
}

fn is_await(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::AwaitPush { .. })
}

fn is_execution(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Execute { .. })
}

fn is_horizon(kind: &CommandKind) -> bool {
    *kind == CommandKind::Horizon
}

/// The complaints about transfers and service, without their subjects.
fn reasons(found: &[Broken]) -> Vec<&'static str> {
    let why = |broken: &Broken| match broken {
        Broken::Transfer { why, .. } | Broken::Service { why, .. } => Some(*why),
        _ => None,
    };
    found.iter().filter_map(why).collect()
}

#[test]
fn ids_and_edges_are_looked_at() {
    let orphan = broken(is_execution, |commands, at| {
        commands[at].dependencies = Dependencies::default();
    });
    assert!(matches!(orphan[0], Broken::Edge(BrokenEdge::Orphan { .. })), "{orphan:?}");
    let gap = broken(is_push, |commands, at| {
        commands.remove(at);
    });
    assert!(matches!(gap[0], Broken::Edge(BrokenEdge::Id { .. })), "{gap:?}");
    let missed = broken(is_horizon, |commands, at| {
        let before = commands[at - 1].id;
        let others = commands[at].dependencies.iter().filter(|edge| edge.on != before);
        let mut fewer = Dependencies::default();
        others.for_each(|edge| fewer.add(edge.on, edge.kind));
        commands[at].dependencies = fewer;
    });
    let reached = |broken: &Broken| matches!(broken, Broken::Edge(BrokenEdge::NotReached { .. }));
    assert!(missed.iter().any(reached), "{missed:?}");
}

#[test]
fn commands_serve_their_tasks_in_order() {
    let back = broken(is_horizon, |commands, at| commands[at].task = TaskId::from_index(0));
    assert_eq!(reasons(&back), ["which is older than that of the command before it"]);
    let nothing = broken(is_execution, |commands, at| {
        commands[at].kind = CommandKind::Execute { chunk: Box3::EMPTY };
    });
    assert_eq!(reasons(&nothing), ["of which it executes nothing"]);
    let early = broken(is_await, |commands, at| {
        commands[at].kind = CommandKind::Execute { chunk: Box3::UNIT };
    });
    assert!(reasons(&early).contains(&"and is not the last to do so"), "{early:?}");
    let shared = broken(is_horizon, |commands, at| commands[at].task = commands[at - 1].task);
    assert!(reasons(&shared).contains(&"and is not the only one"), "{shared:?}");
}

/// Changes the targets of a push.
fn targets(change: impl FnOnce(&mut Vec<(NodeId, Region)>)) -> Vec<&'static str> {
    let found = broken(is_push, |commands, at| {
        let CommandKind::Push { targets, .. } = &mut commands[at].kind else { unreachable!() };
        let mut changed = targets.to_vec();
        change(&mut changed);
        *targets = changed.into();
    });
    reasons(&found)
}

#[test]
fn targets_are_others_that_get_something_once() {
    assert_eq!(targets(Vec::clear), ["is pushed to nobody"]);
    let twice = targets(|targets| targets.push(targets[0].clone()));
    assert_eq!(twice, ["has targets that do not ascend"]);
    let itself = targets(|targets| targets[0].0 = NodeId::from_index(0));
    assert_eq!(itself, ["is pushed to the node itself"]);
    let nothing = targets(|targets| targets[0].1 = Region::empty());
    assert_eq!(nothing, ["is pushed to a node that gets nothing"]);
}

#[test]
fn what_is_sent_again_is_noticed() {
    let again = broken(is_push, |commands, at| {
        let copy = commands[at].clone();
        commands.insert(at, copy);
    });
    assert!(reasons(&again).contains(&"is pushed twice in part"), "{again:?}");
}

#[test]
fn pushes_wait_for_their_writers_and_executions_for_what_they_await() {
    let writer = broken(is_push, |commands, at| {
        commands[at].dependencies = commands[at + 1].dependencies.clone();
        let first = commands[0].id;
        commands[at].dependencies.add(first, celerity_tdag::DependencyKind::Order);
    });
    assert!(reasons(&writer).contains(&"does not wait for its writer alone"), "{writer:?}");
    let reader = broken(is_await, |commands, at| {
        let execution = commands[at..].iter_mut().find(|one| is_execution(&one.kind));
        let execution = execution.expect("somebody reads it");
        execution.dependencies = Dependencies::default();
    });
    assert_eq!(reasons(&reader), ["is not waited for by the execution that reads it"]);
}

#[test]
fn both_sides_of_a_transfer_agree() {
    let (tasks, mut nodes) = jacobi();
    let region = nodes[0].iter_mut().rev().find_map(|command| match &mut command.kind {
        CommandKind::AwaitPush { region, .. } => Some(region),
        _ => None,
    });
    *region.expect("something is awaited") = Box3::UNIT.into();
    let found = verify_cluster(&tasks, &nodes).expect_err("one side has been changed");
    assert!(matches!(found[..], [Broken::Meeting { .. }]), "{found:?}");
    assert!(found[0].to_string().ends_with("N0, which awaits {[0..1]}"), "{}", found[0]);
}

#[test]
fn chunks_are_a_partition_and_points_are_everywhere() {
    let (tasks, mut nodes) = jacobi();
    nodes[2].retain(|command| !is_execution(&command.kind));
    let found = verify_cluster(&tasks, &nodes).expect_err("chunks are missing");
    let holes = |broken: &Broken| matches!(broken, Broken::Assignment { .. });
    assert!(found.iter().any(holes), "{found:?}");
    let (tasks, mut nodes) = jacobi();
    nodes[1].pop();
    let found = verify_cluster(&tasks, &nodes).expect_err("the last epoch is missing");
    let last = tasks.last().map(|task| format!("{}: not every node has it", task.id));
    assert_eq!(found.last().map(ToString::to_string), last);
}
