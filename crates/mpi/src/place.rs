//! All processes that MPI has started as a network for runs: one node each.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_executor::{Communicator, CpuPool, Network, RunError, Waker};

use crate::error::StartError;
use crate::failure;
use crate::founding;
use crate::options::MpiOptions;
use crate::session::Session;
use crate::start::start;

/// The cluster of all processes that MPI has started.
#[derive(Clone)]
pub struct MpiNetwork {
    options: MpiOptions,
    session: Arc<Session>,
}

impl MpiNetwork {
    /// Initialises MPI if the program has not, and meets the other processes. The first
    /// time it is collective: it returns once all processes have called it.
    ///
    /// Whoever has joined either connects to the next run or [refuses](Network::refuse) it:
    /// the others wait for that.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn join(options: MpiOptions) -> Result<Self, StartError> {
        let session = Session::of_process(&options)?;
        Ok(Self { options, session })
    }

    /// This process's place among those on its host, and how many there are.
    #[must_use]
    pub fn place_on_host(&self) -> (usize, usize) {
        let cards = self.session.cards();
        let rank = self.session.node().slot();
        let neighbours = |card: &&_| is_neighbour(card, &cards[rank]);
        let before = cards[..rank].iter().filter(neighbours).count();
        (before, cards.iter().filter(neighbours).count())
    }
}

fn is_neighbour(card: &crate::card::Card, other: &crate::card::Card) -> bool {
    card.host == other.host
}

impl fmt::Debug for MpiNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MpiNetwork({} of {})", self.session.node(), self.nodes())
    }
}

impl Network for MpiNetwork {
    fn nodes(&self) -> usize {
        self.session.cards().len()
    }

    fn local(&self) -> Range<usize> {
        let rank = self.session.node().slot();
        rank..rank + 1
    }

    /// All of this host, unless the launcher has dealt cores to them.
    fn sharers_of_cores(&self) -> usize {
        let cards = self.session.cards();
        let own = &cards[self.session.node().slot()];
        let shares = |card: &&crate::card::Card| card.host == own.host && card.cores == own.cores;
        cards.iter().filter(shares).count()
    }

    fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        let cards = self.session.cards();
        let others = cards
            .iter()
            .enumerate()
            .filter(|(rank, card)| *rank != node.slot() && is_neighbour(card, &cards[node.slot()]));
        others.map(|(rank, _)| NodeId::from_index(rank as u64)).collect()
    }

    fn connect(
        &self,
        mut wakers: Vec<Waker>,
        _: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        let waker = wakers.pop().expect("this process has a node");
        Ok(vec![Box::new(start(&self.options, waker)?)])
    }

    fn share(&self, words: &mut [u64]) -> Result<(), RunError> {
        if self.nodes() == 1 {
            return Ok(());
        }
        Ok(self.session.share(words, self.options.start_timeout)?)
    }

    fn member_sets(&self) -> usize {
        self.options.max_member_sets.saturating_sub(founding::made().len())
    }

    fn refuse(&self, error: RunError) -> RunError {
        if self.nodes() == 1 {
            return error;
        }
        let (session, run) = (&self.session, self.session.next_run());
        let error = error.of_start_on(session.node());
        let obstacle = session.side().refuse(run, failure::write(&error));
        session.error_of(run, obstacle)
    }
}
