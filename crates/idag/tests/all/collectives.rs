//! Collectives as instructions: what lies in one piece, what is copied to the host, and what a node
//! does that neither gives nor gets anything. (That they keep the contract is among what
//! `random_programs.rs` shows.)

use std::sync::Arc;

use celerity_cdag::{Command, CommandId, CommandKind, NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_idag::{
    CollectivePart, DeviceMemory, InstructionGraph, InstructionGraphConfig, InstructionKind,
    MemoryId, Participation, Schedule, verify,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferInfo, Conflicts, Dependencies, IndexSpace, Mapper, NewBuffer, Task,
    TaskGraph, TaskGraphConfig, TaskId, Work,
};

/// The graph of one node that has a buffer, and has written its part of it on its device.
struct Node {
    graph: InstructionGraph,
    buffer: Arc<BufferInfo>,
    out: Schedule,
    tasks: u64,
}

fn task(index: u64, work: Work, accesses: Vec<Access>) -> Task {
    Task {
        id: TaskId::from_index(index),
        name: "some".into(),
        work,
        accesses: accesses.into(),
        dependencies: Dependencies::default(),
        conflicts: Conflicts::default(),
        location: None,
        forward: None,
    }
}

impl Node {
    fn new(node: u64, extent: Box3, memory: DeviceMemory) -> Self {
        let mut tasks = TaskGraph::new(TaskGraphConfig::default());
        let start = tasks.start();
        let buffer = tasks.create_buffer(NewBuffer {
            name: None,
            dims: 3,
            extent,
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        });
        let graph = InstructionGraph::new(InstructionGraphConfig { devices: 1 })
            .with_device_memory(memory)
            .on_node(NodeId::from_index(node));
        let mut node = Self { graph, buffer, out: Schedule::default(), tasks: 0 };
        let Work::Epoch(action) = start.work else { panic!("programs begin with an epoch") };
        node.command(&start, CommandKind::Epoch(action));
        node.graph.register_buffer(&node.buffer.clone());
        node
    }

    fn command(&mut self, task: &Task, kind: CommandKind) {
        let command = Command {
            id: CommandId::from_index(self.tasks),
            task: task.id,
            kind,
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
        };
        self.tasks += 1;
        let mut diagnostics = Vec::new();
        self.graph.schedule(&command, task, &mut self.out, &mut diagnostics);
        assert_eq!(diagnostics, []);
    }

    fn kernel(&mut self, mode: AccessMode, region: Region) {
        let work = Work::Device(IndexSpace::new(1, Box3::UNIT));
        let access = Access::buffer(self.buffer.id, mode, Mapper::Fixed(Arc::new(region)));
        let kernel = task(self.tasks, work, vec![access]);
        self.command(&kernel, CommandKind::Execute { chunk: Box3::UNIT });
    }

    /// Takes part in a collective, having written what it provides.
    fn exchange(&mut self, collective: &Arc<Collective>) {
        let forward = task(self.tasks, Work::Forward, Vec::new());
        let transfer = TransferId { consumer: forward.id, buffer: self.buffer.id };
        let collective = collective.clone();
        self.command(&forward, CommandKind::Collective { transfer, collective });
    }

    fn collectives(&self) -> Vec<&Participation> {
        let parts = self.out.instructions.iter().filter_map(|one| match &one.kind {
            InstructionKind::Collective(part) => Some(part),
            _ => None,
        });
        parts.collect()
    }

    /// The sizes of allocations on the host, in elements.
    fn on_host(&self) -> Vec<u64> {
        let bytes = self.out.instructions.iter().filter_map(|one| match one.kind {
            InstructionKind::Alloc { memory: MemoryId::HOST, bytes, .. } => Some(bytes / 4),
            _ => None,
        });
        bytes.collect()
    }

    fn copies(&self, from: MemoryId, to: MemoryId) -> Vec<Box3> {
        let copies = self.out.instructions.iter().filter_map(|one| match &one.kind {
            InstructionKind::Copy { source, target, region, .. }
                if (source.memory, target.memory) == (from, to) =>
            {
                Some(region.boxes().iter().copied())
            }
            _ => None,
        });
        copies.flatten().collect()
    }
}

const DEVICE: MemoryId = MemoryId::of_device(celerity_idag::DeviceId::from_index(0));

/// `extent` in four equal parts along a dimension.
fn quarters(extent: Box3, dim: usize) -> Vec<Region> {
    let length = extent.range()[dim] / 4;
    let part = |index: u64| {
        let (mut low, mut high) = extent.corners();
        (low[dim], high[dim]) = (index * length, (index + 1) * length);
        Box3::new(low, high).into()
    };
    (0..4).map(part).collect()
}

fn collective(extent: Box3, from: Ends, to: Ends) -> Arc<Collective> {
    Arc::new(Collective { members: Members::all(), region: extent.into(), from, to })
}

fn all_gather(extent: Box3, dim: usize) -> Arc<Collective> {
    collective(extent, Ends::Each(quarters(extent, dim).into()), Ends::All)
}

fn node_that_takes_part(
    node: u64,
    extent: Box3,
    memory: DeviceMemory,
    collective: &Arc<Collective>,
) -> Node {
    node_with(Node::new(node, extent, memory), (node, memory), collective)
}

/// The same, of a node whose graph knows more.
fn node_with(
    mut made: Node,
    (node, memory): (u64, DeviceMemory),
    collective: &Arc<Collective>,
) -> Node {
    let provided = collective.provided_by(NodeId::from_index(node)).into_owned();
    if !provided.is_empty() {
        made.kernel(AccessMode::Write, provided);
    }
    made.exchange(collective);
    verify(&made.out.instructions, &made.out.pilots, memory, &[]).unwrap();
    made
}

#[test]
fn what_is_gathered_lies_in_one_piece_and_only_the_own_part_is_copied_there() {
    let extent = Box3::from_range([8, 12, 4]);
    for dim in [0, 1, 2] {
        let gathered = all_gather(extent, dim);
        for node in 0..4 {
            let mut made = node_that_takes_part(node, extent, DeviceMemory::Own, &gathered);
            assert_eq!(made.on_host(), [extent.volume()], "dim {dim}");
            let own = quarters(extent, dim)[node as usize].bounding_box();
            assert_eq!(made.copies(DEVICE, MemoryId::HOST), [own]);
            let [part] = made.collectives()[..] else { panic!("one collective") };
            assert_eq!((part.number, &part.collective), (0, &gathered));
            let volume = |parts: &[CollectivePart]| -> u64 {
                parts.iter().map(|part| part.region.volume()).sum()
            };
            let rest = extent.volume() - own.volume();
            assert_eq!((volume(&part.sources), volume(&part.targets)), (own.volume(), rest));
            // Whoever reads all of it on the device lacks what has come.
            made.kernel(AccessMode::Read, extent.into());
            let copied: u64 = made.copies(MemoryId::HOST, DEVICE).iter().map(Box3::volume).sum();
            assert_eq!(copied, rest);
        }
    }
}

#[test]
fn what_lies_in_host_memory_is_not_copied() {
    let extent = Box3::from_range([16, 2, 2]);
    let gathered = all_gather(extent, 0);
    let mut made = Node::new(2, extent, DeviceMemory::Host);
    made.kernel(AccessMode::ReadWrite, extent.into());
    made.exchange(&gathered);
    made.kernel(AccessMode::Read, extent.into());
    verify(&made.out.instructions, &made.out.pilots, DeviceMemory::Host, &[]).unwrap();
    assert_eq!(made.on_host(), [extent.volume()]);
    let copies = made.out.instructions.iter().map(|one| &one.kind);
    assert!(!copies.into_iter().any(|kind| matches!(kind, InstructionKind::Copy { .. })));
}

#[test]
fn rows_that_are_traded_for_columns_are_not_the_whole_matrix() {
    let extent = Box3::from_range([32, 32, 1]);
    let [rows, columns] = [0, 1].map(|dim| Ends::Each(quarters(extent, dim).into()));
    let traded = collective(extent, rows, columns);
    let made = node_that_takes_part(1, extent, DeviceMemory::Own, &traded);
    let on_host: u64 = made.on_host().iter().sum();
    assert_eq!(on_host, 2 * 8 * 32 - 8 * 8, "a strip of rows and one of columns");
}

#[test]
fn a_node_that_neither_gives_nor_gets_anything_takes_part() {
    let extent = Box3::from_range([8, 1, 1]);
    let [one, other] = [0, 3].map(|node| Ends::One(NodeId::from_index(node)));
    let moved = collective(extent, one, other);
    let mut made = node_that_takes_part(2, extent, DeviceMemory::Own, &moved);
    made.exchange(&all_gather(extent, 0));
    let parts = made.collectives();
    assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [0, 1]);
    assert!(parts[0].sources.is_empty() && parts[0].targets.is_empty());
    assert!(made.on_host().len() == 1, "memory for the second one only");
}

