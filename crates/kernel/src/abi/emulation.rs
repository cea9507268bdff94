//! Whole launches on the host: parameters are written, read back as an entry point
//! would, and all threads run one after another. The entry point, which `#[kernel]`
//! generates for devices, is written out by hand.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use std::vec::Vec;

use super::pointer::host::FromAddress;
use super::sides::PartSide;
use super::{
    AccessBlock, AccessKind, AccessMemory, Chunk, Description, EntryKind, Form, Geometry,
    LaunchBlock, Mapping, Place, STACK, Thread, Traversal, Traverse, plain_traversal, traversal,
    visit, write_parameters,
};
use crate::atomic::AtomicView;
use crate::bounds::Bounds;
use crate::neighborhood::{NeighborhoodItem, NeighborhoodRow};
use crate::part::PartView;
use crate::part_mut::PartViewMut;
use crate::periodic::{PeriodicItem, PeriodicRow};
use crate::view::View;
use crate::whole::WholeView;

mod tiles;

/// Memory as a device has it: aligned to 16 bytes.
#[repr(C, align(16))]
struct Memory([f32; 1024]);

/// What an entry point takes, read from the bytes of a launch.
struct Taken {
    launch: LaunchBlock,
    accesses: Vec<(u64, AccessBlock)>,
}

impl Taken {
    fn read(bytes: &[u8], accesses: usize) -> Self {
        let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let words: Vec<u64> = words.collect();
        let three = |at: usize| [words[at], words[at + 1], words[at + 2]];
        let launch = LaunchBlock {
            offset: three(0),
            range: three(3),
            global: three(6),
            inner_min: three(9),
            inner_max: three(12),
            run: words[15] as u16,
            steps: (words[15] >> 16) as u8,
            stack: (words[15] >> 24) as u8,
            blocks: (words[15] >> 32) as u32,
        };
        let half = |at: usize| (words[at / 2] >> (at % 2 * 32)) as u32;
        let access = |at: usize| AccessBlock {
            first: words[at + 1],
            origin: three(at + 2),
            strides: three(at + 5),
            part_min: three(at + 8),
            part_max: three(at + 11),
            buffer: three(at + 14),
            border: three(at + 17),
            below: [0, 1, 2].map(|dim| half(2 * at + 40 + dim)),
            above: [0, 1, 2].map(|dim| half(2 * at + 43 + dim)),
            axes_only: half(2 * at + 46),
            detail: half(2 * at + 47),
        };
        let accesses = (0..accesses).map(|index| 16 + 24 * index);
        Self { launch, accesses: accesses.map(|at| (words[at], access(at))).collect() }
    }
}

fn threads(shape: &Geometry) -> impl Iterator<Item = Thread> {
    let Geometry { grid, block: threads, .. } = *shape;
    let all = |[x, y, z]: [u32; 3]| {
        (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
    };
    all(grid)
        .flat_map(move |block| all(threads).map(move |thread| Thread { block, thread, threads }))
}

/// Runs a kernel with two views, the first of which it writes.
fn launch<Out, In, const K: usize>(
    form: Form,
    items: Bounds<3>,
    accesses: &[AccessMemory; 2],
    body: impl FnMut(Place<K>, Out, In),
) where
    Out: View<K, Pointer: FromAddress>,
    In: View<K, Pointer: FromAddress>,
{
    launch_as(Wish::default(), form, items, accesses, body);
}

/// What is not left to rules: steps of each thread, and threads of a block along each dimension.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    steps: Option<u8>,
    block: Option<[usize; 3]>,
}

