//! The names of collective operations (IJPP 2024, table 1).

use std::fmt;

/// A collective operation that moves elements and changes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Pattern {
    /// Each node provides its part, one node gets all of them.
    Gather,
    /// Each node provides its part, every node gets all of them.
    AllGather,
    /// One node provides all, every node gets all of it.
    Broadcast,
    /// One node provides all, each node gets its part.
    Scatter,
    /// Each node provides its part, each node gets a part of each other's.
    AllToAll,
}

impl Pattern {
    /// All patterns, in the order in which files of constants list them.
    pub const ALL: [Self; 5] =
        [Self::Gather, Self::AllGather, Self::Broadcast, Self::Scatter, Self::AllToAll];

    /// As people call it: `all-gather`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::AllGather => "all-gather",
            Self::Broadcast => "broadcast",
            Self::Scatter => "scatter",
            Self::AllToAll => "all-to-all",
        }
    }

    /// Its position in [`ALL`](Self::ALL).
    pub(crate) const fn position(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn each_has_its_position() {
        let positions: Vec<_> = Pattern::ALL.into_iter().map(Pattern::position).collect();
        assert_eq!(positions, [0, 1, 2, 3, 4]);
    }
}
