//! The contract of task graphs: random programs keep it, and spoiled ones do not.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, Broken, BrokenEdge, Dependencies, DependencyKind, EpochAction, IndexSpace,
    Mapper, NewBuffer, Task, TaskGraph, TaskGraphConfig, TaskId, TaskSpec, Work, verify,
};
use celerity_testkit::check::any_configuration;
use celerity_testkit::program::{Sizes, any_program};
use celerity_testkit::trace::TaskTrace;
use proptest::prelude::*;

proptest! {
    #[test]
    fn random_programs_keep_the_contract(
        program in any_program(Sizes::default().with_objects()),
        configuration in any_configuration(),
    ) {
        let config = configuration.task_graph();
        let trace = TaskTrace::of(&program, config).expect("programs are valid");
        prop_assert_eq!(verify(&trace.tasks, &config), Ok(()));
    }
}

const CONFIG: TaskGraphConfig = TaskGraphConfig {
    horizon_step: 2,
    horizon_max_parallelism: 64,
    uninitialized_read: celerity_tdag::UninitializedRead::Error,
};

/// `T0` epoch, `T1`, `T2`, `T3` horizon, `T4`, `T5`, `T6` horizon, `T7` epoch. The others
/// read and write one buffer, one after another.
fn chain() -> Vec<Arc<Task>> {
    let mut graph = TaskGraph::new(CONFIG);
    let mut tasks = vec![graph.start()];
    let extent = Box3::from_range([8]);
    let new = NewBuffer {
        name: None,
        dims: 1,
        extent,
        elem_size: 4,
        elem_align: 4,
        host_initialized: true,
    };
    let buffer = graph.create_buffer(new).id;
    for _ in 0..4 {
        let access = Access::buffer(buffer, AccessMode::ReadWrite, Mapper::OneToOne);
        let work = Work::Device(IndexSpace::new(1, extent));
        let spec = TaskSpec { name: "t".into(), work, accesses: vec![access], location: None };
        graph.submit(spec, &mut tasks).expect("a lawful task");
    }
    graph.epoch(EpochAction::Shutdown, &mut tasks);
    assert_eq!(verify(&tasks, &CONFIG), Ok(()));
    tasks
}

/// What is found after `spoil` has changed task `nth` of a chain.
fn found(nth: usize, spoil: impl FnOnce(&mut Task)) -> Vec<Broken> {
    let mut tasks = chain();
    spoil(Arc::make_mut(&mut tasks[nth]));
    verify(&tasks, &CONFIG).expect_err("something has been broken")
}

fn task(index: u64) -> TaskId {
    TaskId::from_index(index)
}

fn only(on: u64, kind: DependencyKind) -> Dependencies<TaskId> {
    let mut edges = Dependencies::default();
    edges.add(task(on), kind);
    edges
}

#[test]
fn ids_are_dense() {
    let broken = BrokenEdge::Id { expected: task(2), found: task(3) };
    let mut tasks = chain();
    tasks.remove(2);
    let found = verify(&tasks, &CONFIG).expect_err("a task is missing");
    assert!(found.contains(&Broken::Edge(broken)), "{found:?}");
}

#[test]
fn edges_lead_back_to_the_synchronization_point_at_most() {
    let forward = found(4, |spoiled| spoiled.dependencies = only(5, DependencyKind::True));
    assert_eq!(forward[0].to_string(), "T4 waits for T5, which is not older");
    // `T6`, the horizon, makes `T3` the synchronisation point.
    let stale = found(7, |spoiled| spoiled.dependencies.add(task(1), DependencyKind::Order));
    assert_eq!(
        stale[0].to_string(),
        "T7 waits for T1, which is older than the synchronisation point"
    );
    let orphan = found(1, |spoiled| spoiled.dependencies = Dependencies::default());
    assert!(orphan.contains(&Broken::Edge(BrokenEdge::Orphan { node: task(1) })));
}

#[test]
fn horizons_and_epochs_wait_for_everything() {
    let missed = found(7, |spoiled| spoiled.dependencies = only(5, DependencyKind::Order));
    let broken = BrokenEdge::NotReached { point: task(7), missed: task(6) };
    assert_eq!(missed, [Broken::Edge(broken)]);
}

#[test]
fn reasons_fit_both_ends() {
    let reads = found(7, |spoiled| spoiled.dependencies = only(6, DependencyKind::True));
    assert_eq!(reads[0].to_string(), "T7 waits for T6 for the wrong reason: it touches nothing");
    let ordered = found(2, |spoiled| spoiled.dependencies = only(1, DependencyKind::Order));
    assert!(matches!(ordered[..], [Broken::Reason { .. }]), "{ordered:?}");
}

#[test]
fn horizons_come_when_they_are_due() {
    let late = TaskGraphConfig { horizon_step: 1, ..CONFIG };
    let found = verify(&chain(), &late).expect_err("a horizon was due");
    assert_eq!(found[0].to_string(), "T2 comes where a horizon is due");
    let early = TaskGraphConfig { horizon_step: 9, ..CONFIG };
    let found = verify(&chain(), &early).expect_err("no horizon was due");
    assert_eq!(found[0].to_string(), "T3 is a horizon that is not due");
}

#[test]
fn epochs_begin_and_end_the_graph() {
    let not_init = found(0, |spoiled| spoiled.work = Work::Epoch(EpochAction::Barrier));
    assert!(matches!(not_init[..], [Broken::Synchronization { .. }]), "{not_init:?}");
    let over = found(6, |spoiled| spoiled.work = Work::Epoch(EpochAction::Shutdown));
    let last = over.last().map(ToString::to_string);
    assert_eq!(last.as_deref(), Some("T7 comes after the shutdown epoch"));
}

#[test]
fn writers_are_alone_and_synchronization_touches_nothing() {
    let twice = found(1, |spoiled| {
        let access = spoiled.accesses[0].clone();
        spoiled.accesses = vec![access.clone(), access].into();
    });
    assert!(matches!(twice[..], [Broken::Access { .. }]), "{twice:?}");
    let accesses = chain()[1].accesses.clone();
    let touches = found(3, |spoiled| spoiled.accesses = accesses);
    assert_eq!(touches[0].to_string(), "T3 accesses B0, but is a horizon or an epoch");
}
