//! How much is looked for.

use std::fmt;
use std::str::FromStr;

/// Which collective operations are looked for. The same on all nodes of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collectives {
    /// None: all data moves between pairs of nodes.
    Off,
    /// Those of IJPP 2024, Algorithm 1: what a task has written is looked at once, when another one
    /// first reads it elsewhere.
    Paper,
    /// Also those that the paper leaves for later (its §5.1): what has been written is looked at
    /// again when it is read in another way, and only where an operation may come of it. Of these,
    /// the ones that cost no more than messages between pairs of nodes, by a model of the machine
    /// ([`Costs`](crate::Costs)).
    #[default]
    Auto,
    /// As [`Auto`](Self::Auto), whatever an operation costs: for tests and measures.
    Always,
}

/// What is none of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCollectives(String);

impl FromStr for Collectives {
    type Err = NotCollectives;

    fn from_str(text: &str) -> Result<Self, NotCollectives> {
        match text {
            "off" => Ok(Self::Off),
            "paper" => Ok(Self::Paper),
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            other => Err(NotCollectives(other.to_owned())),
        }
    }
}

impl fmt::Display for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Paper => "paper",
            Self::Auto => "auto",
            Self::Always => "always",
        })
    }
}

impl fmt::Display for NotCollectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is none of off, paper, auto and always", self.0)
    }
}

impl std::error::Error for NotCollectives {}