/// The same as wished.
fn launch_as<Out, In, const K: usize>(
    wish: Wish,
    form: Form,
    items: Bounds<3>,
    accesses: &[AccessMemory; 2],
    mut body: impl FnMut(Place<K>, Out, In),
) where
    Out: View<K, Pointer: FromAddress>,
    In: View<K, Pointer: FromAddress>,
{
    let views = const { &[Out::PARAMETER, In::PARAMETER] };
    let description = Description::unnamed(form, K, views);
    let kind =
        |&AccessMemory { mapping, buffer, .. }: &_| AccessKind { mapping, buffer, updates: false };
    let around = accesses.iter().map(kind);
    let entry_kind = description.entry_kind(&Bounds::from_range(accesses[0].buffer), around);
    let Wish { steps, block } = wish;
    let (global, mut bytes) = (accesses[0].buffer, Vec::new());
    let chunk = Chunk { block, entry_kind, ..Chunk::new(items, global) };
    let mut append = |piece: &[u8], _| bytes.extend_from_slice(piece);
    let mut shape = write_parameters(&description, 0, &chunk, accesses, &mut append).unwrap();
    let Taken { mut launch, accesses } = Taken::read(&bytes, 2);
    if let Some(steps) = steps {
        launch.steps = steps;
        let is_stacked =
            entry_kind == EntryKind::Stacked && launch.run > 1 && steps.is_multiple_of(STACK as u8);
        launch.stack = if is_stacked { STACK as u8 } else { 1 };
        shape.grid[K - 1] =
            (launch.range[0] as u32).div_ceil(shape.block[K - 1] * u32::from(steps));
    }
    let [(out, out_block), (input, in_block)] = accesses.try_into().unwrap();
    for thread in threads(&shape) {
        let mut take = |place: Place<K>| {
            // SAFETY: the addresses come from live memory, which nothing else uses
            // meanwhile; threads run one after another.
            unsafe {
                let mut out_state =
                    Out::state(&mut Out::Pointer::from_address(out), &out_block, &place);
                let mut in_state =
                    In::state(&mut In::Pointer::from_address(input), &in_block, &place);
                body(place, Out::view(&mut out_state), In::view(&mut in_state));
                Out::finish(out_state);
                In::finish(in_state);
            }
        };
        let take = &mut take;
        match (form, entry_kind) {
            (Form::Row, EntryKind::Plain | EntryKind::Apart) => {
                visit::<K, Entry<Out, In, K, true, 0>>(&launch, &thread, take)
            }
            (Form::Row, EntryKind::Narrow) => {
                visit::<K, Entry<Out, In, K, true, 1>>(&launch, &thread, take)
            }
            (Form::Row, EntryKind::Stacked) => {
                visit::<K, Entry<Out, In, K, true, 2>>(&launch, &thread, take)
            }
            (_, EntryKind::Plain | EntryKind::Apart) => {
                visit::<K, Entry<Out, In, K, false, 0>>(&launch, &thread, take)
            }
            (_, EntryKind::Narrow) => {
                visit::<K, Entry<Out, In, K, false, 1>>(&launch, &thread, take)
            }
            (_, EntryKind::Stacked) => {
                visit::<K, Entry<Out, In, K, false, 2>>(&launch, &thread, take)
            }
        }
    }
}

/// An entry point of a kernel with two views, by row or by item, of one of the [kinds](KINDS). What has none of a
/// kind is never launched so.
struct Entry<Out, In, const K: usize, const BY_ROW: bool, const KIND: usize>(
    PhantomData<(Out, In)>,
);

const KINDS: [EntryKind; 3] = [EntryKind::Plain, EntryKind::Narrow, EntryKind::Stacked];

impl<Out: View<K>, In: View<K>, const K: usize, const BY_ROW: bool, const KIND: usize> Traverse
    for Entry<Out, In, K, BY_ROW, KIND>
{
    const TRAVERSAL: Traversal = {
        let form = if BY_ROW { Form::Row } else { Form::Item };
        let views = &[Out::PARAMETER, In::PARAMETER];
        match traversal(KINDS[KIND], form, views) {
            Some(traversal) => traversal,
            None => plain_traversal(form, views),
        }
    };
}

fn input() -> Memory {
    Memory(core::array::from_fn(|i| (i * i % 31) as f32))
}

