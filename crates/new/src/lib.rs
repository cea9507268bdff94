#![doc = include_str!("../README.md")]

mod error;
mod name;
mod project;

pub use error::NewError;
pub use name::{Name, NameError, NameFlaw};
pub use project::{Celerity, make};
