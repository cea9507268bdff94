//! The checker notices deliberate mistakes: a check that cannot fail checks
//! nothing. Real graphs, damaged in every way that a rule names.

macro_rules! assert_finds {
    ($case:expr, $expected:pat $(if $guard:expr)?) => {
        match $case.verdict() {
            Ok(()) => panic!("nothing was found"),
            Err(finding) => assert!(
                matches!(&finding.violation, $expected $(if $guard)?),
                "something else was found: {finding}"
            ),
        }
    };
}

mod agreement;
mod case;
mod collectives;
mod host_tasks;
mod objects;
mod omissions;
mod reductions;

use celerity_cdag::{CommandKind, NodeId};
use celerity_checker::{
    CheckerCall, ClusterChecker, Depth, Hazard, Level, NodeChecker, NodeCheckerConfig, Outline,
    Violation,
};
use celerity_idag::{
    AllocationId, DeviceId, DeviceMemory, InstructionKind, MemoryId, MessageId, Placement,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::{AccessMode, BufferAccess, BufferId, IndexSpace, Mapper, Task, TaskId};
use celerity_testkit::check::{Configuration, events};
use celerity_testkit::corpus;
use celerity_testkit::program::{MapperSpec, ProgramBuilder};
use celerity_testkit::queries::{BufferNames, Dag};
use smallvec::SmallVec;

use case::{Case, without};

/// An all-gather per step on two nodes of two devices.
fn nbody() -> Case {
    Case::new(corpus::nbody(12, 2), Configuration::new(2, 2))
}

/// A halo exchange per step.
fn wave_sim() -> Case {
    Case::new(corpus::wave_sim([12, 8], 2), Configuration::new(2, 2))
}

/// Kernels and host tasks in turns, buffers that are dropped.
fn checkpoints() -> Case {
    Case::new(corpus::checkpoints(8, 2), Configuration::new(2, 2))
}

fn access(task: &mut Task, nth: usize) -> &mut BufferAccess {
    task.accesses[nth].as_buffer_mut().expect("an access to a buffer")
}

fn is_copy(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Copy { .. })
}

fn is_send(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Send { .. })
}

fn is_receive(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Receive(_) | InstructionKind::SplitReceive(_))
}

fn is_kernel(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Kernel { .. })
}

fn is_alloc(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Alloc { .. })
}

fn is_free(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Free { .. })
}

fn is_push(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Push { .. })
}

fn is_await(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::AwaitPush { .. })
}

fn is_execute(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::Execute { .. })
}

fn shorter(part: Box3) -> Box3 {
    Box3::new(part.min(), [part.max()[0] - 1, part.max()[1], part.max()[2]])
}

/// Whether nothing else orders the two. Horizons and epochs stand in for what
/// is older, which other edges may order as well.
fn is_needed(dag: &Dag, later: usize, earlier: usize, synchronizes: bool) -> bool {
    !synchronizes && !dag.reachability().waits_for(later, earlier)
}

#[test]
fn every_edge_between_tasks_is_missed() {
    let mut dropped = 0;
    for (name, program) in corpus::all(2) {
        let sound = Case::new(program, Configuration::new(1, 1));
        for position in 0..sound.tasks.tasks.len() {
            for edge in sound.tasks.tasks[position].dependencies.iter() {
                let mut case = sound.clone();
                case.change_task(position, |task| {
                    task.dependencies = without(&task.dependencies, edge.on);
                });
                let earlier = edge.on.index() as usize;
                let synchronizes = sound.tasks.ops[earlier].is_none();
                if is_needed(
                    &Dag::of_tasks(&case.tasks.tasks, &BufferNames::default()),
                    position,
                    earlier,
                    synchronizes,
                ) {
                    assert!(case.verdict().is_err(), "{name}: T{position} without {}", edge.on);
                    dropped += 1;
                }
            }
        }
    }
    assert!(dropped > 30, "only {dropped} edges were needed");
}

