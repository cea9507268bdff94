//! The laws of splits: coverage, disjointness, granularity, order and number of chunks.

use celerity_regions::{Box3, Grid, Region, split_1d, split_2d, split_along};
use proptest::prelude::*;

fn space() -> impl Strategy<Value = Box3> {
    let side = || (0..50u64, 0..200u64);
    (side(), side(), (0..3u64, 0..4u64))
        .prop_map(|(x, y, z)| Box3::new([x.0, y.0, z.0], [x.0 + x.1, y.0 + y.1, z.0 + z.1]))
}

/// The extents along `dim` of chunks that form one line, checked against the laws.
fn check_line(
    space: &Box3,
    dim: usize,
    granule: u64,
    extents: &[(u64, u64)],
) -> Result<(), TestCaseError> {
    let range = space.range()[dim];
    let mut at = space.min()[dim];
    let whole = extents.len() - 1;
    for (i, &(lo, hi)) in extents.iter().enumerate() {
        prop_assert_eq!(lo, at, "chunks leave a gap or overlap");
        prop_assert!(hi > lo, "a chunk is empty");
        prop_assert!(i == whole || (hi - lo) % granule == 0, "a chunk cuts a granule");
        at = hi;
    }
    prop_assert_eq!(at, space.max()[dim]);
    let mut sizes: Vec<u64> = extents.iter().map(|(lo, hi)| (hi - lo) / granule).collect();
    prop_assert!(sizes.is_sorted_by(|a, b| a >= b), "larger chunks come first: {:?}", sizes);
    prop_assert!(sizes[0] - sizes.pop().unwrap() <= 1 || range < granule);
    Ok(())
}

proptest! {
    #[test]
    fn one_dimensional_splits(space in space(), dim in 0..3usize, granule in 1..20u64,
                              parts in 1..20usize) {
        let chunks = split_along(&space, dim, [granule; 3], parts);
        if space.is_empty() {
            prop_assert!(chunks.is_empty());
            return Ok(());
        }
        prop_assert_eq!(chunks.len() as u64, (space.range()[dim] / granule).clamp(1, parts as u64));
        let extents: Vec<_> = chunks.iter().map(|c| (c.min()[dim], c.max()[dim])).collect();
        check_line(&space, dim, granule, &extents)?;
        prop_assert_eq!(Region::from_boxes(chunks.iter().copied()), Region::from(space));
        if dim == 0 {
            prop_assert_eq!(split_1d(&space, [granule; 3], parts), chunks);
        }
    }

    #[test]
    fn two_dimensional_splits(space in space(), g0 in 1..20u64, g1 in 1..20u64,
                              parts in 1..40usize) {
        let tiles = split_2d(&space, [g0, g1, 1], parts);
        if space.is_empty() {
            prop_assert!(tiles.is_empty());
            return Ok(());
        }
        prop_assert!(tiles.is_sorted_by(|a, b| a < b), "tiles come in row-major order");
        let volume: u64 = tiles.iter().map(Box3::volume).sum();
        prop_assert_eq!(volume, space.volume());
        prop_assert_eq!(Region::from_boxes(tiles.iter().copied()), Region::from(space));

        let columns = tiles.iter().take_while(|t| t.min()[0] == space.min()[0]).count();
        let row: Vec<_> = tiles[..columns].iter().map(|t| (t.min()[1], t.max()[1])).collect();
        check_line(&space, 1, g1, &row)?;
        let firsts = tiles.iter().step_by(columns);
        check_line(&space, 0, g0, &firsts.map(|t| (t.min()[0], t.max()[0])).collect::<Vec<_>>())?;

        let max = [(space.range()[0] / g0).max(1), (space.range()[1] / g1).max(1)];
        let parts = parts as u64;
        let factors = (1..=parts).filter(|f| parts.is_multiple_of(*f));
        let most = factors.map(|f| f.min(max[0]) * (parts / f).min(max[1])).max();
        prop_assert_eq!(Some(tiles.len() as u64), most, "more tiles were possible");
    }

    #[test]
    fn grids_know_who_is_near(space in space(), part in space(), dim in 0..4usize,
                              granule in 1..20u64, parts in 1..60usize) {
        let grid = match dim {
            3 => Grid::tiled(&space, [granule, granule + 1, 1], parts),
            dim => Grid::along(&space, dim, [granule; 3], parts),
        };
        let chunks: Vec<Box3> = grid.iter().collect();
        prop_assert_eq!((grid.len(), grid.is_empty()), (chunks.len(), chunks.is_empty()));
        prop_assert_eq!(grid.get(chunks.len()), None);
        let mut near = Vec::new();
        grid.for_each_touching(&part, |position, chunk| near.push((position, chunk)));
        let all = chunks.into_iter().enumerate();
        let touching = all.filter(|(_, chunk)| chunk.intersects(&part));
        prop_assert_eq!(near, touching.collect::<Vec<_>>());
    }
}