/// All of a buffer of the given size, in `memory`.
fn access(memory: &mut Memory, [rows, columns]: [usize; 2], mapping: Mapping) -> AccessMemory {
    let buffer = [rows, columns, 1];
    let whole = Bounds::from_range(buffer);
    let address = memory.0.as_mut_ptr().expose_provenance() as u64;
    AccessMemory { address, extent: whole, part: whole, buffer, mapping }
}

const AROUND: Mapping = Mapping::Neighborhood { border: [1, 1, 0], axes_only: true };

/// The index space in two chunks.
fn halves([rows, columns]: [usize; 2]) -> [Bounds<3>; 2] {
    let middle = rows / 2;
    [Bounds::new([0; 3], [middle, columns, 1]), Bounds::new([middle, 0, 0], [rows, columns, 1])]
}

/// A sum over the surroundings of an element, with clamped coordinates.
fn star(u: &[f32], [rows, columns]: [usize; 2], [y, x]: [usize; 2]) -> f32 {
    let at = |dy: isize, dx: isize| {
        let y = (y as isize + dy).clamp(0, rows as isize - 1) as usize;
        u[y * columns + (x as isize + dx).clamp(0, columns as isize - 1) as usize]
    };
    at(-1, 0) + at(1, 0) + at(0, -1) + 2.0 * at(0, 1)
}

/// Buffers of the tests: those that have runs, wide ones and narrow ones, whose runs look over edges, and others. Miri is
/// given one of each.
const SHAPES: &[[usize; 2]] = match cfg!(miri) {
    true => &[[6, 16], [3, 28], [2, 3]],
    false => &[[6, 16], [5, 13], [2, 3], [40, 4], [3, 100], [2, 12]],
};

fn check(out: &Memory, u: &Memory, range: [usize; 2]) {
    for (y, x) in (0..range[0]).flat_map(|y| (0..range[1]).map(move |x| (y, x))) {
        let expected = star(&u.0, range, [y, x]);
        assert_eq!(out.0[y * range[1] + x], expected, "at {y}, {x} of {range:?}");
    }
}

#[test]
fn rows_of_a_stencil_agree_with_arithmetic() {
    for &range in SHAPES {
        let (mut u, mut out) = (input(), Memory([-1.0; 1024]));
        let accesses = [access(&mut out, range, Mapping::OneToOne), access(&mut u, range, AROUND)];
        let mut longest = 0;
        for items in halves(range) {
            launch(
                Form::Row,
                items,
                &accesses,
                |place, out: &mut [f32], u: NeighborhoodRow<'_, f32, 2>| {
                    longest = longest.max(place.len);
                    let (north, south) = (u.clamped([-1, 0]), u.clamped([1, 0]));
                    let (west, east) = (u.clamped([0, -1]), u.clamped([0, 1]));
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = north[i] + south[i] + west[i] + 2.0 * east[i];
                    }
                },
            );
        }
        check(&out, &u, range);
        // Where runs look over edges, items come one by one.
        let expected = if [[3, 28], [3, 100]].contains(&range) { super::RUN } else { 1 };
        assert_eq!(longest, expected, "the longest run of {range:?}");
    }
}

