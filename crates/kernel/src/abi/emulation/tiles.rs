//! Reductions, as blocks of a device make them: threads of the host stand for those of a block, and
//! meet at its barriers.
#![allow(unsafe_code)]

use std::sync::{Barrier, Mutex};
use std::vec;
use std::vec::Vec;

use super::super::pointer::host::FromAddress;
use super::super::{
    AccessBlock, AccessMemory, Chunk, Description, Form, Geometry, LaunchBlock, Mapping, Place,
    Thread, TileSeat, Tiles, Traversal, Traverse, ViewKind, ViewParameter, lanes_per_thread,
    plain_traversal, visit_groups, visit_tile, write_parameters,
};
use super::{Memory, Taken, threads};
use crate::abi::tiles::TileBlock;
use crate::bounds::Bounds;
use crate::neighborhood::NeighborhoodItem;
use crate::reduce::{InTile, Operator, Reducer, Reduction, Sum, Team, WARP};
use crate::view::View;

type Total<'a> = Reducer<'a, f32, Sum>;
type Around<'a> = NeighborhoodItem<'a, f32, 2>;

/// Kernels that add up what their items see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adds {
    Items,
    Rows,
    Groups,
    /// By item, with what is around it: such kernels take runs.
    Stencils,
}

impl Adds {
    fn form(self) -> Form {
        match self {
            Self::Items | Self::Stencils => Form::Item,
            Self::Rows => Form::Row,
            Self::Groups => Form::Group,
        }
    }

    const fn views(self) -> &'static [ViewParameter] {
        match self {
            Self::Rows => const { &[<&[f32] as View<2>>::PARAMETER, Total::PARAMETER] },
            Self::Items | Self::Groups => {
                const { &[<&f32 as View<2>>::PARAMETER, Total::PARAMETER] }
            }
            Self::Stencils => const { &[<Around<'_> as View<2>>::PARAMETER, Total::PARAMETER] },
        }
    }
}

/// As all of these go through a tile. Launches of others take no runs.
struct Stencil;

impl Traverse for Stencil {
    const TRAVERSAL: Traversal = plain_traversal(Form::Item, Adds::Stencils.views());
}

/// A thread of the host that stands for one of a block.
struct Standing<'b> {
    thread: u32,
    threads: u32,
    barrier: &'b Barrier,
    /// Of its warp.
    nearby: &'b Barrier,
    values: &'b Mutex<Vec<u128>>,
}

impl Team for Standing<'_> {
    fn thread(&self) -> u32 {
        self.thread
    }

    fn threads(&self) -> u32 {
        self.threads
    }

    fn meet(&self) {
        self.barrier.wait();
    }

    fn meet_in_warp(&self) {
        self.nearby.wait();
    }

    unsafe fn load<T: Copy>(&self, place: u32) -> T {
        // SAFETY: `store` has left a value there, as the caller says.
        unsafe { (&raw const self.values.lock().unwrap()[place as usize]).cast::<T>().read() }
    }

    unsafe fn store<T: Copy>(&self, place: u32, value: T) {
        assert!(size_of::<T>() <= 16);
        // SAFETY: as large as that, and aligned for anything of that size.
        unsafe { (&raw mut self.values.lock().unwrap()[place as usize]).cast::<T>().write(value) }
    }
}

/// The block of a launch's tiles, as an entry point takes it.
fn read_block(bytes: &[u8]) -> TileBlock {
    let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    let words: Vec<u64> = words.collect();
    let three = |at: usize| [words[at], words[at + 1], words[at + 2]];
    TileBlock { tile: three(0), chunk: three(3), strides: three(6), first: words[9] }
}

/// The partial results of a sum over the items of `chunk`, launched as for a device, and how many items its threads take in
/// a run.
fn launched(
    adds: Adds,
    tiles: Tiles,
    chunk: Bounds<3>,
    group: [usize; 3],
    values: &mut Memory,
) -> (Vec<f32>, u16) {
    let mut partials = Memory([f32::NAN; 1024]);
    let chunk = Chunk { group, tiles: Some(tiles), ..Chunk::new(chunk, extent(&tiles)) };
    let summation = Summation::prepare(adds, &chunk, &tiles, values, &mut partials);
    (0..summation.shape.grid[0]).for_each(|number| summation.run_block(number));
    (partials.0[..tiles.grid.iter().product()].to_vec(), summation.launch.run)
}

