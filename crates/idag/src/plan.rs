//! First pass: which device (or the host) runs which part of a command, and
//! what that touches. Pure; knows nothing of what is where.

use celerity_regions::{Box3, Region};
use celerity_tdag::{AccessMode, BufferId, IndexSpace, MapperInput, Task, Work};
use smallvec::SmallVec;

use crate::instruction::{DeviceId, DeviceMemory, MemoryId};

/// One launch of a plan: a kernel or host task on one device or the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedLaunch<'a> {
    pub(crate) site: LaunchSite,
    /// In the order of the task's accesses.
    pub(crate) accesses: &'a [PlannedAccess],
}

/// Where a launch runs, and on which part of the index space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchSite {
    /// `None`: on the host.
    pub(crate) device: Option<DeviceId>,
    pub(crate) memory: MemoryId,
    pub(crate) chunk: Box3,
}

/// What a launch does through one access.
#[derive(Debug)]
pub(crate) struct PlannedAccess {
    pub(crate) buffer: BufferId,
    pub(crate) mode: AccessMode,
    pub(crate) region: Region,
    /// The box that must lie in one allocation.
    pub(crate) bounds: Box3,
}

/// The launches of one command, device by device: a table with a row per launch and
/// a column per access of the task. Its memory is worth [keeping](Planner::recycle).
#[derive(Debug, Default)]
pub(crate) struct Launches {
    sites: Vec<LaunchSite>,
    accesses: Vec<PlannedAccess>,
}

impl Launches {
    pub(crate) fn len(&self) -> usize {
        self.sites.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = PlannedLaunch<'_>> + Clone {
        let columns = self.columns();
        self.sites.iter().enumerate().map(move |(row, &site)| {
            let accesses = &self.accesses[row * columns..(row + 1) * columns];
            PlannedLaunch { site, accesses }
        })
    }

    /// The accesses of all launches on one memory, for each memory in turn.
    pub(crate) fn by_memory(&self) -> impl Iterator<Item = (MemoryId, &[PlannedAccess])> {
        let (columns, mut rest) = (self.columns(), self.accesses.as_slice());
        self.sites.chunk_by(|a, b| a.memory == b.memory).map(move |rows| {
            let (accesses, later) = rest.split_at(rows.len() * columns);
            rest = later;
            (rows[0].memory, accesses)
        })
    }

    /// The buffers that are touched, each once.
    pub(crate) fn buffers(&self) -> SmallVec<[BufferId; 4]> {
        let mut buffers = SmallVec::new();
        // All launches of a command have the accesses of one task.
        for access in &self.accesses[..self.columns()] {
            if !buffers.contains(&access.buffer) {
                buffers.push(access.buffer);
            }
        }
        buffers
    }

    /// The reading accesses of all launches, with the memory they read from.
    pub(crate) fn reading(&self) -> impl Iterator<Item = (MemoryId, &PlannedAccess)> + Clone {
        let all = self.iter().flat_map(|launch| {
            launch.accesses.iter().map(move |access| (launch.site.memory, access))
        });
        all.filter(|(_, access)| access.mode.reads())
    }

    /// The first access through `slot` in each memory: what is read there, and where.
    pub(crate) fn in_each_memory(
        &self,
        slot: usize,
    ) -> impl Iterator<Item = (MemoryId, &PlannedAccess)> {
        self.by_memory().map(move |(memory, accesses)| (memory, &accesses[slot]))
    }

    /// Whether launches work in memories of devices' own.
    pub(crate) fn are_on_devices(&self) -> bool {
        self.sites.first().is_some_and(|site| site.memory.device().is_some())
    }

    /// Whether launches work in different memories.
    pub(crate) fn are_spread(&self) -> bool {
        self.sites.first().map(|site| site.memory) != self.sites.last().map(|site| site.memory)
    }

    /// Whether these are all of a task's items: no other node runs any of it.
    pub(crate) fn are_all_of(&self, task: &Task) -> bool {
        let items = self.sites.iter().map(|site| site.chunk.volume());
        items.fold(0, u64::saturating_add) == task.work.extent().volume()
    }

    /// Takes `region` away from what all launches touch through an access.
    pub(crate) fn deny(&mut self, slot: usize, region: &Region) {
        let columns = self.columns();
        for access in self.accesses.iter_mut().skip(slot).step_by(columns) {
            access.region.subtract(region);
            access.bounds = access.region.bounding_box();
        }
    }

    fn columns(&self) -> usize {
        self.accesses.len().checked_div(self.sites.len()).unwrap_or(0)
    }