/// The element that is so far from an item's own, and memory that holds no more than all items touch.
#[test]
fn items_may_have_elements_beside_their_own() {
    let shifts = [[0, 0], [1, 0], [0, 4], [2, 1], [0, 3], [3, 8]];
    let shifts = &shifts[..if cfg!(miri) { 4 } else { 6 }];
    for (&range, [down, right]) in
        SHAPES.iter().flat_map(|range| shifts.iter().map(move |&shift| (range, shift)))
    {
        let buffer = [range[0] + down, range[1] + right, 1];
        if buffer[0] * buffer[1] > 1024 {
            continue;
        }
        let (mut x, mut y) = (input(), Memory([-1.0; 1024]));
        let side = |from: usize, first: usize| PartSide::Window {
            from,
            stride: 1,
            first: first as isize,
            width: 1,
        };
        let sides = [side(0, down), side(1, right), PartSide::ALL_OF_NONE];
        let read =
            AccessMemory { buffer, ..access(&mut x, range, Mapping::PerDimension { sides }) };
        for items in halves(range) {
            let shifted = |[z, y, x]: [usize; 3]| [z + down, y + right, x];
            let part = Bounds::new(shifted(items.min()), shifted(items.max()));
            // All of the second chunk's; rows of the first one's allocation are the buffer's.
            let extent = if items.min() == [0; 3] { Bounds::from_range(buffer) } else { part };
            let read = AccessMemory { extent, part, ..read };
            let accesses = [access(&mut y, range, Mapping::OneToOne), read];
            let mut longest = 0;
            launch(Form::Row, items, &accesses, |place: Place<2>, y: &mut [f32], x: &[f32]| {
                assert_eq!((y.len(), x.len()), (place.len, place.len));
                longest = longest.max(place.len);
                for (y, x) in y.iter_mut().zip(x) {
                    *y += 2.0 * x;
                }
            });
            let stride = extent.range()[1];
            let is_aligned = |elements: usize| elements.is_multiple_of(super::RUN);
            let starts_well = is_aligned(part.min()[1] - extent.min()[1]) && is_aligned(stride);
            let in_runs = starts_well && is_aligned(range[1]);
            assert_eq!(longest, if in_runs { super::RUN } else { 1 }, "{range:?}, {right}");
            for [row, column] in all_of(&items) {
                let [first_row, first, _] = extent.min();
                let from = (row + down - first_row) * stride + column + right - first;
                let expected = 2.0 * (from * from % 31) as f32 - 1.0;
                assert_eq!(y.0[row * range[1] + column], expected, "{row}, {column} of {range:?}");
            }
        }
    }
}

/// All items of two dimensions.
fn all_of(items: &Bounds<3>) -> impl Iterator<Item = [usize; 2]> {
    let ([top, left, _], [bottom, right, _]) = (items.min(), items.max());
    (top..bottom).flat_map(move |row| (left..right).map(move |column| [row, column]))
}

/// The same for numbers of double precision.
#[repr(C, align(16))]
struct Doubles([f64; 512]);

#[test]
fn rows_of_doubles_come_in_runs_of_two_where_they_are_aligned() {
    for &range in SHAPES {
        let mut x = Doubles(core::array::from_fn(|i| (i * i % 31) as f64));
        let mut y = Doubles([-1.0; 512]);
        let access = |memory: &mut Doubles| {
            let (buffer, address) = ([range[0], range[1], 1], memory.0.as_mut_ptr());
            let (extent, mapping) = (Bounds::from_range(buffer), Mapping::OneToOne);
            let address = address.expose_provenance() as u64;
            AccessMemory { address, extent, part: extent, buffer, mapping }
        };
        let accesses = [access(&mut y), access(&mut x)];
        let mut longest = 0;
        for items in halves(range) {
            launch(Form::Row, items, &accesses, |place: Place<2>, y: &mut [f64], x: &[f64]| {
                assert_eq!((y.len(), x.len()), (place.len, place.len));
                longest = longest.max(place.len);
                if let [first, _] = y {
                    assert!(core::ptr::from_mut(first).addr().is_multiple_of(16), "{place:?}");
                }
                for (y, x) in y.iter_mut().zip(x) {
                    *y += 2.0 * x;
                }
            });
        }
        for (at, y) in y.0.iter().enumerate() {
            let is_there = at < range[0] * range[1];
            let expected = if is_there { 2.0 * (at * at % 31) as f64 - 1.0 } else { -1.0 };
            assert_eq!(*y, expected, "at {at} of {range:?}");
        }
        let expected = if range[1].is_multiple_of(2) { 2 } else { 1 };
        assert_eq!(longest, expected, "the longest run of {range:?}");
    }
}

