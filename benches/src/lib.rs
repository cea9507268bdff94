//! Criterion benchmarks of every layer.
//!
//! The library holds what several benchmarks share: the C++ original's
//! [`topologies`] and [`endless`] programs, the graph layers as a [`pipeline`]
//! without an executor, on one thread or [`threaded`], a [`central`] scheduler
//! to compare them with, [`collectives`], the lists of [`graph_cases`], [`dependency_cases`] and
//! [`region_cases`], what counts memory: a [`counting`] allocator and the
//! process's [`resident`] size; and curves as a [`figure`].

pub mod central;
pub mod collectives;
pub mod counting;
pub mod dependency_cases;
pub mod endless;
pub mod figure;
pub mod graph_cases;
mod layers;
pub mod pipeline;
pub mod region_cases;
pub mod resident;
mod shape;
mod task_source;
pub mod threaded;
pub mod topologies;
