//! A runtime of its own on the three graph crates alone: `cargo run -p celerity-idag --example toy_runtime`.
//!
//! It has nodes, devices, memories and messages, all of them in one thread: memory is a `Vec<f32>`, a message is
//! a move from one map into another. What runs where, what is allocated, copied and sent, the graphs say. The
//! toy performs instructions, and nothing else. It leaves out what a real executor adds: threads, devices that
//! work side by side, a network, pilots (a message says here itself what it brings), errors, collectives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId, TransferId};
use celerity_idag::{
    AllocationId, BoundAccess, Inbound, Instruction, InstructionGraph, InstructionGraphConfig,
    InstructionId, InstructionKind, Placement, Schedule,
};
use celerity_regions::{Box3, Coord3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferId, DeclareError, IndexSpace, Mapper, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskId, TaskSpec, Work,
};

/// What a task computes for one item.
type Kernel = Box<dyn Fn(Coord3, &mut Views<'_>)>;

/// The program's side: the task graph, and what the graphs do not know: functions.
struct Toy {
    tasks: TaskGraph,
    /// Tasks that the nodes have not seen yet.
    stream: Vec<Arc<Task>>,
    kernels: HashMap<TaskId, Kernel>,
    nodes: Vec<Node>,
}

/// One node: its two graphs, its memories, and what it has still to do.
struct Node {
    commands: CommandGraph,
    instructions: InstructionGraph,
    pending: BTreeMap<InstructionId, Instruction>,
    memory: Memory,
    inbox: HashMap<TransferId, Vec<Payload>>,
    /// Where the parts of a receive go that are awaited one by one.
    open_receives: HashMap<TransferId, Placement>,
    snapshots: HashMap<TaskId, Vec<f32>>,
    /// Elements that have come from other nodes.
    received: u64,
}

/// All allocations of a node. Which of its memories they are in makes no difference to a toy.
#[derive(Default)]
struct Memory(HashMap<AllocationId, Vec<f32>>);

/// The elements of a box, row-major.
type Payload = (Box3, Vec<f32>);

/// What a kernel sees: the elements of each access of its task, by their indices in the buffer.
struct Views<'a> {
    memory: &'a mut Memory,
    accesses: &'a [BoundAccess],
}

impl Toy {
    fn new(nodes: usize, devices: usize) -> Self {
        let mut tasks = TaskGraph::new(TaskGraphConfig::default());
        let stream = vec![tasks.start()];
        let nodes = (0..nodes).map(|local| Node::new(local, nodes, devices)).collect();
        Self { tasks, stream, kernels: HashMap::new(), nodes }
    }

    fn buffer<const D: usize>(&mut self, name: &str, range: [usize; D]) -> BufferId {
        let info = self.tasks.create_buffer(NewBuffer {
            name: Some(name.into()),
            dims: D as u8,
            extent: Box3::from_range(range),
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        });
        for node in &mut self.nodes {
            node.commands.register_buffer(&info);
            node.instructions.register_buffer(&info);
        }
        info.id
    }

    fn submit<const D: usize>(
        &mut self,
        name: &str,
        range: [usize; D],
        accesses: Vec<Access>,
        kernel: impl Fn(Coord3, &mut Views<'_>) + 'static,
    ) -> Result<(), DeclareError> {
        let work = Work::Device(IndexSpace::new(D as u8, Box3::from_range(range)));
        let spec = TaskSpec { name: name.into(), work, accesses, location: None };
        let (task, _) = self.tasks.submit(spec, &mut self.stream)?;
        self.kernels.insert(task, Box::new(kernel));
        Ok(())
    }

    /// Everything that has been submitted is executed; then node 0's copy of the buffer is returned.
    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, DeclareError> {
        let accesses = vec![Access::buffer(buffer, AccessMode::Read, Mapper::All)];
        let spec = TaskSpec { name: "read".into(), work: Work::Fence, accesses, location: None };
        let (fence, _) = self.tasks.submit(spec, &mut self.stream)?;
        for task in std::mem::take(&mut self.stream) {
            self.nodes.iter_mut().for_each(|node| node.schedule(&task));
        }
        self.execute();
        Ok(self.nodes[0].snapshots.remove(&fence).expect("every node takes part in a fence"))
    }

    /// Performs whatever is ready, on any node, until nothing is left.
    fn execute(&mut self) {
        while self.nodes.iter().any(|node| !node.pending.is_empty()) {
            let mut messages = Vec::new();
            let mut is_stuck = true;
            for node in &mut self.nodes {
                for instruction in node.take_ready() {
                    node.perform(instruction, &self.kernels, &mut messages);
                    is_stuck = false;
                }
            }
            for (to, transfer, payload) in messages {
                self.nodes[to.slot()].inbox.entry(transfer).or_default().push(payload);
            }
            assert!(!is_stuck, "the graphs promise that sends and receives meet");
        }
    }
}

impl Node {
    fn new(local: usize, nodes: usize, devices: usize) -> Self {
        let local = NodeId::from_index(local as u64);
        Self {
            commands: CommandGraph::new(CommandGraphConfig { nodes, local }),
            instructions: InstructionGraph::new(InstructionGraphConfig { devices }).on_node(local),
            pending: BTreeMap::new(),
            memory: Memory::default(),
            inbox: HashMap::new(),
            open_receives: HashMap::new(),
            snapshots: HashMap::new(),
            received: 0,
        }
    }