/// The next collective overwrites what a kernel's copy still reads, and waits for it.
#[test]
fn a_collective_waits_for_those_who_read_what_it_overwrites() {
    let extent = Box3::from_range([8, 1, 1]);
    let gathered = all_gather(extent, 0);
    let mut made = node_that_takes_part(0, extent, DeviceMemory::Own, &gathered);
    made.kernel(AccessMode::Read, extent.into());
    let copy = made.out.instructions.iter().rposition(
        |one| matches!(one.kind, InstructionKind::Copy { target, .. } if target.memory == DEVICE),
    );
    let copy = made.out.instructions[copy.expect("the device lacks most of it")].id;
    made.exchange(&gathered);
    let last = made.out.instructions.last().expect("a collective");
    assert!(matches!(last.kind, InstructionKind::Collective(_)));
    assert!(last.dependencies.contains(&copy), "{last:?}");
}

/// A node whose network carries out collectives between devices, from so many bytes in rows of so many on.
fn wired(node: u64, extent: Box3, (least, least_row): (u64, u64)) -> Node {
    let made = Node::new(node, extent, DeviceMemory::Own);
    Node { graph: made.graph.with_device_collectives(least, least_row), ..made }
}

#[test]
fn what_devices_exchange_is_not_copied_and_has_no_memory_on_the_host() {
    let extent = Box3::from_range([8, 12, 4]);
    for dim in [0, 1, 2] {
        let gathered = all_gather(extent, dim);
        for node in 0..4 {
            let node_and_memory = (node, DeviceMemory::Own);
            let mut made = node_with(wired(node, extent, (1, 1)), node_and_memory, &gathered);
            made.kernel(AccessMode::Read, extent.into());
            let [part] = made.collectives()[..] else { panic!("one collective") };
            assert_eq!(part.memory, DEVICE);
            let mut places = part.sources.iter().chain(&part.targets);
            assert!(places.all(|part| part.placement.memory == DEVICE));
            assert_eq!(made.on_host(), [0_u64; 0], "dim {dim}");
            let between = [DEVICE, MemoryId::HOST];
            assert!(made.copies(between[0], between[1]).is_empty());
            assert!(made.copies(between[1], between[0]).is_empty());
        }
    }
}

