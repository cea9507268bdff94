//! The instruction generator: per command, a pipeline of passes
//! `plan → allocate → receive → stage → broadcast → coherence → launch → overwritten`, `send` for pushes, or
//! `collective`.

use std::ops::Range;

use celerity_cdag::{Command, CommandKind, NodeId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    AccessMode, BufferId, BufferInfo, EpochAction, GroupOrder, Mapper, MapperInput, Sweep, Task,
};
use smallvec::SmallVec;

use crate::allocate::{Needs, allocate};
use crate::broadcast::{DeviceReader, broadcast};
use crate::buffer::{BufferState, Buffers};
use crate::coherence::make_coherent;
use crate::collective::{CollectiveReach, Venue, participate};
use crate::diagnostic::Diagnostic;
use crate::emit::{InstructionStream, Schedule};
use crate::emitter::Emitter;
use crate::forecast::Forecast;
use crate::growth::Reservations;
use crate::instruction::{DeviceId, DeviceMemory, InstructionId, MemoryId, Placement};
use crate::launch::{HostOrder, launch};
use crate::links::Links;
use crate::objects::ObjectOrder;
use crate::overwritten::forget_overwritten;
use crate::pieces::{Boxes, Pieces, compact_boxes, contiguous_boxes, contiguous_pieces};
use crate::plan::{Launches, PlannedAccess, Planner};
use crate::receive::receive;
use crate::send::push;
use crate::staging::staged;
use crate::version::MemorySet;
use crate::wires::DeviceWires;

/// Parameters of an [`InstructionGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionGraphConfig {
    /// Devices of the node, 1 to 61.
    pub devices: usize,
}

/// Generates one node's instructions from its commands.
///
/// Instructions leave as soon as they are generated; what stays is, per
/// buffer, which memory holds what in which allocation and who used it last,
/// and the instructions since the last applied horizon. Cost per command:
/// O(devices · accesses) plus the entries touched.
#[derive(Debug)]
pub struct InstructionGraph {
    devices: usize,
    venue: Venue,
    stream: InstructionStream,
    planner: Planner,
    buffers: Buffers,
    objects: ObjectOrder,
    links: Links,
    wires: Option<Box<DeviceWires>>,
    forecast: Forecast,
    reservations: Reservations,
    groups: GroupOrder<InstructionId>,
    pending_horizon: Option<InstructionId>,
}

impl InstructionGraph {
    /// A graph without instructions.
    ///
    /// # Panics
    /// If there is no device, or there are more than 61.
    #[must_use]
    pub fn new(config: InstructionGraphConfig) -> Self {
        let most = MemorySet::CAPACITY - 2;
        assert!((1..=most).contains(&config.devices), "a node has 1 to {most} devices");
        Self {
            devices: config.devices,
            venue: Venue::default(),
            stream: InstructionStream::default(),
            planner: Planner::new(config.devices),
            buffers: Buffers::default(),
            objects: ObjectOrder::default(),
            links: Links::default(),
            wires: None,
            forecast: Forecast::default(),
            reservations: Reservations::default(),
            groups: GroupOrder::default(),
            pending_horizon: None,
        }
    }

    /// Says which node's commands it gets; without this call, those of `N0`. What a node does in a
    /// collective depends on it, and nothing else does.
    #[must_use]
    pub fn on_node(mut self, local: NodeId) -> Self {
        self.venue.local = local;
        self
    }

    /// Says which memory the devices work in; without this call, each in its own.
    #[must_use]
    pub fn with_device_memory(mut self, memory: DeviceMemory) -> Self {
        self.planner.set_memory(memory);
        self.venue.native = memory;
        self
    }

    /// Says between which devices of the node copies go directly; without this
    /// call, between all. Between others they go through host memory.
    #[must_use]
    pub fn with_direct_copies(mut self, direct: impl Fn(DeviceId, DeviceId) -> bool) -> Self {
        self.links.restrict(self.devices, direct);
        self
    }

    /// Says that the network reads and writes the memory of devices, here and on the nodes `reached`,
    /// of `nodes` in the cluster: sends to these may begin, and receives end, in devices' memories.
    /// Less than `least` bytes still go through the host, and so does what short rows
    /// [slow down](Self::with_linearized_copies), what devices share, elements of more than 64 KiB
    /// and collectives but for [those](Self::with_device_collectives) that the network says. Nothing
    /// arrives in a device's memory as long as there is a node out of reach, which might be its
    /// sender. Without this call, or with nobody reached, the network reaches host memory alone.
    #[must_use]
    pub fn with_device_wires(
        mut self,
        reached: impl IntoIterator<Item = NodeId>,
        nodes: usize,
        least: u64,
    ) -> Self {
        self.wires = DeviceWires::new(reached, nodes, least).map(Box::new);
        self
    }

