#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod allocation;
mod allocations;
mod ancestors;
mod batch;
mod buffers;
mod cluster;
mod collectives;
mod commands;
mod dispatch;
mod exchange;
mod finding;
mod geometry;
mod groups;
mod image;
mod instructions;
mod label;
mod launches;
mod ledger;
mod memory;
mod node;
mod objects;
mod outline;
mod picture;
mod roots;
mod schedule;
mod tasks;
mod tiles;
mod transfers;
mod violation;
mod window;

pub use cluster::ClusterChecker;
pub use finding::Finding;
pub use node::{Depth, NodeChecker, NodeCheckerConfig};
pub use outline::{ExchangeOutline, Moved, Outline, TaskOutline};
pub use schedule::{CheckerCall, check_schedule};
pub use violation::{AbstractValue, BufferPart, Hazard, Level, Vertex, Violation};
