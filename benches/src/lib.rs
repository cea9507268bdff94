//! Criterion benchmarks of every layer.
//!
//! The library holds what several benchmarks share: the C++ original's
//! [`topologies`] and [`endless`] programs, the graph layers as a [`pipeline`]
//! without an executor, a [`central`] scheduler to compare them with, the list
//! of [`graph_cases`], and what counts memory: a [`counting`] allocator and the
//! process's [`resident`] size.

pub mod central;
pub mod counting;
pub mod endless;
pub mod graph_cases;
pub mod pipeline;
pub mod resident;
mod task_source;
pub mod topologies;