#[test]
fn all_members_come_to_the_same_venue() {
    let extent = Box3::from_range([30, 8, 1]);
    let (whole, rows) = (extent.volume() * 4, 8 * 4);
    let each = |dim| Ends::Each(quarters(extent, dim).into());
    let root = Ends::One(NodeId::from_index(2));
    let venues = |collective: &Arc<Collective>, terms| {
        let venue = |node| {
            let (made, memory) = (wired(node, extent, terms), DeviceMemory::Own);
            node_with(made, (node, memory), collective).collectives()[0].memory
        };
        (0..4).map(venue).collect::<Vec<_>>()
    };
    let all = [
        (each(0), Ends::All),
        (each(1), Ends::All),
        (each(0), root.clone()),
        (root.clone(), Ends::All),
        (root, each(1)),
        (each(0), each(1)),
    ];
    for (from, to) in all.into_iter().step_by(if cfg!(miri) { 4 } else { 1 }) {
        let moved = collective(extent, from, to);
        assert_eq!(venues(&moved, (1, 1)), [DEVICE; 4]);
        assert_eq!(venues(&moved, (whole, 1)), [DEVICE; 4], "bytes of all, whoever provides what");
        assert_eq!(venues(&moved, (whole + 1, 1)), [MemoryId::HOST; 4]);
    }
    let bands = collective(extent, each(0), Ends::All);
    assert_eq!(venues(&bands, (1, 7 * rows)), [DEVICE; 4], "a band is one row");
    let columns = collective(extent, each(1), Ends::All);
    assert_eq!(venues(&columns, (1, 8)), [DEVICE; 4], "two elements of four bytes");
    assert_eq!(venues(&columns, (1, 9)), [MemoryId::HOST; 4], "shorter rows are the host's");
}

/// A node that knows devices between which copies do not go directly keeps to the host.
#[test]
fn devices_that_are_not_linked_exchange_by_the_host() {
    let extent = Box3::from_range([8, 1, 1]);
    let made = wired(1, extent, (1, 1));
    let config = InstructionGraphConfig { devices: 2 };
    let unlinked = InstructionGraph::new(config)
        .on_node(NodeId::from_index(1))
        .with_direct_copies(|from, to| from == to)
        .with_device_collectives(1, 1);
    let mut made = Node { graph: unlinked, ..made };
    made.graph.register_buffer(&made.buffer.clone());
    made.kernel(AccessMode::Write, quarters(extent, 0)[1].clone());
    made.exchange(&all_gather(extent, 0));
    assert_eq!(made.collectives()[0].memory, MemoryId::HOST);
}
