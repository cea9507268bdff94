//! How the members of an operation among some nodes come to communicators of their own: made by them alone,
//! the first time that such a set is needed, and kept until MPI is finalised.
//!
//! `MPI_Comm_create_group` waits for all members, and who waits in it does nothing else for the run. So a
//! node calls it when it knows that all others do so at once: it tells them that it has come, and calls it
//! when all of them have told. It does so for one set at a time, in the order in which it has come to them.
//! That is the order of tasks, so of all sets that nodes wait for, the one of the earliest task has no member
//! that waits for another one; and nobody is in the call whose peers are not on their way there.
//!
//! What members have told they keep to, even if the run is aborted meanwhile: either all of them make the
//! communicators, or none does. If one dies on the way, MPI cannot be left any more: then all processes are ended,
//! with a message.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_cpd::Members;
use celerity_executor::{CollectiveExchange, CommunicationError};
use celerity_tdag::TaskId;

use crate::deadline::Deadline;
use crate::error::MpiError;
use crate::liveness::Loss;
use crate::matching::PeerMistake;
use crate::meeting::Purpose;
use crate::membership::MemberComms;
use crate::operation::CAME_LEN;
use crate::raw::{Comm, rank};
use crate::session::Session;

/// The communicators that there are: each process has those of the sets that it is a member of. They are
/// kept, as those of groups are: to free one is collective.
static MADE: Mutex<BTreeMap<Members, MemberComms>> = Mutex::new(BTreeMap::new());

/// Those that earlier runs have made.
pub(crate) fn made() -> BTreeMap<Members, MemberComms> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The sets of nodes that this node waits for.
pub(crate) struct Founders {
    place: (NodeId, usize),
    /// All processes.
    parent: Comm,
    /// Knows who has died.
    session: Arc<Session>,
    /// After so much silence a node counts as dead.
    patience: Duration,
    /// In the order in which this node has come to them.
    waiting: VecDeque<Founding>,
    /// Who has told of coming to a task, and for which operation, by hash.
    came: BTreeMap<TaskId, Vec<(NodeId, u64)>>,
    /// The latest task that this node has come to: it does not come to earlier ones any more.
    latest: Option<TaskId>,
}

/// Members that have no communicator yet.
pub(crate) struct Founding {
    pub(crate) members: Members,
    /// The first operation among them.
    task: TaskId,
    hash: u64,
    has_told: bool,
    /// What this node has come to, in order.
    pub(crate) parked: Vec<CollectiveExchange>,
}

impl Founders {
    /// Of a node among so many.
    pub(crate) fn new(place: (NodeId, usize), session: Arc<Session>, patience: Duration) -> Self {
        let (waiting, came) = (VecDeque::new(), BTreeMap::new());
        let parent = session.comms().collective;
        Self { place, parent, session, patience, waiting, came, latest: None }
    }

    /// Whether members are waited for.
    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// This node comes to an operation among members that have no communicator.
    ///
    /// # Errors
    /// If another node has come to something else.
    pub(crate) fn park(&mut self, exchange: CollectiveExchange) -> Result<(), PeerMistake> {
        let members = &exchange.collective.members;
        match self.waiting.iter_mut().find(|one| one.members == *members) {
            Some(known) => known.parked.push(exchange),
            None => {
                let purpose = Purpose::collective(&exchange, false);
                let (members, task, hash) = (members.clone(), purpose.task(), purpose.hash());
                let parked = vec![exchange];
                let founding = Founding { members, task, hash, has_told: false, parked };
                founding.check(self.place.0, self.came_to(task))?;
                self.waiting.push_back(founding);
            }
        }
        Ok(())
    }

    /// This node comes to a task, for whatever it does there.
    ///
    /// # Errors
    /// If another node waits for it at an earlier one.
    pub(crate) fn pass(&mut self, task: TaskId) -> Result<(), PeerMistake> {
        self.latest = self.latest.max(Some(task));
        self.check_latest()
    }

    /// Another node has told that it has come.
    ///
    /// # Errors
    /// If it has come to something else than this one, or waits in vain.
    pub(crate) fn hear(
        &mut self,
        from: NodeId,
        message: [u8; CAME_LEN],
    ) -> Result<(), PeerMistake> {
        let word = |at: usize| {
            let bytes = message[at..at + 8].try_into().expect("it has eight bytes");
            u64::from_le_bytes(bytes)
        };
        let (task, hash) = (TaskId::from_index(word(0)), word(8));
        self.came.entry(task).or_default().push((from, hash));
        if let Some(founding) = self.waiting.iter().find(|one| one.task == task) {
            founding.check(self.place.0, &[(from, hash)])?;
        }
        self.check_latest()
    }

    /// Whom to tell that this node has come, and what; once for each set.
    pub(crate) fn next_to_tell(&mut self) -> Option<(Members, [u8; CAME_LEN])> {
        let first = self.waiting.front_mut().filter(|first| !first.has_told)?;
        first.has_told = true;
        let mut message = [0; CAME_LEN];
        message[..8].copy_from_slice(&first.task.index().to_le_bytes());
        message[8..].copy_from_slice(&first.hash.to_le_bytes());
        Some((first.members.clone(), message))
    }