    /// Says that the network carries out collective operations between the memories of devices, on all
    /// nodes: those that move at least `least` bytes, each element counted once, in rows of at least
    /// `least_row` bytes, begin and end in the memory of each member's first device. All others go through the
    /// host, and so do all if there are devices between which copies do not [go
    /// directly](Self::with_direct_copies). All nodes must be told the same, or they will not meet. Without
    /// this call, the network's operations reach host memory alone.
    #[must_use]
    pub fn with_device_collectives(mut self, least: u64, least_row: u64) -> Self {
        self.venue.reach = Some(CollectiveReach { least, least_row });
        self
    }

    /// Says that copies between devices and the host are slow if they move rows
    /// of less than `bytes`: such boxes are gathered into a dense allocation,
    /// moved as a whole, and scattered again. Without this call, or with 0,
    /// copies go straight, as it is best where no copy engine is involved.
    #[must_use]
    pub fn with_linearized_copies(mut self, bytes: u64) -> Self {
        self.links.linearize(bytes);
        self
    }

    /// Says from how many bytes for each of them on linked devices share what all of them read and
    /// none of them has, such as what other nodes have sent: each gets a part from where it is, and
    /// the rest from the others. That is worth it where devices are closer to each other than to the
    /// host. Without this call, or with 0, each gets all of it from where it is. What devices have
    /// written themselves they pass on to each other in either case.
    #[must_use]
    pub fn with_shared_arrivals(mut self, bytes: u64) -> Self {
        self.links.share_from(bytes);
        self
    }

    /// Says into pieces of how many bytes what goes to other nodes through host memory is cut: each
    /// is copied to the host, sent, received and copied to devices by itself, so that these steps
    /// overlap. Both ends cut alike, if they are told the same, but need not. What has no more bytes
    /// goes as a whole, as does what has rows that are [slow](Self::with_linearized_copies). Without
    /// this call, or with 0, everything does.
    #[must_use]
    pub fn with_transfers_in_pieces(mut self, bytes: u64) -> Self {
        self.links.cut_into(bytes);
        self
    }

    /// Says which buffers' allocations on devices grow where they are, as far as
    /// what is accessed lies in one piece in them, by size in bytes: smaller ones
    /// are moved faster than memory is provided, larger ones have no room among
    /// addresses. Without this call, none grow.
    #[must_use]
    pub fn with_reservations(mut self, sizes: Range<u64>) -> Self {
        self.reservations = Reservations::new(sizes);
        self
    }

    /// Says how many items a chunk must have for a device to be oversubscribed with several: kernels
    /// of fewer end before anything overlaps with them, and each costs a launch. A device's share
    /// is cut into as many chunks as its task asks for, but into no smaller ones. Without this
    /// call, or with 0, however small they are.
    #[must_use]
    pub fn with_least_chunk(mut self, items: u64) -> Self {
        self.planner.set_least_chunk(items);
        self
    }

    /// Makes a buffer known, or its new name. For a new host-initialised
    /// buffer, returns where the user's data has to be: all of the buffer in one allocation, which
    /// is [in `M0`](DeviceMemory::of_initial_contents) to be read, or in `M1` to be read and
    /// written like any other. A *free* instruction tells when it is not needed any more.
    pub fn register_buffer(&mut self, info: &BufferInfo) -> Option<Placement> {
        if let Some(known) = self.buffers.0.get_mut(info.id) {
            known.name = info.name.clone();
            return None;
        }
        let epoch = self.stream.frontier.synchronization_point();
        let mut state = BufferState::new(info, self.devices + 2, epoch);
        let initial = info.host_initialized.then(|| {
            let allocation = self.stream.new_allocation();
            let memory = self.planner.memory().of_initial_contents();
            let placement = Placement { allocation, memory, extent: info.extent };
            state.initialize(placement, epoch);
            placement
        });
        self.buffers.0.insert(info.id, state);
        initial
    }

    /// Forgets a buffer that no later command names, and appends the
    /// instructions that free its memory after its last use.
    pub fn drop_buffer(&mut self, buffer: BufferId, out: &mut Schedule) {
        let Some(state) = self.buffers.0.remove(buffer) else { return };
        let mut emitter = Emitter::new(&mut self.stream, out);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::LeakOnDrop.is_active() {
            let freed = state.all_backings().skip(1);
            return freed.for_each(|backing| emitter.free(backing));
        }
        state.all_backings().for_each(|backing| emitter.free(backing));
    }

