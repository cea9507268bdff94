#![no_std]
#![doc = include_str!("../README.md")]

mod bounds;
mod item;
mod neighborhood;
mod part;
mod part_mut;
mod whole;

pub use bounds::{Bounds, Layout, OuterIndex};
pub use item::{Item, Row};
pub use neighborhood::{NeighborhoodItem, NeighborhoodRow, Reach};
pub use part::PartView;
pub use part_mut::PartViewMut;
pub use whole::{WholeView, WholeViewMut};