    /// Adds those of a chunk whose work the host does.
    #[inline(never)]
    fn push_on_host(&mut self, task: &Task, chunk: Box3, extent_of: &dyn Fn(BufferId) -> Box3) {
        let chunks: SmallVec<[Box3; 1]> = match &task.work {
            Work::HostSplit { space, .. } => {
                let chunks = space.split(&chunk, space.oversubscription as usize);
                let count = chunks.len();
                #[cfg(feature = "mutants")]
                let count = celerity_mutants::Mutant::LastHostChunkOmitted
                    .alter(count, |count| if count > 1 { count - 1 } else { count });
                chunks.iter().take(count).collect()
            }
            _ => SmallVec::from_buf([chunk]),
        };
        for chunk in chunks {
            let site = LaunchSite { device: None, memory: MemoryId::HOST, chunk };
            self.push(site, task, extent_of);
        }
    }

    #[inline]
    fn push(&mut self, site: LaunchSite, task: &Task, extent_of: impl Fn(BufferId) -> Box3) {
        let global = task.work.extent();
        self.sites.push(site);
        self.accesses.extend(task.buffer_accesses().map(|access| {
            let input = MapperInput { chunk: site.chunk, global, buffer: extent_of(access.buffer) };
            let region = access.mapper.map(&input);
            let bounds = region.bounding_box();
            PlannedAccess { buffer: access.buffer, mode: access.mode, region, bounds }
        }));
    }

    fn clear(&mut self) {
        self.sites.clear();
        self.accesses.clear();
    }
}

/// Splits command chunks over devices.
#[derive(Debug)]
pub(crate) struct Planner {
    devices: usize,
    memory: DeviceMemory,
    /// Items that a chunk of an oversubscribed device has, at least.
    least_chunk: u64,
    /// Empty tables, to be filled.
    spare: Vec<Launches>,
}

impl Planner {
    pub(crate) fn new(devices: usize) -> Self {
        Self { devices, memory: DeviceMemory::Own, least_chunk: 0, spare: Vec::new() }
    }

    /// Says which memory devices work in.
    pub(crate) fn set_memory(&mut self, memory: DeviceMemory) {
        self.memory = memory;
    }

    /// Says how many items a chunk of an oversubscribed device has, at least.
    pub(crate) fn set_least_chunk(&mut self, items: u64) {
        self.least_chunk = items;
    }

    /// Which memory devices work in.
    pub(crate) const fn memory(&self) -> DeviceMemory {
        self.memory
    }

    /// The launches for one node's chunk of a task (instruction-graph preprint, §3.1), device by
    /// device.
    pub(crate) fn plan(
        &mut self,
        task: &Task,
        chunk: Box3,
        extent_of: impl Fn(BufferId) -> Box3,
    ) -> Launches {
        let mut launches = self.spare.pop().unwrap_or_default();
        let Work::Device(space) = &task.work else {
            launches.push_on_host(task, chunk, &extent_of);
            return launches;
        };
        // Over devices first, and then each device's share again (CCGrid 2023, §IV-D).
        for (index, share) in space.split(&chunk, self.devices).iter().enumerate() {
            let device = DeviceId::from_index(index as u64);
            let memory = self.memory_of(device);
            for chunk in space.split(&share, self.chunks_of(space, &share)).iter() {
                let site = LaunchSite { device: Some(device), memory, chunk };
                launches.push(site, task, &extent_of);
            }
        }
        launches
    }

    /// How many chunks a device's share is cut into: as many as the task asks for, as long as they
    /// are worth a launch each.
    #[inline]
    fn chunks_of(&self, space: &IndexSpace, share: &Box3) -> usize {
        let asked = space.oversubscription as usize;
        if asked == 1 || self.least_chunk == 0 {
            return asked;
        }
        let worth = usize::try_from(share.volume() / self.least_chunk).unwrap_or(usize::MAX);
        asked.min(worth.max(1))
    }

    fn memory_of(&self, device: DeviceId) -> MemoryId {
        let memory = self.memory.of(device);
        #[cfg(feature = "mutants")]
        let memory = celerity_mutants::Mutant::MemoryOfFirstDevice
            .alter(memory, |_| self.memory.of(DeviceId::from_index(0)));
        memory
    }

    /// Takes the memory of launches back that have been generated.
    pub(crate) fn recycle(&mut self, mut launches: Launches) {
        if launches.len() > 0 {
            launches.clear();
            self.spare.push(launches);
        }
    }
}
