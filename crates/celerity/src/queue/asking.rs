//! How values leave the runtime: tasks that hand a copy of a part of a buffer, or what is made of
//! a host object, to the program. Fences, captures and taking an object back are made of these.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;

use celerity_executor::{HostFunction, Payload};
use celerity_regions::Subrange;
use celerity_tdag::{Access, Mapper, SideEffectOrder, Work};

use super::{LoweredTask, Queue};
use crate::access::{Lowered, Lowering, Settling};
use crate::arrival::{Arrival, promise};
use crate::buffer::{Buffer, Element};
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::object::{HostObject, ObjectCell};
use crate::origin::Origin;
use crate::range::to_box;

/// By which words, for which node, and where in the source something is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// As in "fence on": what the task is called, with the name of the buffer or object.
    pub(super) act: &'static str,
    /// The node that gets it; every node gets its own if there is none.
    pub(super) node: Option<usize>,
    pub(super) location: &'static Location<'static>,
}

impl Asking {
    /// A task for every node is a fence. One for a node is a host task, as data then goes to that
    /// node alone.
    fn work(&self, origin: &Origin<'_>) -> Result<Work> {
        let nodes = origin.frontend.nodes();
        match self.node {
            None => Ok(Work::Fence),
            Some(node) if node < nodes => Ok(Work::HostOnce { node: node as u64 }),
            Some(node) => {
                let task = origin.describe();
                Err(Error::NoSuchNode { task, node, nodes })
            }
        }
    }
}

impl Queue {
    /// Asks for a copy of a part of a buffer. On nodes that it is not asked for, nothing arrives.
    ///
    /// # Errors
    /// As submitting a task; [`Error::NoSuchNode`].
    pub(super) fn ask_part<T: Element, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
        part: Subrange<D>,
        asking: Asking,
    ) -> Result<Fence<T, D>> {
        let name = format!("{} {}", asking.act, buffer.name());
        let origin = self.origin(name.into(), asking.location);
        let work = asking.work(&origin)?;
        let mut lowering = Lowering::new(&origin);
        let region = to_box(part);
        lowering.push_read(buffer, Mapper::fixed(region))?;
        let Lowered { accesses, settling, .. } = lowering.finish();
        if region.is_empty() {
            return Ok(Fence::ready(&self.frontend, buffer.name(), part, Vec::new()));
        }
        let (fence, copy) = Fence::pending(&self.frontend, buffer.name(), &region);
        LoweredTask { origin, work, accesses, settling }.submit(Payload::Host(copy))?;
        Ok(fence)
    }

    /// Asks for what `make` makes of a host object, behind all earlier tasks with it. Otherwise as
    /// [`ask_part`](Self::ask_part).
    ///
    /// # Errors
    /// As submitting a task; [`Error::NoSuchNode`].
    pub(super) fn ask_object<T: Send + 'static, V: Send + 'static>(
        &self,
        object: &HostObject<T>,
        make: impl FnOnce(Arc<ObjectCell<T>>) -> V + Send + 'static,
        asking: Asking,
    ) -> Result<Arrival<V>> {
        let name = format!("{} {}", asking.act, object.name());
        let origin = self.origin(name.into(), asking.location);
        if !object.belongs_to(&self.frontend) {
            return Err(object.foreign(origin.describe(), SideEffectOrder::Sequential));
        }
        let work = asking.work(&origin)?;
        let (promise, arrival) = promise(&self.frontend);
        let (cell, frontend) = (object.cell().clone(), Arc::downgrade(&self.frontend));
        let function = HostFunction::delivering(move |_| {
            // What is made may be a clone, by a function of the user's.
            match catch_unwind(AssertUnwindSafe(|| make(cell))) {
                // Who waits may be gone: then the value is dropped here.
                Ok(value) => promise.keep(value),
                Err(panic) => {
                    if let Some(frontend) = frontend.upgrade() {
                        frontend.keep_until_failure(promise);
                    }
                    resume_unwind(panic)
                }
            }
            Ok(())
        });
        let accesses = vec![Access::object(object.id(), SideEffectOrder::Sequential)];
        let settling = Settling::default();
        LoweredTask { origin, work, accesses, settling }.submit(Payload::Host(function))?;
        Ok(arrival)
    }
}