#[test]
fn every_edge_between_commands_is_missed() {
    let mut dropped = 0;
    for (name, program) in corpus::all(2) {
        let sound = Case::new(program, Configuration::new(3, 1));
        for position in 0..sound.commands[0].commands.len() {
            for edge in sound.commands[0].commands[position].dependencies.iter() {
                let mut case = sound.clone();
                let command = &mut case.commands[0].commands[position];
                command.dependencies = without(&command.dependencies, edge.on);
                let earlier = edge.on.index() as usize;
                let synchronizes = matches!(
                    case.commands[0].commands[earlier].kind,
                    CommandKind::Horizon | CommandKind::Epoch(_)
                );
                let dag = Dag::of_commands("", &case.commands[0].commands, &BufferNames::default());
                if is_needed(&dag, position, earlier, synchronizes) {
                    assert!(case.verdict().is_err(), "{name}: C{position} without {}", edge.on);
                    dropped += 1;
                }
            }
        }
    }
    assert!(dropped > 30, "only {dropped} edges were needed");
}

#[test]
fn every_edge_between_instructions_is_missed() {
    let mut dropped = 0;
    for (name, program) in corpus::all(2) {
        let sound = Case::new(program, Configuration::new(2, 2));
        for position in 0..sound.instructions[0].instructions.len() {
            for &edge in &sound.instructions[0].instructions[position].dependencies {
                let mut case = sound.clone();
                let all = &mut case.instructions[0].instructions;
                all[position].dependencies.retain(|on| *on != edge);
                let earlier = edge.index() as usize;
                let synchronizes = matches!(
                    all[earlier].kind,
                    InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. }
                );
                let dag = Dag::of_instructions("", all, &BufferNames::default());
                if is_needed(&dag, position, earlier, synchronizes) {
                    assert!(case.verdict().is_err(), "{name}: I{position} without {edge}");
                    dropped += 1;
                }
            }
        }
    }
    assert!(dropped > 100, "only {dropped} edges were needed");
}

#[test]
fn a_race_is_found_only_in_depth() {
    let mut case = nbody();
    let kernel = case.find(0, is_kernel);
    let all = &mut case.instructions[0].instructions;
    let dropped: Vec<_> = all[kernel].dependencies.drain(1..).collect();
    // The shape stays sound: the next horizon or epoch waits for everybody.
    let synchronizes = |kind: &InstructionKind| {
        matches!(kind, InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. })
    };
    let next = all[kernel..].iter_mut().find(|one| synchronizes(&one.kind));
    let next = next.expect("programs end with an epoch");
    next.dependencies.extend(dropped);
    next.dependencies.sort_unstable();
    next.dependencies.dedup();
    assert_finds!(case, Violation::Unordered { hazard: Hazard::ReadAfterWrite, .. });
    assert_eq!(case.verdict_at(Depth::Cheap, false), Ok(()));
}

#[test]
fn sizes_are_judged_late_where_allocations_may_come_early() {
    let mut case = nbody();
    let position = case.find(0, is_alloc);
    let mut kind = case.instructions[0].instructions[position].kind.clone();
    let InstructionKind::Alloc { allocation, .. } = &mut kind else {
        unreachable!("an alloc was asked for")
    };
    *allocation = AllocationId::from_index(999);
    let last = case.instructions[0].instructions.iter().rposition(|one| is_alloc(&one.kind));
    case.insert_after(0, last.expect("there is an alloc"), kind);
    for eager in [false, true] {
        let finding = case.verdict_at(Depth::Full, eager).expect_err("nobody uses it");
        assert!(matches!(finding.violation, Violation::Unused { .. }), "{finding}");
        assert!(finding.is_waste());
    }
}

#[test]
fn ids_that_are_not_dense_are_noticed() {
    let mut case = nbody();
    let last = case.instructions[1].instructions.last_mut().expect("there is an epoch");
    last.id = last.id.next();
    assert_finds!(case, Violation::WrongId { .. });
}

