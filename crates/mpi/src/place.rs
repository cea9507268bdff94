//! All processes that MPI has started as a network for runs: one node each.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use celerity_executor::{Communicator, CpuPool, Network, RunError, Waker, available_cores};
use mpi::ffi;

use crate::error::StartError;
use crate::process::initialise;
use crate::raw::{Comm, byte, check, count, processor_name};
use crate::start::{MpiOptions, start};

/// The cluster of all processes that MPI has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiNetwork {
    options: MpiOptions,
    rank: usize,
    nodes: usize,
    /// The ranks on this host, in ascending order.
    neighbours: Vec<usize>,
    /// How many of them may run on the very cores that this one may run on.
    sharers: usize,
}

/// Room for a host's name.
const NAME_LEN: usize = 256;

/// Room for a bit per core of a host.
const CORES_LEN: usize = 128;

/// What processes tell each other of themselves.
const HOST_LEN: usize = NAME_LEN + CORES_LEN;

impl MpiNetwork {
    /// Initialises MPI if the program has not, and looks around. Collective: it
    /// returns once all processes have called it.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn join(options: MpiOptions) -> Result<Self, StartError> {
        initialise(options.threads)?;
        let world = Comm::duplicate_world()?;
        let (rank, nodes) = world.place()?;
        world.free()?;
        let hosts = all_hosts(nodes)?;
        let name = |rank: usize| &hosts[rank][..NAME_LEN];
        let neighbours = (0..nodes).filter(|&other| name(other) == name(rank)).collect();
        let sharers = hosts.iter().filter(|&host| *host == hosts[rank]).count();
        Ok(Self { options, rank, nodes, neighbours, sharers })
    }

    /// This process's place among those on its host, and how many there are.
    #[must_use]
    pub fn place_on_host(&self) -> (usize, usize) {
        let place = self.neighbours.iter().position(|&rank| rank == self.rank);
        (place.expect("a process is on its own host"), self.neighbours.len())
    }
}

/// This process's host, and a bit for each core of it that the calling thread may run on;
/// none if the system does not tell.
fn this_host() -> Result<[u8; HOST_LEN], StartError> {
    let mut host = [0; HOST_LEN];
    let name = processor_name()?;
    let len = name.len().min(NAME_LEN);
    host[..len].copy_from_slice(&name.as_bytes()[..len]);
    for core in available_cores().unwrap_or_default() {
        if let Some(byte) = host[NAME_LEN..].get_mut(core / 8) {
            *byte |= 1 << (core % 8);
        }
    }
    Ok(host)
}

/// The host of each process, with cores.
fn all_hosts(nodes: usize) -> Result<Vec<[u8; HOST_LEN]>, StartError> {
    let mine = this_host()?;
    let mut all = vec![[0; HOST_LEN]; nodes];
    // SAFETY: every process sends `HOST_LEN` bytes, and has room for those of all.
    let code = unsafe {
        ffi::MPI_Allgather(
            mine.as_ptr().cast(),
            count(HOST_LEN),
            byte(),
            all.as_mut_ptr().cast(),
            count(HOST_LEN),
            byte(),
            ffi::RSMPI_COMM_WORLD,
        )
    };
    check("MPI_Allgather", code)?;
    Ok(all)
}

impl Network for MpiNetwork {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn local(&self) -> Range<usize> {
        self.rank..self.rank + 1
    }

    /// All of this host, unless the launcher has dealt cores to them.
    fn sharers_of_cores(&self) -> usize {
        self.sharers
    }

    fn connect(
        &self,
        mut wakers: Vec<Waker>,
        _: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        let waker = wakers.pop().expect("this process has a node");
        let end = start(&self.options, waker);
        let end = end.map_err(|error| RunError::Start { what: error.to_string() })?;
        Ok(vec![Box::new(end)])
    }
}
