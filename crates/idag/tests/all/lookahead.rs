//! The lookahead queue makes growing patterns allocate once, and changes
//! nothing else. (That random programs hold with it is among what
//! `random_programs.rs` shows.)

use std::collections::BTreeMap;

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{
    InstructionGraph, InstructionGraphConfig, InstructionKind, Lookahead, LookaheadQueue, MemoryId,
    Released, Schedule,
};
use celerity_tdag::{BufferId, EpochAction, TaskGraph, TaskGraphConfig};
use celerity_testkit::check::{Configuration, check_idag};
use celerity_testkit::corpus;
use celerity_testkit::program::{Op, TaskKind};
use celerity_testkit::trace::InstructionTrace;

/// Allocations for one buffer in one memory of one node, of the largest count.
fn most_allocations(nodes: &[InstructionTrace]) -> usize {
    let mut counts = BTreeMap::<(usize, MemoryId, BufferId), usize>::new();
    for (node, trace) in nodes.iter().enumerate() {
        for instruction in &trace.instructions {
            if let InstructionKind::Alloc { memory, buffer, .. } = instruction.kind {
                *counts.entry((node, memory, buffer)).or_default() += 1;
            }
        }
    }
    counts.values().copied().max().unwrap_or(0)
}

#[test]
fn the_corpus_holds_with_every_policy() {
    for (name, program) in corpus::all(6) {
        for (nodes, devices) in [(1, 1), (1, 3), (2, 2), (4, 1)] {
            for lookahead in [Lookahead::Auto, Lookahead::Infinite] {
                let configuration =
                    Configuration { lookahead, ..Configuration::new(nodes, devices) };
                if let Err(failure) = check_idag(&program, &configuration) {
                    panic!("{name}: {failure}");
                }
            }
        }
    }
}

#[test]
fn a_growing_pattern_allocates_once_per_memory() {
    let mut program = corpus::rsim(8, 30);
    // Without fences, and the last row, which no step reads: where a row is split, it joins those
    // above only when somebody reads both.
    let of_kernel = |op: &Op| matches!(op, Op::Task(task) if task.kind != TaskKind::Fence);
    let last = program.ops.iter().rposition(of_kernel).unwrap();
    program.ops.truncate(last);
    for (nodes, devices) in [(1, 1), (1, 2), (2, 2)] {
        let most = |lookahead| {
            let configuration = Configuration { lookahead, ..Configuration::new(nodes, devices) };
            most_allocations(&InstructionTrace::of_program(&program, &configuration).unwrap())
        };
        assert!(most(Lookahead::None) > 6, "the pattern resizes without lookahead");
        assert_eq!(most(Lookahead::Auto), 1, "{nodes} nodes, {devices} devices");
        assert_eq!(most(Lookahead::Infinite), 1, "{nodes} nodes, {devices} devices");
    }
}

/// What goes from one device to the other goes through the host, where it grows as well.
#[test]
fn a_growing_pattern_is_staged_in_one_allocation() {
    let mut program = corpus::rsim(8, 30);
    let is_fence = |op: &Op| matches!(op, Op::Task(task) if task.kind == TaskKind::Fence);
    program.ops.retain(|op| !is_fence(op));
    let on_host = |lookahead| {
        let configuration = Configuration { lookahead, links: 0, ..Configuration::new(1, 2) };
        let nodes = InstructionTrace::of_program(&program, &configuration).unwrap();
        let allocs = nodes[0].instructions.iter().filter(|one| {
            matches!(one.kind, InstructionKind::Alloc { memory: MemoryId::HOST, .. })
        });
        allocs.count()
    };
    assert!(on_host(Lookahead::None) > 6, "the pattern resizes without lookahead");
    assert_eq!(on_host(Lookahead::Auto), 1);
    assert_eq!(on_host(Lookahead::Infinite), 1);
}

/// What has been handed out is forgotten at once only if nothing follows it.
#[test]
fn tasks_may_follow_before_all_others_are_handed_out() {
    let mut tasks = TaskGraph::new(TaskGraphConfig::default());
    let mut stream = vec![tasks.start()];
    for _ in 0..9 {
        tasks.epoch(EpochAction::Barrier, &mut stream);
    }
    let config = CommandGraphConfig { nodes: 1, local: NodeId::from_index(0) };
    let mut node = CommandGraph::new(config);
    let graph = InstructionGraph::new(InstructionGraphConfig { devices: 1 });
    let mut queue = LookaheadQueue::new(graph, Lookahead::Auto);
    let (mut commands, mut schedule, mut ended) = (vec![], Schedule::default(), vec![]);
    for (position, task) in stream.iter().enumerate() {
        node.schedule(task, &mut commands, &mut vec![]);
        queue.push(task, &mut commands);
        // Of each task a command and its end, at first more slowly than they come.
        for _ in 0..position {
            match queue.release(&mut schedule, &mut vec![]) {
                Some(Released::Command(command)) => {
                    assert_eq!(command.task, stream[ended.len()].id)
                }
                Some(Released::TaskEnd(task)) => ended.push(task.id),
                Some(Released::BufferEnd(_)) => unreachable!("there is no buffer"),
                None => assert_eq!(ended.len(), position + 1, "all that has come is handed out"),
            }
        }
    }
    assert!(ended.iter().eq(stream.iter().map(|task| &task.id)));
    assert_eq!(schedule.instructions.len(), stream.len());
}
