#![no_std]
#![doc = include_str!("../README.md")]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(asm_experimental_arch, core_float_math, stdarch_nvptx),
    allow(internal_features, unreachable_code, unused_variables, dead_code)
)]

// Hosts take the square root from it: `core` has none that is stable.
#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[macro_use]
mod fail;

pub mod abi;
#[cfg(all(feature = "ndarray", not(target_arch = "nvptx64")))]
mod arrays;
mod atomic;
#[cfg(not(target_arch = "nvptx64"))]
mod barrier;
mod bounds;
mod counted;
mod deferred;
#[cfg(target_arch = "nvptx64")]
pub mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod exchange;
mod group;
mod index;
mod item;
mod kernel;
mod line;
mod local;
#[cfg(target_arch = "nvptx64")]
mod machine;
pub mod math;
mod misuse;
mod module;
mod neighborhood;
mod outside;
mod part;
mod part_mut;
mod periodic;
mod plain;
mod reduce;
#[cfg(not(target_arch = "nvptx64"))]
mod region;
mod tellable;
pub mod told;
mod vector;
mod view;
mod warp;
mod whole;
mod word;

#[doc(hidden)]
pub use celerity_kernel_macros::PlainDataOfFacade;
pub use celerity_kernel_macros::{PlainData, kernel};
#[cfg(feature = "half")]
pub use half;
#[cfg(all(feature = "ndarray", not(target_arch = "nvptx64")))]
pub use ndarray;
#[cfg(feature = "num-complex")]
pub use num_complex;

pub use atomic::{Atomic, AtomicInteger, AtomicRef, AtomicView, Integer};
#[cfg(not(target_arch = "nvptx64"))]
pub use barrier::GroupBarrier;
pub use bounds::{Bounds, Layout, OuterIndex};
#[doc(hidden)]
pub use counted::{Following, Turns, counted};
pub use deferred::Deferred;
pub use group::{Group, NdItem};
pub use index::ViewIndex;
pub use item::{Item, Row};
pub use kernel::{
    GroupKernel, ItemKernel, Kernel, KernelForm, PerGroup, PerItem, PerRow, RowKernel,
};
pub use line::{Line, LineMut};
pub use local::{Local, LocalArray, LocalMemory, LocalSlice, LocalValues};
pub use module::{Code, Module, NoCode, Ptx};
pub use neighborhood::{NeighborhoodItem, NeighborhoodRow, Reach};
pub use part::PartView;
pub use part_mut::PartViewMut;
pub use periodic::{PeriodicItem, PeriodicRow};
#[doc(hidden)]
pub use plain::ByValue;
pub use plain::PlainData;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use plain::derived;
pub use reduce::{
    Accumulators, And, ArgMax, ArgMin, ArrayReducer, InTile, Located, Max, Min, Number, Operator,
    Or, Product, Reducer, Reduction, Sum, Team, Xor,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use region::RegionView;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use region::box_around;
pub use view::{DeviceElement, View};
pub use warp::Warp;
pub use whole::{WholeView, WholeViewMut};
pub use word::Word;