/// That of a buffer of whole tiles.
fn extent(tiles: &Tiles) -> [usize; 3] {
    core::array::from_fn(|dim| tiles.origin[dim] + tiles.tile[dim] * tiles.grid[dim])
}

/// A launch of a kernel that reduces, as a device has it. What it reads and writes lives as long as it.
struct Summation {
    adds: Adds,
    shape: Geometry,
    launch: LaunchBlock,
    tiles: TileBlock,
    value: (u64, AccessBlock),
    partial: (u64, AccessBlock),
}

impl Summation {
    fn prepare(
        adds: Adds,
        chunk: &Chunk,
        tiles: &Tiles,
        values: &mut Memory,
        partials: &mut Memory,
    ) -> Self {
        let (buffer, count) = (extent(tiles), tiles.grid.iter().product());
        let access = |memory: &mut Memory, elements, buffer, mapping| AccessMemory {
            address: memory.0.as_mut_ptr().expose_provenance() as u64,
            extent: elements,
            part: elements,
            buffer,
            mapping,
        };
        let mapping = match adds {
            Adds::Stencils => Mapping::Neighborhood { border: [1, 1, 0], axes_only: false },
            _ => Mapping::OneToOne,
        };
        let accesses = [
            access(values, Bounds::from_range(buffer), buffer, mapping),
            access(partials, Bounds::from_range([count, 1, 1]), [1; 3], Mapping::Tiles),
        ];
        let description = Description::unnamed(adds.form(), 2, adds.views());
        let mut bytes = Vec::new();
        let mut append = |piece: &[u8], _| bytes.extend_from_slice(piece);
        let shape = write_parameters(&description, 0, chunk, &accesses, &mut append).unwrap();
        assert!(shape.shared_bytes as usize >= description.scratch_bytes());
        let tiles = read_block(&bytes[128..][..size_of::<TileBlock>()]);
        bytes.drain(128..128 + size_of::<TileBlock>());
        let Taken { launch, accesses } = Taken::read(&bytes, 2);
        let [value, partial] = accesses.try_into().unwrap();
        Self { adds, shape, launch, tiles, value, partial }
    }

    /// Its threads at once, as they wait for each other.
    fn run_block(&self, number: u32) {
        let tile = self.tiles.seat::<2>(&self.launch, number);
        let of_block = threads(&self.shape).filter(|thread| thread.block[0] == number);
        let of_block: Vec<_> = of_block.collect();
        let (barrier, scratch) = (Barrier::new(of_block.len()), Mutex::new(vec![0; 1024]));
        let warps = of_block.chunks(WARP as usize).map(|threads| Barrier::new(threads.len()));
        let warps: Vec<_> = warps.collect();
        std::thread::scope(|scope| {
            for (nth, thread) in of_block.iter().enumerate() {
                let team = Standing {
                    thread: nth as u32,
                    threads: of_block.len() as u32,
                    barrier: &barrier,
                    nearby: &warps[nth / WARP as usize],
                    values: &scratch,
                };
                let tile = &tile;
                scope.spawn(move || self.run_thread(tile, thread, &team));
            }
        });
    }

    /// What one thread of a block does about the block's tile.
    fn run_thread(&self, tile: &TileSeat<2>, thread: &Thread, team: &Standing<'_>) {
        let (partial, block) = &self.partial;
        // SAFETY: live memory, of which each tile has its element.
        unsafe {
            let mut pointer = FromAddress::from_address(*partial);
            let mine = Total::begin(&mut pointer, block, tile.number, team);
            team.meet();
            let lanes = match self.adds.form() {
                Form::Group => {
                    let meet = || team.meet();
                    visit_groups(&self.launch, tile, thread, meet, |seat| {
                        self.combine(&seat.place, Total::view(&mine, 0));
                    });
                    1
                }
                Form::Item | Form::Row => {
                    let stands = (team.thread, team.threads);
                    visit_tile::<2, Stencil>(&self.launch, tile, stands, |place, nth| {
                        self.combine(&place, Total::view(&mine, nth));
                    });
                    lanes_per_thread::<2, Stencil>(&self.launch)
                }
            };
            team.meet();
            Total::end(&mine, lanes, team);
        }
    }

