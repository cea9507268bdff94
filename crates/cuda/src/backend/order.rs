//! What a GPU's thread is told, and what it shares with its caller.

use std::sync::Arc;

use celerity_executor::{Arguments, Clock, DeviceKernel, LaneJob};
use celerity_idag::InstructionId;
use celerity_regions::Box3;
use smallvec::SmallVec;

use super::CudaConfig;
use super::lane::Lanes;
use super::reports::Reports;
use crate::driver::{Event, Gpu};
use crate::gpus::Gpus;
use crate::transfer::TransferList;

/// What a GPU's thread is told.
pub(super) enum Message {
    /// A job.
    Order(Order),
    /// From now on, jobs are timed.
    Time(Clock),
    /// From now on, others than lanes may wait for jobs: what goes to another process from a GPU's memory.
    Hurry,
    /// There will be no more jobs.
    Stop,
}

/// A job for one of a device's lanes.
pub(super) struct Order {
    /// Which of the node's lanes.
    pub(super) lane: usize,
    pub(super) instruction: InstructionId,
    pub(super) work: Work,
    /// Events of memory that has to be ready.
    pub(super) memory: SmallVec<[Event; 1]>,
    /// Jobs of other lanes that have to end before.
    pub(super) after: SmallVec<[LaneJob; 2]>,
}

pub(super) enum Work {
    Kernel { kernel: Arc<dyn DeviceKernel>, chunk: Box3, arguments: Arguments },
    Copy(TransferList),
}

/// What the threads of a node's GPUs share.
pub(super) struct Setup<'s> {
    pub(super) gpus: &'s Arc<Gpus>,
    pub(super) devices: &'s [Gpu],
    pub(super) config: &'s CudaConfig,
    pub(super) lanes: &'s Arc<Lanes>,
    pub(super) reports: &'s Arc<Reports>,
}
