//! The backend: a node's lanes, as streams of its GPUs and lanes of the host.
//! Decides nothing about order or coherence.
//!
//! Each GPU has a thread that puts jobs on its streams and sees them end, so
//! that neither the launch of a kernel (2.4 µs) nor the wait for it costs the
//! caller anything.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use celerity_executor::{
    AllocError, Backend, BasePtr, Clock, CollectiveTerms, Completion, CpuBackend, CpuPool,
    DeviceCollectives, DeviceWindows, ElementArray, Job, LaneGroup, LaneId, LaneJob, LaneLayout,
    Waker, WindowError,
};
use celerity_idag::{DeviceId, InstructionId, MemoryId};
use celerity_regions::Region;
use smallvec::SmallVec;

use crate::address::pointer;
use crate::collectives::CudaCollectives;
use crate::driver::{AddressSpace, DriverError, Event, Gpu};
use crate::gpus::{Gpus, PeerAccess};
use crate::memory::{GpuMemory, PinnedPool};
use crate::transfer::{self, Array};
use crate::windows::{CudaWindows, WindowConfig};

mod entries;
mod lane;
mod order;
mod queue;
mod reports;
mod submitter;
mod timer;

use lane::Lanes;
use order::{Message, Order, Setup, Work};
use queue::DeviceQueue;
use reports::Reports;

/// How a backend goes about its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaConfig {
    /// Bytes that may be resident in each device's memory, if limited. What is free and
    /// kept for later allocations does not count.
    pub device_memory_limit: Option<u64>,
    /// Whether GPUs copy from and to each other's memory where they can. If not,
    /// such copies have to be staged in host memory.
    pub peer_copies: bool,
    /// Whether lanes wait for each other on the GPUs. If not, the node waits before
    /// it starts a job on one lane that depends on one of another.
    pub lane_waits: bool,
    /// Sizes in bytes of buffers whose allocations on GPUs grow where they are, as
    /// far as what is accessed lies in one piece: addresses are reserved for all of
    /// the buffer, of which there are 2⁴⁷. Smaller ones are copied when they grow,
    /// which is faster than to put memory behind addresses, 2 MiB at a time.
    pub growing: Range<u64>,
    /// Items that a chunk has, at least, if a task [asks](celerity_tdag::IndexSpace) for several
    /// chunks per GPU. Smaller ones end before anything can overlap with them.
    pub least_chunk: u64,
    /// Jobs that are seen to end together, at most. With 1, the job that a fault
    /// belongs to is always known; with more, kernels cost less.
    pub batch: usize,
    /// How long a batch that is not full waits for more jobs, after the last one, while
    /// an earlier batch runs on its lane: longer than it takes to launch one. A node
    /// with several GPUs or with windows does not wait.
    pub lull: Duration,
    /// Of jobs that take so long, a batch has no more than are before it on its lane: they may be all that it can have until an
    /// end is seen, and what has waited for an end starts tens of microseconds behind it.
    pub long: Duration,
    /// Memory of each GPU that the other processes of the host read, if nodes are on
    /// [wires](celerity_executor::Wires).
    pub windows: WindowConfig,
    /// Which collective operations take place between GPUs of different nodes, where they can: what node 0's
    /// process says goes for all.
    pub collectives: CollectiveTerms,
    /// How long a GPU's thread looks for work and for ends of jobs without a
    /// break. To wake it takes up to 200 µs on virtual machines.
    pub spin: Duration,
}

impl Default for CudaConfig {
    fn default() -> Self {
        Self {
            device_memory_limit: None,
            peer_copies: true,
            lane_waits: true,
            growing: 8 << 20..1 << 40,
            least_chunk: 1 << 16,
            batch: 16,
            lull: Duration::from_micros(10),
            long: Duration::from_micros(12),
            windows: WindowConfig::default(),
            collectives: CollectiveTerms { least: 1 << 20, least_row: 64 },
            spin: Duration::from_millis(1),
        }
    }
}

/// A node's GPUs, and its host lanes.
//
// Field order is drop order: jobs end before the memory goes that they use.
pub struct CudaBackend {
    layout: LaneLayout,
    host: CpuBackend,
    queues: Vec<DeviceQueue>,
    memories: Vec<GpuMemory>,
    pinned: PinnedPool,
    gpus: Arc<Gpus>,
    devices: Vec<Gpu>,
    links: PeerAccess,
    /// Allocations in devices' memories.
    owners: HashMap<BasePtr, DeviceId>,
    /// By lane of a device, then device: the last event of its memory that the
    /// lane has waited for.
    seen: Vec<Vec<u64>>,
    reports: Arc<Reports>,
    lane_waits: bool,
    windows: WindowConfig,
    collectives: CollectiveTerms,
}