    /// Task → commands → instructions: all of the scheduling there is.
    fn schedule(&mut self, task: &Task) {
        let (mut commands, mut schedule) = (Vec::new(), Schedule::default());
        let (mut flaws, mut mistakes) = (Vec::new(), Vec::new());
        self.commands.schedule(task, &mut commands, &mut flaws);
        for command in &commands {
            self.instructions.schedule(command, task, &mut schedule, &mut mistakes);
        }
        assert!(flaws.is_empty() && mistakes.is_empty(), "{flaws:?} {mistakes:?}");
        self.pending.extend(schedule.instructions.into_iter().map(|one| (one.id, one)));
    }

    /// Removes the instructions that wait for nothing any more.
    fn take_ready(&mut self) -> Vec<Instruction> {
        let is_ready = |one: &&Instruction| {
            let waits = one.dependencies.iter().any(|earlier| self.pending.contains_key(earlier));
            !waits && self.has_arrived(&one.kind)
        };
        let ready: BTreeSet<_> = self.pending.values().filter(is_ready).map(|one| one.id).collect();
        ready.iter().filter_map(|id| self.pending.remove(id)).collect()
    }

    /// Whether an instruction has from other nodes what it needs.
    fn has_arrived(&self, kind: &InstructionKind) -> bool {
        let (transfer, region) = match kind {
            InstructionKind::Receive(Inbound { transfer, region, .. })
            | InstructionKind::AwaitReceive { transfer, region } => (transfer, region),
            _ => return true,
        };
        let payloads = self.inbox.get(transfer).map_or(&[][..], Vec::as_slice);
        Region::from_boxes(payloads.iter().map(|(elements, _)| *elements)).contains(region)
    }

    fn perform(
        &mut self,
        instruction: Instruction,
        kernels: &HashMap<TaskId, Kernel>,
        messages: &mut Vec<(NodeId, TransferId, Payload)>,
    ) {
        match instruction.kind {
            InstructionKind::Alloc { allocation, bytes, .. } => {
                self.memory.0.insert(allocation, vec![0.0; bytes as usize / 4]);
            }
            InstructionKind::Free { allocation, .. } => {
                self.memory.0.remove(&allocation);
            }
            InstructionKind::Copy { source, target, region, .. } => {
                for elements in region.boxes() {
                    let values = self.memory.load(&source, elements);
                    self.memory.store(&target, elements, &values);
                }
            }
            InstructionKind::Send { to, transfer, source, region, .. } => {
                for elements in region.boxes() {
                    let values = self.memory.load(&source, elements);
                    messages.push((to, transfer, (*elements, values)));
                }
            }
            InstructionKind::Receive(inbound) => {
                self.take_in(inbound.transfer, &inbound.target, &inbound.region);
            }
            InstructionKind::SplitReceive(inbound) => {
                self.open_receives.insert(inbound.transfer, inbound.target);
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                let target = self.open_receives[&transfer];
                self.take_in(transfer, &target, &region);
            }
            InstructionKind::Kernel { task, chunk, accesses, .. } => {
                let mut views = Views { memory: &mut self.memory, accesses: &accesses };
                points(&chunk).for_each(|item| kernels[&task](item, &mut views));
            }
            // The only function on the host here: a fence.
            InstructionKind::HostTask { task, accesses, .. } => {
                let placement = accesses[0].placement.expect("a fence reads something");
                let elements = accesses[0].region.bounding_box();
                self.snapshots.insert(task, self.memory.load(&placement, &elements));
            }
            InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. } => {}
            InstructionKind::Reserve { .. }
            | InstructionKind::Grow { .. }
            | InstructionKind::Collective(_) => unreachable!("the toy asks for none of these"),
        }
    }

    /// Puts what has arrived of a region into its place.
    fn take_in(&mut self, transfer: TransferId, target: &Placement, region: &Region) {
        for (elements, values) in &self.inbox[&transfer] {
            for (point, value) in points(elements).zip(values) {
                if region.contains_point(point) {
                    *self.memory.at(target, point) = *value;
                    self.received += 1;
                }
            }
        }
    }
}

