//! The caller's end of a GPU's thread.

use std::sync::Arc;
use std::thread::JoinHandle;

use celerity_executor::{Arguments, Clock, DeviceKernel, LaneJob};
use celerity_idag::InstructionId;
use celerity_regions::Box3;
use crossbeam::channel::{Sender, unbounded};
use smallvec::SmallVec;

use super::CudaConfig;
use super::lane::Lanes;
use super::reports::Reports;
use super::submitter::Submitter;
use crate::driver::{DriverError, Event, Gpu};
use crate::gpus::Gpus;
use crate::transfer::Transfers;

/// What a GPU's thread is told.
pub(super) enum Message {
    /// A job.
    Order(Order),
    /// From now on, jobs are timed.
    Time(Clock),
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
    Copy(Transfers),
}

/// What the threads of a node's GPUs share.
pub(super) struct Setup<'s> {
    pub(super) gpus: &'s Arc<Gpus>,
    pub(super) devices: &'s [Gpu],
    pub(super) config: &'s CudaConfig,
    pub(super) lanes: &'s Arc<Lanes>,
    pub(super) reports: &'s Arc<Reports>,
}

/// A GPU's thread, which ends when this is dropped: after everything that is on
/// the GPU.
pub(super) struct DeviceQueue {
    inbox: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceQueue {
    pub(super) fn start(setup: &Setup<'_>, device: usize) -> Result<Self, DriverError> {
        let (inbox, messages) = unbounded();
        let submitter = Submitter::new(setup, device, messages);
        let gpu = setup.devices[device];
        let thread = std::thread::Builder::new()
            .name(format!("celerity-gpu-{}", gpu.slot()))
            .spawn(move || submitter.run())
            .map_err(|error| DriverError::NoThread { reason: error.to_string() })?;
        Ok(Self { inbox, thread: Some(thread) })
    }

    pub(super) fn send(&self, message: Message) {
        self.inbox.send(message).expect("the thread ends after this queue");
    }
}

impl Drop for DeviceQueue {
    fn drop(&mut self) {
        // A closed channel means that the thread is gone already.
        drop(self.inbox.send(Message::Stop));
        if let Some(thread) = self.thread.take() {
            // It catches what code of users panics with.
            drop(thread.join());
        }
    }
}