const AROUND_EDGES: Mapping =
    Mapping::Periodic { border: [1, 1, 0], axes_only: true, along: [true, true, false] };

/// A sum over the surroundings of an element, where opposite edges meet.
fn ring(u: &[f32], [rows, columns]: [usize; 2], [y, x]: [usize; 2]) -> f32 {
    let at = |dy: usize, dx: usize| u[(y + dy) % rows * columns + (x + dx) % columns];
    at(rows - 1, 0) + at(1, 0) + at(0, columns - 1) + 2.0 * at(0, 1)
}

#[test]
fn periodic_stencils_agree_with_arithmetic_by_rows_and_items() {
    for &range in SHAPES {
        let (mut u, mut rows, mut items) = (input(), Memory([-1.0; 1024]), Memory([-1.0; 1024]));
        for half in halves(range) {
            let read = access(&mut u, range, AROUND_EDGES);
            let accesses = [access(&mut rows, range, Mapping::OneToOne), read];
            launch(Form::Row, half, &accesses, |_, out: &mut [f32], u: PeriodicRow<'_, f32, 2>| {
                let (north, south) = (u.at([-1, 0]), u.at([1, 0]));
                let (west, east) = (u.at([0, -1]), u.at([0, 1]));
                for (i, out) in out.iter_mut().enumerate() {
                    *out = north[i] + south[i] + west[i] + 2.0 * east[i];
                }
            });
            let accesses = [access(&mut items, range, Mapping::OneToOne), read];
            launch(Form::Item, half, &accesses, |_, out: &mut f32, u: PeriodicItem<'_, f32, 2>| {
                *out = u.at([-1, 0]) + u.at([1, 0]) + u.at([0, -1]) + 2.0 * u.at([0, 1]);
            });
        }
        for (y, x) in (0..range[0]).flat_map(|y| (0..range[1]).map(move |x| (y, x))) {
            let (at, expected) = (y * range[1] + x, ring(&u.0, range, [y, x]));
            assert_eq!((rows.0[at], items.0[at]), (expected, expected), "{y}, {x} of {range:?}");
        }
    }
}

#[test]
fn items_of_a_stencil_agree_with_arithmetic() {
    for &range in SHAPES {
        let (mut u, mut out) = (input(), Memory([-1.0; 1024]));
        let accesses = [access(&mut out, range, Mapping::OneToOne), access(&mut u, range, AROUND)];
        for items in halves(range) {
            launch(
                Form::Item,
                items,
                &accesses,
                |_, out: &mut f32, u: NeighborhoodItem<'_, f32, 2>| {
                    let along = u.clamped([-1, 0]) + u.clamped([1, 0]);
                    *out = along + u.clamped([0, -1]) + 2.0 * u.clamped([0, 1]);
                },
            );
        }
        check(&out, &u, range);
    }
}

#[test]
fn parts_and_wholes_lead_where_they_say() {
    let range = [6, 16];
    let (mut u, mut out) = (input(), Memory([-1.0; 1024]));
    let sides = [PartSide::block(0, 1), PartSide::constant(0..range[1]), PartSide::ALL_OF_NONE];
    let own = access(&mut out, range, Mapping::PerDimension { sides });
    let accesses = [own, access(&mut u, range, Mapping::All)];
    // One item for each row: its part is the whole row.
    let items = Bounds::new([1, 0, 0], [5, 1, 1]);
    launch(
        Form::Item,
        items,
        &accesses,
        |place: Place<2>, mut out: PartViewMut<'_, f32, 2>, u: WholeView<'_, f32, 2>| {
            let row = place.start[0];
            out.row_mut([row])[0..16].copy_from_slice(u.row([row]));
            assert_eq!(out.get([row + 1, 0]), None);
        },
    );
    assert_eq!(out.0[16..80], u.0[16..80]);
    assert!(out.0[..16].iter().chain(&out.0[80..]).all(|&element| element == -1.0));
}

