//! Host objects as a program makes them and takes them back.

use std::panic::Location;
use std::sync::mpsc;

use celerity_executor::{HostFunction, Payload};
use celerity_tdag::{Access, SideEffectOrder, Work};

use super::{LoweredTask, Queue};
use crate::access::Settling;
use crate::error::{Error, Result};
use crate::object::HostObject;

impl Queue {
    /// A new host object with this node's value: see [`HostObject`]. `queue.host_object(())` is one
    /// without a value, which only orders tasks.
    ///
    /// Every node must make the same objects in the same order. Returns at once.
    #[must_use]
    pub fn host_object<T: Send + 'static>(&self, value: T) -> HostObject<T> {
        HostObject::new(&self.frontend, value)
    }
}

impl<T: Send + 'static> HostObject<T> {
    /// Waits for all submitted tasks with the object, ends it, and gives this node's value back.
    /// Every node must call this at the same point of the program. Other handles are of no use
    /// afterwards: a task that names one is refused.
    ///
    /// # Errors
    /// [`Error::Declare`] with [`UnknownObject`](crate::DeclareError::UnknownObject) if it has been
    /// taken before, [`Error::ForeignObject`] if it is of another run or node, the run's first
    /// error if it has failed, and [`RunError::Misplaced`](crate::RunError::Misplaced) in a range
    /// mapper.
    #[track_caller]
    pub fn take(self, queue: &Queue) -> Result<T> {
        let location = Location::caller();
        queue.frontend.refuse_in_mappers("take a host object back")?;
        let origin = queue.origin(format!("take {}", self.name()).into(), location);
        if !self.belongs_to(&queue.frontend) {
            return Err(self.foreign(origin.describe(), SideEffectOrder::Sequential));
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let cell = self.cell().clone();
        let give = HostFunction::new(move |_| {
            // Who waits may be gone: then the value is dropped here.
            drop(sender.send(cell.take()));
            Ok(())
        });
        let accesses = vec![Access::object(self.id(), SideEffectOrder::Sequential)];
        let settling = Settling::default();
        LoweredTask { origin, work: Work::Fence, accesses, settling }
            .submit(Payload::Host(give))?;
        queue.frontend.end_object(self.id());
        let abandoned = || Error::ObjectAbandoned { object: self.name() };
        let given = receiver.recv().map_err(|_| match queue.frontend.error() {
            Some(error) => error.into(),
            None => abandoned(),
        })?;
        given.ok_or_else(abandoned)
    }
}