#[test]
fn a_task_with_conflicting_accesses_is_noticed() {
    let mut case = nbody();
    case.change_task(1, |task| {
        let buffer = access(task, 1).buffer;
        access(task, 0).buffer = buffer;
    });
    assert_finds!(case, Violation::ConflictingAccesses { .. });
}

#[test]
fn an_access_beyond_its_buffer_is_noticed() {
    let mut case = nbody();
    case.change_task(1, |task| {
        access(task, 0).mapper = Mapper::fixed(Box3::from_range([13]));
    });
    assert_finds!(case, Violation::OutOfBounds { .. });
}

#[test]
fn an_unknown_buffer_is_noticed() {
    let mut case = nbody();
    case.change_task(1, |task| access(task, 0).buffer = BufferId::from_index(9));
    assert_finds!(case, Violation::UnknownBuffer { .. });
}

#[test]
fn a_wrong_chunk_is_noticed() {
    let mut case = nbody();
    let CommandKind::Execute { chunk } = &mut case.command(1, is_execute).kind else {
        unreachable!("an execute command was asked for")
    };
    *chunk = shorter(*chunk);
    assert_finds!(case, Violation::ItemsTwice { .. });
}

#[test]
fn a_chunk_across_granules_is_noticed() {
    let mut case = Case::new(corpus::jacobi([10, 6], 1), Configuration::new(2, 1));
    let CommandKind::Execute { chunk } = &mut case.command(0, is_execute).kind else {
        unreachable!("an execute command was asked for")
    };
    *chunk = shorter(*chunk);
    assert_finds!(case, Violation::AgainstGranularity { .. });
}

type Targets = SmallVec<[(NodeId, Region); 2]>;

#[test]
fn impossible_targets_of_pushes_are_noticed() {
    let damage = |change: &dyn Fn(&mut Targets)| {
        let mut case = nbody();
        let CommandKind::Push { targets, .. } = &mut case.command(0, is_push).kind else {
            unreachable!("a push was asked for")
        };
        change(targets);
        assert_finds!(case, Violation::BadTarget { .. });
    };
    damage(&|targets| targets.clear());
    damage(&|targets| targets[0].0 = NodeId::from_index(0));
    damage(&|targets| targets[0].0 = NodeId::from_index(2));
    damage(&|targets| targets[0].1 = Region::empty());
    damage(&|targets| targets.push(targets[0].clone()));
}

#[test]
fn a_push_of_too_little_is_noticed() {
    let mut case = nbody();
    let CommandKind::Push { targets, .. } = &mut case.command(0, is_push).kind else {
        unreachable!("a push was asked for")
    };
    targets[0].1 = shorter(targets[0].1.bounding_box()).into();
    assert_finds!(case, Violation::Mismatch { level: Level::Commands, .. });
}

#[test]
fn swapped_transfers_are_noticed() {
    let mut other_task = nbody();
    let CommandKind::Push { transfer, .. } = &mut other_task.command(0, is_push).kind else {
        unreachable!("a push was asked for")
    };
    transfer.consumer = TaskId::from_index(1);
    assert_finds!(other_task, Violation::WrongTask { .. });
    let mut other_buffer = wave_sim();
    let CommandKind::AwaitPush { transfer, .. } = &mut other_buffer.command(0, is_await).kind
    else {
        unreachable!("an await push was asked for")
    };
    transfer.buffer = BufferId::from_index(7);
    assert_finds!(other_buffer, Violation::UnreadTransfer { .. });
}

