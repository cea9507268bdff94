#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod dag;
mod labels;
mod layout;
mod names;
mod render;
mod sections;
mod svg;

pub use dag::{Dag, DagNode, Reachability, Role};
pub use labels::{CommandLabel, InstructionLabel, TaskLabel};
pub use names::BufferNames;
pub use sections::{Section, to_dot, to_text};
pub use svg::to_svg;