    /// The members that have all told, this node among them: they make their communicators now.
    pub(crate) fn complete(&mut self) -> Option<Founding> {
        let first = self.waiting.front().filter(|first| first.has_told)?;
        let others = first.members.count(self.place.1) - 1;
        if self.came_to(first.task).len() < others {
            return None;
        }
        self.came.remove(&first.task);
        self.waiting.pop_front()
    }

    /// Makes communicators. Collective among the members, who are all on their way here.
    pub(crate) fn create(&self, members: &Members) -> Result<MemberComms, MpiError> {
        let ranks: Vec<c_int> = members.iter(self.place.1).map(|one| rank(one.slot())).collect();
        let _watch = Watch::begin(members, &self.session, self.patience);
        let make = |tag| {
            let comm = self.parent.of_some(&ranks, tag)?;
            comm.return_errors().map(|()| comm)
        };
        let (control, collective, standing) = (make(0)?, make(1)?, Some(make(2)?));
        let comms = MemberComms { control, collective, standing };
        MADE.lock().unwrap_or_else(PoisonError::into_inner).insert(members.clone(), comms);
        Ok(comms)
    }

    fn came_to(&self, task: TaskId) -> &[(NodeId, u64)] {
        self.came.get(&task).map_or(&[], Vec::as_slice)
    }

    /// Whether nobody waits for this node at a task that it has passed by.
    fn check_latest(&self) -> Result<(), PeerMistake> {
        let Some(latest) = self.latest else { return Ok(()) };
        let is_waiting = |task: &TaskId| self.waiting.iter().any(|one| one.task == *task);
        let passed = self.came.range(..latest).find(|(task, _)| !is_waiting(task));
        match passed.and_then(|(task, came)| Some((*task, came.first()?.0))) {
            None => Ok(()),
            Some((other_task, other)) => {
                let (node, task) = (self.place.0, latest);
                Err(CommunicationError::Apart { node, task, other, other_task }.into())
            }
        }
    }
}

impl Founding {
    /// Whether others that have come to the same task are members, and have come for the same.
    fn check(&self, node: NodeId, came: &[(NodeId, u64)]) -> Result<(), PeerMistake> {
        let is_other =
            |(from, hash): &&(NodeId, u64)| *hash != self.hash || !self.members.contains(*from);
        match came.iter().find(is_other) {
            None => Ok(()),
            Some(&(other, _)) => {
                let (task, other_task) = (self.task, self.task);
                Err(CommunicationError::Apart { node, task, other, other_task }.into())
            }
        }
    }
}

/// Ends all processes if a member dies while this lives, or if it lives too long: nothing else wakes who waits in
/// MPI.
struct Watch(Arc<(Mutex<bool>, Condvar)>);

/// How often it looks who has died.
const LOOK: Duration = Duration::from_millis(100);

/// How long MPI has to notice by itself that a member has died, and to let the others go.
const GRACE: Duration = Duration::from_millis(500);

impl Watch {
    /// A member that is silent counts as dead after `patience`, and who has lost the node that notices it, waits
    /// for twice as long.
    fn begin(members: &Members, session: &Arc<Session>, patience: Duration) -> Self {
        let state = Arc::new((Mutex::new(false), Condvar::new()));
        let (watched, members, session) = (state.clone(), members.clone(), session.clone());
        let watch = move || {
            let is_over = |time| wait_until_over(&watched, time);
            let deadline = Deadline::new(2 * patience);
            let dead = loop {
                if is_over(LOOK.min(deadline.left())) {
                    return;
                }
                match dead_member(&session, &members) {
                    Some(_) if is_over(GRACE) => return,
                    Some(dead) => break dead,
                    None if deadline.left().is_zero() => {
                        break format!("one of them has not come for {:?}", 2 * patience);
                    }
                    None => {}
                }
            };
            Comm::world().end_all(&format!(
                "celerity: {members} make a communicator of MPI, and {dead}, though it had said that it comes; \
                 nothing wakes who waits in MPI, so all processes are ended"
            ));
        };
        // Without a thread, the run lingers, and its launcher ends it.
        drop(thread::Builder::new().name("celerity-mpi-found".to_owned()).spawn(watch));
        Self(state)
    }
}

/// Waits for so long at most; whether it is over.
fn wait_until_over((is_over, changed): &(Mutex<bool>, Condvar), time: Duration) -> bool {
    let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

/// What is known of a member that has died.
fn dead_member(session: &Session, members: &Members) -> Option<String> {
    match session.side().lost()? {
        Loss::Died { node, sign } if members.contains(node) => {
            Some(format!("{node} has died: {sign}"))
        }
        Loss::Died { .. } | Loss::GivenUp { .. } => None,
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (is_over, changed) = &*self.0;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}
