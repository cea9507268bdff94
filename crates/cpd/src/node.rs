//! The name of a node: here, since the assignment of work is the first that knows of nodes.

use celerity_tdag::define_id;

define_id!(
    /// A node of the cluster: one MPI rank, or one node of an in-process
    /// cluster. Prints as `N1`.
    pub struct NodeId, "N"
);

impl NodeId {
    /// The node as a position in per-node tables.
    #[must_use]
    pub fn slot(self) -> usize {
        usize::try_from(self.index()).expect("node counts fit in memory")
    }
}
