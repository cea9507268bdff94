//! The recent past of one graph: its shape, who waits for whom, and enough of
//! each node to draw it.
//!
//! Owns the rules of shape. Nodes older than the last applied horizon or epoch
//! (the *synchronisation point*) are forgotten: by these very rules it waits
//! for all of them, and nobody has an edge to them any more.

use std::collections::VecDeque;

use celerity_cdag::{CommandId, NodeId};
use celerity_idag::InstructionId;
use celerity_tdag::TaskId;
use smallvec::SmallVec;

use crate::ancestors::Ancestors;
use crate::violation::{Check, Vertex, Violation};

/// Which graph a window looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GraphOfNode {
    Tasks,
    Commands(NodeId),
    Instructions(NodeId),
}

impl GraphOfNode {
    pub(crate) fn vertex(self, index: u64) -> Vertex {
        match self {
            Self::Tasks => Vertex::Task(TaskId::from_index(index)),
            Self::Commands(node) => Vertex::Command(node, CommandId::from_index(index)),
            Self::Instructions(node) => Vertex::Instruction(node, InstructionId::from_index(index)),
        }
    }
}

/// What a node is to the shape of its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeShape {
    Work,
    Horizon,
    Epoch,
}

/// A node of the window.
#[derive(Clone, Debug)]
pub(crate) struct WindowNode<L> {
    pub(crate) label: L,
    pub(crate) edges: SmallVec<[u64; 4]>,
    has_successor: bool,
}

/// The nodes since the synchronisation point.
#[derive(Clone, Debug)]
pub(crate) struct RecentNodes<L> {
    layer: GraphOfNode,
    first: u64,
    records: VecDeque<WindowNode<L>>,
    /// Nodes without a successor.
    leaves: usize,
    /// The newest horizon; it becomes the point when the next one comes.
    pending: Option<u64>,
    /// Without it, only shape is checked.
    ancestors: Option<Ancestors>,
}

impl<L> RecentNodes<L> {
    pub(crate) fn new(layer: GraphOfNode, tracks_order: bool) -> Self {
        Self {
            layer,
            first: 0,
            records: VecDeque::new(),
            leaves: 0,
            pending: None,
            ancestors: tracks_order.then(Ancestors::default),
        }
    }

    /// Who waits for whom; `None` if that is not tracked.
    pub(crate) fn order(&self) -> Option<&Ancestors> {
        self.ancestors.as_ref()
    }

    /// The synchronisation point.
    pub(crate) fn point(&self) -> u64 {
        self.first
    }

