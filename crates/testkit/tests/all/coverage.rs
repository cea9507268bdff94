//! Random programs reach what they are meant to test: every kind of statement,
//! access, command and instruction.

use std::collections::BTreeMap;

use celerity_cdag::CommandKind;
use celerity_cpd::Pattern;
use celerity_idag::{Instruction, LaneKind};
use celerity_regions::Box3;
use celerity_tdag::{AccessMode, Split};
use celerity_testkit::check::Configuration;
use celerity_testkit::element;
use celerity_testkit::footprint::ElementFootprint;
use celerity_testkit::forwards::Forwards;
use celerity_testkit::program::{
    AccessSpec, BufferSpec, MapperSpec, Op, Program, Sizes, TaskKind, TaskOp, seeded,
};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};

const PROGRAMS: u64 = 200;

fn programs() -> impl Iterator<Item = Program> {
    (0..PROGRAMS).map(|seed| seeded(Sizes::default(), seed))
}

/// Asserts that each of `features` was seen in at least a few programs.
fn assert_frequent(seen: &BTreeMap<String, u64>, features: &[&str]) {
    for feature in features {
        let times = seen.get(*feature).copied().unwrap_or(0);
        assert!(times >= PROGRAMS / 40, "{feature} occurs {times} times in {PROGRAMS} programs");
    }
}

fn mapper_name(mapper: &MapperSpec) -> &'static str {
    match mapper {
        MapperSpec::OneToOne => "one_to_one",
        MapperSpec::All => "all",
        MapperSpec::Fixed(boxes) if boxes.len() > 1 => "fixed boxes",
        MapperSpec::Fixed(_) => "fixed",
        MapperSpec::Slice { .. } => "slice",
        MapperSpec::Neighborhood { .. } => "neighborhood",
        MapperSpec::Periodic { .. } => "periodic",
        MapperSpec::PerDimension(_) => "per dimension",
        MapperSpec::Affine(_) => "affine",
        MapperSpec::Scatter { .. } => "scatter",
    }
}

fn op_features(op: &Op, buffers: &[BufferSpec]) -> Vec<String> {
    match op {
        Op::Create(spec) if spec.extent.is_empty() => vec!["empty buffer".into()],
        Op::Create(spec) => vec![format!("{}-D buffer", spec.dims)],
        Op::Task(task) => task_features(task, buffers),
        Op::Barrier => vec!["barrier".into()],
        Op::Drop(_) => vec!["drop".into()],
    }
}

fn task_features(task: &TaskOp, buffers: &[BufferSpec]) -> Vec<String> {
    let mut features = vec![match &task.kind {
        TaskKind::Device(space) if space.extent.is_empty() => "empty kernel".into(),
        TaskKind::Device(space) if space.split == Split::Tiled => "tiled kernel".into(),
        TaskKind::Device(space) if space.granularity != [1; 3] => "granular kernel".into(),
        TaskKind::Device(space) => format!("{}-D kernel", space.dims),
        TaskKind::HostOnce { node: 0 } => "host task".into(),
        TaskKind::HostOnce { .. } => "host task on a node".into(),
        TaskKind::HostSplit { group: None, .. } => "distributed host task".into(),
        TaskKind::HostSplit { group: Some(_), .. } => "collective host task".into(),
        TaskKind::Fence => "fence".into(),
        TaskKind::Combine => "replicated host task".into(),
    }];
    let footprint = ElementFootprint::of(task, buffers);
    for (position, access) in task.accesses.iter().enumerate() {
        if access.mode == AccessMode::Update && meet(&footprint, position, &task.space()) {
            features.push("items meet".into());
        }
        features.push(format!("{:?} {}", access.mode, mapper_name(&access.mapper)));
        let earlier = &task.accesses[..position];
        let same = earlier.iter().filter(|other| other.buffer == access.buffer);
        features.extend(same.map(|other| beside(task, other, access)));
    }
    features
}

/// Whether two items touch one element through an access.
fn meet(footprint: &ElementFootprint, access: usize, space: &Box3) -> bool {
    let items = 0..element::volume(space);
    let touched: usize = items.map(|item| footprint.item(access, item).len()).sum();
    touched > footprint.whole(access).len()
}

/// How a task has two accesses to one buffer.
fn beside(task: &TaskOp, one: &AccessSpec, other: &AccessSpec) -> String {
    let kind = if matches!(task.kind, TaskKind::Device(_)) { "kernel" } else { "host task" };
    let user = if one.mapper.is_user() || other.mapper.is_user() { ", user's mapper" } else { "" };
    match (one.mode.writes(), other.mode.writes()) {
        (false, false) => "several readers".into(),
        (true, true) => format!("{kind} writes twice{user}"),
        _ => format!("{kind} reads beside a write{user}"),
    }
}

#[test]
fn all_kinds_of_statements_occur() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for program in programs() {
        let buffers = program.buffers();
        for feature in program.ops.iter().flat_map(|op| op_features(op, &buffers)) {
            *seen.entry(feature).or_default() += 1;
        }
    }
    assert_frequent(
        &seen,
        &[
            "0-D buffer",
            "1-D buffer",
            "2-D buffer",
            "3-D buffer",
            "empty buffer",
            "barrier",
            "drop",
            "1-D kernel",
            "2-D kernel",
            "3-D kernel",
            "tiled kernel",
            "granular kernel",
            "empty kernel",
            "host task",
            "fence",
            "several readers",
            "kernel reads beside a write",
            "kernel reads beside a write, user's mapper",
            "kernel writes twice, user's mapper",
            "host task reads beside a write",
            "host task writes twice",
        ],
    );
    assert_frequent(
        &seen,
        &[
            "Read one_to_one",
            "Read all",
            "Read fixed",
            "Read fixed boxes",
            "Read slice",
            "Read neighborhood",
            "Read periodic",
            "Read per dimension",
            "Read affine",
            "Read scatter",
            "Write one_to_one",
            "Write slice",
            "Write per dimension",
            "Write affine",
            "Write scatter",
            "ReadWrite one_to_one",
            "ReadWrite affine",
            "ReadWrite scatter",
            "Update one_to_one",
            "Update slice",
            "Update affine",
            "Update scatter",
            "items meet",
        ],
    );
}

