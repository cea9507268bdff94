//! How far a node that leaves the network has come: what it has told its peers, and they it.

use crate::operation::{Operation, Traffic};

/// Words that each node sends to each: mails, pieces, meetings joined and collective operations begun.
pub(crate) const WORDS: usize = 4;

/// A node that is leaving.
pub(crate) struct Leave {
    /// What is told to each peer, then what each has told. MPI's at first.
    pub(crate) words: Vec<u64>,
    pub(crate) known: bool,
    /// The sender of the stray message that is being received.
    pub(crate) stray: Option<usize>,
    pub(crate) scratch: Vec<u8>,
}

impl Leave {
    /// A request of its own has completed.
    pub(crate) fn ended(&mut self, operation: Operation, received: &mut [Traffic]) {
        match (operation, self.stray.take()) {
            (Operation::Stray, Some(from)) => received[from].pieces += 1,
            (_, stray) => {
                self.known = true;
                self.stray = stray;
            }
        }
    }

    /// What a peer has sent, and how many meetings it has joined and operations begun.
    pub(crate) fn told(&self, peer: usize) -> (Traffic, [u64; 2]) {
        let words = &self.words[self.words.len() / 2 + peer * WORDS..];
        (Traffic { mails: words[0], pieces: words[1] }, [words[2], words[3]])
    }
}
