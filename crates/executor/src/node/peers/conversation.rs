//! The node's part in what functions of collective tasks say to each other: it carries their
//! letters, and finds out when nodes do not say the same.

use celerity_cdag::NodeId;
use celerity_tdag::{CollectiveGroup, Task, TaskId};

use super::Peers;
use crate::collective::{CollectiveError, GroupCommunicator, Objection};
use crate::error::{CommunicationError, RunError, TaskError};
use crate::polling::Waker;

impl Peers {
    /// What a task of a group speaks through.
    pub(in crate::node) fn converse(
        &self,
        group: CollectiveGroup,
        task: TaskId,
    ) -> GroupCommunicator {
        let place = (self.local(), self.nodes());
        GroupCommunicator::new(self.exchange.clone(), place, group, task)
    }

    /// Lets `waker` wake the node when functions have something to say.
    pub(in crate::node) fn wake_by(&self, waker: Waker) {
        self.exchange.wake_by(waker);
    }

    /// Sends what functions want to say; whether there was anything.
    pub(in crate::node) fn send_letters(&mut self) -> bool {
        let letters = self.exchange.outgoing();
        let any = !letters.is_empty();
        for (to, note) in letters {
            self.communicator.send_note(to, &note);
        }
        any
    }

    /// A note was a letter, or should have been one.
    pub(super) fn heard_letter(
        &self,
        from: NodeId,
        taken: Result<(), Objection>,
    ) -> Result<(), RunError> {
        taken.map_err(|objection| match objection {
            Objection::Malformed => {
                let what = "a letter of a collective task is spoiled".to_owned();
                self.broken(CommunicationError::Malformed { from, what })
            }
            Objection::Unexpected { task, error } => self.misunderstood(task, error),
        })
    }

    /// A task is over here: if it is collective, other nodes have done the same.
    ///
    /// # Errors
    /// If they have not.
    pub(in crate::node) fn conversation_over(&self, task: &Task) -> Result<(), RunError> {
        let Some(group) = task.work.group() else { return Ok(()) };
        let ended = self.exchange.ended(group, task);
        ended.map_err(|error| self.misunderstood(task.to_string(), error))
    }

    fn misunderstood(&self, task: String, error: CollectiveError) -> RunError {
        let (node, error) = (self.local(), TaskError::new(error));
        RunError::TaskFailed { task, node, device: None, error }
    }
}
