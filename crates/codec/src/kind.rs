//! What a recording holds, by name and by number.

use std::fmt;

/// What a recording holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordingKind {
    /// A program, with the configuration to run it on.
    Program,
    /// The tasks of a program.
    TaskGraph,
    /// The commands of a node.
    CommandGraph,
    /// The instructions of a node.
    InstructionGraph,
    /// What stopped a run.
    Failure,
}

impl RecordingKind {
    /// All kinds of recordings there are.
    pub const ALL: [Self; 5] =
        [Self::Program, Self::TaskGraph, Self::CommandGraph, Self::InstructionGraph, Self::Failure];

    /// What stands for the kind in a header. Tags are never used again for another kind.
    pub(crate) const fn tag(self) -> u32 {
        match self {
            Self::Program => 1,
            Self::TaskGraph => 2,
            Self::CommandGraph => 3,
            Self::InstructionGraph => 4,
            Self::Failure => 5,
        }
    }
}

impl fmt::Display for RecordingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::TaskGraph => "task graph",
            Self::CommandGraph => "command graph",
            Self::InstructionGraph => "instruction graph",
            Self::Failure => "failure",
        })
    }
}
