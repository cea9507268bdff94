//! How tasks spread elements over nodes, as far as work and metadata of mappers tell. Evaluates no
//! mapper, and asks no code of users: may be used where nobody must be kept waiting.

use celerity_regions::{Box3, Grid};
use celerity_tdag::{BufferAccess, DimRelation, IndexSpace, Mapper, Work};

use crate::assign::Chunks;
use crate::node::NodeId;

/// How elements are spread over nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Every node has all of them.
    All,
    /// The first ones have, so many that they are neither one nor all.
    First(usize),
    /// One node has.
    One(NodeId),
    /// Each node may have a part.
    Parts,
}

/// Where elements are that work has written; nothing if it writes none, or the same everywhere.
pub(crate) fn written(work: &Work, nodes: usize) -> Option<Spread> {
    match work {
        Work::Device(_) | Work::HostSplit { .. } | Work::HostOnce { .. } => {
            Some(single(&Chunks::of(work, nodes)).map_or(Spread::Parts, Spread::One))
        }
        Work::Combine { .. } | Work::Fence | Work::Forward | Work::Horizon | Work::Epoch(_) => None,
    }
}

/// Where elements are needed that work reads through some mappers; nothing if that fits no
/// operation, whoever has written them. If accesses are constant only as the work is cut, how it
/// is.
pub(crate) fn read<'a>(
    work: &Work,
    mut accesses: impl Iterator<Item = &'a BufferAccess> + Clone,
    nodes: usize,
) -> Option<(Spread, Option<Cut>)> {
    let space = match work {
        Work::Fence | Work::Combine { .. } => return Some((Spread::All, None)),
        Work::Forward | Work::Horizon | Work::Epoch(_) => return None,
        Work::HostOnce { .. } => {
            return single(&Chunks::of(work, nodes)).map(|node| (Spread::One(node), None));
        }
        Work::Device(space) | Work::HostSplit { space, .. } => space,
    };
    let grid = space.split(&space.extent, nodes);
    if let Some(node) = single(&Chunks::Split(grid)) {
        return Some((Spread::One(node), None));
    }
    let cut = Cut::of(&grid, space);
    let mut constant = accesses.clone().filter(|access| cut.is_constant(&access.mapper));
    if constant.next().is_some() {
        let spread = if grid.len() == nodes { Spread::All } else { Spread::First(grid.len()) };
        return Some((spread, Some(cut)));
    }
    let apart = accesses.all(|access| cut.keeps_apart(&access.mapper));
    apart.then_some((Spread::Parts, Some(cut)))
}

/// The node that does all of the work, if it is one.
fn single(chunks: &Chunks) -> Option<NodeId> {
    match chunks {
        Chunks::Single(node) => Some(NodeId::from_index(*node as u64)),
        Chunks::Split(grid) if grid.len() == 1 => Some(NodeId::from_index(0)),
        Chunks::Split(_) | Chunks::Units(_) => None,
    }
}

/// Whether two mappers are the same. Of users', clones are.
#[inline]
pub(crate) fn same_mapper(one: &Mapper, other: &Mapper) -> bool {
    match (one, other) {
        (Mapper::User(one), Mapper::User(other)) => one.is_clone_of(other),
        (Mapper::User(_), _) | (_, Mapper::User(_)) => false,
        (one, other) => one == other,
    }
}

/// Whether the mappers of some accesses are those of others, in the same order.
pub(crate) fn same_mappers<'a>(
    mut accesses: impl Iterator<Item = &'a BufferAccess>,
    mut others: impl Iterator<Item = &'a BufferAccess>,
) -> bool {
    loop {
        match (accesses.next(), others.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if same_mapper(&one.mapper, &other.mapper) => {}
            _ => return false,
        }
    }
}

/// Along which dimensions an index space is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut([bool; 3]);

impl Cut {
    /// That of a grid over `space`.
    pub(crate) fn of(grid: &Grid, space: &IndexSpace) -> Self {
        let (chunk, all) = (grid.get(0).unwrap_or(Box3::EMPTY).range(), space.extent.range());
        Self(std::array::from_fn(|dim| chunk[dim] < all[dim]))
    }

    /// Whether all chunks that are not empty have the same image under `mapper`.
    pub(crate) fn is_constant(self, mapper: &Mapper) -> bool {
        if let Mapper::User(_) = mapper {
            return mapper.is_constant();
        }
        let follows_no_cut = |dim| match follows(mapper.relation(dim), dim) {
            Follows::Nothing => true,
            Follows::Apart(from) | Follows::Overlapping(from) => !self.is_along(from),
            Follows::Unknown => false,
        };
        mapper.is_constant() || (0..3).all(follows_no_cut)
    }

