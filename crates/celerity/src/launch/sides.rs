//! Range mappers that say of each dimension of a buffer what an item has of it, in the numbers that devices find that
//! out by.

use celerity_kernel::abi::{PartSide, PartSides};
use celerity_regions::Box3;
use celerity_tdag::{self as tdag, Mapper, Share, Windows};

/// What items of `global` have of `buffer` by `mapper`; `None` if it says no such thing, or takes numbers that devices do
/// not count with. What windows leave the buffer by is cut off, as for CPUs.
pub(super) fn of(mapper: &Mapper, global: &Box3, buffer: &Box3) -> Option<PartSides> {
    let mut sides = [PartSide::ALL_OF_NONE; 3];
    for (dim, side) in sides.iter_mut().enumerate() {
        let said = match mapper {
            Mapper::Slice { dim: whole } if usize::from(*whole) != dim => {
                tdag::Side::along(dim as u8)
            }
            Mapper::Slice { .. } => tdag::Side::All,
            Mapper::PerDimension(mapper) => {
                mapper.sides().get(dim).copied().unwrap_or(tdag::Side::All)
            }
            _ => return None,
        };
        *side = lowered(&said, (dim, global, buffer))?;
    }
    Some(sides)
}

/// What a side says of dimension `dim` of `buffer`.
fn lowered(side: &tdag::Side, (dim, global, buffer): (usize, &Box3, &Box3)) -> Option<PartSide> {
    let index = |coordinate: u64| usize::try_from(coordinate).ok();
    Some(match *side {
        tdag::Side::All => PartSide::constant(0..index(buffer.max()[dim])?),
        tdag::Side::Only { min, max } => PartSide::constant(index(min)?..index(max)?),
        tdag::Side::Windows(Windows { from, stride, first, width, clamped: _ }) => {
            PartSide::Window {
                from: from.into(),
                stride: index(stride)?,
                first: isize::try_from(first).ok()?,
                width: index(width)?,
            }
        }
        tdag::Side::Share(Share { from, granularity }) => {
            let along = usize::from(from);
            let first = *global.min().get(along)?;
            PartSide::Share {
                from: along,
                first: index(first)?,
                count: u32::try_from(global.max()[along] - first).ok()?.max(1),
                granule: index(granularity.max(1))?,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use celerity_tdag::MapperInput;

    use super::*;

    /// What an item has by what a device is told of a side.
    fn has(side: &PartSide, item: [u64; 3], size: u64) -> Range<u64> {
        let within = |element: i128| element.clamp(0, size.into()) as u64;
        match *side {
            PartSide::Window { from, stride, first, width } => {
                let begins = stride as i128 * i128::from(item[from]) + first as i128;
                within(begins)..within(begins + width as i128)
            }
            PartSide::Share { from, first, count, granule } => {
                let granules = size.div_ceil(granule as u64);
                let begins = |item: u64| {
                    let nth = (item - first as u64) * granules / u64::from(count);
                    within(i128::from(nth) * granule as i128)
                };
                begins(item[from])..begins(item[from] + 1)
            }
        }
    }

    #[test]
    fn devices_are_told_what_mappers_say() {
        let window = |from, stride, first, width| {
            tdag::Side::Windows(Windows { from, stride, first, width, clamped: true })
        };
        let share = |from, granularity| tdag::Side::Share(Share { from, granularity });
        let sides = [
            tdag::Side::All,
            tdag::Side::Only { min: 2, max: 5 },
            tdag::Side::along(0),
            window(1, 3, -4, 2),
            window(0, 0, 1, 4),
            window(2, 5, 1, 9),
            share(0, 0),
            share(1, 1),
            share(2, 3),
        ];
        let global = Box3::from_offset_range([2, 1, 0], [4, 3, 2]);
        let buffer = Box3::from_range([7, 5, 10]);
        let mut mappers = Vec::from([0, 1, 2].map(|dim| Mapper::Slice { dim }));
        for (nth, &side) in sides.iter().enumerate() {
            let [second, third] = [1, 2].map(|step| sides[(nth + step) % sides.len()]);
            mappers.push(Mapper::per_dimension(&[side, second, third]));
            mappers.push(Mapper::per_dimension(&[second, side]));
        }
        for mapper in mappers {
            let told = of(&mapper, &global, &buffer).unwrap();
            for (z, y, x) in (2..6)
                .flat_map(|z| (1..4).map(move |y| (z, y)))
                .flat_map(|(z, y)| (0..2).map(move |x| (z, y, x)))
            {
                let (item, next) = ([z, y, x], [z + 1, y + 1, x + 1]);
                let parts: [_; 3] =
                    std::array::from_fn(|dim| has(&told[dim], item, buffer.max()[dim]));
                let part = Box3::new(
                    parts.each_ref().map(|part| part.start),
                    parts.each_ref().map(|part| part.end),
                );
                let input = MapperInput { chunk: Box3::new(item, next), global, buffer };
                assert_eq!(mapper.map(&input), part.into(), "{mapper}, {item:?}");
            }
        }
    }

    #[test]
    fn what_only_hosts_know_is_not_told() {
        let space = Box3::from_range([4]);
        for mapper in [Mapper::OneToOne, Mapper::All, Mapper::fixed(space)] {
            assert_eq!(of(&mapper, &space, &space), None, "{mapper}");
        }
        // Shares of more items than 32 bits count.
        let many = Box3::from_range([1 << 32]);
        let shares = Mapper::per_dimension(&[tdag::Side::Share(Share { from: 0, granularity: 1 })]);
        assert_eq!(of(&shares, &many, &many), None);
        assert!(of(&shares, &space, &many).is_some());
    }
}