/// A launch whose allocation and declared part begin somewhere in the buffer: what a kernel finds
/// at an index is what the buffer has there.
#[test]
fn parts_are_read_by_the_indices_of_the_buffer() {
    let range = [6, 16];
    let (mut held, mut out) = (Memory([-1.0; 1024]), Memory([-1.0; 1024]));
    let (extent, part) = (Bounds::new([1, 2, 0], [5, 14, 1]), Bounds::new([2, 4, 0], [4, 11, 1]));
    for (y, x) in (1..5).flat_map(|y| (2..14).map(move |x| (y, x))) {
        held.0[(y - 1) * 12 + x - 2] = (100 * y + x) as f32;
    }
    let read = AccessMemory { extent, part, ..access(&mut held, range, Mapping::Opaque) };
    let accesses = [access(&mut out, range, Mapping::OneToOne), read];
    let items = Bounds::new([2, 4, 0], [4, 10, 1]);
    launch(Form::Item, items, &accesses, |place, out: &mut f32, u: PartView<'_, f32, 2>| {
        let [y, x] = place.start;
        let (row, column) = (u.row([y]), u.along(0, [0, x]));
        assert_eq!((u[[y, x]], row[x], column[y]), (row[x], column[y], u[[y, x]]));
        assert_eq!((row.indices(), column.indices()), (4..11, 2..4));
        assert!(u.get([y, 3]).is_none() && u.row([1]).is_empty() && row.get(9..12).is_none());
        *out = row[x..x + 2].iter().sum();
    });
    for (y, x) in (0..6).flat_map(|y| (0..16).map(move |x| (y, x))) {
        let expected = match items.contains([y, x, 0]) {
            true => (200 * y + 2 * x + 1) as f32,
            false => -1.0,
        };
        assert_eq!(out.0[16 * y + x], expected, "at {y}, {x}");
    }
}

#[test]
fn items_have_blocks_of_their_own() {
    let (mut u, mut out) = (input(), Memory([-1.0; 1024]));
    // The allocation begins where the chunk's blocks do, and rows have 12 elements.
    let extent = Bounds::new([2, 6, 0], [8, 18, 1]);
    let sides = [PartSide::block(0, 2), PartSide::block(1, 3), PartSide::ALL_OF_NONE];
    let mapping = Mapping::PerDimension { sides };
    let of_out = AccessMemory { extent, ..access(&mut out, [8, 20], mapping) };
    let accesses = [of_out, access(&mut u, [6, 16], Mapping::All)];
    let items = Bounds::new([1, 2, 0], [4, 6, 1]);
    let body = |place: Place<2>, mut out: PartViewMut<'_, f32, 2>, _: WholeView<'_, f32, 2>| {
        let [y, x] = place.start;
        assert_eq!(out.bounds(), Bounds::new([2 * y, 3 * x], [2 * y + 2, 3 * x + 3]));
        for (row, column) in (0..2).flat_map(|row| (0..3).map(move |column| (row, column))) {
            out[[2 * y + row, 3 * x + column]] = (10 * y + x) as f32;
        }
    };
    launch(Form::Item, items, &accesses, body);
    for (at, value) in out.0[..6 * 12].iter().enumerate() {
        let (row, column) = (2 + at / 12, 6 + at % 12);
        assert_eq!(*value, (10 * (row / 2) + column / 3) as f32, "at {row}, {column}");
    }
}

