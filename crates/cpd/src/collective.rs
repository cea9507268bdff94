//! A collective operation as plain data: who provides which elements, and who gets which. The same
//! on every node. Which of MPI's operations it is follows from the two (IJPP 2024, tables 1 and 2).

use std::borrow::Cow;
use std::sync::Arc;

use celerity_regions::Region;

use crate::members::Members;
use crate::node::NodeId;
use crate::pattern::Pattern;

/// What moves between nodes of a cluster in one operation: all of them, or some.
///
/// ```
/// use std::sync::Arc;
/// use celerity_cpd::{Collective, Ends, Members, NodeId, Pattern};
/// use celerity_regions::{Box3, Region};
/// let [low, high] = [0, 4].map(|at| Region::from(Box3::from_offset_range([at], [4])));
/// let gathered = Collective {
///     members: Members::all(),
///     region: Box3::from_range([8]).into(),
///     from: Ends::Each(Arc::from([low.clone(), high.clone()])),
///     to: Ends::All,
/// };
/// let [n0, n1] = [0, 1].map(NodeId::from_index);
/// assert_eq!(gathered.pattern(), Pattern::AllGather);
/// assert_eq!(*gathered.provided_by(n1), high);
/// assert_eq!(gathered.arriving_at(n0), high);
/// assert_eq!(gathered.between(n1, n0), high);
///
/// // Of four nodes, the last two do the same. Parts are theirs, and others have none.
/// let among = Collective { members: Members::range(2, 4, 4), ..gathered };
/// assert_eq!(*among.provided_by(NodeId::from_index(3)), high);
/// assert!(among.arriving_at(n0).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Collective {
    /// Who takes part: at least two nodes. Others have nothing to do with it.
    pub members: Members,
    /// All elements that take part; not empty.
    pub region: Region,
    /// Who has them before. Never [`Ends::All`].
    pub from: Ends,
    /// Who has them afterwards, beside those who had them.
    pub to: Ends,
}

/// How the elements of a [`Collective`] are spread over its members, before it or afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Ends {
    /// Every member has all of them.
    All,
    /// One member has all of them.
    One(NodeId),
    /// Each member has its own part, in order of members; parts may be empty. Those before an operation
    /// are disjoint, and together all of it. O(members) data, shared by all operations of one shape.
    Each(Arc<[Region]>),
}

impl Ends {
    /// What a node has of `region`, which is all elements that take part, if these are the members.
    #[must_use]
    pub fn part<'a>(
        &'a self,
        node: NodeId,
        members: &Members,
        region: &'a Region,
    ) -> Cow<'a, Region> {
        let part = match (self, members.rank(node)) {
            (Self::All, Some(_)) => Some(region),
            (Self::One(one), Some(_)) if *one == node => Some(region),
            (Self::Each(parts), Some(rank)) => parts.get(rank),
            (_, None) | (Self::One(_), _) => None,
        };
        part.map_or_else(|| Cow::Owned(Region::empty()), Cow::Borrowed)
    }
}

impl Collective {
    /// Which operation it is. O(1).
    ///
    /// # Panics
    /// If every member has all elements to begin with.
    #[must_use]
    pub fn pattern(&self) -> Pattern {
        match (&self.from, &self.to) {
            (Ends::Each(_), Ends::All) => Pattern::AllGather,
            (Ends::Each(_) | Ends::One(_), Ends::One(_)) => Pattern::Gather,
            (Ends::One(_), Ends::All) => Pattern::Broadcast,
            (Ends::One(_), Ends::Each(_)) => Pattern::Scatter,
            (Ends::Each(_), Ends::Each(_)) => Pattern::AllToAll,
            (Ends::All, _) => panic!("what every node has need not move"),
        }
    }

    /// Whether all nodes of the cluster have all elements afterwards: nobody need pass them on.
    #[must_use]
    pub fn settles(&self) -> bool {
        self.members.are_all() && self.to == Ends::All
    }

    /// What a node has before, and gives to others.
    #[must_use]
    pub fn provided_by(&self, node: NodeId) -> Cow<'_, Region> {
        self.from.part(node, &self.members, &self.region)
    }

    /// What comes to a node: its part afterwards, less what it has before.
    #[must_use]
    pub fn arriving_at(&self, node: NodeId) -> Region {
        self.to.part(node, &self.members, &self.region).difference(&self.provided_by(node))
    }

    /// What moves from one node to another one.
    #[must_use]
    pub fn between(&self, from: NodeId, to: NodeId) -> Region {
        match from == to {
            true => Region::empty(),
            false => {
                self.provided_by(from).intersection(&self.to.part(to, &self.members, &self.region))
            }
        }
    }
}
