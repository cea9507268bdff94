//! A node of the machine's GPUs, driven by hand.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{AnyBitPattern, NoUninit};
use celerity_cuda::{CudaBackend, CudaConfig, Gpu, Gpus};
use celerity_executor::{
    Arguments, Backend, BasePtr, Completion, CpuPool, DeviceKernel, ElementArray, Job, LaneId,
    LaneLayout, Span,
};
use celerity_idag::{AllocationId, BoundAccess, DeviceId, InstructionId, MemoryId, Placement};
use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;

/// A kernel may take so long, with everything before it.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Node {
    pub(crate) backend: CudaBackend,
    issued: u64,
    done: u64,
    completions: Vec<Completion>,
    /// When the job that ended last has run, if jobs are timed.
    pub(crate) span: Option<Span>,
}

/// An allocation that holds the elements of a box.
#[derive(Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) memory: MemoryId,
    pub(crate) array: ElementArray,
}

impl Node {
    /// With so many GPUs; more than there are stand for the first ones again.
    pub(crate) fn new(gpus: &Arc<Gpus>, devices: u16, config: &CudaConfig) -> Result<Self, String> {
        let known = u16::try_from(gpus.infos().len()).expect("few GPUs");
        let devices: Vec<_> = (0..devices).map(|slot| Gpu::from_slot(slot % known)).collect();
        let pool = CpuPool::new(1).map_err(|error| error.to_string())?;
        let backend = CudaBackend::new(gpus, &devices, config, &pool, Arc::new(|| {}));
        let backend = backend.map_err(|error| error.to_string())?;
        Ok(Self { backend, issued: 0, done: 0, completions: Vec::new(), span: None })
    }

    pub(crate) fn default(gpus: &Arc<Gpus>, devices: u16) -> Result<Self, String> {
        Self::new(gpus, devices, &CudaConfig::default())
    }

    pub(crate) fn alloc(
        &mut self,
        memory: MemoryId,
        extent: Box3,
        elem_size: u64,
    ) -> Result<Allocation, String> {
        let base = self.backend.alloc(memory, extent.volume() * elem_size, 16);
        let base = base.map_err(|error| error.to_string())?;
        Ok(Allocation { memory, array: ElementArray { base, extent } })
    }

    pub(crate) fn free(&mut self, allocation: Allocation) {
        // SAFETY: cases free what they have allocated, once and after waiting.
        unsafe { self.backend.free(allocation.memory, allocation.array.base) };
    }

    /// Issues a job, which must not touch what others on other lanes do.
    pub(crate) fn issue(&mut self, lane: u16, job: Job) {
        let instruction = InstructionId::from_index(self.issued);
        self.issued += 1;
        // SAFETY: cases keep memory until they have waited, and order what
        // touches the same memory by lanes and by waiting.
        unsafe { self.backend.enqueue(LaneId::from_slot(lane), instruction, job, &[]) };
    }

    /// Waits for everything that was issued; the first failure.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while self.done < self.issued {
            self.poll()?;
            if start.elapsed() > PATIENCE {
                return Err(format!("only {} of {} jobs have ended", self.done, self.issued));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Takes what has ended.
    pub(crate) fn poll(&mut self) -> Result<(), String> {
        self.backend.poll(&mut self.completions);
        for Completion { failure, span, .. } in self.completions.drain(..) {
            self.done += 1;
            self.span = span;
            failure.map_or(Ok(()), |how| Err(how.to_string()))?;
        }
        Ok(())
    }

    /// Copies elements and waits.
    pub(crate) fn copy(
        &mut self,
        from: Allocation,
        to: Allocation,
        elements: impl Into<Region>,
        elem_size: u64,
    ) -> Result<(), String> {
        self.issue_copy(from, to, elements, elem_size);
        self.finish()
    }

    /// Copies elements.
    pub(crate) fn issue_copy(
        &mut self,
        from: Allocation,
        to: Allocation,
        elements: impl Into<Region>,
        elem_size: u64,
    ) {
        let lane = copy_lane(from.memory.device().or(to.memory.device()).expect("a device"));
        let (source, target, region) = (from.array, to.array, elements.into());
        self.issue(lane, Job::Copy { source, target, region, elem_size });
    }

    /// Host memory with these contents.
    pub(crate) fn upload<T: NoUninit>(
        &mut self,
        memory: MemoryId,
        extent: Box3,
        contents: &[T],
    ) -> Result<Allocation, String> {
        assert_eq!(contents.len() as u64, extent.volume());
        let size = size_of::<T>() as u64;
        let host = self.alloc(MemoryId::HOST, extent, size)?;
        bytes(host, size).copy_from_slice(bytemuck::cast_slice(contents));
        if memory == MemoryId::HOST {
            return Ok(host);
        }
        let device = self.alloc(memory, extent, size)?;
        self.copy(host, device, extent, size)?;
        self.free(host);
        Ok(device)
    }

    /// The contents of an allocation.
    pub(crate) fn download<T: NoUninit + AnyBitPattern>(
        &mut self,
        from: Allocation,
    ) -> Result<Vec<T>, String> {
        let size = size_of::<T>() as u64;
        if from.memory.device().is_none() {
            let elements = bytes(from, size).chunks_exact(size_of::<T>());
            return Ok(elements.map(bytemuck::pod_read_unaligned).collect());
        }
        let host = self.alloc(MemoryId::HOST, from.array.extent, size)?;
        self.copy(from, host, from.array.extent, size)?;
        let contents = self.download(host)?;
        self.free(host);
        Ok(contents)
    }
}

/// The lane of a device's kernels: the first of two.
pub(crate) fn kernel_lane(device: u16) -> u16 {
    device * lanes_per_device()
}

fn copy_lane(device: DeviceId) -> u16 {
    let device = u16::try_from(device.index()).expect("few devices");
    (device + 1) * lanes_per_device() - 1
}

fn lanes_per_device() -> u16 {
    let lanes = LaneLayout::new(1).count() - LaneLayout::new(0).count();
    u16::try_from(lanes).expect("few lanes")
}

pub(crate) fn device_memory(device: u64) -> MemoryId {
    MemoryId::of_device(DeviceId::from_index(device))
}

/// The bytes of host memory.
pub(crate) fn bytes(allocation: Allocation, elem_size: u64) -> &'static mut [u8] {
    let length = usize::try_from(allocation.array.extent.volume() * elem_size).expect("small");
    // SAFETY: the memory is the host's and has these bytes; cases use it before
    // they free it, and from one place at a time.
    unsafe { std::slice::from_raw_parts_mut(allocation.array.base.as_ptr(), length) }
}

/// A kernel over `chunk` with whole allocations as its accesses.
pub(crate) fn kernel_job(
    kernel: Arc<dyn DeviceKernel>,
    chunk: Box3,
    accesses: &[(Allocation, Box3)],
) -> Job {
    let bound = |(allocation, may_touch): &(Allocation, Box3)| BoundAccess {
        buffer: BufferId::from_index(0),
        placement: Some(Placement {
            allocation: AllocationId::from_index(0),
            memory: allocation.memory,
            extent: allocation.array.extent,
        }),
        region: Region::from(*may_touch),
    };
    let bases: Vec<BasePtr> = accesses.iter().map(|(it, _)| it.array.base).collect();
    let mut bases = bases.into_iter();
    let accesses = accesses.iter().map(bound).collect();
    let arguments = Arguments::new(accesses, |_| bases.next());
    Job::Kernel { kernel, chunk, arguments }
}