impl Memory {
    fn at(&mut self, place: &Placement, point: Coord3) -> &mut f32 {
        let (origin, range) = (place.extent.min(), place.extent.range());
        let [z, y, x] = [0, 1, 2].map(|dim| point[dim] - origin[dim]);
        let position = (z * range[1] + y) * range[2] + x;
        &mut self.0.get_mut(&place.allocation).expect("it is allocated")[position as usize]
    }

    fn load(&mut self, place: &Placement, elements: &Box3) -> Vec<f32> {
        points(elements).map(|point| *self.at(place, point)).collect()
    }

    fn store(&mut self, place: &Placement, elements: &Box3, values: &[f32]) {
        points(elements).zip(values).for_each(|(point, value)| *self.at(place, point) = *value);
    }
}

impl Views<'_> {
    /// An element, through the access of that number.
    ///
    /// # Panics
    /// If the access does not declare it for this chunk.
    fn at(&mut self, access: usize, point: Coord3) -> &mut f32 {
        let access = &self.accesses[access];
        assert!(access.region.contains_point(point), "{point:?} is not declared");
        self.memory.at(&access.placement.expect("what is declared is placed"), point)
    }
}

/// All indices in a box, the last dimension fastest.
fn points(within: &Box3) -> impl Iterator<Item = Coord3> + use<> {
    let (min, max) = within.corners();
    let rows = (min[0]..max[0]).flat_map(move |z| (min[1]..max[1]).map(move |y| (z, y)));
    rows.flat_map(move |(z, y)| (min[2]..max[2]).map(move |x| [z, y, x]))
}

/// Heat in a rod whose ends are kept at 1 and 0. Returns the temperatures, and how many elements moved
/// between nodes.
fn heat(
    nodes: usize,
    devices: usize,
    cells: usize,
    steps: usize,
) -> Result<(Vec<f32>, u64), DeclareError> {
    let mut toy = Toy::new(nodes, devices);
    let (mut u, mut v) = (toy.buffer("u", [cells]), toy.buffer("v", [cells]));
    let write = |buffer| Access::buffer(buffer, AccessMode::Write, Mapper::OneToOne);
    toy.submit("fill", [cells], vec![write(u)], |i, views| {
        *views.at(0, i) = if i == [0; 3] { 1.0 } else { 0.0 };
    })?;
    let last = cells as u64 - 1;
    for _ in 0..steps {
        let read = Access::buffer(u, AccessMode::Read, Mapper::neighborhood([1]));
        toy.submit("step", [cells], vec![write(v), read], move |i, views| {
            let is_end = i[0] == 0 || i[0] == last;
            let beside = |views: &mut Views<'_>| {
                *views.at(1, [i[0] - 1, 0, 0]) + *views.at(1, [i[0] + 1, 0, 0])
            };
            *views.at(0, i) = if is_end { *views.at(1, i) } else { 0.5 * beside(views) };
        })?;
        std::mem::swap(&mut u, &mut v);
    }
    let temperatures = toy.read(u)?;
    Ok((temperatures, toy.nodes.iter().map(|node| node.received).sum()))
}

fn main() -> Result<(), DeclareError> {
    for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (4, 2)] {
        let (rod, moved) = heat(nodes, devices, 16, 40)?;
        println!(
            "{nodes} nodes × {devices} devices: {:.3} in the middle, {moved} elements moved",
            rod[8]
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by plain loops.
    fn sequential(cells: usize, steps: usize) -> Vec<f32> {
        let mut u: Vec<f32> = (0..cells).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
        for _ in 0..steps {
            let before = u.clone();
            for i in 1..cells - 1 {
                u[i] = 0.5 * (before[i - 1] + before[i + 1]);
            }
        }
        u
    }

    #[test]
    fn a_rod_is_as_warm_on_any_cluster() {
        for cells in [2, 3, 16] {
            let expected = sequential(cells, 12);
            for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (3, 2), (5, 1)] {
                let (rod, _) = heat(nodes, devices, cells, 12).unwrap();
                assert_eq!(rod, expected, "{cells} cells on {nodes} × {devices}");
            }
        }
    }

    /// Per step an element each way, and half of the rod to each node for the fence.
    #[test]
    fn nodes_send_what_others_need_and_nothing_else() {
        assert_eq!(heat(1, 2, 16, 10).unwrap().1, 0);
        assert_eq!(heat(2, 1, 16, 10).unwrap().1, 10 * 2 + 16);
    }

    #[test]
    #[should_panic(expected = "[5, 0, 0] is not declared")]
    fn a_kernel_that_touches_more_than_it_says_is_found() {
        let mut toy = Toy::new(1, 2);
        let u = toy.buffer("u", [8]);
        let write = Access::buffer(u, AccessMode::Write, Mapper::OneToOne);
        toy.submit("stray", [8], vec![write], |_, views| *views.at(0, [5, 0, 0]) = 1.0).unwrap();
        let _ = toy.read(u);
    }
}
