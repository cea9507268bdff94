//! Criterion benchmarks of every layer.
//!
//! The library holds what several benchmarks share: the C++ original's
//! [`topologies`], the graph layers as a [`pipeline`] without an executor, and a
//! [`counting`] allocator.

pub mod counting;
pub mod pipeline;
pub mod topologies;
