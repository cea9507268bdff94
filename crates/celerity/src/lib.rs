//! One program text, every GPU of every node of a cluster.
