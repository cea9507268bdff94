//! What each instruction does to each element of each allocation, and what
//! each allocation is. Everything else in this model is derived from this.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{
    AllocationId, BoundAccess, CollectivePart, DeviceId, Inbound, InstructionKind, MemoryId,
    Participation, Placement,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};

use super::Cluster;
use crate::element;
use crate::model::exchange::ExchangedSlots;
use crate::violation::Violation;

/// How an instruction uses elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
    /// A split receive: they may be written from here on.
    Begin,
    /// An await receive: they have been written.
    Arrive,
}

/// One use of elements of one allocation.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) allocation: AllocationId,
    pub(super) how: Use,
    /// Slots in the extent of the allocation.
    pub(super) slots: BTreeSet<usize>,
}

/// One allocation of one node.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub(super) memory: MemoryId,
    pub(super) buffer: BufferId,
    /// Known from the first placement that names it.
    pub(super) extent: Option<Box3>,
    bytes: Option<u64>,
    /// The alloc or reserve instruction; none for users' data.
    pub(super) made_by: Option<usize>,
    pub(super) growth: Option<Growth>,
    pub(super) freed_by: Vec<usize>,
}

impl Allocation {
    /// The instructions that have made it larger, in order.
    pub(super) fn grown_by(&self) -> impl Iterator<Item = usize> {
        self.growth.iter().flat_map(|growth| growth.grown_by.iter().copied())
    }

    /// The instructions that have provided memory for what is touched.
    pub(super) fn providers_of(&self, touch: &Touch) -> impl Iterator<Item = usize> {
        let growth = self.growth.as_ref();
        touch.slots.iter().filter_map(move |slot| growth?.providers.get(slot).copied())
    }
}

/// How a reserved allocation has grown.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// By slot: the first grow instruction that has provided memory for it.
    pub(super) providers: BTreeMap<usize, usize>,
    /// All grow instructions.
    pub(super) grown_by: Vec<usize>,
}

/// All uses by one node's instructions.
#[derive(Clone, Debug)]
pub(super) struct NodeTouches {
    /// By instruction.
    pub(super) touches: Vec<Vec<Touch>>,
    pub(super) allocations: BTreeMap<AllocationId, Allocation>,
}

impl NodeTouches {
    /// Collects the uses of one node, checking every placement.
    pub(super) fn of(cluster: &Cluster<'_>, node: usize) -> Result<Self, Violation> {
        let mut collector = Collector::new(cluster, node);
        for (position, instruction) in cluster.nodes[node].instructions.iter().enumerate() {
            let touches = collector
                .touches(position, &instruction.kind)
                .map_err(|what| bad_placement(cluster, node, position, what))?;
            collector.result.touches.push(touches);
        }
        Ok(collector.result)
    }

    /// The slot of a buffer's point inside an allocation.
    pub(super) fn point(&self, allocation: AllocationId, slot: usize) -> [u64; 3] {
        element::point(&self.extent(allocation), slot)
    }

    pub(super) fn extent(&self, allocation: AllocationId) -> Box3 {
        self.allocations[&allocation].extent.expect("whoever touches an allocation places it")
    }

    /// `M2.A3`.
    pub(super) fn name(&self, allocation: AllocationId) -> String {
        format!("{}.{allocation}", self.allocations[&allocation].memory)
    }
}

fn bad_placement(cluster: &Cluster<'_>, node: usize, position: usize, what: String) -> Violation {
    Violation::BadPlacement { instruction: cluster.dags[node].describe(position), what }
}

struct Collector<'a> {
    cluster: Cluster<'a>,
    node: NodeId,
    inbounds: BTreeMap<TransferId, Vec<Inbound>>,
    result: NodeTouches,
}

impl<'a> Collector<'a> {
    fn new(cluster: &Cluster<'a>, node: usize) -> Self {
        let users = cluster.nodes[node].user_allocations.iter().map(|&(id, buffer)| {
            let allocation = Allocation {
                memory: cluster.device_memory.of_initial_contents(),
                buffer,
                extent: Some(cluster.truth.buffer(buffer).extent),
                bytes: None,
                made_by: None,
                growth: None,
                freed_by: Vec::new(),
            };
            (id, allocation)
        });
        let result = NodeTouches { touches: Vec::new(), allocations: users.collect() };
        let node = cluster.nodes[node].node;
        Self { cluster: *cluster, node, inbounds: BTreeMap::new(), result }
    }

