//! Cutting regions: into parts that need an allocation each, and into parts
//! that different consumers wait for. And joining what was cut for no reason.

use celerity_regions::{Box3, Region};
use smallvec::{SmallVec, smallvec};

use crate::box_groups::{BoxGroups, join_all};

pub(crate) type Pieces = SmallVec<[Region; 2]>;

/// Boxes that lie in one piece each.
pub(crate) type Boxes = SmallVec<[Box3; 3]>;

/// From so many on, boxes are joined all at once: one by one, each would be compared with all others.
pub(crate) const MANY: usize = if cfg!(any(miri, feature = "mutants")) { 3 } else { 32 };

/// So many pieces of a region are sent and received each by itself: who needs one does not wait for the others. Of more, as where
/// tables say what is read, all that lies in one allocation comes at once, and what is small leaves in [bundles](crate::bundles).
pub(crate) const MOST_APART: usize = if cfg!(feature = "mutants") { 4 } else { 16 };

/// The parts of a region whose bounding boxes do not overlap or touch: each
/// needs a contiguous allocation, since a sender's box may span it (instruction-graph preprint,
/// §3.4 b).
pub(crate) fn contiguous_pieces(region: &Region) -> Pieces {
    match region.boxes() {
        [] => return Pieces::new(),
        [_] => return smallvec![region.clone()],
        _ => {}
    }
    /// The few move to the many.
    fn join(group: &mut Vec<Box3>, mut other: Vec<Box3>) {
        if other.len() > group.len() {
            std::mem::swap(group, &mut other);
        }
        group.append(&mut other);
    }
    let boxes = region.boxes().iter().map(|part| (*part, vec![*part]));
    if boxes.len() >= MANY {
        let groups = join_all(boxes.collect(), touches, |(bounds, group), (others, other)| {
            *bounds = bounds.bounding(&others);
            join(group, other);
        });
        return groups.into_iter().map(|(_, parts)| Region::from_boxes(parts)).collect();
    }
    let mut groups = BoxGroups::new(touches);
    boxes.for_each(|(part, group)| groups.add(part, group, join));
    groups.into_groups().map(|(_, parts)| Region::from_boxes(parts)).collect()
}

/// What is copied of a region from one allocation to another at a time: each of its boxes, unless they are many.
pub(crate) fn apart_or_together(region: Region) -> Pieces {
    match region.boxes() {
        [] => Pieces::new(),
        [_, _, ..] if region.boxes().len() <= MOST_APART => {
            region.boxes().iter().map(|part| Region::from(*part)).collect()
        }
        _ => smallvec![region],
    }
}

/// Visits the [`contiguous_pieces`] of a region. What is a single box, as nearly all
/// regions are, is not built anew.
fn for_each_piece(region: &Region, mut visit: impl FnMut(&Region)) {
    match region.boxes() {
        [] => {}
        [_] => visit(region),
        _ => contiguous_pieces(region).iter().for_each(visit),
    }
}

/// A box of this many times the elements that are needed of it is worth having, if they are many pieces: one allocation for all, as
/// kernels that read them have, costs less than one for each.
const SPREAD: u64 = 256;

/// So is one of any number of times the elements, if it has no more bytes than this.
const MOST_SPREAD: u64 = if cfg!(feature = "mutants") { 1 << 10 } else { 256 << 20 };

/// Visits boxes that regions need in one piece each, if messages leave from them or arrive in them, and how many elements of each are needed: the
/// bounds of its [`contiguous_pieces`]; or, if these are many, a box around all of them, which is needed as a whole.
fn for_each_place(region: &Region, elem_size: u64, mut visit: impl FnMut(Box3, u64)) {
    let single = |piece: &Region| (piece.bounding_box(), piece.volume());
    if region.boxes().len() <= MOST_APART {
        return for_each_piece(region, |piece| {
            let (bounds, needed) = single(piece);
            visit(bounds, needed);
        });
    }
    let pieces = contiguous_pieces(region);
    let (around, needed) = single(region);
    let is_small = around.volume().saturating_mul(elem_size) <= MOST_SPREAD;
    if pieces.len() > MOST_APART && (is_small || around.volume() / SPREAD <= needed) {
        return visit(around, around.volume());
    }
    pieces.iter().map(single).for_each(|(bounds, needed)| visit(bounds, needed));
}

