#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assign;
mod command;
mod diagnostic;
mod graph;
mod holding;
mod node_set;
mod requirements;

pub use command::{Command, CommandId, CommandKind, NodeId, TransferId};
pub use diagnostic::Diagnostic;
pub use graph::{CommandGraph, CommandGraphConfig};
