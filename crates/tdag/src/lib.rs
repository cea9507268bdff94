//! The task graph: what a Celerity program means.