#[test]
fn items_that_update_elements_share_the_declared_box() {
    let range = [6, 16];
    let (mut u, mut sums) = (input(), Memory([0.0; 1024]));
    let declared = Bounds::new([1, 0, 0], [5, 2, 1]);
    let shared = AccessMemory { part: declared, ..access(&mut sums, range, Mapping::Opaque) };
    let accesses = [shared, access(&mut u, range, Mapping::All)];
    let items = Bounds::new([1, 0, 0], [5, 16, 1]);
    launch(
        Form::Item,
        items,
        &accesses,
        |place, sums: AtomicView<'_, f32, 2>, u: WholeView<'_, f32, 2>| {
            let [row, column] = place.start;
            sums.at([row, column % 2]).fetch_add(u[[row, column]]);
            assert!(sums.get([row, 2]).is_none() && sums.get([0, 0]).is_none());
        },
    );
    for (row, column) in (0..6).flat_map(|row| (0..2).map(move |column| (row, column))) {
        let all = u.0[16 * row..16 * (row + 1)].iter().skip(column).step_by(2);
        let expected = if (1..5).contains(&row) { all.sum() } else { 0.0_f32 };
        assert_eq!(sums.0[16 * row + column], expected, "at {row}, {column}");
    }
}

/// A sum over an element and those two before and behind it, and, in three dimensions, those beside
/// it, with clamped coordinates.
fn around_3(u: &[f32], range: [usize; 3], at: [usize; 3], offsets: &[[isize; 3]]) -> f32 {
    let element = |offset: [isize; 3]| {
        let [z, y, x]: [usize; 3] = core::array::from_fn(|dim| {
            (at[dim] as isize + offset[dim]).clamp(0, range[dim] as isize - 1) as usize
        });
        u[(z * range[1] + y) * range[2] + x]
    };
    offsets.iter().enumerate().map(|(nth, &offset)| (nth + 1) as f32 * element(offset)).sum()
}

/// Steps of one and of two elements, and diagonals.
const OFFSETS: [[isize; 3]; 11] = [
    [0, 0, 0],
    [-1, 0, 0],
    [1, 0, 0],
    [-2, 0, 0],
    [2, 0, 1],
    [0, -1, 0],
    [0, 1, -1],
    [0, -2, 0],
    [0, 0, -1],
    [0, 0, 1],
    [-1, 1, 2],
];

/// Rows and items of a kernel over three dimensions, narrow and wide, in one step and several, in
/// chunks that begin somewhere along each dimension.
#[test]
fn stencils_in_space_agree_with_arithmetic_by_rows_and_items() {
    let shapes: &[[usize; 3]] = match cfg!(miri) {
        true => &[[2, 2, 12]],
        false => &[[3, 5, 64], [7, 3, 16], [9, 4, 12], [2, 3, 7], [1, 1, 40], [30, 30, 1]],
    };
    let wishes: &[(u8, Option<[usize; 3]>)] = match cfg!(miri) {
        true => &[(2, None)],
        false => &[
            (1, None),
            (2, None),
            (5, None),
            (1, Some([4, 2, 3])),
            (2, Some([1, 1, 32])),
            (5, Some([2, 16, 1])),
        ],
    };
    // Along rows, only what looks one element far takes narrow ones in runs from end to end.
    let cases = shapes.iter().flat_map(|range| wishes.iter().map(move |by| (range, by)));
    for ((&range, &(steps, block)), reach) in cases.flat_map(|case| [(case, 1), (case, 2)]) {
        check_in_space(range, Wish { steps: Some(steps), block }, reach);
    }
}

