//! Whether all nodes give a buffer the same initial contents: hashes of them that a node tells its
//! neighbour, and compares with its own. Knows neither the contents nor how notes travel.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_tdag::BufferInfo;

use crate::error::RunError;

/// Buffers in one note, at most.
pub(super) const NOTE_BUFFERS: usize = 40;

/// So many buffers are remembered here, and as many that this node has not got to yet. Of later
/// ones nothing is found.
const REMEMBERED: usize = 4096;

/// What a node says of the initial contents of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// The number of the buffer.
    pub(super) buffer: u64,
    /// A hash of the program up to the buffer, with the buffer: if it is another one, these are
    /// different programs, which is found by their tasks.
    pub(super) program: u64,
    /// A hash of the contents.
    pub(super) contents: u64,
}

/// One node's record of what buffers were created from.
#[derive(Default)]
pub(super) struct Contents {
    known: BTreeMap<u64, (Claim, Arc<str>)>,
    /// The first buffer that has not been created.
    next: u64,
    /// The first one that no task has come behind: it may get another name yet.
    settled: u64,
    /// What the neighbour has not been told.
    unnoted: Vec<Claim>,
    /// What was said of buffers that are not settled here.
    early: BTreeMap<u64, (NodeId, Claim)>,
}

/// A buffer that two nodes have created from different contents: what it is called, and the other
/// node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    buffer: String,
    other: NodeId,
}

impl Difference {
    pub(super) fn on(self, node: NodeId) -> RunError {
        RunError::ContentsDiffer { buffer: self.buffer, node, other: self.other }
    }
}

impl Contents {
    /// A buffer has been created; `contents` is a hash of what it starts with, if it starts with
    /// something that is compared.
    pub(super) fn created(&mut self, info: &BufferInfo, program: u64, contents: Option<u64>) {
        let buffer = info.id.index();
        self.next = buffer + 1;
        let Some(contents) = contents else { return };
        let claim = Claim { buffer, program, contents };
        self.unnoted.push(claim);
        self.known.insert(buffer, (claim, info.name.clone()));
        if self.known.len() > REMEMBERED {
            self.known.pop_first();
        }
    }

    /// A task has come behind all buffers so far: compares what was said of them.
    pub(super) fn settle(&mut self) -> Result<(), Difference> {
        self.settled = self.next;
        while let Some(entry) = self.early.first_entry()
            && *entry.key() < self.settled
        {
            let (from, claim) = entry.remove();
            self.compare(from, claim)?;
        }
        Ok(())
    }

    /// A buffer has got a new name.
    pub(super) fn renamed(&mut self, info: &BufferInfo) {
        if let Some((_, name)) = self.known.get_mut(&info.id.index()) {
            name.clone_from(&info.name);
        }
    }

    /// Buffers that the neighbour has not been told of.
    pub(super) fn unnoted(&self) -> usize {
        self.unnoted.len()
    }

    /// What the neighbour is to be told, as much as fits one note each.
    pub(super) fn take_unnoted(&mut self) -> Vec<Vec<Claim>> {
        let claims = std::mem::take(&mut self.unnoted);
        claims.chunks(NOTE_BUFFERS).map(<[Claim]>::to_vec).collect()
    }

    /// Takes what another node says of a buffer, if it is settled here; keeps it otherwise.
    pub(super) fn compare(&mut self, from: NodeId, claim: Claim) -> Result<(), Difference> {
        if claim.buffer >= self.settled {
            if self.early.len() < REMEMBERED {
                self.early.insert(claim.buffer, (from, claim));
            }
            return Ok(());
        }
        let Some((own, name)) = self.known.get(&claim.buffer) else { return Ok(()) };
        if own.program != claim.program || own.contents == claim.contents {
            return Ok(());
        }
        Err(Difference { buffer: format!("\"{name}\""), other: from })
    }
}
