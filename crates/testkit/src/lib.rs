#![doc = include_str!("../README.md")]

pub mod campaign;
pub mod census;
pub mod check;
mod configuration;
pub mod conformance;
pub mod copies;
pub mod corpus;
pub mod element;
pub mod fabric;
pub mod footprint;
pub mod forwards;
pub mod fuzzing;
pub mod hash;
pub mod hash_kernel;
pub mod lawful;
pub mod model;
pub mod on_trust;
pub mod picture;
pub mod program;
pub mod quality;
mod random;
pub mod recording;
pub mod reduction;
pub mod run;
pub mod shrink;
pub mod sim;
pub mod supervise;
pub mod trace;
mod traffic;
pub mod truth;
pub mod twin;
pub mod violation;
pub mod visits;
pub mod wires;

pub use celerity_views as queries;

/// The workspace's README, so that its program is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct WorkspaceReadme;
