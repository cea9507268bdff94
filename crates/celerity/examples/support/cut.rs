//! How tasks of an example are cut among devices, and what each device has into chunks, as options of a program.
//! Knows nothing of what is computed.

use celerity::TaskBuilder;
use celerity::prelude::*;
use clap::ValueEnum;

/// How index spaces are cut.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Cuts {
    /// How index spaces are cut among devices.
    #[arg(long, value_enum, default_value_t = Cut::Bands)]
    cut: Cut,
    /// Chunks that each device's share of a task is cut into: what others need of one can travel
    /// while the next is computed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    oversubscribe: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cut {
    /// Along the slowest dimension: bands of rows, slabs of a box.
    #[value(aliases = ["rows", "slabs"])]
    Bands,
    /// Along the two slowest dimensions, so that parts have less border when there are many.
    Tiles,
}

impl Cut {
    /// What a task is to be told. Nothing for bands: they are what it has by itself, where a single row is not one
    /// band but cut along itself.
    fn hint(self) -> Option<Hint> {
        match self {
            Self::Bands => None,
            Self::Tiles => Some(Hint::TiledSplit),
        }
    }
}

impl Cuts {
    /// Cuts a task among devices.
    pub(crate) fn among_devices<'q>(self, task: TaskBuilder<'q>) -> TaskBuilder<'q> {
        match self.cut.hint() {
            Some(hint) => task.hint(hint),
            None => task,
        }
    }

    /// Cuts a task among devices, and what each device has into chunks.
    pub(crate) fn in_chunks<'q>(self, task: TaskBuilder<'q>) -> TaskBuilder<'q> {
        self.among_devices(task).hint(Hint::Oversubscribe(self.oversubscribe as usize))
    }
}