    fn touches(&mut self, position: usize, kind: &InstructionKind) -> Result<Vec<Touch>, String> {
        match kind {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, .. } => {
                self.make(position, *allocation, *memory, *buffer, *bytes)
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, .. } => {
                self.reserve(position, *allocation, *memory, *buffer, *bytes)
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes } => {
                self.grow(position, (*memory, *allocation), *buffer, elements, bytes)
            }
            InstructionKind::Free { allocation, memory } => {
                self.free(position, *allocation, *memory)
            }
            InstructionKind::Copy { buffer, source, target, region, elem_size } => {
                if source.allocation == target.allocation {
                    return Err("copies an allocation onto itself".into());
                }
                self.check_elem_size(*buffer, *elem_size)?;
                let source = self.place(*buffer, source, region, Use::Read)?;
                Ok(vec![source, self.place(*buffer, target, region, Use::Write)?])
            }
            InstructionKind::Send { transfer, source, region, elem_size, .. } => {
                self.check_elem_size(transfer.buffer, *elem_size)?;
                self.check_reached(source)?;
                if region.boxes().len() > 1 && source.memory != MemoryId::HOST {
                    return Err("sends several boxes from a device's memory".into());
                }
                Ok(vec![self.place(transfer.buffer, source, region, Use::Read)?])
            }
            InstructionKind::Receive(inbound) => self.receive(inbound, Use::Write),
            InstructionKind::SplitReceive(inbound) => {
                self.inbounds.entry(inbound.transfer).or_default().push(inbound.clone());
                self.receive(inbound, Use::Begin)
            }
            InstructionKind::AwaitReceive { transfer, region } => self.arrive(*transfer, region),
            InstructionKind::Collective(participation) => self.participate(participation),
            InstructionKind::Kernel { device, task, accesses, .. } => {
                self.bindings(*task, accesses, self.cluster.device_memory.of(*device))
            }
            InstructionKind::HostTask { task, accesses, .. } => {
                self.bindings(*task, accesses, MemoryId::HOST)
            }
            InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. } => Ok(Vec::new()),
        }
    }

    fn make(
        &mut self,
        position: usize,
        id: AllocationId,
        memory: MemoryId,
        buffer: BufferId,
        bytes: u64,
    ) -> Result<Vec<Touch>, String> {
        let Cluster { devices, device_memory, .. } = self.cluster;
        if memory == MemoryId::USER || memory.slot() >= device_memory.count(devices) {
            return Err(format!("nothing can be allocated in {memory}"));
        }
        let allocation = Allocation {
            memory,
            buffer,
            extent: None,
            bytes: Some(bytes),
            made_by: Some(position),
            growth: None,
            freed_by: Vec::new(),
        };
        match self.result.allocations.insert(id, allocation) {
            None => Ok(Vec::new()),
            Some(_) => Err(format!("{id} exists already")),
        }
    }

    /// An allocation for the whole buffer, with no memory yet.
    fn reserve(
        &mut self,
        position: usize,
        id: AllocationId,
        memory: MemoryId,
        buffer: BufferId,
        bytes: u64,
    ) -> Result<Vec<Touch>, String> {
        if memory == MemoryId::HOST {
            return Err(format!("{memory}.{id} cannot grow"));
        }
        let made = self.make(position, id, memory, buffer, bytes)?;
        let whole = self.cluster.truth.buffer(buffer).extent;
        if let Some(allocation) = self.result.allocations.get_mut(&id) {
            (allocation.extent, allocation.growth) = (Some(whole), Some(Growth::default()));
        }
        Ok(made)
    }

    fn grow(
        &mut self,
        position: usize,
        (memory, id): (MemoryId, AllocationId),
        buffer: BufferId,
        elements: &Box3,
        bytes: &Range<u64>,
    ) -> Result<Vec<Touch>, String> {
        let elem_size = 8 * self.cluster.truth.buffer(buffer).words;
        let whole = self.cluster.truth.buffer(buffer).extent;
        let allocation = self.result.allocations.get_mut(&id);
        let known = allocation.filter(|known| (known.memory, known.buffer) == (memory, buffer));
        let Some(Growth { providers, grown_by }) = known.and_then(|one| one.growth.as_mut()) else {
            return Err(format!("{memory}.{id} of {buffer} cannot grow"));
        };
        if elements.is_empty() || !whole.contains(elements) {
            return Err(format!("{elements} is not in {whole}"));
        }
        let slots: BTreeSet<usize> = element::box_slots(&whole, elements).collect();
        let all_of = |bytes: &Range<u64>| {
            let slot = |byte: u64| usize::try_from(byte).map(|byte| byte / elem_size);
            Some(slot(bytes.start).ok()?..slot(bytes.end).ok()?)
        };
        if !all_of(bytes).is_some_and(|range| range.eq(slots.iter().copied())) {
            return Err(format!("{elements} do not lie in bytes {bytes:?}"));
        }
        for slot in slots {
            providers.entry(slot).or_insert(position);
        }
        grown_by.push(position);
        Ok(Vec::new())
    }

    fn free(
        &mut self,
        position: usize,
        id: AllocationId,
        memory: MemoryId,
    ) -> Result<Vec<Touch>, String> {
        match self.result.allocations.get_mut(&id) {
            Some(allocation) if allocation.memory == memory => {
                allocation.freed_by.push(position);
                Ok(Vec::new())
            }
            _ => Err(format!("there is no {memory}.{id}")),
        }
    }

    fn receive(&mut self, inbound: &Inbound, how: Use) -> Result<Vec<Touch>, String> {
        self.check_reached(&inbound.target)?;
        self.check_elem_size(inbound.transfer.buffer, inbound.elem_size)?;
        if inbound.region.is_empty() {
            return Err("receives nothing".into());
        }
        Ok(vec![self.place(inbound.transfer.buffer, &inbound.target, &inbound.region, how)?])
    }

    /// What a node provides lies in its sources, and all that arrives has a place.
    fn participate(&mut self, part: &Participation) -> Result<Vec<Touch>, String> {
        let Participation { transfer, collective, memory, sources, targets, elem_size, .. } = part;
        self.check_elem_size(transfer.buffer, *elem_size)?;
        let extent = self.cluster.truth.buffer(transfer.buffer).extent;
        let ends = ExchangedSlots::at(&extent, collective, self.node);
        let mut touches = Vec::new();
        for (parts, expected, how) in
            [(sources, ends.provided, Use::Read), (targets, ends.arriving, Use::Write)]
        {
            let mut missing = expected;
            for CollectivePart { placement, region } in parts {
                self.check_venue(*memory, placement)?;
                let slots = element::slots(&extent, region);
                if slots.is_empty() || !slots.iter().all(|slot| missing.remove(slot)) {
                    return Err(format!("{region} of {transfer} is not this node's, or twice"));
                }
                touches.push(self.place(transfer.buffer, placement, region, how)?);
            }
            if let Some(slot) = missing.first() {
                return Err(format!("element {slot} of {transfer} has no place"));
            }
        }
        Ok(touches)
    }

    fn arrive(&mut self, transfer: TransferId, region: &Region) -> Result<Vec<Touch>, String> {
        let inbounds = self.inbounds.get(&transfer).cloned().unwrap_or_default();
        let host = inbounds.iter().find(|inbound| {
            let whole = element::slots(&inbound.target.extent, &inbound.region);
            region.boxes().iter().all(|part| {
                inbound.target.extent.contains(part)
                    && element::box_slots(&inbound.target.extent, part)
                        .all(|slot| whole.contains(&slot))
            })
        });
        let Some(inbound) = host else {
            return Err("awaits what no earlier split receive of the transfer begins".into());
        };
        Ok(vec![self.place(transfer.buffer, &inbound.target, region, Use::Arrive)?])
    }

    fn bindings(
        &mut self,
        task: TaskId,
        accesses: &[BoundAccess],
        memory: MemoryId,
    ) -> Result<Vec<Touch>, String> {
        let op = self.cluster.tasks.op(task).ok_or_else(|| format!("{task} is no work"))?;
        let (spec, _) = self.cluster.truth.task(op);
        let mut touches = Vec::new();
        for (bound, access) in accesses.iter().zip(&spec.accesses) {
            let Some(placement) = &bound.placement else {
                match bound.region.is_empty() {
                    true => continue,
                    false => return Err(format!("{} is bound to nothing", bound.buffer)),
                }
            };
            if placement.memory != memory {
                return Err(format!("{} is bound to {}", bound.buffer, placement.memory));
            }
            let uses = [(access.mode.reads(), Use::Read), (access.mode.writes(), Use::Write)];
            for (_, how) in uses.into_iter().filter(|(applies, _)| *applies) {
                touches.push(self.place(bound.buffer, placement, &bound.region, how)?);
            }
        }
        Ok(touches)
    }

    /// One use, after comparing the placement with what is known of the
    /// allocation.
    fn place(
        &mut self,
        buffer: BufferId,
        placement: &Placement,
        elements: &Region,
        how: Use,
    ) -> Result<Touch, String> {
        let Placement { allocation: id, memory, extent } = *placement;
        let elem_size = 8 * self.cluster.truth.buffer(buffer).words as u64;
        let whole = self.cluster.truth.buffer(buffer).extent;
        let Some(allocation) = self.result.allocations.get_mut(&id) else {
            return Err(format!("{memory}.{id} does not exist yet"));
        };
        if (allocation.memory, allocation.buffer) != (memory, buffer) {
            let Allocation { memory, buffer, .. } = allocation;
            return Err(format!("{id} belongs to {buffer} in {memory}"));
        }
        let known = *allocation.extent.get_or_insert(extent);
        if known != extent || !whole.contains(&extent) {
            return Err(format!("{memory}.{id} holds {known} of {whole}, not {extent}"));
        }
        if allocation.bytes.is_some_and(|bytes| bytes != extent.volume() * elem_size) {
            return Err(format!("{memory}.{id} is not sized for {extent}"));
        }
        if let Some(part) = elements.boxes().iter().find(|part| !extent.contains(part)) {
            return Err(format!("{memory}.{id} holds {extent}, without {part}"));
        }
        let slots = element::slots(&extent, elements);
        let growth = allocation.growth.as_ref();
        match growth.is_some_and(|it| !slots.iter().all(|slot| it.providers.contains_key(slot))) {
            true => Err(format!("{memory}.{id} has no memory for all of {elements}")),
            false => Ok(Touch { allocation: id, how, slots }),
        }
    }

    /// As [`check_host`](Self::check_host), or a device's memory where the network reaches those.
    fn check_reached(&self, placement: &Placement) -> Result<(), String> {
        match placement.memory.device() {
            Some(_) if self.cluster.wired => Ok(()),
            _ => self.check_host(placement),
        }
    }

    /// A collective takes place on the host, or on a node's first device where the network can.
    fn check_venue(&self, memory: MemoryId, placement: &Placement) -> Result<(), String> {
        let first = MemoryId::of_device(DeviceId::from_index(0));
        match placement.memory == memory && memory == first && self.cluster.assembled {
            true => Ok(()),
            false => self.check_host(placement),
        }
    }

    fn check_host(&self, placement: &Placement) -> Result<(), String> {
        match placement.memory {
            MemoryId::HOST => Ok(()),
            other => Err(format!("the network does not reach {other}")),
        }
    }

    fn check_elem_size(&self, buffer: BufferId, elem_size: u64) -> Result<(), String> {
        let expected = 8 * self.cluster.truth.buffer(buffer).words as u64;
        match elem_size == expected {
            true => Ok(()),
            false => Err(format!("elements of {buffer} have {expected} bytes, not {elem_size}")),
        }
    }
}
