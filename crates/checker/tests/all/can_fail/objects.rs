//! Host tasks that their side effects do not keep apart, or that something keeps apart for nothing.

use celerity_cdag::CommandKind;
use celerity_checker::{Vertex, Violation};
use celerity_idag::InstructionKind;
use celerity_tdag::SideEffectOrder::{Exclusive, Relaxed, Sequential};
use celerity_tdag::{
    Conflicts, Dependencies, DependencyKind, ObjectAccess, ObjectId, SideEffectOrder,
};
use celerity_testkit::check::Configuration;
use celerity_testkit::program::{Op, Program, TaskKind, TaskOp};

use super::case::Case;

/// Host tasks `T1`, `T2`, … on one node, each with one effect on one object.
fn visits(orders: &[SideEffectOrder]) -> Case {
    let task = |&order| {
        Op::Task(TaskOp {
            name: "visit".into(),
            kind: TaskKind::HostOnce { node: 0 },
            accesses: Vec::new(),
            effects: vec![ObjectAccess { object: ObjectId::from_index(0), order }],
        })
    };
    let program = Program { ops: orders.iter().map(task).collect() };
    Case::new(program, Configuration { horizon_step: 50, ..Configuration::new(1, 1) })
}

/// Makes a node wait for the init epoch and nothing else.
fn alone<I: celerity_tdag::GraphId>() -> Dependencies<I> {
    let mut edges = Dependencies::default();
    edges.add(I::from_index(0), DependencyKind::True);
    edges
}

fn is_execute(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Execute { .. })
}

fn is_host_task(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::HostTask { .. })
}

/// The last task, command or host-task instruction of a case, to be changed.
fn last_command(case: &mut Case) -> &mut celerity_cdag::Command {
    let mut commands = case.commands[0].commands.iter_mut();
    commands.rfind(|one| is_execute(&one.kind)).unwrap()
}

fn last_instruction(case: &mut Case) -> &mut celerity_idag::Instruction {
    let mut instructions = case.instructions[0].instructions.iter_mut();
    instructions.rfind(|one| is_host_task(&one.kind)).unwrap()
}

#[test]
fn a_sequential_effect_that_overtakes_is_noticed() {
    for orders in [[Sequential, Sequential], [Exclusive, Sequential], [Sequential, Relaxed]] {
        let mut case = visits(&orders);
        case.change_task(2, |task| task.dependencies = alone());
        assert_finds!(
            case,
            Violation::Objects { later: Vertex::Task(_), what: "are not ordered by it", .. }
        );
        let mut case = visits(&orders);
        last_command(&mut case).dependencies = alone();
        assert_finds!(
            case,
            Violation::Objects { later: Vertex::Command(..), what: "are not ordered by it", .. }
        );
        let mut case = visits(&orders);
        last_instruction(&mut case).dependencies =
            [celerity_idag::InstructionId::from_index(0)].into_iter().collect();
        assert_finds!(
            case,
            Violation::Objects {
                later: Vertex::Instruction(..),
                what: "are not ordered by it",
                ..
            }
        );
    }
}

#[test]
fn exclusive_effects_that_may_meet_are_noticed() {
    for orders in [[Exclusive, Exclusive], [Relaxed, Exclusive], [Exclusive, Relaxed]] {
        let mut case = visits(&orders);
        case.change_task(2, |task| task.conflicts = Conflicts::default());
        assert_finds!(
            case,
            Violation::Objects {
                later: Vertex::Task(_),
                what: "may be at it at the same time",
                ..
            }
        );
        let mut case = visits(&orders);
        last_command(&mut case).conflicts = Conflicts::default();
        assert_finds!(
            case,
            Violation::Objects {
                later: Vertex::Command(..),
                what: "may be at it at the same time",
                ..
            }
        );
        let mut case = visits(&orders);
        let InstructionKind::HostTask { conflicts, .. } = &mut last_instruction(&mut case).kind
        else {
            unreachable!("a host task was asked for")
        };
        *conflicts = Conflicts::default();
        assert_finds!(
            case,
            Violation::Objects {
                later: Vertex::Instruction(..),
                what: "may be at it at the same time",
                ..
            }
        );
    }
}

#[test]
fn a_conflict_without_a_reason_is_noticed() {
    let mut case = visits(&[Relaxed, Relaxed]);
    let first = case.tasks.tasks[1].id;
    case.change_task(2, |task| task.conflicts = Conflicts::of([first]));
    assert_finds!(case, Violation::Objects { what: "conflict for no reason", .. });
    let mut case = visits(&[Relaxed, Relaxed]);
    let first = case.commands[0].commands[1].id;
    last_command(&mut case).conflicts = Conflicts::of([first]);
    assert_finds!(case, Violation::Objects { what: "conflict for no reason", .. });
}