/// The lanes of one device.
fn lanes_per_device() -> usize {
    LaneLayout::new(1).count() - LaneLayout::new(0).count()
}

impl CudaBackend {
    /// A node whose `D0`, `D1`, … are the given GPUs. Host work runs on `pool`.
    ///
    /// # Errors
    /// If a GPU cannot be used.
    ///
    /// # Panics
    /// If there is no such GPU.
    pub fn new(
        gpus: &Arc<Gpus>,
        devices: &[Gpu],
        config: &CudaConfig,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Result<Self, DriverError> {
        let reports = Arc::new(Reports::new(waker.clone()));
        let driver = gpus.driver();
        let lanes = Arc::new(Lanes::new(&**driver, devices)?);
        let setup = Setup { gpus, devices, config, lanes: &lanes, reports: &reports };
        let queue = |device| DeviceQueue::start(&setup, device);
        let links = gpus.connect(devices, config.peer_copies)?;
        let memory = |(slot, &gpu): (usize, &Gpu)| {
            let (pages, users) = (gpus.pages(gpu).clone(), links.users_of(slot, devices));
            GpuMemory::new(driver, gpu, config.device_memory_limit, pages, users)
        };
        Ok(Self {
            layout: LaneLayout::new(devices.len()),
            host: CpuBackend::new(0, None, pool, waker),
            queues: (0..devices.len()).map(queue).collect::<Result<_, _>>()?,
            memories: devices.iter().enumerate().map(memory).collect::<Result<_, _>>()?,
            pinned: PinnedPool::new(driver),
            links,
            gpus: gpus.clone(),
            devices: devices.to_vec(),
            owners: HashMap::new(),
            seen: vec![vec![0; devices.len()]; devices.len() * lanes_per_device()],
            reports,
            lane_waits: config.lane_waits,
            windows: config.windows,
            collectives: config.collectives,
        })
    }

    /// Whether copies from the memory of one device to that of another are
    /// direct. What cannot be copied directly must not be asked for.
    #[must_use]
    pub fn has_link(&self, from: DeviceId, to: DeviceId) -> bool {
        self.links.has(from, to)
    }

    /// Notes whose memory an address is in.
    fn owned(&mut self, device: DeviceId, address: u64) -> BasePtr {
        let base = BasePtr::of_raw(pointer(address)).expect("memory does not start at 0");
        self.owners.insert(base, device);
        base
    }

    fn order(
        &mut self,
        instruction: InstructionId,
        lane: LaneId,
        job: Job,
        after: &[LaneJob],
    ) -> Order {
        let device = lane.slot() / lanes_per_device();
        let mut users = SmallVec::<[usize; 2]>::from_elem(device, 1);
        let work = match job {
            Job::Kernel { kernel, chunk, arguments } => Work::Kernel { kernel, chunk, arguments },
            Job::Copy { source, target, region, elem_size } => {
                for array in [&source, &target] {
                    users.extend(self.owners.get(&array.base).map(|&owner| slot(owner)));
                }
                Work::Copy(self.transfers(device, source, target, &region, elem_size))
            }
            Job::Host { .. } => unreachable!("{instruction} is a host job on a device's lane"),
        };
        let memory = self.memory_events(lane, &users);
        Order { lane: lane.slot(), instruction, work, memory, after: after.into() }
    }

    fn transfers(
        &self,
        device: usize,
        source: ElementArray,
        target: ElementArray,
        region: &Region,
        elem_size: u64,
    ) -> transfer::TransferList {
        let max_pitch = self.gpus.info(self.devices[device]).max_pitch;
        let [source, target] = [source, target].map(|array| self.locate(array));
        let plan = |part| transfer::plan(&source, &target, part, elem_size, max_pitch);
        region.boxes().iter().flat_map(plan).collect()
    }

    fn locate(&self, array: ElementArray) -> Array {
        let owner = self.owners.get(&array.base);
        let place =
            owner.map_or(AddressSpace::Host, |&owner| AddressSpace::Gpu(self.devices[slot(owner)]));
        let address = array.base.as_ptr().expose_provenance() as u64;
        Array { place, address, extent: array.extent }
    }

    /// What a lane has to wait for before it uses memory of these devices that
    /// is newer than its last wait. An event that cannot be had is left out: its
    /// GPU has failed, and so will the job.
    fn memory_events(&mut self, lane: LaneId, devices: &[usize]) -> SmallVec<[Event; 1]> {
        let seen = &mut self.seen[lane.slot()];
        let mut events = SmallVec::new();
        for &device in devices {
            if let Ok(Some((number, event))) = self.memories[device].ready()
                && seen[device] < number
            {
                seen[device] = number;
                events.push(event);
            }
        }
        events
    }
}

// SAFETY: memory is what the driver has allocated and zeroed; lanes are streams, and a job is
// reported when an event behind it has come (`Submitter`).
unsafe impl Backend for CudaBackend {
    fn layout(&self) -> LaneLayout {
        self.layout
    }

