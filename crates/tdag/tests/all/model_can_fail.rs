//! The model notices deliberate mistakes: a check that cannot fail checks
//! nothing.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, Write};
use celerity_tdag::{Dependencies, DependencyKind, IndexSpace, Task, TaskId};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::model::tdag;
use celerity_testkit::program::{MapperSpec, Program, ProgramBuilder};
use celerity_testkit::queries::{BufferNames, Dag};
use celerity_testkit::trace::TaskTrace;
use celerity_testkit::truth::Truth;
use celerity_testkit::violation::Violation;

fn traced(program: &Program) -> TaskTrace {
    let configuration = Configuration { horizon_step: 2, ..Configuration::new(1, 1) };
    TaskTrace::of(program, configuration.task_graph()).expect("the corpus is lawful")
}

fn verdict(program: &Program, trace: &TaskTrace) -> Result<(), Violation> {
    tdag::check(&Truth::of(program), trace)
}

/// Replaces the edges of a task by what `change` makes of each.
fn rewire(
    trace: &mut TaskTrace,
    task: usize,
    mut change: impl FnMut(TaskId, DependencyKind) -> Option<(TaskId, DependencyKind)>,
) {
    let mut edges = Dependencies::default();
    for dep in trace.tasks[task].dependencies.iter() {
        if let Some((on, kind)) = change(dep.on, dep.kind) {
            edges.add(on, kind);
        }
    }
    let task = &mut trace.tasks[task];
    *task = Arc::new(Task { dependencies: edges, ..(**task).clone() });
}

#[test]
fn every_edge_that_orders_dataflow_is_missed() {
    for (name, program) in corpus::all(3) {
        let sound = traced(&program);
        assert_eq!(verdict(&program, &sound), Ok(()), "{name}");
        for task in &sound.tasks {
            for dropped in task.dependencies.iter() {
                let (later, earlier) = (task.id.index() as usize, dropped.on.index() as usize);
                let mut broken = sound.clone();
                rewire(&mut broken, later, |on, kind| (on != dropped.on).then_some((on, kind)));
                let implied = Dag::of_tasks(&broken.tasks, &BufferNames::default())
                    .reachability()
                    .waits_for(later, earlier);
                // Horizons and epochs stand in for older tasks, which may be
                // ordered by other edges, too.
                if !implied && sound.ops[earlier].is_some() && sound.ops[later].is_some() {
                    assert!(
                        verdict(&program, &broken).is_err(),
                        "{name}: {task} on {}",
                        dropped.on
                    );
                }
            }
        }
    }
}

#[test]
fn a_missing_true_dependency_names_both_tasks_and_the_element() {
    let mut program = ProgramBuilder::default();
    let [from, to] = [(); 2].map(|()| program.buffer([4]));
    let space = IndexSpace::new(1, Box3::from_range([4]));
    program.kernel("fill", space, &[(from, Write, MapperSpec::OneToOne)]);
    let accesses = [(from, Read, MapperSpec::All), (to, Write, MapperSpec::OneToOne)];
    program.kernel("use", space, &accesses);
    let program = program.finish();
    let mut trace = traced(&program);
    rewire(&mut trace, 2, |_, _| Some((TaskId::from_index(0), DependencyKind::Order)));
    let violation = verdict(&program, &trace).unwrap_err();
    let Violation::Unordered { later, earlier, kind, place } = &violation else {
        panic!("{violation}")
    };
    assert!(later.starts_with("T2 ") && earlier.starts_with("T1 "), "{violation}");
    assert_eq!(*kind, DependencyKind::True);
    assert!(place.starts_with("B0["), "{violation}");
}

#[test]
fn an_edge_without_a_reason_is_spurious() {
    let program = corpus::wave_sim([4, 4], 1);
    let mut trace = traced(&program);
    // Filling one buffer does not depend on filling the other.
    rewire(&mut trace, 2, |_, _| Some((TaskId::from_index(1), DependencyKind::True)));
    assert!(matches!(verdict(&program, &trace), Err(Violation::Spurious { .. })));
}

#[test]
fn an_edge_of_the_wrong_kind_is_spurious() {
    let program = corpus::nbody(4, 1);
    let mut trace = traced(&program);
    let written = TaskId::from_index(1);
    assert_eq!(trace.tasks[2].dependencies.kind_of(written), Some(DependencyKind::True));
    rewire(&mut trace, 2, |on, _| Some((on, DependencyKind::Anti)));
    assert!(matches!(verdict(&program, &trace), Err(Violation::Spurious { .. })));
}

#[test]
fn a_horizon_must_wait_for_everything() {
    let program = corpus::wave_sim([4, 4], 4);
    let sound = traced(&program);
    let horizon = sound.tasks.iter().position(|task| &*task.name == "horizon");
    let horizon = horizon.expect("the program is long enough for one");
    let mut trace = sound.clone();
    rewire(&mut trace, horizon, |_, _| Some((TaskId::from_index(0), DependencyKind::Order)));
    assert!(matches!(verdict(&program, &trace), Err(Violation::NotSynchronized { .. })));
}

#[test]
fn edges_must_point_backwards() {
    let program = corpus::nbody(4, 1);
    let mut trace = traced(&program);
    rewire(&mut trace, 1, |_, kind| Some((TaskId::from_index(2), kind)));
    assert!(matches!(verdict(&program, &trace), Err(Violation::Malformed { .. })));
}

#[test]
fn a_lost_task_is_noticed() {
    let program = corpus::nbody(4, 2);
    let mut trace = traced(&program);
    let last = trace.ops.iter().rposition(Option::is_some).expect("there are tasks");
    trace.ops[last] = None;
    assert!(verdict(&program, &trace).is_err());
}
