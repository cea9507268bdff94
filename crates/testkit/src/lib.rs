#![doc = include_str!("../README.md")]

pub mod check;
pub mod corpus;
pub mod element;
pub mod footprint;
pub mod hash;
pub mod hash_kernel;
pub mod model;
pub mod program;
pub mod queries;
pub mod run;
pub mod trace;
pub mod twin;
pub mod violation;

/// The workspace's README, so that its program is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct WorkspaceReadme;