    fn joins(&self) -> Option<LaneGroup> {
        self.layout.of_devices().filter(|_| self.lane_waits)
    }

    fn alloc(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        let Some(device) = memory.device() else { return self.pinned.alloc(bytes, alignment) };
        let address = self.memories[slot(device)].alloc(bytes, alignment)?;
        Ok(self.owned(device, address))
    }

    fn reserve(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        let Some(device) = memory.device() else { return self.pinned.alloc(bytes, alignment) };
        let address = self.memories[slot(device)].reserve(bytes, alignment)?;
        Ok(self.owned(device, address))
    }

    unsafe fn provide(
        &mut self,
        memory: MemoryId,
        base: BasePtr,
        bytes: Range<u64>,
    ) -> Result<(), AllocError> {
        let Some(device) = memory.device() else { return Ok(()) };
        let address = base.as_ptr().expose_provenance() as u64;
        // SAFETY: passed on.
        unsafe { self.memories[slot(device)].provide(address, &bytes) }
    }

    unsafe fn free(&mut self, memory: MemoryId, base: BasePtr) {
        let Some(device) = memory.device() else { return self.pinned.free(base) };
        self.owners.remove(&base).expect("freed memory was allocated here");
        // SAFETY: passed on; what used it has been reported, so it has ended.
        unsafe { self.memories[slot(device)].free(base.as_ptr().expose_provenance() as u64) };
    }

    unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    ) {
        let device = lane.slot() / lanes_per_device();
        let Some(host_lane) = lane.slot().checked_sub(self.seen.len()) else {
            let order = self.order(instruction, lane, job, after);
            self.reports.expect_one();
            return self.queues[device].send(Message::Order(order));
        };
        let host_lane = u16::try_from(host_lane).expect("lane slots come from lane ids");
        // SAFETY: passed on.
        unsafe { self.host.enqueue(LaneId::from_slot(host_lane), instruction, job, after) };
    }

    fn poll(&mut self, out: &mut Vec<Completion>) {
        self.reports.take(out);
        self.host.poll(out);
    }

    fn cancel(&mut self) {
        self.reports.cancel();
        self.host.cancel();
    }

    fn is_quiet(&self) -> bool {
        self.reports.is_quiet() && self.host.is_quiet()
    }

    fn windows(&mut self) -> Option<Result<Box<dyn DeviceWindows>, WindowError>> {
        Some(self.make_windows())
    }

    fn collectives(&mut self) -> Option<Result<Box<dyn DeviceCollectives>, WindowError>> {
        Some(self.make_collectives())
    }

    fn time_jobs(&mut self, clock: Clock) {
        self.queues.iter().for_each(|queue| queue.send(Message::Time(clock.clone())));
        self.host.time_jobs(clock);
    }
}

impl CudaBackend {
    fn make_windows(&self) -> Result<Box<dyn DeviceWindows>, WindowError> {
        let most = CudaWindows::MOST;
        if self.devices.len() > most {
            return Err(format!("there are more than {most} GPUs per node"));
        }
        let of_gpu = |(&gpu, memory): (&Gpu, &GpuMemory)| {
            (gpu, self.gpus.info(gpu).max_pitch, memory.fence().clone())
        };
        let gpus = self.devices.iter().zip(&self.memories).map(of_gpu);
        let windows = CudaWindows::new(self.gpus.driver(), self.windows, gpus);
        let windows = windows.map_err(|error| error.to_string())?;
        self.queues.iter().for_each(|queue| queue.send(Message::Hurry));
        Ok(Box::new(windows))
    }

    fn make_collectives(&self) -> Result<Box<dyn DeviceCollectives>, WindowError> {
        if !self.links.is_complete() {
            return Err("not all of its GPUs reach each other's memory".to_owned());
        }
        let (nccl, driver, gpu) = (self.gpus.nccl()?, self.gpus.driver(), self.devices[0]);
        let memory = (gpu, self.gpus.info(gpu).max_pitch, self.memories[0].fence().clone());
        let collectives = CudaCollectives::new(driver, nccl, self.collectives, memory);
        Ok(Box::new(collectives.map_err(|error| error.to_string())?))
    }
}

fn slot(device: DeviceId) -> usize {
    usize::try_from(device.index()).expect("device counts are small")
}

#[cfg(test)]
mod tests;