/// The boxes that regions need in one piece each, if messages arrive in them.
pub(crate) fn contiguous_boxes<'a>(
    regions: impl IntoIterator<Item = &'a Region>,
    elem_size: u64,
) -> Boxes {
    let mut boxes = Boxes::new();
    for region in regions {
        for_each_place(region, elem_size, |bounds, _| boxes.push(bounds));
    }
    boxes
}

/// Boxes that hold a region where nobody needs it in one piece: the bounds of
/// its [`contiguous_pieces`], but for those that are mostly empty.
pub(crate) fn compact_boxes(region: &Region) -> Boxes {
    let mut boxes = Boxes::new();
    for_each_piece(region, |piece| {
        let bounds = piece.bounding_box();
        if is_compact(&bounds, piece.volume()) {
            boxes.push(bounds);
        } else {
            boxes.extend_from_slice(piece.boxes());
        }
    });
    boxes
}

/// Boxes that messages can be sent from: the bounds of [`contiguous_pieces`],
/// joined where they overlap. What would be mostly empty is left out, such as
/// the borders of a tile, which overlap in its corners.
pub(crate) fn departure_boxes<'a>(
    regions: impl IntoIterator<Item = &'a Region>,
    elem_size: u64,
) -> Boxes {
    let compact = |(bounds, needed)| is_compact(&bounds, needed).then_some(bounds);
    let mut pieces: SmallVec<[(Box3, u64); 4]> = SmallVec::new();
    let mut last = None;
    for region in regions {
        // What an all-gather sends is the same for all.
        if last != Some(region) {
            for_each_place(region, elem_size, |bounds, needed| pieces.push((bounds, needed)));
            last = Some(region);
        }
    }
    if let [single] = *pieces {
        return compact(single).into_iter().collect();
    }
    let meet = |a: &Box3, b: &Box3| a.intersects(b);
    if pieces.len() >= MANY {
        let groups = join_all(pieces.into_vec(), meet, |(bounds, needed), (others, other)| {
            match (bounds.contains(&others), others.contains(bounds)) {
                (true, _) => {}
                (_, true) => *needed = other,
                _ => *needed += other,
            }
            *bounds = bounds.bounding(&others);
        });
        return groups.into_iter().filter_map(compact).collect();
    }
    let mut groups = BoxGroups::new(meet);
    for (bounds, volume) in pieces {
        if !groups.hold(&bounds) {
            groups.add(bounds, volume, |needed, other| *needed += other);
        }
    }
    groups.into_groups().filter_map(compact).collect()
}

/// Whether no more than half of a box is not needed.
fn is_compact(bounds: &Box3, needed: u64) -> bool {
    bounds.volume() / 2 <= needed
}

/// Whether two boxes overlap or share a part of a face.
fn touches(a: &Box3, b: &Box3) -> bool {
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::PiecesNotJoined.is_active() {
        return false;
    }
    let (mut gaps, mut inside) = (0, true);
    for dim in 0..3 {
        let low = a.min()[dim].max(b.min()[dim]);
        let high = a.max()[dim].min(b.max()[dim]);
        inside &= low <= high;
        gaps += usize::from(low == high);
    }
    inside && gaps <= 1
}

/// Disjoint boxes, each with where it comes from.
pub(crate) type Parts<K> = SmallVec<[(Box3, K); 4]>;