fn command_name(kind: &CommandKind) -> &'static str {
    match kind {
        CommandKind::Execute { .. } => "execute",
        CommandKind::Push { targets, .. } if targets.len() > 1 => "push to several",
        CommandKind::Push { .. } => "push",
        CommandKind::AwaitPush { .. } => "await push",
        CommandKind::Collective { collective, .. } => match collective.pattern() {
            Pattern::Gather => "gather",
            Pattern::AllGather => "all-gather",
            Pattern::Broadcast => "broadcast",
            Pattern::Scatter => "scatter",
            Pattern::AllToAll => "all-to-all",
        },
        CommandKind::Horizon => "horizon",
        CommandKind::Epoch(_) => "epoch",
    }
}

fn instruction_name(instruction: &Instruction) -> &'static str {
    let effects = instruction.effects();
    match effects.lane {
        LaneKind::Copy { source, target } if source == target => "resize",
        _ => effects.verb,
    }
}

#[test]
fn all_kinds_of_commands_and_instructions_occur() {
    let configuration = Configuration::new(3, 2);
    let (mut commands, mut instructions) = (BTreeMap::new(), BTreeMap::new());
    for program in programs() {
        let tasks = TaskTrace::of(&program, configuration.task_graph()).expect("lawful");
        let nodes = CommandTrace::of_all(&tasks, configuration.nodes).expect("lawful");
        for command in nodes.iter().flat_map(|node| &node.commands) {
            *commands.entry(command_name(&command.kind).to_owned()).or_default() += 1;
        }
        let nodes = InstructionTrace::of_all(&tasks, &nodes, configuration.devices);
        for instruction in nodes.expect("lawful").iter().flat_map(|node| &node.instructions) {
            *instructions.entry(instruction_name(instruction).to_owned()).or_default() += 1;
        }
    }
    let kinds = ["execute", "push", "push to several", "await push", "horizon", "epoch"];
    assert_frequent(&commands, &kinds);
    assert_frequent(
        &instructions,
        &[
            "alloc",
            "free",
            "copy",
            "resize",
            "send",
            "receive",
            "split receive",
            "await receive",
            "kernel",
            "host task",
            "horizon",
            "epoch",
        ],
    );
}

#[test]
fn all_kinds_of_collectives_occur() {
    let configuration = Configuration { forwards: Forwards::Random, ..Configuration::new(3, 2) };
    let mut commands = BTreeMap::new();
    for program in programs() {
        let tasks = TaskTrace::on(&program, &configuration).expect("lawful");
        let nodes = CommandTrace::of_all(&tasks, configuration.nodes).expect("lawful");
        for command in nodes.iter().flat_map(|node| &node.commands) {
            *commands.entry(command_name(&command.kind).to_owned()).or_default() += 1;
        }
    }
    // Few random programs transpose anything: all-to-all has tests of its own.
    assert_frequent(&commands, &["gather", "all-gather", "broadcast", "scatter", "push"]);
}

/// Random programs, and the program that is made for it, come to operations among some nodes.
#[test]
fn all_kinds_of_collectives_occur_among_some_nodes() {
    let mut kinds = BTreeMap::new();
    let mut count = |program: &Program, forwards| {
        let configuration = Configuration { forwards, ..Configuration::new(5, 1) };
        let tasks = TaskTrace::on(program, &configuration).expect("lawful");
        let nodes = CommandTrace::of_all(&tasks, configuration.nodes).expect("lawful");
        for command in nodes.iter().flat_map(|node| &node.commands) {
            if let CommandKind::Collective { collective, .. } = &command.kind
                && !collective.members.are_all()
            {
                *kinds.entry(command_name(&command.kind).to_owned()).or_default() += 1;
            }
        }
    };
    programs().for_each(|program| count(&program, Forwards::Random));
    assert_frequent(&kinds, &["gather", "all-gather", "broadcast", "scatter"]);
    let mut kinds = BTreeMap::new();
    let program = celerity_testkit::corpus::few_rows(2);
    let configuration = Configuration { forwards: Forwards::Always, ..Configuration::new(5, 1) };
    let tasks = TaskTrace::on(&program, &configuration).expect("lawful");
    let nodes = CommandTrace::of_all(&tasks, configuration.nodes).expect("lawful");
    for command in nodes.iter().flat_map(|node| &node.commands) {
        if let CommandKind::Collective { collective, .. } = &command.kind {
            let among = collective.members.to_string();
            *kinds.entry((command_name(&command.kind), among)).or_insert(0) += 1;
        }
    }
    let kinds: Vec<_> = kinds.iter().map(|((kind, among), _)| format!("{kind}: {among}")).collect();
    let expected = [
        "all-gather: N0 to N2",
        "all-gather: all nodes",
        "all-to-all: N0 to N2",
        "broadcast: N0 and N1",
        "broadcast: all nodes",
        "gather: N0 to N2",
        "gather: N0, N1, N2 and N4",
        "scatter: N0 to N2",
        "scatter: N0, N1, N2 and N4",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_seed_always_gives_the_same_program() {
    let sizes = Sizes::default();
    assert_eq!(seeded(sizes, 11), seeded(sizes, 11));
    assert_ne!(seeded(sizes, 11), seeded(sizes, 12));
}
