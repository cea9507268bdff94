//! What nobody does, and what is done for somebody else.

use celerity_checker::{Depth, Violation};
use celerity_idag::{InstructionKind, MemoryId};
use celerity_tdag::TaskId;

use super::{checkpoints, is_copy, is_kernel, is_receive, nbody};

#[test]
fn a_missing_host_task_is_noticed() {
    let mut case = checkpoints();
    let is_host_task = |kind: &InstructionKind| matches!(kind, InstructionKind::HostTask { .. });
    let position = case.find(0, is_host_task);
    case.remove(0, position);
    assert_finds!(case, Violation::Missing { what: "host task", .. });
}

#[test]
fn a_kernel_of_another_task_is_noticed() {
    let mut case = nbody();
    let InstructionKind::Kernel { task, .. } = case.kind(0, is_kernel) else {
        unreachable!("a kernel was asked for")
    };
    let called = std::mem::replace(task, TaskId::from_index(7));
    assert_finds!(case, Violation::WrongTask { found, task, .. }
        if *found == TaskId::from_index(7) && *task == called);
}

#[test]
fn a_copy_into_the_users_memory_is_noticed() {
    let mut case = nbody();
    let InstructionKind::Copy { source, .. } = *case.kind(0, is_copy) else {
        unreachable!("a copy was asked for")
    };
    assert_eq!(source.memory, MemoryId::USER, "the bodies come from the user");
    let is_copy_to_host = |kind: &InstructionKind| matches!(kind, InstructionKind::Copy { target, .. } if target.memory == MemoryId::HOST);
    let InstructionKind::Copy { target, .. } = case.kind(0, is_copy_to_host) else {
        unreachable!("a copy was asked for")
    };
    *target = source;
    assert_finds!(case, Violation::BadPlacement { why: "M0 is read only", .. });
}

/// In depth, whoever reads what has not come is found first.
#[test]
fn a_promise_that_nobody_keeps_is_found_without_depth() {
    let mut case = nbody();
    let position = case.find(0, is_receive);
    case.remove(0, position);
    let finding = case.verdict_at(Depth::Cheap, false).expect_err("nothing arrives");
    assert!(matches!(finding.violation, Violation::NeverArrives { .. }), "{finding}");
}