/// Compares sums over what is up to `reach` elements away along rows, and up to two along other dimensions, with arithmetic.
fn check_in_space(range: [usize; 3], wish: Wish, reach: isize) {
    let border = [2, 2, reach as usize];
    let offsets = OFFSETS.map(|[z, y, x]| [z, y, x.clamp(-reach, reach)]);
    let (mut u, mut rows, mut items) = (input(), Memory([-1.0; 1024]), Memory([-1.0; 1024]));
    let whole = Bounds::from_range(range);
    let access = |memory: &mut Memory, mapping| AccessMemory {
        address: memory.0.as_mut_ptr().expose_provenance() as u64,
        extent: whole,
        part: whole,
        buffer: range,
        mapping,
    };
    let read = access(&mut u, Mapping::Neighborhood { border, axes_only: false });
    let by_row = [access(&mut rows, Mapping::OneToOne), read];
    let by_item = [access(&mut items, Mapping::OneToOne), read];
    let middle = range.map(|size| size / 2);
    for chunk in [
        Bounds::new([0; 3], [middle[0], range[1], range[2]]),
        Bounds::new([middle[0], 0, 0], [range[0], middle[1], range[2]]),
        Bounds::new([middle[0], middle[1], 0], [range[0], range[1], middle[2]]),
        Bounds::new(middle, range),
    ] {
        if chunk.is_empty() {
            continue;
        }
        launch_as(
            wish,
            Form::Row,
            chunk,
            &by_row,
            |_: Place<3>, out: &mut [f32], u: NeighborhoodRow<'_, f32, 3>| {
                let around = offsets.map(|offset| u.clamped(offset));
                for (i, out) in out.iter_mut().enumerate() {
                    let numbered = around.iter().enumerate();
                    *out = numbered.map(|(nth, row)| (nth + 1) as f32 * row[i]).sum();
                }
            },
        );
        launch_as(
            wish,
            Form::Item,
            chunk,
            &by_item,
            |_: Place<3>, out: &mut f32, u: NeighborhoodItem<'_, f32, 3>| {
                let numbered = offsets.iter().enumerate();
                let around = numbered.map(|(nth, &at)| (nth + 1) as f32 * u.clamped(at));
                *out = around.sum();
            },
        );
    }
    let volume: usize = range.iter().product();
    for position in 0..volume {
        let x = position % range[2];
        let at = [position / range[2] / range[1], position / range[2] % range[1], x];
        let expected = around_3(&u.0, range, at, &offsets);
        let found = (rows.0[position], items.0[position]);
        assert_eq!(found, (expected, expected), "{at:?} of {range:?}, {border:?}, {wish:?}");
    }
}

/// The same in one dimension, where there are no steps.
#[test]
fn stencils_on_a_line_agree_with_arithmetic_by_rows_and_items() {
    let sizes: &[usize] = if cfg!(miri) { &[1, 3, 13] } else { &[1, 3, 4, 13, 64, 1000] };
    for &size in sizes {
        let (mut u, mut rows, mut items) = (input(), Memory([-1.0; 1024]), Memory([-1.0; 1024]));
        let range = [size, 1, 1];
        let whole = Bounds::from_range(range);
        let access = |memory: &mut Memory, mapping| AccessMemory {
            address: memory.0.as_mut_ptr().expose_provenance() as u64,
            extent: whole,
            part: whole,
            buffer: range,
            mapping,
        };
        let around = Mapping::Neighborhood { border: [3, 0, 0], axes_only: true };
        let read = access(&mut u, around);
        let by_row = [access(&mut rows, Mapping::OneToOne), read];
        let by_item = [access(&mut items, Mapping::OneToOne), read];
        for (from, to) in [(0, size / 3), (size / 3, size)] {
            let chunk = Bounds::new([from, 0, 0], [to, 1, 1]);
            if chunk.is_empty() {
                continue;
            }
            launch(
                Form::Row,
                chunk,
                &by_row,
                |_: Place<1>, out: &mut [f32], u: NeighborhoodRow<'_, f32, 1>| {
                    let (left, right) = (u.clamped([-3]), u.clamped([1]));
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = left[i] - right[i];
                    }
                },
            );
            launch(
                Form::Item,
                chunk,
                &by_item,
                |_: Place<1>, out: &mut f32, u: NeighborhoodItem<'_, f32, 1>| {
                    *out = u.clamped([-3]) - u.clamped([1]);
                },
            );
        }
        for x in 0..size {
            let expected = u.0[x.saturating_sub(3)] - u.0[(x + 1).min(size - 1)];
            assert_eq!((rows.0[x], items.0[x]), (expected, expected), "{x} of {size}");
        }
    }
}
