//! Which items a thread of a launch takes. Pure arithmetic on the thread's
//! position, so that hosts can run it, too: tests do.

use super::RUN;
use super::blocks::{LaunchBlock, first};

/// Where a thread stands in its launch: x, y, z, as the hardware counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The block in the grid.
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// Threads in a block.
    pub threads: [u32; 3],
}

/// A run of items that a thread handles at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<const K: usize> {
    /// The first item.
    pub start: [usize; K],
    /// How many, along the fastest dimension; a constant once inlined.
    pub len: usize,
    /// The size of the whole index space.
    pub global: [usize; K],
    /// Whether no neighbourhood of any of them leaves its buffer.
    pub interior: bool,
    /// Whether rows are aligned and strided for runs of [`RUN`] elements.
    pub aligned: bool,
}

/// The one item that a thread takes of a launch whose blocks are groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat<const K: usize> {
    /// The item.
    pub place: Place<K>,
    /// Its index in its group.
    pub local: [usize; K],
    /// The group's index in the whole index space.
    pub group: [usize; K],
    /// The group's size.
    pub size: [usize; K],
}

/// The item that `thread` takes of a launch over `K` dimensions whose blocks are groups.
/// No thread is beyond the chunk, and no path depends on the thread: groups can meet.
#[inline]
#[must_use]
pub fn seat<const K: usize>(launch: &LaunchBlock, thread: &Thread) -> Seat<K> {
    let along =
        |axes: [u32; 3]| -> [usize; K] { core::array::from_fn(|dim| axes[K - 1 - dim] as usize) };
    let (block, local, size) = (along(thread.block), along(thread.thread), along(thread.threads));
    let (offset, global): ([usize; K], [usize; K]) = (first(launch.offset), first(launch.global));
    let start = core::array::from_fn(|dim| offset[dim] + block[dim] * size[dim] + local[dim]);
    let group = core::array::from_fn(|dim| offset[dim] / size[dim] + block[dim]);
    // Neighbourhoods look where their buffer ends, everywhere.
    let place = Place { start, len: 1, global, interior: false, aligned: false };
    Seat { place, local, group, size }
}

impl Thread {
    /// The thread's position along one axis of the launch.
    #[inline]
    fn along(&self, axis: usize) -> u64 {
        u64::from(self.block[axis]) * u64::from(self.threads[axis]) + u64::from(self.thread[axis])
    }
}

/// Calls `call` for the runs of items that `thread` takes of a launch over `K`
/// dimensions. All threads of the launch's grid together take each item once.
///
/// The fastest dimension lies along x, the next along y and z. With `rows`, runs of
/// [`RUN`] items where the launch says so; their ends, and items near the edge of a
/// buffer, come alone. `bordered`: whether there is a neighbourhood.
///
/// There is no loop over y and z here on purpose: with one, everything that does
/// not change in it is computed up front, for the edges, too, by every thread.
#[inline]
pub fn visit<const K: usize>(
    launch: &LaunchBlock,
    thread: &Thread,
    rows: bool,
    bordered: bool,
    mut call: impl FnMut(Place<K>),
) {
    const { assert!(K <= 3, "index spaces have at most three dimensions") };
    let mut at = [thread.along(0), thread.along(1), thread.along(2)];
    if rows {
        at[0] *= launch.run;
    }
    if (0..K).any(|axis| at[axis] >= launch.range[K - 1 - axis]) {
        return;
    }
    let chosen = Chosen { launch, at };
    if rows {
        chosen.row(bordered, &mut call);
    } else {
        chosen.items(bordered, 1, &mut call);
    }
}

/// A thread's position in the chunk: x, y, z.
struct Chosen<'a> {
    launch: &'a LaunchBlock,
    at: [u64; 3],
}

