#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod dag;
mod labels;
mod render;

pub use dag::{Dag, DagNode, Reachability};
pub use labels::{CommandLabel, InstructionLabel, TaskLabel};
