#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assign;
mod classify;
mod collective;
mod cost;
mod discovery;
mod flow;
mod members;
mod mode;
mod node;
mod parts;
mod pattern;
mod spread;

pub use assign::Chunks;
pub use classify::classify;
pub use collective::{Collective, Ends};
pub use cost::{CostLine, Costs, Estimate, Movement, NotCosts, Sample, TooFewMeasures};
pub use discovery::{Discovery, Weighed};
pub use members::Members;
pub use mode::{Collectives, NotCollectives};
pub use node::NodeId;
pub use parts::PartsCache;
pub use pattern::Pattern;
