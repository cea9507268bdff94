//! What the checks need beside the cluster under test: plain MPI, from the same
//! processes.

use std::sync::Arc;

use celerity_mpi::{MpiCommunicator, MpiOptions, start};
use mpi::ffi;

/// All processes that the launcher has started.
pub(crate) struct World {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl World {
    /// A failed check ends all processes: the others wait for this one.
    pub(crate) fn new() -> Self {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            default(info);
            // SAFETY: ends the process.
            unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 101) };
        }));
        // Initialises MPI.
        drop(start(&MpiOptions::default(), Arc::new(|| {})).expect("a cluster comes up"));
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised.
        unsafe {
            ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &raw mut rank);
            ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &raw mut size);
        }
        let number = |number| usize::try_from(number).expect("not negative");
        Self { rank: number(rank), size: number(size) }
    }

    /// This node's end of a new cluster.
    pub(crate) fn connect(&self, options: &MpiOptions) -> MpiCommunicator {
        start(options, Arc::new(|| {})).expect("a cluster comes up")
    }

    /// Waits for all processes.
    pub(crate) fn meet(&self) {
        // SAFETY: MPI is initialised, and nobody else calls it now.
        unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
    }

    /// Prints, once, what has passed.
    pub(crate) fn report(&self, passed: &[String]) {
        if self.rank == 0 {
            passed.iter().for_each(|name| println!("test {} nodes: {name} ... ok", self.size));
        }
        self.count(passed.len());
    }

    /// Prints, once, how much has passed.
    pub(crate) fn count(&self, passed: usize) {
        if self.rank == 0 {
            println!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored");
        }
    }
}
