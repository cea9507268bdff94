//! Side effects in the task graph: Algorithm 1 (IJPP 2022, §4.3) against a naive twin, the tasks
//! that are refused, and state that stays bounded.

use std::collections::BTreeSet;
use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::SideEffectOrder::{Exclusive, Relaxed, Sequential};
use celerity_tdag::{
    Access, Broken, CollectiveGroup, Conflicts, DeclareError, Dependencies, EpochAction,
    IndexSpace, ObjectAccess, ObjectId, SideEffectOrder, SideEffects, SourceLocation, Task,
    TaskGraph, TaskGraphConfig, TaskId, TaskSpec, Work, verify,
};
use proptest::prelude::*;

fn object(index: u64) -> ObjectId {
    ObjectId::from_index(index)
}

fn host_task(effects: &[(u64, SideEffectOrder)]) -> TaskSpec {
    let accesses = effects.iter().map(|&(index, order)| Access::object(object(index), order));
    TaskSpec {
        name: "t".into(),
        work: Work::HostOnce { node: 0 },
        accesses: accesses.collect(),
        location: Some(SourceLocation { file: "user.rs".into(), line: 7 }),
    }
}

/// A graph with so many objects, and its first task.
fn graph(objects: usize, config: TaskGraphConfig) -> (TaskGraph, Vec<Arc<Task>>) {
    let mut graph = TaskGraph::new(config);
    let out = vec![graph.start()];
    (0..objects).for_each(|nth| assert_eq!(graph.create_object(None).index(), nth as u64));
    (graph, out)
}

fn submit(
    graph: &mut TaskGraph,
    out: &mut Vec<Arc<Task>>,
    effects: &[(u64, SideEffectOrder)],
) -> Arc<Task> {
    let (id, _) = graph.submit(host_task(effects), out).unwrap();
    out.iter().find(|task| task.id == id).unwrap().clone()
}

fn on(task: &Task) -> Vec<u64> {
    task.dependencies.iter().map(|edge| edge.on.index()).collect()
}

fn conflicts(task: &Task) -> Vec<u64> {
    task.conflicts.as_slice().iter().map(|with| with.index()).collect()
}

/// Nodes have to run them in the same order, as their functions wait for each other.
#[test]
fn exclusive_effects_of_collective_tasks_are_sequential() {
    let (mut graph, mut out) = graph(1, TaskGraphConfig { horizon_step: 99, ..Default::default() });
    let mut submit = |group: Option<usize>, order| {
        let group = group.map(|number| CollectiveGroup::new(number, "g"));
        let work = Work::HostSplit { space: IndexSpace::new(1, Box3::from_range([2])), group };
        let spec = TaskSpec { work, ..host_task(&[(0, order)]) };
        let (id, _) = graph.submit(spec, &mut out).unwrap();
        out.iter().find(|task| task.id == id).unwrap().clone()
    };
    let tasks = [Some(0), Some(1), None, None, Some(1)].map(|group| submit(group, Exclusive));
    let edges = tasks.each_ref().map(|task| (BTreeSet::from_iter(on(task)), conflicts(task)));
    let expected = [
        ([0].into(), vec![]),
        ([1].into(), vec![]),
        ([2].into(), vec![]),
        ([2].into(), vec![3]),
        // The one before it in its group, and those that it must not meet.
        ([2, 3, 4].into(), vec![]),
    ];
    assert_eq!(edges, expected);
    let orders = tasks.each_ref().map(|task| task.side_effects().next().unwrap().order);
    assert_eq!(orders, [Sequential, Sequential, Exclusive, Exclusive, Sequential]);
    let relaxed = submit(Some(0), Relaxed);
    assert_eq!(relaxed.side_effects().next().unwrap().order, Relaxed);
}

/// Two exclusive tasks and two relaxed ones between two sequential ones.
#[test]
fn figure_2_of_the_paper() {
    let (mut graph, mut out) = graph(1, TaskGraphConfig { horizon_step: 99, ..Default::default() });
    let orders = [Sequential, Exclusive, Relaxed, Relaxed, Exclusive, Sequential];
    let tasks = orders.map(|order| submit(&mut graph, &mut out, &[(0, order)]));
    let edges = tasks.each_ref().map(|task| (on(task), conflicts(task)));
    let expected = [
        (vec![0], vec![]),
        (vec![1], vec![]),
        (vec![1], vec![2]),
        (vec![1], vec![2]),
        (vec![1], vec![2, 3, 4]),
        (vec![2, 3, 4, 5], vec![]),
    ];
    assert_eq!(edges, expected);
    assert_eq!(verify(&out, &TaskGraphConfig { horizon_step: 99, ..Default::default() }), Ok(()));
}