#[test]
fn an_await_of_too_little_or_too_much_is_noticed() {
    let mut too_little = nbody();
    let CommandKind::AwaitPush { region, .. } = &mut too_little.command(0, is_await).kind else {
        unreachable!("an await push was asked for")
    };
    *region = shorter(region.bounding_box()).into();
    assert_finds!(too_little, Violation::Stale { .. });
    let mut too_much = nbody();
    let CommandKind::AwaitPush { region, .. } = &mut too_much.command(0, is_await).kind else {
        unreachable!("an await push was asked for")
    };
    *region = Box3::from_range([12]).into();
    // It is also waste; but worse, it overwrites what a push reads.
    assert_finds!(too_much, Violation::Unordered { .. });
    let mut unread = wave_sim();
    let CommandKind::AwaitPush { region, .. } = &mut unread.command(0, is_await).kind else {
        unreachable!("an await push was asked for")
    };
    *region = Box3::from_range([12, 8]).into();
    assert_finds!(unread, Violation::Unneeded { .. });
}

#[test]
fn a_copy_that_brings_too_little_leaves_stale_data() {
    let mut case = nbody();
    let wide = |kind: &InstructionKind| matches!(kind, InstructionKind::Copy { region, .. } if region.bounding_box().range()[0] > 1);
    let InstructionKind::Copy { region, .. } = case.kind(0, wide) else {
        unreachable!("a copy was asked for")
    };
    *region = shorter(region.bounding_box()).into();
    assert_finds!(case, Violation::Stale { .. });
}

#[test]
fn a_copy_from_an_unknown_or_undefined_source_is_noticed() {
    let mut unknown = nbody();
    let InstructionKind::Copy { source, .. } = unknown.kind(0, is_copy) else {
        unreachable!("a copy was asked for")
    };
    source.allocation = AllocationId::from_index(999);
    assert_finds!(unknown, Violation::UnknownAllocation { .. });
    let mut itself = nbody();
    let InstructionKind::Copy { source, target, .. } = itself.kind(0, is_copy) else {
        unreachable!("a copy was asked for")
    };
    *source = *target;
    assert_finds!(itself, Violation::CopyOntoItself { .. });
}

#[test]
fn a_reversed_copy_is_noticed() {
    let mut between_memories = nbody();
    let InstructionKind::Copy { source, target, .. } = between_memories.kind(0, is_copy) else {
        unreachable!("a copy was asked for")
    };
    std::mem::swap(source, target);
    assert_finds!(between_memories, Violation::Stale { .. });
    let mut within_one = Case::new(corpus::rsim(9, 3), Configuration::new(1, 1));
    let grows = |kind: &InstructionKind| {
        matches!(kind, InstructionKind::Copy { source, target, .. }
            if source.memory == target.memory)
    };
    let InstructionKind::Copy { source, target, .. } = within_one.kind(0, grows) else {
        unreachable!("a copy was asked for")
    };
    std::mem::swap(source, target);
    // It is also waste; but worse, it overwrites what a kernel reads.
    assert_finds!(within_one, Violation::Unordered { .. });
}

#[test]
fn a_copy_that_is_overwritten_unread_is_waste() {
    let mut case = nbody();
    // The copies were made because the kernels were going to read.
    case.change_task(1, |task| access(task, 1).mode = AccessMode::Write);
    assert_finds!(case, Violation::Unread { .. });
}

#[test]
fn an_allocation_beyond_what_is_accessed_is_waste() {
    let mut case = wave_sim();
    let InstructionKind::Alloc { allocation, bytes, .. } = case.kind(0, is_alloc) else {
        unreachable!("an alloc was asked for")
    };
    let (id, whole) = (*allocation, Box3::from_range([12, 8]));
    *bytes = 8 * whole.volume();
    for instruction in &mut case.instructions[0].instructions {
        let placements = placements(&mut instruction.kind);
        placements.filter(|place| place.allocation == id).for_each(|place| place.extent = whole);
    }
    assert_finds!(case, Violation::Oversized { .. });
}

