//! First pass: which node runs which part of a task. The same on all nodes.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{IndexSpace, Work};

use crate::chunks::Chunks;

/// The chunks of a task: node `n` runs chunk `n`, nodes beyond the last chunk
/// run nothing (000 §IV-C: assignment is deterministic).
#[derive(Debug)]
pub(crate) struct Assigner {
    nodes: usize,
    /// The most recent splits, newest last. Programs repeat few index spaces.
    recent: Vec<(IndexSpace, Arc<Chunks>)>,
    once: Arc<Chunks>,
    everywhere: Arc<Chunks>,
}

impl Assigner {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            recent: Vec::new(),
            once: Chunks::new(vec![Box3::UNIT]).into(),
            everywhere: Chunks::new(vec![Box3::UNIT; nodes]).into(),
        }
    }

    /// The chunks of a task that executes something.
    pub(crate) fn chunks(&mut self, work: &Work) -> Arc<Chunks> {
        match work {
            Work::Device(space) => self.split(space),
            #[cfg(feature = "mutants")]
            Work::HostOnce if celerity_mutants::Mutant::HostTaskEverywhere.is_active() => {
                self.everywhere.clone()
            }
            Work::HostOnce => self.once.clone(),
            Work::Fence => self.everywhere.clone(),
            Work::Horizon | Work::Epoch(_) => {
                unreachable!("synchronisation tasks execute nothing")
            }
        }
    }

    fn split(&mut self, space: &IndexSpace) -> Arc<Chunks> {
        if let Some((_, chunks)) = self.recent.iter().rev().find(|(known, _)| known == space) {
            return chunks.clone();
        }
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        let chunks = Arc::new(Chunks::new(space.split(&space.extent, self.nodes)));
        self.recent.push((*space, chunks.clone()));
        chunks
    }
}

/// Splits to remember: a loop with more kinds of tasks than this splits anew.
const REMEMBERED: usize = 4;
