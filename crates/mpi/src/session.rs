//! The cluster as a property of the process: all processes that the launcher has started,
//! three communicators of our own, and the side channel. The first run brings it up, later ones
//! find it, and the end of the process takes it down.
//!
//! No step waits for ever. Until the side channel is there, a deadline bounds each; from then
//! on the side channel says who is dead, who does not come, and who has ended. So before a run
//! begins, and before MPI is finalised, all processes say on the side channel that they are
//! there; and whatever MPI does until then is not blocking.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, RandomState};
use std::mem::forget;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_executor::{CommunicationError, RunError, Warning, WarningSink};
use mpi::ffi::MPI_Request;

use crate::card::{Address, Card, read_text, text};
use crate::deadline::Deadline;
use crate::error::StartError;
use crate::failure;
use crate::liveness::{Door, Impatience, Loss, Obstacle, SideChannel};
use crate::lost;
use crate::options::MpiOptions;
use crate::polling::{FINALISE_PATIENCE, REQUEST_PATIENCE};
use crate::process::{self, initialise};
use crate::raw::{self, Comm, TypedMemory};

/// A node's communicators of MPI.
#[derive(Clone, Copy)]
pub(crate) struct Comms {
    /// For small messages and meetings.
    pub(crate) control: Comm,
    /// For payloads.
    pub(crate) data: Comm,
    /// For collective operations.
    pub(crate) collective: Comm,
}

/// This process among all others.
pub(crate) struct Session {
    rank: usize,
    /// What all processes have said of themselves, by rank.
    cards: Vec<Card>,
    comms: Comms,
    side: SideChannel,
    /// Runs that this process has come to, or refused to.
    runs: AtomicU64,
    /// Who is warned at the end, and after how long.
    watchdog: Duration,
    warnings: WarningSink,
}

static SESSION: Mutex<Option<Arc<Session>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Arc<Session>>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the run that is under way, or was last; `None` before the first.
pub(crate) fn run_under_way() -> Option<u64> {
    Some(lock().as_ref()?.runs.load(Ordering::Acquire))
}

impl Session {
    /// That of this process; brought up if there is none. Then it is collective.
    ///
    /// # Errors
    /// If MPI cannot be used, if not all processes come in time, or if one of them cannot
    /// take part.
    pub(crate) fn of_process(options: &MpiOptions) -> Result<Arc<Self>, StartError> {
        let mut session = lock();
        if lost::is_lost() {
            return Err(why_lost(session.as_deref()));
        }
        if let Some(session) = &*session {
            return Ok(session.clone());
        }
        let deadline = Deadline::new(options.start_timeout);
        initialise(options.threads, &deadline)?;
        end_with_process();
        let made = Arc::new(bring_up(options, &deadline)?);
        Ok(session.insert(made).clone())
    }

    pub(crate) fn node(&self) -> NodeId {
        NodeId::from_index(self.rank as u64)
    }

    pub(crate) fn cards(&self) -> &[Card] {
        &self.cards
    }

    pub(crate) fn comms(&self) -> Comms {
        self.comms
    }

    pub(crate) fn side(&self) -> &SideChannel {
        &self.side
    }

    /// Gives all processes the words that `N0` has. Collective, but does not block for ever; comes
    /// between two runs, or before anything else of one.
    ///
    /// # Errors
    /// If MPI fails, if a process is lost, or if not all come within `timeout`.
    pub(crate) fn share(&self, words: &mut [u64], timeout: Duration) -> Result<(), StartError> {
        let mut shared: Box<[u64]> = (&*words).into();
        let bytes = std::mem::size_of_val(&*shared);
        let span = TypedMemory::of_bytes(shared.as_mut_ptr().cast(), bytes);
        // SAFETY: the box stays where it is until the request has completed, or for ever, and is as
        // long as the span says.
        let request = unsafe { self.comms.control.start_broadcast(span, 0)? };
        let watched = Some((self.node(), &self.side));
        if let Err(error) = complete(request, "MPI_Ibcast", &Deadline::new(timeout), watched) {
            forget(shared);
            return Err(error);
        }
        words.copy_from_slice(&shared);
        Ok(())
    }