/// All placements that an instruction names.
fn placements(kind: &mut InstructionKind) -> impl Iterator<Item = &mut Placement> {
    let (few, many) = match kind {
        InstructionKind::Copy { source, target, .. } => ([Some(source), Some(target)], None),
        InstructionKind::Send { source, .. } => ([Some(source), None], None),
        InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
            ([Some(&mut inbound.target), None], None)
        }
        InstructionKind::Kernel { accesses, .. } | InstructionKind::HostTask { accesses, .. } => {
            ([None, None], Some(accesses))
        }
        _ => ([None, None], None),
    };
    let bound = many.into_iter().flat_map(|accesses| accesses.iter_mut());
    few.into_iter().flatten().chain(bound.filter_map(|access| access.placement.as_mut()))
}

#[test]
fn a_push_of_what_two_commands_wrote_is_noticed() {
    let mut program = ProgramBuilder::default();
    let buffer = program.buffer([12]);
    for start in [0, 6] {
        let half = IndexSpace::new(1, Box3::from_offset_range([start], [6]));
        program.kernel("fill", half, &[(buffer, AccessMode::Write, MapperSpec::OneToOne)]);
    }
    let space = IndexSpace::new(1, Box3::from_range([12]));
    program.kernel("read", space, &[(buffer, AccessMode::Read, MapperSpec::All)]);
    let mut case = Case::new(program.finish(), Configuration::new(2, 1));
    let CommandKind::Push { targets, .. } = &mut case.command(0, is_push).kind else {
        unreachable!("a push was asked for")
    };
    // Node 0 has written [0..3] and [6..9], by two commands.
    targets[0].1 = Region::from_boxes([Box3::from_range([3]), Box3::from_offset_range([6], [3])]);
    assert_finds!(case, Violation::MixedWriters { .. });
}

#[test]
fn a_second_copy_is_waste() {
    let mut case = nbody();
    let position = case.find(0, is_copy);
    let kind = case.instructions[0].instructions[position].kind.clone();
    case.insert_after(0, position, kind);
    let finding = case.verdict().expect_err("the copy is made twice");
    assert!(matches!(finding.violation, Violation::Redundant { .. }), "{finding}");
    assert!(finding.is_waste() && finding.to_string().contains("digraph"));
}

#[test]
fn a_missing_send_or_pilot_is_noticed() {
    let mut send = nbody();
    let position = send.find(0, is_send);
    send.remove(0, position);
    assert_finds!(send, Violation::NeverSent { .. });
    let mut pilot = nbody();
    pilot.instructions[0].pilots.remove(0);
    assert_finds!(pilot, Violation::Unannounced { .. });
    let mut both = nbody();
    let position = both.find(0, is_send);
    both.remove(0, position);
    both.instructions[0].pilots.remove(0);
    assert_finds!(both, Violation::Mismatch { level: Level::Instructions, .. });
}

#[test]
fn a_send_that_says_something_else_than_its_pilot_is_noticed() {
    let mut case = nbody();
    let InstructionKind::Send { region, .. } = case.kind(0, is_send) else {
        unreachable!("a send was asked for")
    };
    *region = shorter(region.bounding_box()).into();
    let shortened = region.clone();
    assert_finds!(case, Violation::Unannounced { .. });
    case.instructions[0].pilots[0].region = shortened;
    assert_finds!(case, Violation::Mismatch { level: Level::Instructions, .. });
}

#[test]
fn an_old_message_is_noticed() {
    let mut case = nbody();
    let newest = case.instructions[0].pilots.len() - 1;
    case.instructions[0].pilots[newest].message = MessageId::from_index(0);
    let last = |kind: &InstructionKind| matches!(kind, InstructionKind::Send { message, .. } if message.index() == newest as u64);
    let InstructionKind::Send { message, .. } = case.kind(0, last) else {
        unreachable!("a send was asked for")
    };
    *message = MessageId::from_index(0);
    assert_finds!(case, Violation::OldMessage { .. });
}

