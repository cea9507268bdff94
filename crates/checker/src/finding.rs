//! What the user of a checker gets when a rule is broken.

use std::fmt;

use celerity_cdag::NodeId;

use crate::violation::Violation;

/// A broken rule, where it was broken, and a picture of the place.
///
/// `Display` prints the violation, then the picture in the DOT language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule and its operands.
    pub violation: Violation,
    /// The node whose graphs break it; none for a rule between nodes.
    pub node: Option<NodeId>,
    /// The task in hand, with its name and the source line that submitted it,
    /// where known.
    pub task: Option<String>,
    /// The nodes involved and the paths between them, as DOT.
    pub dot: String,
}

impl Finding {
    /// Whether results are right all the same; see [`Violation::is_waste`].
    #[must_use]
    pub fn is_waste(&self) -> bool {
        self.violation.is_waste()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.violation)?;
        if let Some(node) = self.node {
            write!(f, "; found on {node}")?;
        }
        if let Some(task) = &self.task {
            write!(f, "; checking {task}")?;
        }
        write!(f, "\n{}", self.dot)
    }
}

impl std::error::Error for Finding {}
