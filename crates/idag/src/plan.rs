//! First pass: which device (or the host) runs which part of a command, and
//! what that touches. Pure; knows nothing of what is where.

use celerity_regions::{Box3, Region};
use celerity_tdag::{AccessMode, BufferId, IndexSpace, MapperInput, Task, Work};
use smallvec::SmallVec;

use crate::instruction::{DeviceId, DeviceMemory, MemoryId};

/// One kernel or host task to launch.
#[derive(Debug)]
pub(crate) struct Launch {
    /// `None`: on the host.
    pub(crate) device: Option<DeviceId>,
    pub(crate) memory: MemoryId,
    pub(crate) chunk: Box3,
    /// In the order of the task's accesses.
    pub(crate) accesses: PlannedAccesses,
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

pub(crate) type PlannedAccesses = SmallVec<[PlannedAccess; 4]>;

pub(crate) type Launches = SmallVec<[Launch; 1]>;

/// Splits command chunks over devices.
#[derive(Debug)]
pub(crate) struct Planner {
    devices: usize,
    memory: DeviceMemory,
    /// The most recent split; programs repeat few index spaces, mostly one.
    last: Option<(IndexSpace, Box3, DeviceChunks)>,
}

/// The chunks of a split, by the device that runs them.
type DeviceChunks = Vec<(DeviceId, Box3)>;

impl Planner {
    pub(crate) fn new(devices: usize) -> Self {
        Self { devices, memory: DeviceMemory::Own, last: None }
    }

    /// Says which memory devices work in.
    pub(crate) fn set_memory(&mut self, memory: DeviceMemory) {
        self.memory = memory;
    }

    /// The launches for one node's chunk of a task (002 §3.1), device by device.
    pub(crate) fn plan(
        &mut self,
        task: &Task,
        chunk: Box3,
        extent_of: impl Fn(BufferId) -> Box3,
    ) -> Launches {
        let Work::Device(space) = &task.work else {
            let accesses = map_accesses(task, chunk, &extent_of);
            return [Launch { device: None, memory: MemoryId::HOST, chunk, accesses }]
                .into_iter()
                .collect();
        };
        let native = self.memory;
        let chunks = self.split(space, chunk);
        let on_devices = chunks.iter().map(|&(device, chunk)| {
            let accesses = map_accesses(task, chunk, &extent_of);
            let memory = native.of(device);
            #[cfg(feature = "mutants")]
            let memory = celerity_mutants::Mutant::MemoryOfFirstDevice
                .alter(memory, |_| native.of(DeviceId::from_index(0)));
            Launch { device: Some(device), memory, chunk, accesses }
        });
        on_devices.collect()
    }

    /// Over devices first, and then each device's share again (000 §IV-D).
    fn split(&mut self, space: &IndexSpace, chunk: Box3) -> &[(DeviceId, Box3)] {
        let known = matches!(&self.last, Some((s, c, _)) if s == space && *c == chunk);
        if !known {
            let shares = space.split(&chunk, self.devices).into_iter().enumerate();
            let chunks = shares.flat_map(|(index, share)| {
                let device = DeviceId::from_index(index as u64);
                let parts = space.split(&share, space.oversubscription as usize);
                parts.into_iter().map(move |part| (device, part))
            });
            self.last = Some((*space, chunk, chunks.collect()));
        }
        self.last.as_ref().map_or(&[], |(_, _, chunks)| chunks)
    }
}

fn map_accesses(task: &Task, chunk: Box3, extent_of: impl Fn(BufferId) -> Box3) -> PlannedAccesses {
    let global = task.work.extent();
    let map = |access: &celerity_tdag::Access| {
        let buffer = extent_of(access.buffer);
        let region = access.mapper.map(&MapperInput { chunk, global, buffer });
        PlannedAccess {
            buffer: access.buffer,
            mode: access.mode,
            bounds: region.bounding_box(),
            region,
        }
    };
    task.accesses.iter().map(map).collect()
}

/// The buffers that launches touch, each once.
pub(crate) fn buffers_of(launches: &Launches) -> SmallVec<[BufferId; 4]> {
    let mut buffers = SmallVec::new();
    // All launches of a command have the accesses of one task.
    for access in launches.first().into_iter().flat_map(|launch| &launch.accesses) {
        if !buffers.contains(&access.buffer) {
            buffers.push(access.buffer);
        }
    }
    buffers
}

/// The reading accesses of all launches, with the memory they read from.
pub(crate) fn reading(
    launches: &Launches,
) -> impl Iterator<Item = (MemoryId, &PlannedAccess)> + Clone {
    let all = launches
        .iter()
        .flat_map(|launch| launch.accesses.iter().map(move |access| (launch.memory, access)));
    all.filter(|(_, access)| access.mode.reads())
}
