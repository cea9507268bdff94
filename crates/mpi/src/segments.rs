//! A collective operation as MPI sees it: which elements a node sends and receives in one piece each,
//! and in how many rounds, since MPI counts in 31 bits. Geometry only: knows neither addresses nor
//! MPI, and comes to the same on all nodes.

use celerity_cdag::NodeId;
use celerity_cpd::{Collective, Ends, Pattern};
use celerity_regions::Region;

/// MPI's operation for a collective; roots by rank among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpiCollective {
    AllGather,
    Broadcast(usize),
    Gather(usize),
    Scatter(usize),
    AllToAll,
}

/// What one node sends and receives: one region per member, in order of nodes, or one in all where
/// the operation has one for all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) call: MpiCollective,
    pub(crate) sent: Vec<Region>,
    pub(crate) received: Vec<Region>,
}

/// How segments are cut: all of an operation into equally many parts of so many bytes each, but for
/// the last ones, which may be shorter or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
}

impl Segments {
    /// Those of `node`, a member, in a cluster of so many.
    pub(crate) fn new(collective: &Collective, node: NodeId, nodes: usize) -> Self {
        let all = || collective.members.iter(nodes);
        let provided = |other| collective.provided_by(other).into_owned();
        let to_each = || all().map(|other| collective.between(node, other)).collect();
        let from_each = || all().map(|other| collective.between(other, node)).collect();
        let none = Vec::new;
        let rank = |root: NodeId| collective.members.rank(root).expect("the root is a member");
        let root = |ends: &Ends| match ends {
            Ends::One(root) => *root,
            Ends::All | Ends::Each(_) => unreachable!("the pattern has one node at this end"),
        };
        let call = |call, sent, received| Self { call, sent, received };
        match collective.pattern() {
            Pattern::AllGather => {
                call(MpiCollective::AllGather, vec![provided(node)], all().map(provided).collect())
            }
            Pattern::Broadcast => {
                let (root, region) = (root(&collective.from), vec![collective.region.clone()]);
                let ends = if root == node { (region, none()) } else { (none(), region) };
                call(MpiCollective::Broadcast(rank(root)), ends.0, ends.1)
            }
            Pattern::Gather => {
                let root = root(&collective.to);
                let sent = vec![collective.between(node, root)];
                let received = if root == node { from_each() } else { none() };
                call(MpiCollective::Gather(rank(root)), sent, received)
            }
            Pattern::Scatter => {
                let root = root(&collective.from);
                let sent = if root == node { to_each() } else { none() };
                call(MpiCollective::Scatter(rank(root)), sent, vec![collective.between(root, node)])
            }
            Pattern::AllToAll => call(MpiCollective::AllToAll, to_each(), from_each()),
        }
    }
}

impl Rounds {
    /// Of an operation in a cluster of so many nodes, with at most `limit` bytes sent or received by any
    /// member in each round. O(members).
    pub(crate) fn new(collective: &Collective, elem_size: u64, nodes: usize, limit: u64) -> Self {
        let members = collective.members.count(nodes);
        let bytes = |region: &Region| region.volume().saturating_mul(elem_size);
        let all = bytes(&collective.region);
        let (largest_from, _) = sizes(&collective.from, all, bytes);
        let (largest_to, total_to) = sizes(&collective.to, all, bytes);
        let total = all.max(total_to);
        if total <= limit {
            return Self { count: 1, bytes: total };
        }
        let longest = match collective.pattern() {
            Pattern::Broadcast => all,
            Pattern::AllGather | Pattern::Gather => largest_from,
            Pattern::Scatter => largest_to,
            Pattern::AllToAll => largest_from.min(largest_to),
        };
        let shares = if collective.pattern() == Pattern::Broadcast { 1 } else { members as u64 };
        let share = (limit / shares).max(1);
        // Whole elements, so that they can be what is counted.
        let bytes = if share < elem_size { share } else { share / elem_size * elem_size };
        let count = usize::try_from(longest.div_ceil(bytes)).expect("it fits in memory");
        Self { count, bytes }
    }

    /// Where a segment's part of a round begins in it, and how long it is, in bytes.
    pub(crate) fn part(self, round: usize, length: u64) -> (u64, u64) {
        let start = (round as u64).saturating_mul(self.bytes).min(length);
        (start, (length - start).min(self.bytes))
    }
}

