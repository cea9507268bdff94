//! The tasks of random programs: what an item writes is a hash of everything that it
//! reads, so a single element that is stale or missing changes the result.
//!
//! One kernel for all tasks: which elements an item touches is told by numbers, and
//! worked out where the kernel runs. Written apart from the sequential twin that it is
//! compared with.

use celerity_kernel::{AtomicView, Item, PartView, kernel};

/// The most accesses of a task.
pub const ACCESSES: usize = 4;

/// How many numbers tell about an access.
pub const NUMBERS: usize = 59;

/// The most boxes that an access names one by one.
pub const BOXES: usize = 40;

/// Bits of each corner's coordinate: six of a box make one number, those of the
/// minimum lowest.
pub const BITS: u32 = 10;

/// What an item does with an access, as a sum: [`READS`], [`WRITES`], [`ADDS`], or 0 if there is
/// no such access.
pub const MODE: usize = 0;
/// Words of an element.
pub const WORDS: usize = 1;
/// The buffer's size, in three dimensions.
pub const SIZE: usize = 2;
/// For each dimension four numbers, two's complement: an item touches `width` elements
/// from `base + stride · item[from]` on, as far as they are in the buffer.
pub const AXES: usize = 5;
/// What else an element must be: [`ANY`], [`ON_AXIS`], [`IN_BOXES`], [`THROWN_AT`], [`AROUND`] or
/// [`SHARED`].
pub const FILTER: usize = 17;
/// What the filter takes: for [`IN_BOXES`] a count and boxes, each a minimum and a maximum
/// of [`BITS`] per coordinate; for [`THROWN_AT`] a factor and a summand; for [`AROUND`] a border and
/// 1 where edges meet, per dimension, and 1 if there are no diagonals; for [`SHARED`], per
/// dimension, the elements of a granule, 0 for no shares, and the dimension of the index space that
/// has them.
pub const OPERANDS: usize = 18;

/// See [`MODE`].
pub const READS: u64 = 1;
/// See [`MODE`].
pub const WRITES: u64 = 2;
/// See [`MODE`]: what is written is added to what is there, in one step, as items may meet.
pub const ADDS: u64 = 4;

/// See [`FILTER`]: no more.
pub const ANY: u64 = 0;
/// See [`FILTER`]: another index than the item's in at most one dimension.
pub const ON_AXIS: u64 = 1;
/// See [`FILTER`]: in one of the boxes.
pub const IN_BOXES: u64 = 2;
/// See [`FILTER`]: the one that a permutation of all elements gives for the item's
/// position in the index space.
pub const THROWN_AT: u64 = 3;

/// See [`FILTER`]: within a border of the item, in a buffer whose opposite edges meet.
pub const AROUND: u64 = 4;
/// See [`FILTER`]: in the item's even shares.
pub const SHARED: u64 = 5;

const _: () = assert!(OPERANDS + 1 + BOXES <= NUMBERS);

/// Runs one item of the `statement`-th statement of a program. `space` is where its index
/// space begins, and its size.
///
/// An element is as many numbers side by side as it has words. An access that writes has
/// its elements in the second four views, any other in the first.
#[kernel]
#[allow(clippy::type_complexity)]
pub fn run_statement(
    item: Item<3>,
    (r0, r1, r2, r3, w0, w1, w2, w3): (
        PartView<'_, u64, 3>,
        PartView<'_, u64, 3>,
        PartView<'_, u64, 3>,
        PartView<'_, u64, 3>,
        AtomicView<'_, u64, 3>,
        AtomicView<'_, u64, 3>,
        AtomicView<'_, u64, 3>,
        AtomicView<'_, u64, 3>,
    ),
    statement: u64,
    space: [[u64; 3]; 2],
    accesses: [[u64; NUMBERS]; ACCESSES],
) {
    let item = item.id().map(|index| index as u64);
    let mut hash = item.into_iter().fold(mixed(0, statement), mixed);
    let read = [r0, r1, r2, r3].into_iter().zip([w0, w1, w2, w3]);
    for (nth, (access, (read, shared))) in accesses.iter().zip(read).enumerate() {
        if access[MODE] & READS == 0 {
            continue;
        }
        hash = mixed(hash, nth as u64);
        touched(item, &space, access, |slot, at| {
            hash = mixed(hash, slot);
            for word in 0..access[WORDS] as usize {
                let at = [at[0], at[1], at[2] * access[WORDS] as usize + word];
                hash = mixed(
                    hash,
                    match access[MODE] & WRITES == 0 {
                        true => read[at],
                        false => shared.at(at).load(),
                    },
                );
            }
        });
    }
    for (nth, (access, shared)) in accesses.iter().zip([w0, w1, w2, w3]).enumerate() {
        if access[MODE] & WRITES == 0 {
            continue;
        }
        touched(item, &space, access, |slot, at| {
            let hash = mixed(mixed(hash, nth as u64), slot);
            for word in 0..access[WORDS] as usize {
                let at = [at[0], at[1], at[2] * access[WORDS] as usize + word];
                let (element, value) = (shared.at(at), mixed(hash, word as u64));
                match access[MODE] & ADDS == 0 {
                    true => element.store(value),
                    false => _ = element.fetch_add(value),
                }
            }
        });
    }
}