    /// The id that the next node must have.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Number of nodes that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn vertex(&self, index: u64) -> Vertex {
        self.layer.vertex(index)
    }

    /// The node of that index, unless it has been forgotten.
    pub(crate) fn get(&self, index: u64) -> Option<&WindowNode<L>> {
        let slot = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.records.get(slot)
    }

    /// Appends a node after checking its shape.
    pub(crate) fn push(
        &mut self,
        index: u64,
        edges: SmallVec<[u64; 4]>,
        role: NodeShape,
        label: L,
    ) -> Check {
        self.check_shape(index, &edges, role)?;
        for &edge in &edges {
            let on = &mut self.records[(edge - self.first) as usize];
            self.leaves -= usize::from(!on.has_successor);
            on.has_successor = true;
        }
        if let Some(ancestors) = &mut self.ancestors {
            ancestors.push(&edges);
        }
        self.records.push_back(WindowNode { label, edges, has_successor: false });
        self.leaves += 1;
        match role {
            NodeShape::Work => Ok(()),
            NodeShape::Horizon | NodeShape::Epoch => self.synchronize(index, role),
        }
    }

    fn check_shape(&self, index: u64, edges: &[u64], role: NodeShape) -> Check {
        let vertex = self.vertex(index);
        if index != self.next() {
            return Err(Violation::WrongId { vertex, expected: self.vertex(self.next()) }.into());
        }
        for (position, &edge) in edges.iter().enumerate() {
            let on = self.vertex(edge);
            if edge >= index {
                return Err(Violation::ForwardEdge { vertex, on }.into());
            }
            if edge < self.first {
                let point = self.vertex(self.first);
                return Err(Violation::EdgeBeyondPoint { vertex, on, point }.into());
            }
            if edges[..position].contains(&edge) {
                return Err(Violation::DoubledEdge { vertex, on }.into());
            }
        }
        // Whoever has an edge waits for the point's epoch, by induction.
        match edges.is_empty() && (index > 0 || role != NodeShape::Epoch) {
            true => {
                Err(Violation::NotSynchronized { later: vertex, earlier: self.vertex(self.first) }
                    .into())
            }
            false => Ok(()),
        }
    }

    /// In a graph without cycles every node leads to a leaf, so the only leaf
    /// waits for all others.
    fn synchronize(&mut self, index: u64, role: NodeShape) -> Check {
        if self.leaves != 1 {
            let missed = self.records.iter().position(|record| !record.has_successor);
            let earlier = self.vertex(self.first + missed.unwrap_or(0) as u64);
            return Err(Violation::NotSynchronized { later: self.vertex(index), earlier }.into());
        }
        match role {
            NodeShape::Epoch => {
                self.pending = None;
                self.forget_before(index);
            }
            NodeShape::Horizon | NodeShape::Work => {
                if let Some(reached) = self.pending.replace(index) {
                    self.forget_before(reached);
                }
            }
        }
        Ok(())
    }

    fn forget_before(&mut self, point: u64) {
        self.records.drain(..(point - self.first) as usize);
        self.first = point;
        if let Some(ancestors) = &mut self.ancestors {
            ancestors.forget_before(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> RecentNodes<()> {
        let mut window = RecentNodes::new(GraphOfNode::Tasks, true);
        window.push(0, SmallVec::new(), NodeShape::Epoch, ()).expect("the init epoch");
        window
    }

    fn push(window: &mut RecentNodes<()>, role: NodeShape, edges: &[u64]) -> Check {
        window.push(window.next(), SmallVec::from_slice(edges), role, ())
    }

    #[test]
    fn a_horizon_becomes_the_point_when_the_next_one_comes() {
        let mut window = window();
        push(&mut window, NodeShape::Work, &[0]).unwrap();
        push(&mut window, NodeShape::Horizon, &[1]).unwrap();
        push(&mut window, NodeShape::Work, &[1]).unwrap();
        push(&mut window, NodeShape::Horizon, &[2, 3]).unwrap();
        assert_eq!((window.point(), window.len()), (2, 3));
        let violation = *push(&mut window, NodeShape::Work, &[1]).unwrap_err();
        assert!(matches!(violation, Violation::EdgeBeyondPoint { .. }), "{violation}");
    }

    #[test]
    fn a_horizon_that_misses_a_leaf_is_noticed() {
        let mut window = window();
        push(&mut window, NodeShape::Work, &[0]).unwrap();
        push(&mut window, NodeShape::Work, &[0]).unwrap();
        let violation = *push(&mut window, NodeShape::Horizon, &[2]).unwrap_err();
        assert_eq!(
            violation.to_string(),
            "T3 does not wait for T1, though one of them synchronises"
        );
    }

    #[test]
    fn wrong_ids_and_edges_are_noticed() {
        let mut gap = window();
        let violation = *gap.push(2, SmallVec::from_slice(&[0]), NodeShape::Work, ()).unwrap_err();
        assert!(matches!(violation, Violation::WrongId { .. }));
        let violation = *push(&mut window(), NodeShape::Work, &[1]).unwrap_err();
        assert!(matches!(violation, Violation::ForwardEdge { .. }));
        let violation = *push(&mut window(), NodeShape::Work, &[0, 0]).unwrap_err();
        assert!(matches!(violation, Violation::DoubledEdge { .. }));
        let violation = *push(&mut window(), NodeShape::Work, &[]).unwrap_err();
        assert!(matches!(violation, Violation::NotSynchronized { .. }));
    }
}