    /// Whether different chunks have no element in common under `mapper`. What users say of
    /// theirs is believed.
    pub(crate) fn keeps_apart(self, mapper: &Mapper) -> bool {
        if let Mapper::User(_) = mapper {
            return mapper.is_disjoint(&Box3::EMPTY);
        }
        let kept =
            |from| (0..3).any(|dim| follows(mapper.relation(dim), dim) == Follows::Apart(from));
        (0..3).all(|from| !self.is_along(from) || kept(from))
    }

    /// The only dimension of the buffer along which images of different chunks differ, if there is
    /// one and they are apart.
    pub(crate) fn across(self, mapper: &Mapper) -> Option<usize> {
        let mut found = None;
        for dim in 0..3 {
            match (follows(mapper.relation(dim), dim), found) {
                (Follows::Apart(from), None) if self.is_along(from) => found = Some(dim),
                (Follows::Apart(from) | Follows::Overlapping(from), _) if !self.is_along(from) => {}
                (Follows::Nothing, _) => {}
                _ => return None,
            }
        }
        found
    }

    fn is_along(self, dim: usize) -> bool {
        self.0.get(dim).is_some_and(|cut| *cut)
    }
}

/// Whether two tasks are assigned alike on any number of nodes. How many chunks each device gets is
/// no matter of nodes.
#[inline]
pub(crate) fn same_geometry(one: &Work, other: &Work) -> bool {
    match (one, other) {
        (
            Work::Device(one) | Work::HostSplit { space: one, .. },
            Work::Device(other) | Work::HostSplit { space: other, .. },
        ) => {
            one.extent == other.extent
                && one.split == other.split
                && one.granularity == other.granularity
        }
        (Work::HostOnce { node }, Work::HostOnce { node: other }) => node == other,
        _ => false,
    }
}

/// The dimension of the index space that one dimension of an image depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    Nothing,
    /// Items that differ along it have different elements.
    Apart(usize),
    /// They may share elements.
    Overlapping(usize),
    Unknown,
}

fn follows(relation: DimRelation, dim: usize) -> Follows {
    match relation {
        DimRelation::Constant => Follows::Nothing,
        DimRelation::Identity => Follows::Apart(dim),
        DimRelation::Padded(_) | DimRelation::Periodic(_) => Follows::Overlapping(dim),
        DimRelation::Share(share) => Follows::Apart(share.from.into()),
        DimRelation::Windows(windows) if windows.width <= windows.stride => {
            Follows::Apart(windows.from.into())
        }
        DimRelation::Windows(windows) => Follows::Overlapping(windows.from.into()),
        // `Opaque`, and what is not known here: to know nothing is right of every relation.
        _ => Follows::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{Side, UserMapper};

    use super::*;

    const ROWS: Cut = Cut([true, false, false]);
    const TILES: Cut = Cut([true, true, false]);

    #[test]
    fn what_a_mapper_does_depends_on_where_its_index_space_is_cut() {
        let transposed = Mapper::per_dimension(&[Side::along(1), Side::along(0)]);
        let across = Mapper::neighborhood([0, 1]);
        for (mapper, rows, tiles) in [
            (Mapper::All, (true, false), (true, false)),
            (Mapper::OneToOne, (false, true), (false, true)),
            (Mapper::Slice { dim: 0 }, (true, false), (false, false)),
            (Mapper::Slice { dim: 1 }, (false, true), (false, false)),
            (Mapper::neighborhood([1, 0]), (false, false), (false, false)),
            (across, (false, true), (false, false)),
            (transposed, (false, true), (false, true)),
        ] {
            let known = |cut: Cut| (cut.is_constant(&mapper), cut.keeps_apart(&mapper));
            assert_eq!((known(ROWS), known(TILES)), (rows, tiles), "{mapper}");
        }
    }

    #[test]
    fn grids_are_cut_where_there_are_several_chunks() {
        let granularity = [4, 1, 1];
        let space = IndexSpace { granularity, ..IndexSpace::new(2, Box3::from_range([8, 8])) };
        let of = |parts| Cut::of(&space.split(&space.extent, parts), &space);
        assert_eq!((of(1), of(2), of(9)), (Cut([false; 3]), ROWS, ROWS));
    }

    #[test]
    fn users_are_believed() {
        let all = |input: &celerity_tdag::MapperInput| input.buffer.into();
        let [plain, disjoint] = [UserMapper::new(all), UserMapper::disjoint(all)].map(Mapper::User);
        assert_eq!((TILES.keeps_apart(&plain), TILES.keeps_apart(&disjoint)), (false, true));
    }
}