#[test]
fn a_missing_receive_is_noticed() {
    let mut case = nbody();
    let position = case.find(0, is_receive);
    case.remove(0, position);
    // Somebody copies what has not come.
    assert_finds!(case, Violation::Stale { .. });
}

#[test]
fn a_receive_in_device_memory_is_noticed() {
    let mut case = nbody();
    let (InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound)) =
        case.kind(0, is_receive)
    else {
        unreachable!("a receive was asked for")
    };
    inbound.target.memory = MemoryId::from_index(2);
    assert_finds!(case, Violation::BadPlacement { .. });
}

#[test]
fn a_missing_or_doubled_await_receive_is_noticed() {
    let is_await = |kind: &InstructionKind| matches!(kind, InstructionKind::AwaitReceive { .. });
    let mut missing = wave_sim();
    let node = (0..2).find(|&node| {
        missing.instructions[node].instructions.iter().any(|one| is_await(&one.kind))
    });
    let Some(node) = node else { panic!("no receive is split") };
    let mut doubled = missing.clone();
    let position = missing.find(node, is_await);
    missing.remove(node, position);
    assert_finds!(missing, Violation::Stale { .. } | Violation::NeverArrives { .. });
    let kind = doubled.instructions[node].instructions[position].kind.clone();
    doubled.insert_after(node, position, kind);
    assert_finds!(doubled, Violation::NotArriving { .. });
}

#[test]
fn a_send_behind_a_receive_may_deadlock() {
    let mut case = nbody();
    let receive = case.find(0, is_receive);
    let before = &case.instructions[0].instructions[..receive];
    let last_send = before.iter().rposition(|one| is_send(&one.kind)).expect("sends come first");
    let sent = before[last_send].kind.clone();
    case.remove(0, last_send);
    case.insert_after(0, receive - 1, sent);
    assert_finds!(case, Violation::MayDeadlock { .. });
}

#[test]
fn a_missing_kernel_is_noticed() {
    let mut case = nbody();
    let position = case.find(0, is_kernel);
    case.remove(0, position);
    assert_finds!(case, Violation::ItemsNever { .. });
}

#[test]
fn a_kernel_on_another_device_is_noticed() {
    let mut beside_other_memory = nbody();
    let InstructionKind::Kernel { device, .. } = beside_other_memory.kind(0, is_kernel) else {
        unreachable!("a kernel was asked for")
    };
    *device = DeviceId::from_index(1);
    assert_finds!(beside_other_memory, Violation::WrongBinding { .. });
    let mut nowhere = nbody();
    let InstructionKind::Kernel { device, .. } = nowhere.kind(0, is_kernel) else {
        unreachable!("a kernel was asked for")
    };
    *device = DeviceId::from_index(2);
    assert_finds!(nowhere, Violation::Uncalled { .. });
}

#[test]
fn a_kernel_bound_to_too_little_is_noticed() {
    let mut case = wave_sim();
    let InstructionKind::Kernel { accesses, .. } = case.kind(1, is_kernel) else {
        unreachable!("a kernel was asked for")
    };
    accesses[0].region = shorter(accesses[0].region.bounding_box()).into();
    assert_finds!(case, Violation::WrongBinding { .. });
}

#[test]
fn wrong_sizes_are_noticed() {
    let mut bytes = wave_sim();
    let InstructionKind::Alloc { bytes: size, .. } = bytes.kind(0, is_alloc) else {
        unreachable!("an alloc was asked for")
    };
    *size += 8;
    assert_finds!(bytes, Violation::BadPlacement { .. });
    let mut elements = nbody();
    let InstructionKind::Copy { elem_size, .. } = elements.kind(0, is_copy) else {
        unreachable!("a copy was asked for")
    };
    *elem_size = 4;
    assert_finds!(elements, Violation::BadPlacement { .. });
}

#[test]
fn an_allocation_made_twice_is_noticed() {
    let mut case = nbody();
    let position = case.find(0, is_alloc);
    let kind = case.instructions[0].instructions[position].kind.clone();
    case.insert_after(0, position, kind);
    assert_finds!(case, Violation::AllocatedTwice { .. });
}