    /// Appends the instructions for `command`, which serves `task`, in a
    /// topological order, and what is wrong with it to `diagnostics`.
    ///
    /// # Panics
    /// If the command names a buffer that is not registered.
    pub fn schedule(
        &mut self,
        command: &Command,
        task: &Task,
        out: &mut Schedule,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let launches = self.plan(command, task);
        self.generate(command, task, launches, out, diagnostics);
    }

    /// The first pass of [`schedule`](Self::schedule): nothing for commands
    /// that launch nothing.
    pub(crate) fn plan(&mut self, command: &Command, task: &Task) -> Launches {
        debug_assert_eq!(command.task, task.id, "a command comes with its own task");
        let CommandKind::Execute { chunk } = &command.kind else { return Launches::default() };
        let buffers = &self.buffers;
        self.planner.plan(task, *chunk, |id| buffers.get(id).extent)
    }

    /// The passes of [`schedule`](Self::schedule) after the first.
    pub(crate) fn generate(
        &mut self,
        command: &Command,
        task: &Task,
        mut launches: Launches,
        out: &mut Schedule,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        match &command.kind {
            CommandKind::Execute { chunk } => {
                check_writes(task, *chunk, &launches, &self.buffers, diagnostics);
                check_apart(task, &mut launches, &self.buffers, diagnostics);
                self.execute(command, task, &launches, out);
                self.planner.recycle(launches);
            }
            CommandKind::Push { transfer, targets } => {
                let buffer = self.buffers.get_mut(transfer.buffer);
                let parcels = (*transfer, targets.as_slice());
                let emitter = &mut Emitter::new(&mut self.stream, out);
                push(emitter, buffer, (&self.links, self.wires.as_deref()), parcels);
            }
            CommandKind::AwaitPush { transfer, region } => {
                self.buffers.get_mut(transfer.buffer).expect(*transfer, region);
            }
            CommandKind::Collective { transfer, collective } => {
                let buffer = self.buffers.get_mut(transfer.buffer);
                let emitter = &mut Emitter::new(&mut self.stream, out);
                let (what, venue) = ((*transfer, collective), (&self.venue, &self.links));
                participate(emitter, buffer, &self.reservations, venue, what);
            }
            CommandKind::Horizon => self.horizon(task, out),
            CommandKind::Epoch(action) => self.epoch(task, *action, out),
        }
    }

    /// Notes what a command that is held back will need in one piece. Whether
    /// that is more than what is allocated, or noted already.
    pub(crate) fn anticipate(&mut self, command: &Command, launches: &Launches) -> bool {
        let network = (&self.links, self.wires.as_deref(), &self.venue);
        self.forecast.anticipate(&mut self.buffers, network, command, launches)
    }

    /// Notes that nothing is held back any more.
    pub(crate) fn caught_up(&mut self) {
        self.forecast.clear();
    }

    #[inline]
    fn execute(&mut self, command: &Command, task: &Task, launches: &Launches, out: &mut Schedule) {
        let buffers = launches.buffers();
        self.allocate(&buffers, launches, out);
        self.receive(&buffers, launches, out);
        self.stage(&buffers, launches, out);
        if launches.are_spread() {
            self.broadcast(task, launches, out);
        }
        let emitter = &mut Emitter::new(&mut self.stream, out);
        for (memory, accesses) in launches.by_memory() {
            for access in accesses.iter().filter(|access| access.mode.reads()) {
                let buffer = self.buffers.get_mut(access.buffer);
                make_coherent(emitter, buffer, &self.links, memory, &access.region);
            }
        }
        let objects = self.objects.order_of(command, task);
        let mut on_host = HostOrder { groups: &mut self.groups, objects };
        for one in launches.iter() {
            launch(emitter, &mut self.buffers, task, one, &mut on_host);
        }
        self.objects.note(on_host.objects);
        let point = self.stream.frontier.synchronization_point();
        forget_overwritten(&mut self.buffers, task, launches, point);
    }

