//! Host objects as a program makes them, looks at them and takes them back.

use std::panic::Location;

use super::Queue;
use super::asking::Asking;
use crate::error::{Error, Result};
use crate::fence::ObjectFence;
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

    /// Asks for a clone of a host object's value as it is at this point of the program: behind all
    /// earlier tasks with the object, and before all later ones. Every node must ask, and every
    /// node gets its own value. Returns at once; the program waits for the fence, or awaits it.
    ///
    /// The runtime clones the value on a thread that copies and kernels share, so `T::clone` must
    /// not block. If it panics, the run ends with an error that names the object.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let before = celerity::run(|queue| {
    ///     let log = queue.host_object(vec!["begin"]);
    ///     queue.host_task("note").once(log.sequential(), |log| log.push("note"))?;
    ///     let before = queue.fence_object(&log)?;
    ///     queue.host_task("end").once(log.sequential(), |log| log.push("end"))?;
    ///     before.wait()
    /// })?;
    /// assert_eq!(before, ["begin", "note"]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Declare`] with [`UnknownObject`](crate::DeclareError::UnknownObject) if the object
    /// has been taken, [`Error::ForeignObject`] if it is of another run or node, the run's first
    /// error if it has failed.
    #[track_caller]
    pub fn fence_object<T: Clone + Send + 'static>(
        &self,
        object: &HostObject<T>,
    ) -> Result<ObjectFence<T>> {
        let location = Location::caller();
        self.ask_clone(object, Asking { act: "fence on", node: None, location })
    }

    pub(super) fn ask_clone<T: Clone + Send + 'static>(
        &self,
        object: &HostObject<T>,
        asking: Asking,
    ) -> Result<ObjectFence<T>> {
        let arrival = self.ask_object(object, |cell| cell.borrow_mut().clone(), asking)?;
        Ok(ObjectFence::new(arrival, object.name()))
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
        queue.frontend.refuse_in_engine("take a host object back")?;
        let asking = Asking { act: "take", node: None, location };
        let mut arrival = queue.ask_object(&self, |cell| cell.take(), asking)?;
        queue.frontend.end_object(self.id());
        let taken = arrival.wait(|| format!("wait for {}", self.name()))?;
        taken.flatten().ok_or_else(|| Error::ObjectAbandoned { object: self.name() })
    }
}
