//! Bringing a cluster up: every process makes its node, all at the same time.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_executor::Waker;

use crate::communicator::MpiCommunicator;
use crate::error::StartError;
use crate::liveness::{Door, SideChannel};
use crate::network::Network;
use crate::process::{Access, ThreadLevel};
use crate::raw::{self, Comm};

/// How a node takes part. All nodes must be given the same, but for `threads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiOptions {
    /// Which threads call MPI. `Serialized` unless the program calls it as well,
    /// on its own threads, while a run is under way: then `Multiple`.
    pub threads: ThreadLevel,
    /// After how much silence a node counts as dead: 10 s.
    pub peer_timeout: Duration,
    /// Under which name or address the others reach `N0`, if not by the name
    /// that MPI knows its machine by.
    pub hub_host: Option<String>,
    /// Bytes per message, at most: 1 GiB, since MPI counts in 31 bits. Larger
    /// payloads are sent in pieces. Tests lower it.
    pub max_message: u64,
    /// Tags to use, at most: all that MPI has. Tests lower it.
    pub max_tags: u64,
}

impl Default for MpiOptions {
    fn default() -> Self {
        Self {
            threads: ThreadLevel::Serialized,
            peer_timeout: Duration::from_secs(10),
            hub_host: None,
            max_message: 1 << 30,
            max_tags: u64::MAX,
        }
    }
}

/// This process's end of a cluster of all processes that MPI has started, one
/// node each; `N0` is rank 0. Initialises MPI if the program has not, and leaves
/// it initialised until the process exits.
///
/// Collective: it returns once all processes have called it. `wake` is called
/// from a thread of its own when another node has aborted or died; for anything
/// else the end must be polled.
///
/// # Errors
/// [`StartError`]. If the side channel does not come up, all processes get one.
pub fn start(options: &MpiOptions, wake: Waker) -> Result<MpiCommunicator, StartError> {
    let access = Access::new(options.threads)?;
    let comms = (Comm::duplicate_world()?, Comm::duplicate_world()?);
    let side = match side_channel(comms.0, options, wake) {
        Ok(side) => side,
        Err(error) => {
            // All processes get here.
            comms.0.free()?;
            comms.1.free()?;
            return Err(error);
        }
    };
    let network = Network::new(comms, options.max_message, options.max_tags)?;
    Ok(MpiCommunicator::new(network, side, options.peer_timeout, access))
}

/// Where the hub is, as it tells the others.
struct Address {
    token: u64,
    /// 0 if it could not open one.
    port: u16,
    host: String,
}

/// Room for an address: token, port, length of the host's name, name.
const ADDRESS_LEN: usize = 512;

impl Address {
    fn write(&self) -> [u8; ADDRESS_LEN] {
        let mut bytes = [0; ADDRESS_LEN];
        bytes[..8].copy_from_slice(&self.token.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.port.to_le_bytes());
        let host = &self.host.as_bytes()[..self.host.len().min(ADDRESS_LEN - 12)];
        let len = u16::try_from(host.len()).expect("it fits into an address");
        bytes[10..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..12 + host.len()].copy_from_slice(host);
        bytes
    }

    fn read(bytes: &[u8; ADDRESS_LEN]) -> Self {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mut token = [0; 8];
        token.copy_from_slice(&bytes[..8]);
        let len = usize::from(word(10)).min(ADDRESS_LEN - 12);
        let host = String::from_utf8_lossy(&bytes[12..12 + len]).into_owned();
        Self { token: u64::from_le_bytes(token), port: word(8), host }
    }

    /// Names to try, the likeliest first.
    fn hosts(self, options: &MpiOptions, here: &str) -> Vec<String> {
        match &options.hub_host {
            Some(_) => vec![self.host],
            None if self.host == here => vec!["127.0.0.1".to_owned(), self.host],
            None => vec![self.host],
        }
    }
}

fn side_channel(comm: Comm, options: &MpiOptions, wake: Waker) -> Result<SideChannel, StartError> {
    let (rank, nodes) = comm.place()?;
    if nodes == 1 {
        return SideChannel::alone(wake).map_err(|what| failed(options, what));
    }
    let here = raw::processor_name()?;
    let mut door = Err("only N0 has one".to_owned());
    let mut address = [0; ADDRESS_LEN];
    if rank == 0 {
        let token = RandomState::new().hash_one(&here);
        door = open_door(options, token);
        let port = door.as_ref().map_or(0, |(_, port)| *port);
        let host = options.hub_host.clone().unwrap_or_else(|| here.clone());
        address = Address { token, port, host }.write();
    }
    comm.broadcast(&mut address)?;
    let address = Address::read(&address);
    let timeout = options.peer_timeout;
    let side = match address.port {
        0 => Err(door.err().unwrap_or_default()),
        _ if rank == 0 => door.and_then(|(door, _)| SideChannel::hub(&door, nodes, timeout, wake)),
        port => {
            let (node, token) = (NodeId::from_index(rank as u64), address.token);
            let hosts = address.hosts(options, &here);
            SideChannel::member(node, (&hosts, port, token), timeout, wake)
        }
    };
    let all_are_up = comm.lowest(u64::from(side.is_ok()))? == 1;
    match side {
        Ok(side) if all_are_up => Ok(side),
        Ok(_) => Err(failed(options, "another node could not connect".to_owned())),
        Err(what) => Err(failed(options, what)),
    }
}

fn open_door(options: &MpiOptions, token: u64) -> Result<(Door, u16), String> {
    let open = || {
        let door = Door::open(options.hub_host.as_deref(), token)?;
        let port = door.port()?;
        Ok::<_, std::io::Error>((door, port))
    };
    open().map_err(|error| format!("N0 cannot open a TCP port: {error}"))
}

fn failed(options: &MpiOptions, what: String) -> StartError {
    StartError::SideChannel { what, timeout: options.peer_timeout }
}
