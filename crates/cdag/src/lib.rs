#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod collective;
mod command;
mod diagnostic;
mod graph;
mod holding;
#[cfg(feature = "mutants")]
mod mistakes;
mod node_set;
mod ordering;
mod requirements;
#[cfg(feature = "serde")]
mod serde_impls;
mod spread;
mod verify;

pub use celerity_cpd::NodeId;
pub use command::{Command, CommandId, CommandKind, TransferId};
pub use diagnostic::Diagnostic;
pub use graph::{CommandGraph, CommandGraphConfig};
pub use verify::{Broken, verify, verify_cluster};