#[test]
fn a_missing_early_or_doubled_free_is_noticed() {
    let mut leak = checkpoints();
    let free = leak.find(0, is_free);
    let mut doubled = leak.clone();
    let mut early = leak.clone();
    let InstructionKind::Free { memory, .. } = *leak.kind(0, is_free) else {
        unreachable!("a free was asked for")
    };
    leak.remove(0, free);
    assert_finds!(leak, Violation::Leak { .. });
    let kind = doubled.instructions[0].instructions[free].kind.clone();
    doubled.insert_after(0, free, kind.clone());
    assert_finds!(doubled, Violation::DoubleFree { .. });
    early.remove(0, free);
    let InstructionKind::Free { allocation, .. } = kind else { unreachable!("a free was cloned") };
    let alloc = early.find(
        0,
        |kind| matches!(kind, InstructionKind::Alloc { allocation: id, .. } if *id == allocation),
    );
    early.insert_after(0, alloc, InstructionKind::Free { allocation, memory });
    assert_finds!(early, Violation::UseAfterFree { .. });
}

/// The outline that node 0 of two would tell.
fn outline(program: celerity_testkit::program::Program) -> Outline {
    let case = Case::new(program, Configuration::new(2, 1));
    let mut node = NodeChecker::new(NodeCheckerConfig {
        nodes: 2,
        local: NodeId::from_index(0),
        devices: 1,
        device_memory: DeviceMemory::Own,
        device_wires: false,
        device_collectives: false,
        depth: Depth::Cheap,
        eager_allocation: false,
    });
    for event in events(&case.tasks, &case.commands[0], &case.instructions[0]) {
        match event {
            CheckerCall::Create(info, user_data) => node.create_buffer(info, user_data),
            CheckerCall::Drop(..) => unreachable!("nothing is dropped"),
            CheckerCall::Task(task, commands, instructions, pilots) => {
                node.task(task, commands, instructions, pilots).expect("the graphs are sound");
            }
        }
    }
    node.finish().expect("the graphs are sound")
}

#[test]
fn diverging_programs_are_noticed() {
    let [first, second] = [NodeId::from_index(0), NodeId::from_index(1)];
    let mut cluster = ClusterChecker::new(2);
    cluster.add(first, outline(corpus::nbody(12, 1))).expect("one node agrees with itself");
    let finding = cluster.add(second, outline(corpus::nbody(13, 1))).expect_err("sizes differ");
    let expected = Violation::Disagreement { first, second, task: TaskId::from_index(1) };
    assert_eq!(finding.violation, expected);
}

#[test]
fn a_node_that_stops_early_is_noticed() {
    let [first, second] = [NodeId::from_index(0), NodeId::from_index(1)];
    let mut cluster = ClusterChecker::new(2);
    let mut shorter = outline(corpus::nbody(12, 1));
    shorter.tasks.truncate(1);
    cluster.add(second, shorter).expect("one node agrees with itself");
    cluster.add(first, outline(corpus::nbody(12, 1))).expect("the first task is the same");
    let finding = cluster.finish().expect_err("one node has had more tasks");
    let expected = Violation::Disagreement { first, second, task: TaskId::from_index(1) };
    assert_eq!(finding.violation, expected);
}

#[test]
fn a_finding_names_buffer_task_and_missing_edge() {
    let mut case = nbody();
    let kernel = case.find(0, is_kernel);
    case.instructions[0].instructions[kernel].dependencies.truncate(1);
    let text = case.verdict().expect_err("an edge is missing").to_string();
    assert!(text.contains("of B") && text.contains("in M2.A"), "{text}");
    assert!(text.contains("checking T1 \"accelerate\""), "{text}");
    assert!(text.contains("style=dashed, color=red"), "{text}");
}