#[test]
fn who_must_wait_anyway_does_not_conflict() {
    let (mut graph, mut out) = graph(2, TaskGraphConfig::default());
    let both = [(0, Exclusive), (1, Sequential)];
    let first = submit(&mut graph, &mut out, &both);
    let second = submit(&mut graph, &mut out, &both);
    assert_eq!((on(&second), conflicts(&second)), (vec![0, first.id.index()], vec![]));
}

#[test]
fn objects_are_apart() {
    let (mut graph, mut out) = graph(2, TaskGraphConfig::default());
    submit(&mut graph, &mut out, &[(0, Sequential)]);
    let other = submit(&mut graph, &mut out, &[(1, Sequential)]);
    assert_eq!((on(&other), conflicts(&other)), (vec![0], vec![]));
}

fn any_order() -> impl Strategy<Value = SideEffectOrder> {
    prop_oneof![1 => Just(Sequential), 3 => Just(Exclusive), 2 => Just(Relaxed)]
}

/// By depth-first search along all edges.
fn waits_for(tasks: &[Arc<Task>], later: usize, earlier: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![later];
    while let Some(at) = next.pop() {
        if at == earlier {
            return true;
        }
        if at > earlier && seen.insert(at) {
            next.extend(on(&tasks[at]).into_iter().map(|on| usize::try_from(on).unwrap()));
        }
    }
    false
}

proptest! {
    #[test]
    fn edges_are_those_of_a_naive_twin(
        tasks in prop::collection::vec(prop::collection::btree_map(0..3_u64, any_order(), 0..3), 1..40),
        horizon_step in 1..6_u64,
        horizon_max_parallelism in 2..10_u64,
        barriers in prop::collection::btree_set(0..40_usize, 0..2),
    ) {
        let config =
            TaskGraphConfig { horizon_step, horizon_max_parallelism, ..TaskGraphConfig::default() };
        let (mut graph, mut out) = graph(3, config);
        for (nth, effects) in tasks.iter().enumerate() {
            if barriers.contains(&nth) {
                graph.epoch(EpochAction::Barrier, &mut out);
            }
            submit(&mut graph, &mut out, &effects.clone().into_iter().collect::<Vec<_>>());
        }
        prop_assert_eq!(verify(&out, &config), Ok(()));
        for later in 0..out.len() {
            for earlier in 0..later {
                let orders = shared(&out[later], &out[earlier]);
                let ordered = waits_for(&out, later, earlier);
                let conflict = out[later].conflicts.as_slice().contains(&out[earlier].id);
                let sequential = orders.iter().any(|pair| pair.contains(&Sequential));
                let exclusive =
                    orders.iter().any(|pair| pair.contains(&Exclusive) && !pair.contains(&Sequential));
                prop_assert!(!sequential || ordered, "{} overtakes {}", out[later], out[earlier]);
                prop_assert!(!exclusive || ordered || conflict, "{} meets {}", out[later], out[earlier]);
                prop_assert!(!conflict || exclusive, "{} conflicts with {}", out[later], out[earlier]);
            }
        }
    }
}

/// The orders of two tasks' effects on the same objects.
fn shared(one: &Task, other: &Task) -> Vec<[SideEffectOrder; 2]> {
    let of = |mine: ObjectAccess| {
        let same = other.side_effects().filter(move |theirs| theirs.object == mine.object);
        same.map(move |theirs| [mine.order, theirs.order])
    };
    one.side_effects().flat_map(|mine| of(*mine)).collect()
}

#[test]
fn what_is_remembered_does_not_grow_with_the_program() {
    let (mut effects, mut most) = (SideEffects::default(), 0);
    for index in 1..20_000_u64 {
        // Every hundredth node is a synchronisation point; each object is used for a while.
        let point = TaskId::from_index(index / 100 * 100);
        if index % 100 == 0 {
            effects.forget_before(point);
            continue;
        }
        let order = [Sequential, Exclusive, Relaxed][usize::try_from(index % 3).unwrap()];
        let access = ObjectAccess { object: object(index / 500), order };
        let mut dependencies = Dependencies::default();
        let conflicts: Conflicts<TaskId> =
            effects.add(TaskId::from_index(index), point, [&access], &mut dependencies);
        assert!(dependencies.iter().all(|edge| edge.on >= point));
        assert_eq!(conflicts.broken(TaskId::from_index(index), point, &dependencies), None);
        most = most.max(effects.remembered());
    }
    assert!(most <= 2 * 101, "{most} effects are remembered");
}

