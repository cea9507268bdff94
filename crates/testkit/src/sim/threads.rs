//! Which thread of a simulated node does what: whether whoever polls a node runs some of its jobs
//! itself, and whether somebody has to look at the network. Drawn from the seed by themselves,
//! so that runs without any of it are what they would be if there were no such thing.

use crate::random::Random;

/// The threads of all nodes in one run.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    /// By node: whether its process has one core, so that kernels may be left to the thread that
    /// polls it.
    pub(super) share_core: Vec<bool>,
    /// Of the kernels and copies that come to an idle lane, one in so many runs while it is put
    /// there; 0: none.
    pub(super) at_once: usize,
    /// Whether every event in the network wakes; otherwise nodes ask to be looked at.
    pub(super) network_wakes: bool,
}

/// Keeps these draws apart from all others of a seed.
const OWN: u64 = 0x7a9e_1c05_0e5c_0e11;

impl Threads {
    /// Everything has a thread of its own.
    pub(super) fn apart(nodes: usize) -> Self {
        Self { share_core: vec![false; nodes], at_once: 0, network_wakes: true }
    }

    /// One run in three has nodes that share a core with what they compute, half of all nodes on
    /// average; one in three has jobs that run while they are put on their lane.
    pub(super) fn draw(seed: u64, nodes: usize) -> Self {
        let mut random = Random::new(seed ^ OWN);
        let mut threads = Self::apart(nodes);
        if random.once_in(3) {
            threads.share_core.fill_with(|| random.once_in(2));
        }
        if random.once_in(3) {
            threads.at_once = random.between(1, 4);
        }
        threads.network_wakes = !random.once_in(3);
        threads
    }
}
