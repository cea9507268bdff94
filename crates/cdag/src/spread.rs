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

    /// Whether it says the same. Where lists are not the same one, O(members).
    fn is(&self, other: &Self) -> bool {
        self.members == other.members
            && match (&self.parts, &other.parts) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
                (None, None) => true,
                _ => false,
            }
    }

    /// Whether who has received this has received `other`, too, as far as single lists tell.
    fn includes(&self, other: &Self) -> bool {
        let includes = |(has, part): (&Region, &Region)| has.contains(part);
        self.members == other.members
            && match (&self.parts, &other.parts) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(one), Some(other)) => {
                    Arc::ptr_eq(one, other) || one.iter().zip(&**other).all(includes)
                }
            }
    }

    /// Takes in what the same members have received besides.
    fn merge(&mut self, other: &Self) {
        self.parts = match (&self.parts, &other.parts) {
            (Some(one), Some(other)) => {
                Some(one.iter().zip(&**other).map(|(one, other)| one.union(other)).collect())
            }
            _ => None,
        };
    }
}

/// More lists than so many become one, where they are of the same members: data that is written once may be spread in
/// other ways for as long as the program runs.
const MOST_LISTS: usize = 4;

/// More than so many are looked through for some that nobody names any more.
const FORGET_ABOVE: usize = 8;

impl Spreads {
    /// The name of data that has been spread as `before` says, and now to `receivers`.
    pub(crate) fn add(&mut self, before: Option<SpreadId>, receivers: &Receivers) -> SpreadId {
        let mut lists: Lists = match before {
            Some(before) => self.lists(before).clone(),
            None => smallvec![],
        };
        if !lists.iter().any(|list| list.includes(receivers)) {
            let full = lists.len() >= MOST_LISTS;
            match lists.iter_mut().find(|list| full && list.members == receivers.members) {
                Some(list) => list.merge(receivers),
                None => lists.push(receivers.clone()),
            }
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
        assert_eq!(spreads.add(None, &self::halves()), rows, "another list that says the same");
        assert_eq!(spreads.add(Some(rows), &to_all(&[at(1, 2), at(4, 4)])), rows, "all have that");
        let fewer = Receivers { members: Members::range(0, 2, 9), ..halves };
        assert_ne!(spreads.add(None, &fewer), rows, "other nodes");
    }

    #[test]
    fn data_that_is_spread_in_ever_new_ways_has_few_lists() {
        let mut spreads = Spreads::default();
        let mut name = spreads.add(None, &halves());
        for n in 8..40 {
            name = spreads.add(Some(name), &to_all(&[at(n, 1), at(2 * n, 1)]));
        }
        assert_eq!(spreads.lists(name).len(), MOST_LISTS);
        let lacks = |node, begin, length| {
            let part = Box3::from_offset_range([begin], [length]);
            spreads.lacking(name, NodeId::from_index(node), part)
        };
        assert_eq!(lacks(0, 0, 48), at(4, 4).union(&at(40, 8)));
        assert_eq!(lacks(1, 0, 16), at(0, 4).union(&at(8, 8)));
        assert_eq!(lacks(1, 18, 2), at(19, 1));
    }

    #[test]
    fn what_nobody_names_is_forgotten_once_it_is_much() {
        let mut spreads = Spreads::default();
        let names: Vec<SpreadId> = (0..20)
            .map(|n| {
                let last = spreads.made.checked_sub(1).map(SpreadId);
                spreads.forget_unused(|| last.into_iter());
                spreads.add(None, &to_all(&[at(n, 1), at(4, 4)]))
            })
            .collect();
        assert!(spreads.known.len() <= FORGET_ABOVE + 1, "{}", spreads.known.len());
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