    fn allocate(&mut self, buffers: &[BufferId], launches: &Launches, out: &mut Schedule) {
        let emitter = &mut Emitter::new(&mut self.stream, out);
        for &id in buffers {
            let buffer = self.buffers.get_mut(id);
            let mut on_host = Boxes::new();
            if !buffer.awaited.is_empty() {
                on_host = match &self.wires {
                    None => {
                        let awaited = buffer.awaited.iter().map(|one| &one.region);
                        contiguous_boxes(awaited, buffer.elem_size)
                    }
                    Some(wires) => arriving_on_host(wires, buffer, &self.links, launches),
                };
            }
            if !self.links.are_complete() {
                on_host.extend(compact_boxes(&staged_by(launches, buffer, &self.links)));
            }
            for (memory, accesses) in launches.by_memory() {
                let is_host = memory == MemoryId::HOST;
                // The rule, once a program has touched all of its data.
                if (!is_host || on_host.is_empty()) && is_allocated(memory, accesses, buffer) {
                    continue;
                }
                let mut needs = needs_of(accesses, id);
                if is_host {
                    needs.boxes.extend(on_host.drain(..));
                }
                allocate(emitter, buffer, memory, &needs, &self.reservations);
            }
            if !on_host.is_empty() {
                let needs = Needs { boxes: on_host, discarded: Region::empty() };
                let memory = MemoryId::HOST;
                allocate(emitter, buffer, memory, &needs, &self.reservations);
            }
        }
    }

    fn receive(&mut self, buffers: &[BufferId], launches: &Launches, out: &mut Schedule) {
        let emitter = &mut Emitter::new(&mut self.stream, out);
        for &id in buffers {
            let buffer = self.buffers.get_mut(id);
            if buffer.awaited.is_empty() {
                continue;
            }
            let consumers = launches
                .reading()
                .filter(|(_, access)| access.buffer == id)
                .map(|(_, access)| &access.region);
            let arrival = |buffer: &BufferState, piece: &Region| match &self.wires {
                None => MemoryId::HOST,
                Some(wires) => wires.arrival(buffer, &self.links, launches.reading(), piece),
            };
            let in_pieces = self.links.cut_some() && launches.are_on_devices();
            let onwards = in_pieces.then_some(&self.links);
            receive(emitter, buffer, consumers, arrival, onwards);
        }
    }

