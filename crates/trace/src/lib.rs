#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod encode;
mod error;
mod file;
mod merge;
mod record;
mod recorder;
mod target;

pub use error::TraceError;
pub use file::TraceFile;
pub use merge::{Merged, is_complete, merge, part_of};
pub use record::{Counter, Message, Text, TimeSlice, TrackId, Value};
pub use recorder::Recorder;
pub use target::TraceTarget;