    /// Hands the values of an item, or of a row of them, to a sum.
    fn combine(&self, place: &Place<2>, sum: Total<'_>) {
        let (value, block) = &self.value;
        // SAFETY: live memory that nobody writes.
        unsafe {
            let mut pointer = FromAddress::from_address(*value);
            match self.adds {
                Adds::Rows => {
                    let mut state = <&[f32] as View<2>>::state(&mut pointer, block, place);
                    let row = <&[f32] as View<2>>::view(&mut state);
                    row.iter().for_each(|&value| sum.combine(value));
                }
                Adds::Items | Adds::Groups => {
                    let mut state = <&f32 as View<2>>::state(&mut pointer, block, place);
                    sum.combine(*<&f32 as View<2>>::view(&mut state));
                }
                Adds::Stencils => {
                    let mut state = <Around<'_> as View<2>>::state(&mut pointer, block, place);
                    sum.combine(<Around<'_> as View<2>>::view(&mut state).clamped([-1, 1]));
                }
            }
        }
    }
}

/// The sum over a tile by the definition, of values in the order of items with their accumulators.
fn halved(values: impl Iterator<Item = (usize, f32)>, lanes: usize) -> f32 {
    let mut sums = vec![0.0; lanes];
    values.for_each(|(lane, value)| sums[lane % lanes] = Sum.combine(sums[lane % lanes], value));
    let mut left = lanes.next_power_of_two();
    while left > 1 {
        left /= 2;
        let others = left..lanes.min(2 * left);
        others.for_each(|lane| sums[lane - left] = Sum.combine(sums[lane - left], sums[lane]));
    }
    sums[0]
}

/// Values of which no two orders have the same sum.
fn values() -> Memory {
    Memory(core::array::from_fn(|i| ((i * 7919 + 13) % 10_007) as f32 * 1e-3 - 4.0))
}

/// Returns how many items the threads take in a run.
fn check(adds: Adds, [rows, columns]: [usize; 2], tile: [usize; 2], group: [usize; 2]) -> u16 {
    let grid = [rows.div_ceil(tile[0]), columns.div_ceil(tile[1]), 1];
    let mut run = 0;
    for slowest in [0, 1] {
        let (tile3, group) = ([tile[0], tile[1], 1], [group[0], group[1], 1]);
        let tiles = Tiles { origin: [0; 3], tile: tile3, grid, slowest };
        let mut memory = values();
        // The buffer that `launched` makes is of whole tiles.
        let width = grid[1] * tile[1];
        let chunk = Bounds::from_range([rows, columns, 1]);
        let found;
        (found, run) = launched(adds, tiles, chunk, group, &mut memory);
        let seen = |[y, x]: [usize; 2]| match adds {
            Adds::Stencils => memory.0[y.saturating_sub(1) * width + (x + 1).min(width - 1)],
            _ => memory.0[y * width + x],
        };
        for (number, found) in found.iter().enumerate() {
            let at = match slowest {
                0 => [number / grid[1], number % grid[1]],
                _ => [number % grid[0], number / grid[0]],
            };
            let min = [at[0] * tile[0], at[1] * tile[1]];
            let max = [rows.min(min[0] + tile[0]), columns.min(min[1] + tile[1])];
            let items = (min[0]..max[0]).flat_map(|y| (min[1]..max[1]).map(move |x| [y, x]));
            let numbered = items.enumerate().map(|(number, [y, x])| {
                let lane = match adds {
                    Adds::Groups => y % group[0] * group[1] + x % group[1],
                    _ => number,
                };
                (lane, seen([y, x]))
            });
            // In groups the items of an accumulator come group by group, row-major.
            let lanes = match adds {
                Adds::Groups => group.iter().product(),
                _ => tiles.lanes(),
            };
            let expected = halved(numbered, lanes);
            assert_eq!(found.to_bits(), expected.to_bits(), "tile {number} of {adds:?} {tile:?}");
        }
    }
    run
}

/// Index spaces, their tiles, and the runs in which threads take stencils: there must be one that looks over no edge. Miri, which takes
/// long for each barrier, is given blocks of few threads.
const TILED: &[([usize; 2], [usize; 2], u16)] = match cfg!(miri) {
    true => &[([1, 1], [1, 1], 1), ([3, 5], [2, 5], 1), ([2, 12], [1, 12], 4)],
    false => &[
        ([1, 1], [1, 1], 1),
        ([1, 7], [1, 2], 1),
        ([3, 11], [2, 11], 1),
        ([9, 40], [4, 16], 4),
        ([9, 42], [4, 16], 1),
        ([1, 900], [1, 300], 4),
        ([1, 898], [1, 300], 4),
        ([2, 398], [1, 200], 4),
        ([2, 398], [1, 199], 1),
        ([20, 48], [20, 48], 4),
        ([7, 8], [7, 8], 1),
    ],
};

#[test]
fn blocks_combine_in_the_one_order_that_there_is() {
    for &(range, tile, run) in TILED {
        assert_eq!(check(Adds::Items, range, tile, [1, 1]), 1);
        assert_eq!(check(Adds::Rows, range, tile, [1, 1]), 1);
        assert_eq!(check(Adds::Stencils, range, tile, [1, 1]), run, "{range:?} in {tile:?}");
    }
}

#[test]
fn groups_combine_what_their_items_have() {
    let all = [([4, 4], [2, 4], [2, 2]), ([6, 20], [6, 10], [3, 5]), ([1, 960], [1, 480], [1, 48])];
    // As above.
    let some = if cfg!(miri) { 1 } else { all.len() };
    for (range, tile, group) in all.into_iter().take(some) {
        check(Adds::Groups, range, tile, group);
    }
}

/// The views of a kernel with one reduction.
const fn reducing(kind: ViewKind, size: usize) -> [ViewParameter; 2] {
    let reduction = ViewParameter { kind, writes: true, dims: 1, size, align: 4 };
    [<&f32 as View<2>>::PARAMETER, reduction]
}

const fn array(exact: bool, commutes: bool) -> ViewKind {
    ViewKind::ArrayReducer { exact, commutes }
}

#[test]
fn kernels_that_devices_do_not_reduce_say_why() {
    const ONE: ViewKind = ViewKind::Reducer { commutes: true };
    const ONE_IN_ORDER: ViewKind = ViewKind::Reducer { commutes: false };
    // The views, which of them are unordered, and why not.
    type Case = ([ViewParameter; 2], &'static [usize], Option<&'static str>);
    static CASES: [Case; 11] = [
        (reducing(ONE, 12), &[], None),
        (reducing(array(true, true), 8), &[], None),
        (reducing(array(false, true), 8), &[1], None),
        (reducing(array(false, true), 4), &[0], Some("a sum of floats")),
        (reducing(ONE_IN_ORDER, 4), &[], Some("not commutative")),
        (reducing(ONE_IN_ORDER, 4), &[1], Some("not commutative")),
        (reducing(array(false, false), 4), &[], Some("not commutative")),
        (reducing(array(false, false), 4), &[1], Some("not commutative")),
        (reducing(array(true, true), 2), &[], Some("elements of 2 bytes")),
        (reducing(array(true, true), 2), &[1], Some("elements of 2 bytes")),
        (reducing(array(false, true), 12), &[1], Some("elements of 12 bytes")),
    ];
    for (views, unordered, expected) in &CASES {
        let kernel = Description::unnamed(Form::Item, 2, views);
        match (kernel.check_for_devices(unordered), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => {
                let error = std::format!("{error}");
                assert!(error.starts_with("access 1 ") && error.contains(expected), "{error}");
            }
            (found, expected) => panic!("{found:?} where {expected:?} is expected"),
        }
    }
}