/// The largest part of any node, and all of them together where each has its own.
fn sizes(ends: &Ends, all: u64, bytes: impl Fn(&Region) -> u64) -> (u64, u64) {
    match ends {
        Ends::All | Ends::One(_) => (all, all),
        Ends::Each(parts) => {
            let parts = parts.iter().map(bytes);
            parts.fold((0, 0), |(most, sum), part| (most.max(part), sum.saturating_add(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use celerity_cpd::Members;
    use celerity_regions::Box3;

    use super::*;

    fn line(from: usize, length: usize) -> Region {
        Box3::from_offset_range([from], [length]).into()
    }

    fn gathered(lengths: &[usize]) -> Collective {
        let starts = lengths.iter().scan(0, |at, length| Some(std::mem::replace(at, *at + length)));
        let parts: Vec<_> = starts.zip(lengths).map(|(at, length)| line(at, *length)).collect();
        let region = line(0, lengths.iter().sum());
        let from = Ends::Each(Arc::from(parts));
        Collective { members: Members::all(), region, from, to: Ends::All }
    }

    #[test]
    fn what_is_sent_is_what_is_received() {
        let parts = Ends::Each(Arc::from([line(0, 3), Region::empty(), line(3, 4)]));
        let other = Ends::Each(Arc::from([line(1, 3), line(0, 7), Region::empty()]));
        let one = |node| Ends::One(NodeId::from_index(node));
        for (from, to) in [
            (parts.clone(), one(1)),
            (one(2), parts.clone()),
            (parts.clone(), other.clone()),
            (one(0), one(2)),
        ] {
            let collective = Collective { members: Members::all(), region: line(0, 7), from, to };
            let of = |node| Segments::new(&collective, NodeId::from_index(node as u64), 3);
            for (from, to) in (0..9).map(|pair| (pair / 3, pair % 3)) {
                let (Segments { call, sent, .. }, Segments { received, .. }) = (of(from), of(to));
                let pick = |all: &[Region], slot: usize| all.get(slot).cloned();
                let (sent, received) = match call {
                    MpiCollective::Gather(root) if to == root => {
                        (pick(&sent, 0), pick(&received, from))
                    }
                    MpiCollective::Scatter(root) if from == root => {
                        (pick(&sent, to), pick(&received, 0))
                    }
                    MpiCollective::AllToAll => (pick(&sent, to), pick(&received, from)),
                    _ => continue,
                };
                assert_eq!(sent, received, "{call:?} from {from} to {to}");
            }
        }
    }

    #[test]
    fn roots_and_parts_are_counted_among_the_members() {
        let [n1, n4, n6] = [1, 4, 6].map(NodeId::from_index);
        let members = Members::of([n1, n4, n6], 8);
        let parts = Ends::Each(Arc::from([line(0, 3), Region::empty(), line(3, 4)]));
        let (from, to) = (parts, Ends::One(n4));
        let gather = Collective { members, region: line(0, 7), from, to };
        let of_root = Segments::new(&gather, n4, 8);
        let received = vec![line(0, 3), Region::empty(), line(3, 4)];
        let call = MpiCollective::Gather(1);
        assert_eq!(of_root, Segments { call, sent: vec![Region::empty()], received });
        let sent = vec![line(3, 4)];
        assert_eq!(Segments::new(&gather, n6, 8), Segments { call, sent, received: Vec::new() });
        // Three members share the limit, not eight nodes.
        assert_eq!(Rounds::new(&gather, 1, 8, 6), Rounds { count: 2, bytes: 2 });
    }

    #[test]
    fn what_is_small_goes_in_one_round() {
        let collective = gathered(&[3, 0, 4]);
        assert_eq!(Rounds::new(&collective, 4, 3, 28), Rounds { count: 1, bytes: 28 });
    }

    #[test]
    fn rounds_keep_the_limit_and_cover_all_segments() {
        let lengths = [300, 7, 0, 121];
        let collective = gathered(&lengths);
        for limit in [1, 5, 40, 41, 100, 1711] {
            let rounds = Rounds::new(&collective, 4, 4, limit);
            let mut covered = [0; 4];
            for round in 0..rounds.count {
                let parts = lengths.map(|length| rounds.part(round, 4 * length as u64));
                assert!(parts.iter().map(|part| part.1).sum::<u64>() <= limit.max(4));
                for (covered, (start, length)) in covered.iter_mut().zip(parts) {
                    assert!(length == 0 || start == *covered);
                    *covered += length;
                }
            }
            assert_eq!(covered, lengths.map(|length| 4 * length as u64), "{limit}");
        }
    }

    #[test]
    fn overlapping_parts_count_as_often_as_they_are_sent() {
        let parts = Ends::Each(Arc::from([line(0, 10), line(0, 10), line(0, 10)]));
        let scattered = Collective {
            members: Members::all(),
            region: line(0, 10),
            from: Ends::One(NodeId::from_index(0)),
            to: parts,
        };
        assert_eq!(Rounds::new(&scattered, 1, 3, 20), Rounds { count: 2, bytes: 6 });
        assert_eq!(Rounds::new(&scattered, 1, 3, 30).count, 1);
    }
}
