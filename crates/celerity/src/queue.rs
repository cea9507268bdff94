//! The queue: where a program meets the runtime. Makes buffers, fences and barriers, hands tasks
//! to its node, and owns nothing but the way there.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use celerity_executor::{Lookahead, NodeFrontend, Payload};
use celerity_regions::Subrange;
use celerity_tdag::{Access, TaskId, TaskSpec, Work};

use crate::access::Settling;
use crate::buffer::{Buffer, Element, check_element};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::log::LogLevel;
use crate::origin::Origin;
use crate::range::{IntoRange, check_dimensions};

mod asking;
mod capture;
mod host_object;
mod host_task;
#[cfg(feature = "npy")]
mod npy;
mod task;

use asking::Asking;
pub use capture::{BufferCapture, Captures, ObjectCapture, OnNode};
pub use host_task::{DistributedHostTask, HostTaskBuilder, PlacedHostTask};
#[cfg(feature = "npy")]
pub use npy::NpyElement;
pub(crate) use task::by_hand;
pub use task::{Hint, LaunchForm, LaunchSpace, TaskBuilder};

/// One node's way to submit work; [`run`](crate::run) hands it to the program.
///
/// Every node runs the same program and must submit the same tasks in the same
/// order. Submission returns at once, except that it waits while too much work
/// is outstanding.
pub struct Queue {
    frontend: Arc<NodeFrontend>,
    log_level: LogLevel,
    is_dry_run: bool,
}

impl Queue {
    pub(crate) fn new(frontend: &Arc<NodeFrontend>, config: &Config) -> Self {
        let Config { log_level, dry_run, .. } = *config;
        Self { frontend: frontend.clone(), log_level, is_dry_run: dry_run.is_some() }
    }