fn error_of(graph: &mut TaskGraph, spec: TaskSpec) -> DeclareError {
    let mut out = Vec::new();
    let refused = graph.submit(spec, &mut out).unwrap_err();
    assert!(out.is_empty(), "the graph is unchanged");
    refused
}

#[test]
fn what_is_wrong_with_a_side_effect_is_said_with_the_task_and_its_line() {
    let (mut graph, mut out) = graph(2, TaskGraphConfig::default());
    graph.rename_object(object(0), "log".into());
    let twice = error_of(&mut graph, host_task(&[(0, Relaxed), (1, Relaxed), (0, Exclusive)]));
    let expected = "T1 \"t\" at user.rs:7 has a relaxed side effect and an exclusive side effect on \
                    host object \"log\"; a task has one side effect on an object: keep the stricter \
                    one, or split the task in two";
    assert_eq!(twice.to_string(), expected);
    let work = Work::Device(IndexSpace::new(1, celerity_regions::Box3::from_range([4])));
    let on_device = error_of(&mut graph, TaskSpec { work, ..host_task(&[(0, Sequential)]) });
    assert!(matches!(on_device, DeclareError::ObjectOnDevice { .. }), "{on_device}");
    let sketch = graph.sketch(&host_task(&[]));
    let traced = sketch.trace(&host_task(&[])).unwrap();
    graph.end_object(object(1));
    graph.end_object(object(0));
    let ended = error_of(&mut graph, host_task(&[(0, Relaxed)]));
    assert!(ended.to_string().contains("host object \"log\", which does not exist"), "{ended}");
    let unknown =
        "a sequential side effect on host object \"H1\", which does not exist in this run";
    let ended = error_of(&mut graph, host_task(&[(1, Sequential)]));
    assert!(ended.to_string().contains(unknown), "{ended}");
    let ended =
        graph.submit_traced(host_task(&[(1, Sequential)]), traced, |_, _| Vec::new(), &mut out);
    let ended = ended.unwrap_err();
    assert!(matches!(ended, DeclareError::UnknownObject { .. }), "{ended}");
    assert_eq!(graph.object(object(1)), None);
    assert_eq!(graph.create_object(None), object(2), "ids are used once");
}

#[test]
fn names_of_the_objects_that_have_ended_last_are_remembered() {
    let (mut graph, _) = graph(0, TaskGraphConfig::default());
    for index in 0..100 {
        assert_eq!(graph.create_object(Some(format!("log {index}").into())), object(index));
        graph.end_object(object(index));
        graph.end_object(object(index));
    }
    let called =
        |graph: &mut TaskGraph, index| match error_of(graph, host_task(&[(index, Relaxed)])) {
            DeclareError::UnknownObject { object, .. } => object.to_string(),
            other => panic!("{other}"),
        };
    assert_eq!(called(&mut graph, 99), "log 99");
    assert_eq!(called(&mut graph, 36), "log 36");
    assert_eq!(called(&mut graph, 35), "H35");
    assert_eq!(called(&mut graph, 100), "H100");
}

/// What `verify` says of a graph whose last task has been changed.
fn verdict_of(change: impl Fn(&mut Task)) -> Vec<Broken> {
    let (mut graph, mut out) = graph(2, TaskGraphConfig::default());
    submit(&mut graph, &mut out, &[(0, Exclusive)]);
    submit(&mut graph, &mut out, &[(1, Exclusive)]);
    submit(&mut graph, &mut out, &[(0, Exclusive)]);
    let mut changed = (*out[3]).clone();
    assert_eq!(conflicts(&changed), [1]);
    change(&mut changed);
    out[3] = Arc::new(changed);
    verify(&out, &TaskGraphConfig::default()).unwrap_err()
}

#[test]
fn conflicts_that_cannot_be_are_found() {
    let with = |nodes: &[u64]| Conflicts::of(nodes.iter().map(|&node| TaskId::from_index(node)));
    let why = |nodes: &[u64]| verdict_of(|task| task.conflicts = with(nodes))[0].to_string();
    assert_eq!(why(&[2]), "T3 conflicts with T2, with which it shares no host object");
    assert_eq!(why(&[1, 3]), "T3 conflicts with T3, which is not older");
    assert_eq!(why(&[0, 1]), "T3 conflicts with T0, which it depends on");
}