/// The hash, with one more word in it.
#[inline]
const fn mixed(hash: u64, word: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word ^ 0x5851_f42d);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Calls `visit` with the position in the buffer and the index of every element that
/// the item touches, in order.
#[inline]
fn touched(
    item: [u64; 3],
    space: &[[u64; 3]; 2],
    access: &[u64; NUMBERS],
    mut visit: impl FnMut(u64, [usize; 3]),
) {
    let sides: [[u64; 2]; 3] = core::array::from_fn(|dim| side(item, access, dim));
    let target = thrown_at(item, space, access);
    for x in sides[0][0]..sides[0][1] {
        for y in sides[1][0]..sides[1][1] {
            for z in sides[2][0]..sides[2][1] {
                let slot = (x * access[SIZE + 1] + y) * access[SIZE + 2] + z;
                if passes([x, y, z], slot, item, target, (space, access)) {
                    visit(slot, [x as usize, y as usize, z as usize]);
                }
            }
        }
    }
}

/// From where to where an item's elements are along one dimension.
#[inline]
fn side(item: [u64; 3], access: &[u64; NUMBERS], dim: usize) -> [u64; 2] {
    let [from, base, stride, width] = core::array::from_fn(|at| access[AXES + 4 * dim + at] as i64);
    let along = match from {
        0 => item[0],
        1 => item[1],
        _ => item[2],
    };
    let (first, size) = (base + stride * along as i64, access[SIZE + dim] as i64);
    [first.max(0), (first + width).min(size)].map(|index| index.max(0) as u64)
}

/// The position that [`THROWN_AT`] allows.
#[inline]
fn thrown_at(item: [u64; 3], [begin, range]: &[[u64; 3]; 2], access: &[u64; NUMBERS]) -> u64 {
    if access[FILTER] != THROWN_AT {
        return 0;
    }
    let elements = (access[SIZE] * access[SIZE + 1] * access[SIZE + 2]).max(1);
    let row = (item[0] - begin[0]) * range[1] + item[1] - begin[1];
    let nth = row * range[2] + item[2] - begin[2];
    (nth % elements * access[OPERANDS] + access[OPERANDS + 1]) % elements
}

/// Whether the filter lets an element pass.
#[inline]
fn passes(
    at: [u64; 3],
    slot: u64,
    item: [u64; 3],
    target: u64,
    (space, access): (&[[u64; 3]; 2], &[u64; NUMBERS]),
) -> bool {
    match access[FILTER] {
        AROUND => is_around(at, item, access),
        SHARED => (0..3).all(|dim| has_share(at[dim], dim, item, space, access)),
        ANY => true,
        ON_AXIS => at.iter().zip(&item).filter(|(index, own)| index != own).count() <= 1,
        IN_BOXES => {
            let boxes = &access[OPERANDS + 1..][..BOXES];
            boxes.iter().take(access[OPERANDS] as usize).any(|&packed| {
                let corner = |nth: usize| packed >> (nth as u32 * BITS) & ((1 << BITS) - 1);
                (0..3).all(|dim| corner(dim) <= at[dim] && at[dim] < corner(3 + dim))
            })
        }
        _ => slot == target,
    }
}

/// Whether the nearest of an element's places, one in each copy of the buffer, is within the border.
#[inline]
fn is_around(at: [u64; 3], item: [u64; 3], access: &[u64; NUMBERS]) -> bool {
    let distance = |dim: usize| {
        let straight = at[dim].abs_diff(item[dim]);
        match access[OPERANDS + 3 + dim] {
            0 => straight,
            _ => straight.min(access[SIZE + dim] - straight),
        }
    };
    let off_axis = (0..3).filter(|&dim| distance(dim) > 0).count();
    (0..3).all(|dim| distance(dim) <= access[OPERANDS + dim])
        && (access[OPERANDS + 6] == 0 || off_axis <= 1)
}

/// Whether an index along a dimension of the buffer is in the item's share of it.
#[inline]
fn has_share(
    at: u64,
    dim: usize,
    item: [u64; 3],
    [begin, range]: &[[u64; 3]; 2],
    access: &[u64; NUMBERS],
) -> bool {
    let granule = access[OPERANDS + 2 * dim];
    if granule == 0 {
        return true;
    }
    let (nth, items) = match access[OPERANDS + 2 * dim + 1] {
        0 => (item[0] - begin[0], range[0]),
        1 => (item[1] - begin[1], range[1]),
        _ => (item[2] - begin[2], range[2]),
    };
    let granules = access[SIZE + dim].div_ceil(granule);
    (nth * granules / items..(nth + 1) * granules / items).contains(&(at / granule))
}