/// Joins boxes that come from the same place where they make up larger ones:
/// what is known of elements is cut finer than what is done with them. Sorts by
/// place. O(parts · log parts), and the union of what is joined.
pub(crate) fn join<K: Copy + Ord>(parts: &mut Parts<K>) {
    if parts.len() < 2 {
        return;
    }
    parts.sort_by_key(|(_, place)| *place);
    let same = |a: &(Box3, K), b: &(Box3, K)| a.1 == b.1;
    if parts.windows(2).all(|pair| !same(&pair[0], &pair[1])) {
        return;
    }
    let mut joined = Parts::new();
    for parts in parts.chunk_by(same) {
        let whole = Region::from_boxes(parts.iter().map(|(part, _)| *part));
        joined.extend(whole.boxes().iter().map(|part| (*part, parts[0].1)));
    }
    *parts = joined;
}

/// More pieces than this of one transfer cost more than they gain: pieces become larger.
const MOST_PIECES: u64 = 64;

/// Cuts what has more than `bytes` bytes into pieces that follow each other on their way, most of
/// them of half as many to as many: along the slowest dimension, at multiples of a power of two
/// elements. So both ends of a transfer cut at the same places, though each may know another box.
/// What would be less than half a piece stays with its neighbour.
pub(crate) fn slabs(part: &Box3, elem_size: u64, bytes: u64) -> Boxes {
    let all = part.volume().saturating_mul(elem_size);
    let slowest = part.range().iter().position(|&elements| elements > 1);
    let Some(dim) = slowest.filter(|_| all > bytes) else {
        return Boxes::from_iter([*part]);
    };
    let (min, max) = part.corners();
    let length = max[dim] - min[dim];
    let most = (bytes / (all / length).max(1)).max(1);
    let mut rows = 1 << most.ilog2();
    while length / rows > MOST_PIECES {
        rows *= 2;
    }
    let least = u64::div_ceil(rows, 2);
    let cuts = (min[dim] / rows + 1..).map_while(|nth: u64| nth.checked_mul(rows));
    let cuts = cuts.skip_while(|cut| *cut < min[dim] + least);
    let is_far = |cut: &u64| cut.checked_add(least).is_some_and(|end| end <= max[dim]);
    let mut from = min;
    let mut piece = |end| {
        let mut to = max;
        to[dim] = end;
        let piece = Box3::new(from, to);
        from[dim] = end;
        piece
    };
    cuts.take_while(is_far).chain([max[dim]]).map(&mut piece).collect()
}

/// More parts than this cost more than they gain: consumers then wait for all.
const MAX_PARTS: usize = 64;

