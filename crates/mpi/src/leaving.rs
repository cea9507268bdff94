//! How a node leaves the network so that no message is left in MPI and no memory
//! in use: all nodes tell each other how many messages they have sent, receive
//! those that are left, wanted or not, and take the other receives back.
//!
//! It works after an abort in the middle of everything as well as at a regular
//! end, where it finds nothing to do. All nodes must take part. The next run uses the same
//! communicators, and begins once all nodes have left: nothing of this one gets there.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use celerity_executor::CommEvent;

use crate::error::MpiError;
use crate::leave::{Leave, WORDS};
use crate::network::{ALL, Endpoint};
use crate::operation::Operation;
use crate::raw;

impl Endpoint {
    /// Begins to leave. Nothing is posted from now on.
    pub(crate) fn begin_leaving(&mut self) -> Result<(), MpiError> {
        let all = &self.memberships[ALL];
        let (meetings, begun) = (all.meetings, all.exchanges.begun());
        let told = self.sent.iter().flat_map(|sent| [sent.mails, sent.pieces, meetings, begun]);
        let mut words: Vec<u64> = told.collect();
        let told = words.len();
        words.resize(2 * told, 0);
        let base = words.as_mut_ptr();
        let (known, stray, scratch) = (false, None, Vec::new());
        self.leave = Some(Leave { words, known, stray, scratch });
        // SAFETY: the words are left alone until the counts are known, and live
        // as long as the network.
        let request = unsafe { self.data.start_exchange(base, base.wrapping_add(told), WORDS)? };
        self.requests.add(request, Operation::Counts);
        (1..self.memberships.len()).try_for_each(|membership| self.say_standing(membership))
    }

    /// A step on the way out; `true` when there is none left.
    pub(crate) fn step_out(&mut self, events: &mut VecDeque<CommEvent>) -> Result<bool, MpiError> {
        self.progress(events)?;
        let Some(leave) = &self.leave else { return Ok(false) };
        if !leave.known {
            return Ok(false);
        }
        self.catch_up()?;
        self.receive_strays()?;
        if !self.has_all() {
            return Ok(false);
        }
        self.take_back()?;
        Ok(true)
    }

    /// What several nodes take part in cannot be taken back. So a node lets the meetings pass that others
    /// have joined and it has not, all of which look alike to MPI; and it begins the collective
    /// operations that others have begun: all members have come to these, or nobody could have.
    fn catch_up(&mut self) -> Result<(), MpiError> {
        for membership in 0..self.memberships.len() {
            let Some([meetings, begun]) = self.most_in(membership) else { continue };
            while self.memberships[membership].meetings < meetings {
                self.pass(membership)?;
            }
            self.begin_exchanges(membership, begun)?;
        }
        Ok(())
    }

    /// How far the members of a membership have come that have come farthest, if that is known.
    fn most_in(&self, membership: usize) -> Option<[u64; 2]> {
        if membership == ALL { self.most_of_others() } else { self.memberships[membership].most() }
    }

    /// The most meetings that any node has joined, and operations that any has begun.
    fn most_of_others(&self) -> Option<[u64; 2]> {
        let leave = self.leave.as_ref().filter(|leave| leave.known)?;
        let told = (0..self.nodes).map(|peer| leave.told(peer).1);
        Some(told.fold([0; 2], |most, told| [most[0].max(told[0]), most[1].max(told[1])]))
    }

    fn receive_strays(&mut self) -> Result<(), MpiError> {
        let Some(leave) = &mut self.leave else { return Ok(()) };
        if leave.stray.is_some() {
            return Ok(());
        }
        // SAFETY: one stray is received at a time, and the scratch space is for
        // nothing else.
        if let Some((from, request)) = unsafe { self.data.receive_stray(&mut leave.scratch)? } {
            leave.stray = Some(from);
            self.requests.add(request, Operation::Stray);
        }
        Ok(())
    }

    /// Whether all that was sent to this node is here, and all that it has sent
    /// is away.
    fn has_all(&self) -> bool {
        let Some(leave) = &self.leave else { return false };
        let begun = (0..self.memberships.len()).all(|membership| {
            let begun = self.memberships[membership].exchanges.begun();
            self.most_in(membership).is_some_and(|[_, most]| begun == most)
        });
        let mut peers = (0..self.nodes).zip(&self.received);
        let waits = |operation: &Operation| {
            !matches!(operation, Operation::Mail(_) | Operation::Received(_))
        };
        begun
            && peers.all(|(peer, received)| *received == leave.told(peer).0)
            && self.ended.is_empty()
            && !self.requests.open().iter().any(waits)
    }

    /// Ends the receives that nothing will match.
    fn take_back(&mut self) -> Result<(), MpiError> {
        for (request, operation) in self.requests.take() {
            if let Operation::Received(_) = operation {
                // SAFETY: it is a receive, and has not completed.
                unsafe { raw::cancel(request)? };
            }
        }
        for mailbox in &mut self.mailboxes {
            mailbox.close()?;
        }
        self.transfers.close()
    }
}