impl Chosen<'_> {
    /// The run from here on, at once if it can be.
    #[inline]
    fn row<const K: usize>(&self, bordered: bool, call: &mut impl FnMut(Place<K>)) {
        if K == 0 || self.launch.run == 1 {
            return self.items(bordered, 1, call);
        }
        let left = self.launch.range[K - 1] - self.at[0];
        let start = self.start();
        if left >= RUN as u64 && (!bordered || self.launch.is_interior(start, RUN)) {
            call(self.place(start, RUN, true, true));
        } else {
            self.items(bordered, left.min(RUN as u64), call);
        }
    }

    /// `count` items from here on, one after another.
    #[inline]
    fn items<const K: usize>(&self, bordered: bool, count: u64, call: &mut impl FnMut(Place<K>)) {
        for i in 0..count {
            let mut start = self.start();
            if let Some(fastest) = start.last_mut() {
                *fastest += i as usize;
            }
            if !bordered || self.launch.is_interior(start, 1) {
                call(self.place(start, 1, true, false));
            } else {
                call(self.place(start, 1, false, false));
            }
        }
    }

    #[inline]
    fn start<const K: usize>(&self) -> [usize; K] {
        core::array::from_fn(|dim| (self.launch.offset[dim] + self.at[K - 1 - dim]) as usize)
    }

    #[inline]
    fn place<const K: usize>(
        &self,
        start: [usize; K],
        len: usize,
        interior: bool,
        aligned: bool,
    ) -> Place<K> {
        Place { start, len, global: first(self.launch.global), interior, aligned }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::super::Geometry;
    use super::*;

    /// All threads of a launch, one after another.
    fn threads(shape: &Geometry) -> impl Iterator<Item = Thread> {
        let Geometry { grid, block: threads, .. } = *shape;
        let all = |[x, y, z]: [u32; 3]| {
            (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
        };
        let in_block =
            move |block| all(threads).map(move |thread| Thread { block, thread, threads });
        all(grid).flat_map(in_block)
    }

    fn launch(range: [u64; 3], run: u64) -> LaunchBlock {
        LaunchBlock {
            offset: [3, 4, 8],
            range,
            global: [100; 3],
            interior_min: [4, 5, 9],
            interior_max: [u64::MAX, 7, 20],
            run,
        }
    }

    /// Each item with how often it was visited and the length of its run.
    fn visits<const K: usize>(
        block: &LaunchBlock,
        shape: &Geometry,
        rows: bool,
    ) -> BTreeMap<[usize; K], (usize, usize, bool)> {
        let mut seen = BTreeMap::new();
        for thread in threads(shape) {
            visit::<K>(block, &thread, rows, true, |place| {
                for i in 0..place.len {
                    let mut item = place.start;
                    item[K - 1] += i;
                    let entry = seen.entry(item).or_insert((0, place.len, place.interior));
                    entry.0 += 1;
                }
            });
        }
        seen
    }

    #[test]
    fn every_item_is_visited_once_on_any_grid() {
        let tight = Geometry { grid: [2, 3, 2], block: [8, 2, 1], shared_bytes: 0 };
        let loose = Geometry { grid: [4, 4, 1], block: [4, 2, 4], shared_bytes: 0 };
        for (shape, rows, run) in [(tight, false, 1), (tight, true, 4), (loose, true, 1)] {
            let block = launch([2, 5, 13], run);
            let seen = visits::<3>(&block, &shape, rows);
            assert_eq!(seen.len(), 2 * 5 * 13, "{shape:?}");
            assert!(seen.values().all(|&(count, ..)| count == 1), "{shape:?}");
            assert_eq!(seen.keys().next(), Some(&[3, 4, 8]));
            assert_eq!(seen.keys().next_back(), Some(&[4, 8, 20]));
        }
    }

    #[test]
    fn runs_stay_away_from_edges() {
        let shape = Geometry { grid: [1, 1, 1], block: [4, 4, 1], shared_bytes: 0 };
        let block = LaunchBlock { range: [4, 13, 1], offset: [4, 8, 0], ..launch([0; 3], 4) };
        let block = LaunchBlock { interior_min: [5, 9, 0], interior_max: [7, 20, 1], ..block };
        let seen = visits::<2>(&block, &shape, true);
        let runs: Vec<_> =
            seen.iter().filter(|(_, visit)| visit.1 == RUN).map(|(at, _)| *at).collect();
        let expected: Vec<_> = (5..7).flat_map(|y| (12..20).map(move |x| [y, x])).collect();
        assert_eq!(runs, expected);
        assert!(
            seen.iter().all(|(&[y, x], visit)| {
                visit.2 == ((5..7).contains(&y) && (9..20).contains(&x))
            })
        );
    }

    #[test]
    fn every_item_has_one_seat_in_its_group() {
        let shape = Geometry::in_blocks([6, 4, 4], [3, 2, 2]).unwrap();
        let block = LaunchBlock { offset: [2, 4, 9], ..launch([4, 4, 6], 1) };
        let seats: BTreeMap<_, _> = threads(&shape)
            .map(|thread| seat::<3>(&block, &thread))
            .map(|seat| (seat.place.start, seat))
            .collect();
        let all = (2..6).flat_map(|z| (4..8).flat_map(move |y| (9..15).map(move |x| [z, y, x])));
        assert!(seats.keys().copied().eq(all));
        for (item, Seat { local, group, size, .. }) in seats {
            assert_eq!(size, [2, 2, 3]);
            assert_eq!(item, [0, 1, 2].map(|dim| group[dim] * size[dim] + local[dim]));
            assert!((0..3).all(|dim| local[dim] < size[dim]), "{item:?}");
        }
    }

    #[test]
    fn a_space_without_dimensions_has_one_item() {
        let mut calls = 0;
        let thread = Thread { block: [0; 3], thread: [0; 3], threads: [1; 3] };
        visit::<0>(&launch([1; 3], 1), &thread, true, true, |place| {
            calls += 1;
            assert_eq!((place.start, place.len), ([], 1));
        });
        assert_eq!(calls, 1);
    }
}