    fn stage(&mut self, buffers: &[BufferId], launches: &Launches, out: &mut Schedule) {
        if self.links.are_complete() {
            return;
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::StagingSkipped.is_active() {
            return;
        }
        for &id in buffers {
            let buffer = self.buffers.get_mut(id);
            let region = staged_by(launches, buffer, &self.links);
            let emitter = &mut Emitter::new(&mut self.stream, out);
            make_coherent(emitter, buffer, &self.links, MemoryId::HOST, &region);
        }
    }

    fn broadcast(&mut self, task: &Task, launches: &Launches, out: &mut Schedule) {
        let emitter = &mut Emitter::new(&mut self.stream, out);
        for (slot, access) in task.buffer_accesses().enumerate() {
            if !access.mode.reads() || !may_be_read_alike(&access.mapper) {
                continue;
            }
            let readers = launches.in_each_memory(slot);
            let readers: SmallVec<[DeviceReader<'_>; 8]> =
                readers.map(|(memory, access)| (memory, &access.region)).collect();
            broadcast(emitter, self.buffers.get_mut(access.buffer), &self.links, &readers);
        }
    }

    fn horizon(&mut self, task: &Task, out: &mut Schedule) {
        self.retire_stages(out);
        let id = Emitter::new(&mut self.stream, out).horizon(task.id);
        if let Some(reached) = self.pending_horizon.replace(id) {
            self.synchronize_at(reached);
        }
    }

    fn epoch(&mut self, task: &Task, action: EpochAction, out: &mut Schedule) {
        self.retire_stages(out);
        let id = Emitter::new(&mut self.stream, out).epoch(task.id, action);
        self.pending_horizon = None;
        self.synchronize_at(id);
    }

    fn retire_stages(&mut self, out: &mut Schedule) {
        let mut emitter = Emitter::new(&mut self.stream, out);
        self.buffers.0.unsettled_mut(|buffer| {
            buffer.stages.retire().for_each(|stage| emitter.free(&stage));
        });
    }

    fn synchronize_at(&mut self, instruction: InstructionId) {
        self.stream.frontier.synchronize_at(instruction);
        self.objects.forget_before(instruction);
        self.buffers.0.sweep(|buffer| {
            buffer.compact(instruction);
            // Stages are given back when they have been idle for long.
            if buffer.stages.is_empty() { Sweep::Settled } else { Sweep::Again }
        });
    }
}

/// Whether several chunks may read the same elements through a mapper, and nothing else.
fn may_be_read_alike(mapper: &Mapper) -> bool {
    use Mapper::{All, Fixed, Neighborhood, OneToOne, PerDimension, Periodic, Slice, Tiles, User};
    match mapper {
        All | Fixed(_) | Slice { .. } | PerDimension(_) | User(_) => true,
        OneToOne | Neighborhood { .. } | Periodic { .. } | Tiles(_) => false,
    }
}

/// The boxes that what is awaited needs in one piece each on the host, where devices' memories are
/// written, too.
fn arriving_on_host(
    wires: &DeviceWires,
    buffer: &BufferState,
    links: &Links,
    launches: &Launches,
) -> Boxes {
    let arrives =
        |piece: &Region| wires.arrival(buffer, links, launches.reading(), piece) == MemoryId::HOST;
    let on_host = |region: &Region| match contiguous_pieces(region) {
        pieces if pieces.iter().all(arrives) => region.clone(),
        pieces => Region::from_boxes(
            pieces.iter().filter(|piece| arrives(piece)).flat_map(Region::boxes).copied(),
        ),
    };
    let regions: Pieces = buffer.awaited.iter().map(|one| on_host(&one.region)).collect();
    contiguous_boxes(&regions, buffer.elem_size)
}

/// What launches read of a buffer and must get through host memory.
fn staged_by(launches: &Launches, buffer: &BufferState, links: &Links) -> Region {
    let mut all = Region::empty();
    for (memory, access) in launches.reading().filter(|(_, access)| access.buffer == buffer.id) {
        all.union_with(&staged(buffer, links, memory, &access.region));
    }
    all
}

/// Whether all that the launches on one memory touch of a buffer lies in allocations.
fn is_allocated(memory: MemoryId, accesses: &[PlannedAccess], buffer: &BufferState) -> bool {
    let mut accesses = accesses.iter().filter(|access| access.buffer == buffer.id);
    accesses.all(|PlannedAccess { bounds, .. }| {
        bounds.is_empty() || buffer.backing_of(memory, bounds).is_some()
    })
}

/// What the launches on one memory need of one buffer.
fn needs_of(accesses: &[PlannedAccess], buffer: BufferId) -> Needs {
    let mut needs = Needs::default();
    for access in accesses.iter().filter(|access| access.buffer == buffer) {
        needs.boxes.push(access.bounds);
        if access.mode == AccessMode::Write {
            needs.discarded.union_with(&access.region);
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ReadBesideWriteDiscarded.is_active()
            && access.mode == AccessMode::Write
        {
            needs.discarded.union_box(&access.bounds);
        }
    }
    needs
}

/// Holds a user's mapper to its promises: launches write disjoint regions,
/// together what the command's chunk writes. Built-in mappers are not
/// looked at.
fn check_writes(
    task: &Task,
    chunk: Box3,
    launches: &Launches,
    buffers: &Buffers,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if launches.len() < 2 {
        return;
    }
    for (slot, access) in task.buffer_accesses().enumerate() {
        if !access.mode.writes() || !access.is_on_trust() {
            continue;
        }
        let buffer = buffers.get(access.buffer);
        let context = || (task.to_string(), buffer.name.clone());
        let global = task.work.extent();
        let input = MapperInput { chunk, global, buffer: buffer.extent };
        let declared = access.mapper.map(&input);
        let (mut unwritten, mut written) = (declared.clone(), Region::empty());
        for writes in launches.iter().map(|launch| &launch.accesses[slot].region) {
            let region = written.intersection(writes);
            if !region.is_empty() {
                let (task, buffer) = context();
                diagnostics.push(Diagnostic::OverlappingWrites { task, buffer, region });
            }
            written.union_with(writes);
            unwritten.subtract(writes);
        }
        if !unwritten.is_empty() {
            let (task, buffer) = context();
            diagnostics.push(Diagnostic::UnwrittenElements { task, buffer, region: unwritten });
        }
        if !declared.contains(&written) {
            let ((task, buffer), region) = (context(), written.difference(&declared));
            diagnostics.push(Diagnostic::UndeclaredWrites { task, buffer, region });
        }
    }
}

/// Holds a user's mapper to its word that one access does not touch what another writes: of
/// what is bound, since kernels and host tasks rely on it. What two share, the second loses, so
/// that no launch waits for itself.
fn check_apart(
    task: &Task,
    launches: &mut Launches,
    buffers: &Buffers,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for [first, second] in task.apart_on_trust() {
        let [one, other] = [first, second].map(|(slot, _)| {
            let regions = launches.iter().map(|launch| &launch.accesses[slot].region);
            regions.fold(Region::empty(), |mut all, region| {
                all.union_with(region);
                all
            })
        });
        let region = one.intersection(&other);
        if !region.is_empty() {
            launches.deny(second.0, &region);
            let accesses = [first.1, second.1];
            diagnostics.push(Diagnostic::SharedElements {
                task: task.to_string(),
                buffer: buffers.get(accesses[0].buffer).name.clone(),
                region,
                accesses: accesses.map(ToString::to_string),
            });
        }
    }
}