    fn origin(&self, name: Arc<str>, location: &'static Location<'static>) -> Origin<'_> {
        Origin {
            frontend: &self.frontend,
            log_level: self.log_level,
            name,
            location: location.into(),
        }
    }

    /// A new buffer without contents. Takes no memory until a task accesses it.
    #[must_use]
    pub fn buffer<T: Element, const D: usize>(&self, range: impl IntoRange<D>) -> Buffer<T, D> {
        const { check_dimensions(D) };
        const { check_element::<T>() };
        Buffer::new((&self.frontend, self.log_level), range.into_range())
    }

    /// A new buffer with initial contents, row-major: a `Vec` is handed over, a
    /// slice copied. Every node must pass the same contents, bit by bit: contents of up to 64 KiB
    /// are compared, larger ones if schedules are [checked](crate::Config::check), and a difference
    /// ends the run with [`RunError::ContentsDiffer`](crate::RunError::ContentsDiffer).
    ///
    /// Where devices work in the host's memory, as CPU threads that are a node's one device do,
    /// the `Vec` is the buffer's memory from then on: it is read, written and given back in its
    /// place, on each node its own. Devices with memories of their own get copies of what
    /// they use.
    ///
    /// # Errors
    /// [`Error::HostDataLength`] unless there is one value per element.
    pub fn buffer_from<T: Element, const D: usize>(
        &self,
        range: impl IntoRange<D>,
        data: impl Into<Vec<T>>,
    ) -> Result<Buffer<T, D>> {
        const { check_dimensions(D) };
        const { check_element::<T>() };
        Buffer::from_data((&self.frontend, self.log_level), range.into_range(), data.into())
    }

    /// Begins a task that runs a kernel on all devices of all nodes. The name
    /// and the caller's source line appear in errors.
    #[track_caller]
    pub fn task(&self, name: impl Into<Arc<str>>) -> TaskBuilder<'_> {
        TaskBuilder::new(self.origin(name.into(), Location::caller()))
    }

    /// Begins a task that runs a function on the host. The name and the caller's
    /// source line appear in errors.
    #[track_caller]
    pub fn host_task(&self, name: impl Into<Arc<str>>) -> HostTaskBuilder<'_> {
        HostTaskBuilder::new(self.origin(name.into(), Location::caller()))
    }

    /// Asks for a copy of a whole buffer as it is at this point of the program.
    /// Every node must ask and every node gets one, as in
    /// [`fence_part`](Self::fence_part).
    ///
    /// # Errors
    /// As [`fence_part`](Self::fence_part).
    #[track_caller]
    pub fn fence<T: Element, const D: usize>(&self, buffer: &Buffer<T, D>) -> Result<Fence<T, D>> {
        let asking = Asking { act: "fence on", node: None, location: Location::caller() };
        self.ask_part(buffer, Subrange::whole(buffer.range()), asking)
    }

    /// Asks for a copy of a part of a buffer as it is at this point of the
    /// program.
    ///
    /// A fence is a task like any other: every node must call this, at the same
    /// point of the program and for the same part, and every node gets a copy.
    /// What only node 0 does with its copy belongs under
    /// [`is_root`](Self::is_root), the fence itself does not.
    ///
    /// # Errors
    /// If the part is not inside of the buffer or holds elements that nothing
    /// has written, if the buffer belongs to another run, or if the run has
    /// failed.
    #[track_caller]
    pub fn fence_part<T: Element, const D: usize>(
        &self,
        buffer: &Buffer<T, D>,
        part: Subrange<D>,
    ) -> Result<Fence<T, D>> {
        let asking = Asking { act: "fence on", node: None, location: Location::caller() };
        self.ask_part(buffer, part, asking)
    }

    /// Starts all work that is held back to see what follows. Returns at once.
    ///
    /// Tasks whose memory has not been allocated yet are held back for a while,
    /// so that later tasks can have a say in how much is allocated (instruction-graph
    /// preprint, §4.3). Fences, barriers, host tasks and the end of a buffer let go of them. A
    /// program that waits for a *kernel* by means of its own must call this.
    pub fn flush(&self) {
        self.frontend.flush();
    }

    /// Changes how long later tasks are held back that will allocate; see
    /// [`flush`](Self::flush). The configuration says how it starts.
    pub fn set_lookahead(&self, lookahead: Lookahead) {
        self.frontend.set_lookahead(lookahead);
    }

    /// Waits until everything that was submitted so far is done, on all nodes.
    /// Every node must call it, at the same point of the program: one that waits
    /// alone ends the run with an error. [`barrier_with`](Self::barrier_with) also gives values.
    ///
    /// # Errors
    /// The run's first error, if it has failed.
    pub fn barrier(&self) -> Result<()> {
        Ok(self.frontend.barrier()?)
    }

    /// Whether this is node 0: the one to print, draw and save. In a [dry run](Self::is_dry_run),
    /// which has no results, nobody is.
    ///
    /// Only what stays on this node may depend on the answer. Tasks, fences and
    /// barriers are the whole cluster's: every node must submit the same ones in
    /// the same order. A fence or a barrier in a branch that only node 0 takes ends
    /// the run with [`RunError::Diverged`](crate::RunError::Diverged).
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// Config::default().nodes(2).run(|queue| {
    ///     let a = queue.buffer_from(4, vec![1, 2, 3, 4])?;
    ///     let contents = queue.fence(&a)?.wait()?; // on every node
    ///     if queue.is_root() {
    ///         println!("{:?}", contents.as_slice()); // on node 0
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.node() == 0 && !self.is_dry_run
    }

    /// Whether nothing is executed ([`Config::dry_run`]).
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Refuses a [dry run](Self::is_dry_run), since it has no results and `what` needs some: a
    /// comparison, say.
    ///
    /// # Errors
    /// [`Error::DryRun`] in a dry run.
    pub fn require_results(&self, what: &str) -> Result<()> {
        match self.is_dry_run {
            true => Err(Error::DryRun { what: what.to_owned() }),
            false => Ok(()),
        }
    }

    /// The index of the node that this queue belongs to: 0 to [`nodes`](Self::nodes) − 1, different on each. Use it for
    /// prints and files alone: all nodes must submit the same tasks.
    #[must_use]
    pub fn node(&self) -> usize {
        self.frontend.node().index() as usize
    }

    /// The number of nodes of the run, at least 1; the same on all of them.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.frontend.nodes()
    }

    /// The number of devices of this node, at least 1. Nodes may have different numbers.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.frontend.devices()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of {})", self.frontend.node(), self.nodes())
    }
}

/// A task that lacks only its payload.
struct LoweredTask<'q> {
    origin: Origin<'q>,
    work: Work,
    accesses: Vec<Access>,
    settling: Settling,
}

impl LoweredTask<'_> {
    fn submit(self, payload: Payload) -> Result<TaskId> {
        let Self { origin, work, accesses, mut settling } = self;
        let Origin { frontend, log_level, name, location } = origin;
        settling.before(frontend)?;
        let spec =
            TaskSpec { name: name.clone(), work, accesses, location: Some(location.clone()) };
        let task = frontend.submit(spec, payload)?;
        settling.after();
        let node = frontend.node();
        log_level.print(LogLevel::Trace, || format!("{node}: {task} \"{name}\" at {location}"));
        // All nodes find the same; one of them says so.
        for warning in frontend.take_warnings().iter().filter(|_| node.index() == 0) {
            log_level.print(LogLevel::Warn, || format!("warning: {warning}"));
        }
        Ok(task)
    }
}
