#![doc = include_str!("../README.md")]
//!
//! # Code map
//!
//! | module | owns |
//! | --- | --- |
//! | `box3` | [`Box3`], one half-open box; everything else is made of these |
//! | `box_index` | [`BoxIndex`], boxes by where they are |
//! | `position_index` | [`PositionIndex`], the positions of a list by where what is there lies |
//! | `region` | [`Region`], a canonical set of disjoint boxes, and its set operations |
//! | `region_map` | [`RegionMap`], a value for every element of an extent |
//! | `entry`, `search` | a box with a value, and how trees find it |
//! | `sorted` | boxes in order along one dimension, and how they are found without a tree |
//! | `split` | [`Grid`], [`split_1d`], [`split_2d`], [`split_along`]: cutting an index space into chunks |
//! | `serde_impls` | behind the feature `serde`: what makes recorded boxes and regions valid |
//! | `typed` | [`Subrange`] and [`Chunk`], the const-generic face of a box |
//! | `verify` | [`verify()`] and [`verify_entries`]: what the boxes of regions and maps promise |
//!
//! The crate knows geometry and nothing else: no buffers, no tasks, no nodes. No result
//! depends on time, on addresses or on the order of a hash table, so every node that
//! performs the same operations sees the same boxes in the same order.

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!("deliberate bugs are for builds with debug assertions");

mod box3;
mod box_index;
mod entry;
mod position_index;
mod region;
mod region_map;
mod search;
#[cfg(feature = "serde")]
mod serde_impls;
mod sorted;
mod split;
mod typed;
mod verify;

pub use box_index::BoxIndex;
pub use box3::{Box3, BoxError, Coord3, MAX_DIMS};
pub use position_index::{PositionIndex, Positions};
pub use region::Region;
pub use region_map::RegionMap;
pub use sorted::separating_dimension;
pub use split::{Grid, split_1d, split_2d, split_along};
pub use typed::{Chunk, Subrange};
pub use verify::{Broken, verify, verify_entries};
