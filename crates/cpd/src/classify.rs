//! Second step of discovery: which collective operation a forward amounts to on so many nodes
//! (IJPP 2024, §3.2 and table 2). A function of data that every node has, so all nodes decide
//! alike. Knows who is assigned what, not which node decides.

use celerity_regions::{Box3, Region};
use celerity_tdag::Forward;

use crate::collective::{Collective, Ends};
use crate::members::Members;
use crate::node::NodeId;
use crate::parts::{End, PartsCache, RegionPartition};
use crate::spread::{Spread, read, same_geometry, same_mappers, written};

/// What a forward of `region`, elements of a buffer of extent `buffer`, amounts to on so many
/// nodes; nothing if no collective fits, and then elements move between pairs of nodes when they
/// are needed. The same on all nodes.
///
/// | producing nodes | consuming nodes | mappers of the consumer | operation |
/// | --- | --- | --- | --- |
/// | several | one | any | gather |
/// | several | all, or the first ones, among them those that produce | constant | all-gather |
/// | one | all, or the first ones | constant | broadcast |
/// | one | several | keep nodes apart | scatter |
/// | several | several | a non-trivial transposition of the producer's | all-to-all |
///
/// The nodes that have something before or afterwards take part, and no others: that goes beyond the
/// paper, where all nodes do. Fences and [combinations](celerity_tdag::Work::Combine) are on all nodes, which read the same. A consumer with
/// several accesses is constant if those of them that are read all of `region`.
///
/// O(1) for parts that are cached. Parts are made of O(nodes) evaluations of mappers, and only
/// where the numbers of nodes and what is known of the mappers may fit an operation. Users'
/// mappers are asked for each chunk; those of consumers must have promised to keep chunks apart. A
/// mapper that lies makes no operation: parts that overlap, or leave out some of `region`, fit
/// nothing.
#[must_use]
pub fn classify(
    forward: &Forward,
    region: &Region,
    buffer: Box3,
    nodes: usize,
    parts: &mut PartsCache,
) -> Option<Collective> {
    if nodes < 2 || region.is_empty() {
        return None;
    }
    let [producer, consumer] = [&forward.producer, &forward.consumer].map(|end| {
        let (work, accesses) = (&end.work, &*end.accesses);
        End { work, accesses, region, buffer, nodes }
    });
    if is_assigned_alike(&producer, &consumer) {
        return None;
    }
    let (after, before) = (after(&consumer)?, before(&producer)?);
    let before = Held::of(before, &producer, parts)?;
    let after = Held::of(after, &consumer, parts)?;
    let fits = match (&before, &after) {
        (Held::One(_), Held::One(_)) => false,
        (Held::Parts(before), Held::First(_)) => {
            let readers = after.nodes(nodes);
            before.filled.iter(nodes).all(|node| readers.contains(node))
        }
        (Held::Parts(before), Held::Parts(after)) => {
            is_transposed((&producer, before), (&consumer, after))
        }
        _ => true,
    };
    fits.then(|| {
        let members = before.nodes(nodes).union(&after.nodes(nodes), nodes);
        let [from, to] = [before, after].map(|held| held.into_ends(&members, parts));
        Collective { members, region: region.clone(), from, to }
    })
}

/// How elements are spread over nodes.
#[derive(Debug)]
enum Held {
    All,
    /// So many of the first nodes have everything.
    First(usize),
    One(NodeId),
    /// At least two nodes have a part.
    Parts(RegionPartition),
}

/// Who has written the elements; nothing if nobody has, or everybody.
fn before(producer: &End<'_>) -> Option<Spread> {
    match written(producer.work, producer.nodes)? {
        Spread::One(_) if !producer.covers(|_| true) => None,
        spread => Some(spread),
    }
}

/// Who reads the elements; nothing if that fits no operation, whoever has written them.
fn after(consumer: &End<'_>) -> Option<Spread> {
    match read(consumer.work, consumer.accesses.iter(), consumer.nodes)? {
        (Spread::All | Spread::First(_), Some(cut))
            if !consumer.covers(|mapper| cut.is_constant(mapper)) =>
        {
            None
        }
        (spread, _) => Some(spread),
    }
}

/// Whether every node reads what it has written: work of one geometry is assigned alike (IJPP 2024,
/// Algorithm 1).
fn is_assigned_alike(producer: &End<'_>, consumer: &End<'_>) -> bool {
    same_geometry(producer.work, consumer.work)
        && same_mappers(producer.accesses.iter(), consumer.accesses.iter())
}

/// The last four of the five conditions for an all-to-all (IJPP 2024, §3.2), after the first: each
/// task has one access, and it is to the region alone. Then nodes have slabs across one dimension
/// and read slabs across another one, so that each reads a part of each other's.
fn is_transposed(
    before: (&End<'_>, &RegionPartition),
    after: (&End<'_>, &RegionPartition),
) -> bool {
    let is_whole = |(end, _): (&End<'_>, &RegionPartition)| match end.accesses {
        [only] => end.image(only, end.work.extent()) == *end.region,
        _ => false,
    };
    let slabs = [before.1.along, after.1.along];
    matches!(slabs, [Some(across), Some(other)] if across != other)
        && is_whole(before)
        && is_whole(after)
}

impl Held {
    fn of(spread: Spread, end: &End<'_>, cache: &mut PartsCache) -> Option<Self> {
        match spread {
            Spread::All => Some(Self::All),
            Spread::First(count) => Some(Self::First(count)),
            Spread::One(node) => Some(Self::One(node)),
            Spread::Parts => cache.parts(end).map(|parts| match parts.only {
                Some(node) => Self::One(node),
                None => Self::Parts(parts),
            }),
        }
    }

    /// Who has something, in a cluster of so many nodes.
    fn nodes(&self, cluster: usize) -> Members {
        match self {
            Self::All => Members::all(),
            Self::First(count) => Members::range(0, *count, cluster),
            Self::One(node) => Members::range(node.slot(), node.slot() + 1, cluster),
            Self::Parts(parts) => parts.filled.clone(),
        }
    }

    fn into_ends(self, members: &Members, cache: &mut PartsCache) -> Ends {
        match self {
            Self::All | Self::First(_) => Ends::All,
            Self::One(node) => Ends::One(node),
            Self::Parts(parts) => Ends::Each(cache.narrowed(&parts.each, members)),
        }
    }
}