/// Cuts `region` along the borders of what each consumer reads: every part is
/// read as a whole or not at all by each of them. One part if they all read
/// the same, or if the cut would be too fine.
pub(crate) fn consumer_split<'a>(
    region: &Region,
    consumers: impl Iterator<Item = &'a Region>,
) -> Pieces {
    let mut parts: Pieces = smallvec![region.clone()];
    for consumer in consumers {
        // What is read as a whole is not cut: the rule on a node with one device.
        if parts.iter().all(|part| consumer.contains(part)) {
            continue;
        }
        let mut finer = Pieces::new();
        for part in parts {
            let (read, unread) = (part.intersection(consumer), part.difference(consumer));
            finer.extend([read, unread].into_iter().filter(|piece| !piece.is_empty()));
        }
        parts = finer;
        if parts.len() > MAX_PARTS {
            return smallvec![region.clone()];
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(min: usize, len: usize) -> Region {
        Box3::from_offset_range([min, 0], [len, 8]).into()
    }

    /// Numbers that look random, the same each time.
    fn numbers() -> impl FnMut(usize) -> usize {
        let mut state = 3_u64;
        move |end: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        }
    }

    #[test]
    fn separate_rows_are_separate_pieces() {
        let region = rows(0, 1).union(&rows(5, 1));
        assert_eq!(contiguous_pieces(&region).as_slice(), [rows(0, 1), rows(5, 1)]);
    }

    #[test]
    fn an_l_shape_is_one_piece() {
        let corner = Region::from_boxes([
            Box3::from_offset_range([0, 0], [4, 1]),
            Box3::from_offset_range([3, 1], [1, 4]),
        ]);
        assert_eq!(contiguous_pieces(&corner).as_slice(), [corner]);
    }

    #[test]
    fn many_pieces_are_those_that_a_look_at_all_finds() {
        // Under Miri, trees of more take minutes.
        const MOST: usize = if cfg!(miri) { 8 } else { 6000 };
        let mut random = numbers();
        let sorted = |mut boxes: Vec<Box3>| {
            boxes.sort_unstable_by_key(|part| part.corners());
            boxes
        };
        // So sparse that few meet, and so dense that most of what is joined meets others; one below the other, and beside it.
        let mut most = 0;
        for (nth, across) in [2, 9, 30, 2, 30].into_iter().enumerate() {
            let side = 12 * MOST.isqrt() + across;
            let shape = |[x, y]: [usize; 2]| if nth < 3 { [x, y, 0] } else { [0, y, x] };
            let part = |_| {
                let (min, range) = ([random(side), random(side)], [1, 1 + random(across)]);
                Box3::from_offset_range(shape(min), shape(range).map(|length| length.max(1)))
            };
            let region = Region::from_boxes((0..MOST).map(part).collect::<Vec<_>>());
            assert!(region.boxes().len() >= MANY);
            let mut naive: Vec<Box3> = Vec::new();
            for &part in region.boxes() {
                let mut joined = part;
                while let Some(at) = naive.iter().position(|other| touches(other, &joined)) {
                    joined = joined.bounding(&naive.remove(at));
                }
                naive.push(joined);
                most = most.max(naive.len());
            }
            let naive = sorted(naive);
            let pieces = contiguous_pieces(&region);
            assert_eq!(sorted(pieces.iter().map(Region::bounding_box).collect()), naive);
            let whole = Region::from_boxes(pieces.iter().flat_map(Region::boxes).copied());
            assert_eq!(whole, region);
            let mut groups = BoxGroups::new(touches);
            region.boxes().iter().for_each(|part| groups.add(*part, (), |(), ()| {}));
            assert_eq!(sorted(groups.into_groups().map(|(bounds, ())| bounds).collect()), naive);
        }
        assert!(cfg!(miri) || most > crate::box_groups::FEW, "{most}");
    }

    #[test]
    fn what_many_pieces_leave_from_is_what_few_of_them_do() {
        let (rows, all) = (|at: usize| rows(1000 * at, 1 + at % 2), 2 * MANY);
        let region = Region::from_boxes((0..all).flat_map(|at| rows(at).boxes().to_vec()));
        let each: Vec<Box3> = (0..all).map(|at| rows(at).bounding_box()).collect();
        let mut found = departure_boxes([&region, &region], 1 << 20).to_vec();
        found.sort_unstable_by_key(|part| part.corners());
        assert_eq!(found, each);
        // Corners that are mostly empty, each with an element within its bounds.
        let corner = |at: usize| {
            let parts = [([0, 0], [1, 8]), ([0, 0], [8, 1]), ([5, 5], [1, 1])];
            parts.map(|([y, x], range)| Box3::from_offset_range([2000 * at + y, x], range))
        };
        let corners = Region::from_boxes((0..MANY).flat_map(corner));
        assert!(departure_boxes([&corners], 1 << 20).is_empty());
    }

    #[test]
    fn many_pieces_have_one_place_unless_that_is_nearly_empty() {
        let every = |apart: usize, count: usize| {
            Region::from_boxes((0..count).flat_map(|at| rows(apart * at, 1).boxes().to_vec()))
        };
        let bounds = |region: &Region| Boxes::from_iter([region.bounding_box()]);
        let [few, many, far] =
            [every(3, MOST_APART), every(3, MOST_APART + 1), every(300, MOST_APART + 1)];
        for places in [contiguous_boxes([&few], 1 << 20), departure_boxes([&few], 1 << 20)] {
            assert_eq!(places.len(), MOST_APART);
        }
        for places in [contiguous_boxes([&many], 1 << 20), departure_boxes([&many], 1 << 20)] {
            assert_eq!(places, bounds(&many));
        }
        for places in [contiguous_boxes([&far], 1 << 20), departure_boxes([&far], 1 << 20)] {
            assert_eq!(places.len(), MOST_APART + 1);
        }
        let is_small = MOST_SPREAD / far.bounding_box().volume();
        for places in [contiguous_boxes([&far], is_small), departure_boxes([&far], is_small)] {
            assert_eq!(places, bounds(&far));
        }
    }

    #[test]
    fn what_is_mostly_empty_is_not_allocated_at_once() {
        let (top, left) = (Box3::from_range([1, 8]), Box3::from_range([8, 1]));
        let corner = Region::from_boxes([top, left]);
        assert_eq!(contiguous_boxes([&corner], 1 << 20).as_slice(), [Box3::from_range([8, 8])]);
        assert_eq!(compact_boxes(&corner).as_slice(), corner.boxes());
        let [top, left] = [top, left].map(Region::from);
        assert!(departure_boxes([&top, &left], 1 << 20).is_empty());
        assert!(departure_boxes([&corner], 1 << 20).is_empty());
        let [all, most, rest] = [rows(0, 4), rows(1, 4), rows(9, 2)];
        let mut found = departure_boxes([&rest, &all, &most, &all], 1 << 20);
        found.sort_unstable_by_key(|part| part.corners());
        assert_eq!(found.as_slice(), [rows(0, 5), rows(9, 2)].map(|rows| rows.bounding_box()));
    }

    #[test]
    fn corners_alone_do_not_touch() {
        let a = Box3::from_offset_range([0, 0], [2, 2]);
        assert!(!touches(&a, &Box3::from_offset_range([2, 2], [2, 2])));
        assert!(touches(&a, &Box3::from_offset_range([2, 1], [2, 2])));
        assert!(!touches(&a, &Box3::from_offset_range([3, 0], [2, 2])));
    }

    #[test]
    fn parts_are_joined_with_those_from_the_same_place() {
        let row = |min, len| Box3::from_offset_range([min, 0], [len, 8]);
        let cut = [(row(0, 1), 'a'), (row(4, 2), 'b'), (row(1, 3), 'a'), (row(9, 1), 'a')];
        let whole = [(row(0, 4), 'a'), (row(9, 1), 'a'), (row(4, 2), 'b')];
        let mut parts: Parts<_> = cut.into_iter().collect();
        join(&mut parts);
        assert_eq!(parts.as_slice(), whole);
    }

    #[test]
    fn pieces_are_cut_at_the_same_places_from_wherever_one_looks() {
        let row = |min, len| Box3::from_offset_range([min, 0], [len, 8]);
        // Rows of 32 bytes, four to a piece.
        assert_eq!(slabs(&row(3, 12), 4, 159).as_slice(), [row(3, 5), row(8, 4), row(12, 3)]);
        assert_eq!(slabs(&row(0, 32), 4, 128)[2..4], slabs(&row(8, 8), 4, 128)[..]);
        assert_eq!(slabs(&row(3, 4), 4, 128).as_slice(), [row(3, 4)], "not more than a piece");
        let rows = slabs(&row(1, 3), 4, 1);
        assert_eq!(rows.as_slice(), [row(1, 1), row(2, 1), row(3, 1)], "no row is cut");
        let one = Box3::from_range([1]);
        assert_eq!(slabs(&one, 4, 1).as_slice(), [one]);
        assert_eq!(slabs(&row(0, 1000), 4, 32).len(), 63, "of 16 rows each, the last of 8 more");
    }

    #[test]
    fn consumers_cut_where_their_reads_begin_and_end() {
        let halo = rows(0, 1).union(&rows(5, 1));
        let (first, last) = (rows(0, 3), rows(3, 3));
        let parts = consumer_split(&halo, [&first, &last].into_iter());
        assert_eq!(parts.as_slice(), [rows(0, 1), rows(5, 1)]);
        let all = rows(0, 8);
        assert_eq!(consumer_split(&halo, [&all, &all].into_iter()).as_slice(), [halo]);
    }
}
