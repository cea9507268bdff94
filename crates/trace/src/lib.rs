#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod encode;
mod error;
mod file;
mod merge;
mod record;
mod recorder;

pub use error::TraceError;
pub use file::TraceFile;
pub use merge::{TraceTarget, is_complete, merge, part_of};
pub use record::{Counter, Message, Text, TimeSlice, TrackId, Value};
pub use recorder::Recorder;
