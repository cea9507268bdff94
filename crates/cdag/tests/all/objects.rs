//! Side effects in the command graph: each node orders what runs there, and nothing else.

use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, CommandKind, NodeId, verify};
use celerity_regions::Box3;
use celerity_tdag::SideEffectOrder::{Exclusive, Relaxed, Sequential};
use celerity_tdag::{
    Access, IndexSpace, SideEffectOrder, Task, TaskGraph, TaskGraphConfig, TaskSpec, Work,
};

/// The tasks of a program with one object: each runs on node 0 only, or on all.
fn tasks(effects: &[(Work, SideEffectOrder)]) -> Vec<Arc<Task>> {
    let mut graph = TaskGraph::new(TaskGraphConfig { horizon_step: 99, ..Default::default() });
    let mut out = vec![graph.start()];
    let object = graph.create_object(None);
    for &(work, order) in effects {
        let accesses = vec![Access::object(object, order)];
        let spec = TaskSpec { name: "t".into(), work, accesses, location: None };
        graph.submit(spec, &mut out).unwrap();
    }
    out
}

/// What one of three nodes executes, as the tasks that each command waits for and conflicts with.
fn executed(tasks: &[Arc<Task>], node: u64) -> Vec<(u64, Vec<u64>, Vec<u64>)> {
    let local = NodeId::from_index(node);
    let mut graph = CommandGraph::new(CommandGraphConfig { nodes: 3, local });
    let mut commands: Vec<Command> = Vec::new();
    tasks.iter().for_each(|task| graph.schedule(task, &mut commands, &mut Vec::new()));
    assert_eq!(verify(&commands, local), Ok(()));
    let task_of = |index: u64| commands[usize::try_from(index).unwrap()].task.index();
    let executes = |one: &&Command| matches!(one.kind, CommandKind::Execute { .. });
    let edges = |one: &Command| {
        let on = one.dependencies.iter().map(|edge| task_of(edge.on.index())).collect();
        let with = one.conflicts.as_slice().iter().map(|with| task_of(with.index())).collect();
        (one.task.index(), on, with)
    };
    commands.iter().filter(executes).map(edges).collect()
}

#[test]
fn a_node_orders_what_runs_there() {
    let (here, everywhere) = (Work::HostOnce { node: 0 }, Work::Fence);
    let tasks = tasks(&[
        (everywhere, Exclusive),
        (here, Sequential),
        (everywhere, Exclusive),
        (here, Exclusive),
        (everywhere, Relaxed),
        (everywhere, Sequential),
    ]);
    let on_first = executed(&tasks, 0);
    let expected = [
        (1, vec![0], vec![]),
        (2, vec![1], vec![]),
        (3, vec![2], vec![]),
        (4, vec![2], vec![3]),
        (5, vec![2], vec![3, 4]),
        (6, vec![3, 4, 5], vec![]),
    ];
    assert_eq!(on_first, expected);
    // The host tasks are not here, and keep nobody apart.
    let expected = [
        (1, vec![0], vec![]),
        (3, vec![0], vec![1]),
        (5, vec![0], vec![1, 3]),
        (6, vec![1, 3, 5], vec![]),
    ];
    assert_eq!(executed(&tasks, 1), expected);
    assert_eq!(executed(&tasks, 2), expected);
}

#[test]
fn a_task_counts_on_the_nodes_that_it_runs_on() {
    let on = |node| Work::HostOnce { node };
    let space = IndexSpace::new(1, Box3::from_range([2]));
    let parts = Work::HostSplit { space, group: None };
    // The last two run on node 1 of three.
    let tasks =
        tasks(&[(on(1), Exclusive), (parts, Exclusive), (on(4), Relaxed), (on(7), Sequential)]);
    assert_eq!(executed(&tasks, 0), [(2, vec![0], vec![])]);
    let expected = [
        (1, vec![0], vec![]),
        (2, vec![0], vec![1]),
        (3, vec![0], vec![1, 2]),
        (4, vec![1, 2, 3], vec![]),
    ];
    assert_eq!(executed(&tasks, 1), expected);
    assert_eq!(executed(&tasks, 2), [], "two items are not for three nodes");
}
