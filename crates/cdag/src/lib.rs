#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assign;
mod command;
mod diagnostic;
mod graph;
mod holding;
#[cfg(feature = "mutants")]
mod mistakes;
mod node_set;
mod requirements;
#[cfg(feature = "serde")]
mod serde_impls;
mod verify;

pub use command::{Command, CommandId, CommandKind, NodeId, TransferId};
pub use diagnostic::Diagnostic;
pub use graph::{CommandGraph, CommandGraphConfig};
pub use verify::{Broken, verify, verify_cluster};
