//! Who has which part of data that a collective has brought to its members, to each its own or all of
//! it: known by the collective's own lists, which are shared, so that nobody writes down node by node
//! what has gone where.

use std::sync::Arc;

use celerity_cpd::{Members, NodeId};
use celerity_regions::{Box3, Region};
use smallvec::{SmallVec, smallvec};

/// Names what has been spread how, in [`Spreads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpreadId(u32);

/// All that the holdings of one buffer name. Few: a program spreads its data in few ways.
#[derive(Debug, Default)]
pub(crate) struct Spreads {
    known: Vec<(SpreadId, Lists)>,
    made: u32,
}

/// A node has what any of these has for it.
type Lists = SmallVec<[Receivers; 1]>;

/// Who has received what.
#[derive(Clone, Debug)]
pub(crate) struct Receivers {
    pub(crate) members: Members,
    /// Of each member its part; all of them have everything if there is none.
    pub(crate) parts: Option<Arc<[Region]>>,
}

impl Receivers {
    /// What of a region a node has not received.
    fn lacking(&self, node: NodeId, region: Region) -> Region {
        match (self.members.rank(node), &self.parts) {
            (None, _) => region,
            (Some(_), None) => Region::empty(),
            (Some(rank), Some(parts)) => match parts.get(rank) {
                Some(has) => region.difference(has),
                None => region,
            },
        }
    }

    fn is(&self, other: &Self) -> bool {
        let same_parts = match (&self.parts, &other.parts) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same_parts && self.members == other.members
    }
}

/// More than so many are looked through for some that nobody names any more.
const FORGET_ABOVE: usize = 8;

impl Spreads {
    /// The name of data that has been spread as `before` says, and now to `receivers`.
    pub(crate) fn add(&mut self, before: Option<SpreadId>, receivers: &Receivers) -> SpreadId {
        let mut lists: Lists = match before {
            Some(before) => self.lists(before).clone(),
            None => smallvec![],
        };
        if !lists.iter().any(|list| list.is(receivers)) {
            lists.push(receivers.clone());
        }
        if let Some((name, _)) = self.known.iter().find(|(_, known)| are_same(known, &lists)) {
            return *name;
        }
        let name = SpreadId(self.made);
        self.made += 1;
        self.known.push((name, lists));
        name
    }

    /// What a node has not got of a part that has been spread.
    pub(crate) fn lacking(&self, spread: SpreadId, node: NodeId, part: Box3) -> Region {
        let lists = self.lists(spread).iter();
        lists.fold(part.into(), |lacking: Region, list| list.lacking(node, lacking))
    }

    /// Keeps what holdings name, if there is much else.
    pub(crate) fn forget_unused<I: Iterator<Item = SpreadId>>(
        &mut self,
        named: impl FnOnce() -> I,
    ) {
        if self.known.len() > FORGET_ABOVE {
            let named: Vec<SpreadId> = named().collect();
            self.known.retain(|(name, _)| named.contains(name));
        }
    }

    fn lists(&self, name: SpreadId) -> &Lists {
        let known = self.known.iter().find(|(known, _)| *known == name);
        &known.expect("what holdings name is known").1
    }
}

fn are_same(one: &Lists, other: &Lists) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.is(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(min: usize, length: usize) -> Region {
        Box3::from_offset_range([min], [length]).into()
    }

    /// What all nodes have got.
    fn to_all(parts: &[Region]) -> Receivers {
        Receivers { members: Members::all(), parts: Some(Arc::from(parts)) }
    }

    fn halves() -> Receivers {
        to_all(&[at(0, 4), at(4, 4)])
    }

    #[test]
    fn a_node_lacks_what_no_list_has_for_it() {
        let (mut spreads, halves) = (Spreads::default(), halves());
        let rows = spreads.add(None, &halves);
        let [n0, n1, n2] = [0, 1, 2].map(NodeId::from_index);
        let part = Box3::from_offset_range([2], [6]);
        assert_eq!(spreads.lacking(rows, n0, part), at(4, 4));
        assert_eq!(spreads.lacking(rows, n1, part), at(2, 2));
        assert_eq!(spreads.lacking(rows, n2, part), at(2, 6), "it has no part");
        let more = spreads.add(Some(rows), &to_all(&[at(4, 2)]));
        assert_eq!(spreads.lacking(more, n0, part), at(6, 2));
        assert_eq!(spreads.lacking(rows, n0, part), at(4, 4), "what was before is as it was");
    }

    #[test]
    fn who_is_no_member_has_got_nothing() {
        let mut spreads = Spreads::default();
        let [n0, n2, n3] = [0, 2, 3].map(NodeId::from_index);
        let members = Members::of([n0, n2], 4);
        let parts = Some(Arc::from([at(0, 4), at(4, 4)]));
        let some = spreads.add(None, &Receivers { members: members.clone(), parts });
        let part = Box3::from_range([8]);
        assert_eq!(spreads.lacking(some, n2, part), at(0, 4), "it is the second member");
        assert_eq!(spreads.lacking(some, n3, part), at(0, 8));
        let all = spreads.add(Some(some), &Receivers { members, parts: None });
        assert!(spreads.lacking(all, n2, part).is_empty());
        assert_eq!(spreads.lacking(all, n3, part), at(0, 8));
    }

    #[test]
    fn what_is_spread_alike_has_one_name() {
        let (mut spreads, halves) = (Spreads::default(), halves());
        let rows = spreads.add(None, &halves);
        assert_eq!(spreads.add(None, &halves), rows);
        assert_eq!(spreads.add(Some(rows), &halves), rows);
        assert_ne!(spreads.add(None, &self::halves()), rows, "lists are told apart by place");
        let fewer = Receivers { members: Members::range(0, 2, 9), ..halves };
        assert_ne!(spreads.add(None, &fewer), rows, "other nodes");
    }

    #[test]
    fn what_nobody_names_is_forgotten_once_it_is_much() {
        let mut spreads = Spreads::default();
        let names: Vec<SpreadId> = (0..20)
            .map(|_| {
                let last = spreads.made.checked_sub(1).map(SpreadId);
                spreads.forget_unused(|| last.into_iter());
                spreads.add(None, &halves())
            })
            .collect();
        assert!(spreads.known.len() <= FORGET_ABOVE + 1, "{}", spreads.known.len());
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