    /// The number of the next run: the first has 1. All processes count alike.
    pub(crate) fn next_run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Why a run does not begin, as the error of that run. If a node is lost, so is MPI.
    pub(crate) fn error_of(&self, run: u64, obstacle: Obstacle) -> RunError {
        match obstacle {
            Obstacle::Stopped(error) => failure::read(&error),
            Obstacle::Ended { node, runs } => {
                let made = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
                let what = format!(
                    "its process has ended after {made}, and this is run {run}; all processes \
                     must make as many"
                );
                RunError::NotStarted { node, what }
            }
            Obstacle::Lost(loss) => {
                lost::lose();
                lost(self.node(), loss)
            }
        }
    }
}

/// What a loss is to `node`.
pub(crate) fn error_of_loss(node: NodeId, loss: Loss) -> CommunicationError {
    match loss {
        Loss::Died { node, sign } => CommunicationError::Died { node, sign },
        Loss::GivenUp { by, sign } => CommunicationError::GivenUp { node, by, sign },
    }
}

/// Why MPI is lost: who has died, if the session knows.
fn why_lost(session: Option<&Session>) -> StartError {
    let loss = session.and_then(|session| Some(lost(session.node(), session.side.lost()?)));
    loss.map_or(StartError::Lost, StartError::from)
}

fn lost(node: NodeId, loss: Loss) -> RunError {
    RunError::Communication { node, error: Box::new(error_of_loss(node, loss)) }
}

/// All processes meet: they make communicators, say who they are, and connect to `N0`.
fn bring_up(options: &MpiOptions, deadline: &Deadline) -> Result<Session, StartError> {
    let control = duplicate(Comm::world(), deadline)?;
    let (rank, nodes) = control.place()?;
    let mut card = Card::of_this_process()?;
    let door = (rank == 0 && nodes > 1).then(|| open_door(options, &mut card));
    let cards = gather(control, card.write(), nodes, deadline, None)?;
    let cards: Vec<_> = cards.iter().map(Card::read).collect();
    let data = duplicate(control, deadline)?;
    let collective = duplicate(control, deadline)?;
    let side = connect(options, deadline, (rank, &cards), door);
    // Some may be connected, and others not: only MPI reaches all of them.
    let trouble = side.as_ref().err().map_or("", String::as_str);
    let watched = side.as_ref().ok().map(|side| (NodeId::from_index(rank as u64), side));
    let troubles = gather(control, text(trouble), nodes, deadline, watched)?;
    let troubles = (0..).zip(troubles.iter().map(read_text));
    if let Some((node, what)) = troubles.into_iter().find(|(_, what)| !what.is_empty()) {
        let node = NodeId::from_index(node);
        return Err(RunError::NotStarted { node, what }.into());
    }
    let side = side.expect("without trouble on any node there is none on this one");
    let (runs, watchdog) = (AtomicU64::new(0), options.watchdog);
    let warnings = options.warnings.clone();
    let comms = Comms { control, data, collective };
    Ok(Session { rank, cards, comms, side, runs, watchdog, warnings })
}

/// The hub's door, which its card tells of.
fn open_door(options: &MpiOptions, card: &mut Card) -> Result<Door, String> {
    let token = RandomState::new().hash_one(&card.host);
    let open = || {
        let door = Door::open(options.hub_host.as_deref(), token)?;
        let port = door.port()?;
        Ok::<_, std::io::Error>((door, port))
    };
    let (door, port) = open().map_err(|error| format!("it cannot open a TCP port: {error}"))?;
    let host = options.hub_host.clone().unwrap_or_else(|| card.host.clone());
    card.address = Some(Address { host, port, token });
    Ok(door)
}

/// This process's end of the side channel.
///
/// # Errors
/// In words, what keeps it from having one.
fn connect(
    options: &MpiOptions,
    deadline: &Deadline,
    (rank, cards): (usize, &[Card]),
    door: Option<Result<Door, String>>,
) -> Result<SideChannel, String> {
    let (node, hub) = (NodeId::from_index(rank as u64), &cards[0]);
    // Half of what is left, as all others must hear of a failure in time, too.
    let timeout = options.peer_timeout.min(deadline.left() / 2);
    let side = match (door, &hub.address) {
        _ if cards.len() == 1 => SideChannel::alone(),
        (Some(door), _) => door.and_then(|door| SideChannel::hub(&door, cards.len(), timeout)),
        // The hub's own trouble is what counts.
        (None, None) => Err("N0 has no TCP port".to_owned()),
        (None, Some(Address { host, port, token })) => {
            let mut hosts = vec![host.clone()];
            if options.hub_host.is_none() && hub.host == cards[rank].host {
                hosts.insert(0, "127.0.0.1".to_owned());
            }
            SideChannel::member((node, cards.len()), (&hosts, *port, *token), timeout)
        }
    };
    side.map_err(|what| {
        format!(
            "the side channel, which notices dead nodes, does not come up: {what}; nodes must \
             reach a TCP port of N0, within CELERITY_PEER_TIMEOUT and half of CELERITY_START_TIMEOUT"
        )
    })
}

