//! The caller's end of a GPU's thread.

use std::thread::JoinHandle;

use crossbeam_channel::{Sender, unbounded};

use super::order::{Message, Setup};
use super::submitter::Submitter;
use crate::driver::DriverError;

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
