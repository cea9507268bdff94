//! The command graph: what one node of a cluster does.