/// Another communicator of the same processes. Collective, but does not block for ever.
fn duplicate(comm: Comm, deadline: &Deadline) -> Result<Comm, StartError> {
    let mut made = Box::new(Comm::none());
    // SAFETY: the box stays where it is until the request has completed, or for ever.
    let request = unsafe { comm.start_duplicate(&raw mut *made)? };
    if let Err(error) = complete(request, "MPI_Comm_idup", deadline, None) {
        forget(made);
        return Err(error);
    }
    made.return_errors()?;
    Ok(*made)
}

/// What each process says, by rank. Collective, but does not block for ever.
fn gather<const N: usize>(
    comm: Comm,
    own: [u8; N],
    nodes: usize,
    deadline: &Deadline,
    side: Option<(NodeId, &SideChannel)>,
) -> Result<Vec<[u8; N]>, StartError> {
    let (own, mut all) = (Box::new(own), vec![[0; N]; nodes]);
    // SAFETY: both are as long as is said, and stay as they are until the request has
    // completed, or for ever.
    let request = unsafe { comm.start_gather(own.as_ptr(), all.as_mut_ptr().cast(), N)? };
    match complete(request, "MPI_Iallgather", deadline, side) {
        Ok(()) => Ok(all),
        Err(error) => {
            forget((own, all));
            Err(error)
        }
    }
}

/// For so long, who has left the side channel may still say why in an operation of MPI: one that has found no room for it has
/// not died.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Waits for a request, until the deadline has passed or a node has been known to be lost for [`LAST_WORDS`]; then
/// MPI is lost, and still knows the request's memory.
fn complete(
    request: MPI_Request,
    step: &'static str,
    deadline: &Deadline,
    side: Option<(NodeId, &SideChannel)>,
) -> Result<(), StartError> {
    let (start, mut silent) = (Instant::now(), None);
    loop {
        if let Some(status) = raw::test_one(request)? {
            return Ok(raw::check(step, status.MPI_ERROR)?);
        }
        if let Some((node, side)) = side
            && let Some(loss) = side.lost()
            && silent.get_or_insert_with(Instant::now).elapsed() >= LAST_WORDS
        {
            lost::lose();
            return Err(lost(node, loss).into());
        }
        if deadline.left().is_zero() {
            return Err(deadline.missed(step));
        }
        match start.elapsed() < REQUEST_PATIENCE {
            true => thread::yield_now(),
            false => thread::sleep(REQUEST_PATIENCE),
        }
    }
}

/// Takes the session down when the process ends.
fn end_with_process() {
    static REGISTERED: Once = Once::new();
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
    }
    REGISTERED.call_once(|| {
        // SAFETY: `end` is a function for the rest of the process.
        let refused = unsafe { atexit(end) };
        debug_assert_eq!(refused, 0, "the C library takes at least 32 exit handlers");
    });
}

/// The process ends. A launcher takes one that exits without finalising MPI for a crash; but
/// finalising waits for all processes, so they all say first that they want to, and say
/// goodbye afterwards. In the middle of a run there is no goodbye: others see a death.
extern "C" fn end() {
    if process::is_in_use() {
        return;
    }
    let session = lock().take();
    let finalises = process::is_ours() && !lost::is_lost();
    match session {
        Some(session) => {
            let runs = session.runs.load(Ordering::Acquire);
            let mut tell = |lasting: Duration, missing: &[_]| {
                let (node, missing) = (session.node(), missing.to_vec());
                session.warnings.warn(&Warning::Alone { node, run: None, lasting, missing });
            };
            let impatience = Impatience::new(session.watchdog, &mut tell);
            if session.side.leave(runs, finalises, impatience) {
                process::finalise(|| session.side.lost().is_some());
            } else if process::is_ours() {
                let (node, loss) = (session.node(), session.side.lost());
                let loss = loss.map(|loss| Box::new(error_of_loss(node, loss)));
                session.warnings.warn(&Warning::NotFinalised { node, loss });
            }
            session.side.part();
        }
        None if finalises => {
            let start = Instant::now();
            process::finalise(|| start.elapsed() > FINALISE_PATIENCE);
        }
        None => {}
    }
}
