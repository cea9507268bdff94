//! First pass: which node runs which part of a task. The same on all nodes.

use std::sync::Arc;

use celerity_regions::Box3;
use celerity_tdag::{IndexSpace, Work};

/// The chunks of a task: node `n` runs chunk `n`, nodes beyond the last chunk
/// run nothing (000 §IV-C: assignment is deterministic).
#[derive(Debug)]
pub(crate) struct Assigner {
    nodes: usize,
    /// The most recent split. Programs repeat few index spaces, mostly one.
    last: Option<(IndexSpace, Arc<[Box3]>)>,
    once: Arc<[Box3]>,
    everywhere: Arc<[Box3]>,
}

impl Assigner {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            last: None,
            once: [Box3::UNIT].into(),
            everywhere: vec![Box3::UNIT; nodes].into(),
        }
    }

    /// The chunks of a task that executes something.
    pub(crate) fn chunks(&mut self, work: &Work) -> Arc<[Box3]> {
        match work {
            Work::Device(space) => self.split(space),
            Work::HostOnce => self.once.clone(),
            Work::Fence => self.everywhere.clone(),
            Work::Horizon | Work::Epoch(_) => {
                unreachable!("synchronisation tasks execute nothing")
            }
        }
    }

    fn split(&mut self, space: &IndexSpace) -> Arc<[Box3]> {
        match &self.last {
            Some((known, chunks)) if known == space => chunks.clone(),
            _ => {
                let chunks: Arc<[Box3]> = space.split(&space.extent, self.nodes).into();
                self.last = Some((*space, chunks.clone()));
                chunks
            }
        }
    }
}
