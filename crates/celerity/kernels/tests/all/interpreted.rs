//! Kernels as compiled for devices, carried out by an interpreter: without a GPU, that what was compiled computes what
//! hosts do, in whole launches as hosts write them, and in how wide steps. Says nothing of time.

mod machine;
mod parser;

use std::fmt::Debug;
use std::ops::Range;

use celerity_example_kernels::MODULE;
use celerity_example_kernels::accuracy::{arguments, both, normal_values};
use celerity_example_kernels::bytes::{CROWD, PAIRS, WIDE, count_pairs};
use celerity_example_kernels::iterators::{
    Pixel, blur, mean_colour, product, square as square_matrices,
};
use celerity_example_kernels::life::{self, life_step, life_step_row};
use celerity_example_kernels::linear::{blend, multiply_sparse};
use celerity_example_kernels::means::{
    CUBE, SQUARE, mean, mean_of_9, mean_of_9_row, mean_of_27, mean_of_27_in_loops, mean_of_27_row,
};
use celerity_example_kernels::mesh::{mesh_step, next};
use celerity_example_kernels::parts::{mark, mark_plane};
use celerity_example_kernels::prk::nstream::triad;
use celerity_example_kernels::prk::stencil::{
    stencil_square, stencil_square_of, stencil_star, stencil_star_of,
};
use celerity_example_kernels::prk::transpose::{
    BLOCK, GROUP, TILE, transpose_and_increment, transpose_tiles,
};
use celerity_example_kernels::shapes::{spread_in_column, throw_darts};
use celerity_kernel::abi::{AccessKind, AccessMemory, Chunk, EntryKind, Mapping, PartSide, STACK};
use celerity_kernel::math::Float;
use celerity_kernel::{
    Bounds, Item, ItemKernel, Kernel, Layout, NeighborhoodRow, Reach, Row, RowKernel,
};

use machine::{Counts, Memory, Number};
use parser::Entry;

/// Where buffers lie.
const PLACES: [u64; 5] = [0x1_0000, 0x4_0000, 0x8_0000, 0xc_0000, 0x10_0000];

/// Carries out the launch of a chunk.
fn launch<K: Kernel>(
    kernel: &K,
    chunk: &Chunk,
    accesses: &[AccessMemory],
    memory: &mut Memory,
) -> Counts {
    let kind =
        |&AccessMemory { mapping, buffer, .. }: &_| AccessKind { mapping, buffer, updates: false };
    let space = Bounds::from_range(chunk.global);
    let entry_kind = K::DESCRIPTION.entry_kind(&space, accesses.iter().map(kind));
    launch_as(kernel, &Chunk { entry_kind, ..*chunk }, None, accesses, memory)
}

/// Where the steps of each thread stand in what is told of a launch, and behind them how many of them are a stack.
const STEPS: usize = 122;

/// The same by the entry point that the chunk says, in so many steps: as many as large launches take.
fn launch_as<K: Kernel>(
    kernel: &K,
    chunk: &Chunk,
    steps: Option<u8>,
    accesses: &[AccessMemory],
    memory: &mut Memory,
) -> Counts {
    let module = MODULE.ptx(u32::MAX).unwrap_or_else(|missing| panic!("{missing}"));
    let entry_kind = chunk.entry_kind;
    let entry = Entry::read(module, K::DESCRIPTION.entry_for(entry_kind).unwrap());
    let mut parameters = Vec::new();
    let mut append = |piece: &[u8], alignment| {
        parameters.resize(parameters.len().next_multiple_of(alignment), 0);
        parameters.extend_from_slice(piece);
    };
    let mut shape = kernel.put_launch(chunk, accesses, &mut append).unwrap();
    if let Some(steps) = steps {
        let takes_stacks = entry_kind == EntryKind::Stacked && parameters[STEPS - 2] > 1;
        parameters[STEPS] = steps;
        parameters[STEPS + 1] = if takes_stacks { STACK as u8 } else { 1 };
        let [rows, ..] = chunk.items.range();
        let slowest = K::DESCRIPTION.dims - 1;
        shape.grid[slowest] = (rows as u32).div_ceil(shape.block[slowest] * u32::from(steps));
    }
    machine::run(&entry, &shape, &parameters, memory)
}

/// The `nth` access of a launch, whose memory holds a box of a buffer.
fn access(nth: usize, extent: Bounds<3>, buffer: [usize; 3], mapping: Mapping) -> AccessMemory {
    AccessMemory { address: PLACES[nth], extent, part: extent, buffer, mapping }
}

/// So many numbers, which look random.
fn numbers(len: usize, seed: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f64 / 64.0).collect()
}

/// How often instructions were carried out whose names begin so.
fn count(counts: &Counts, begins: &str) -> usize {
    counts.iter().filter(|(name, _)| name.starts_with(begins)).map(|(_, count)| count).sum()
}

#[test]
fn tiles_are_transposed_wherever_a_chunk_begins() {
    const ORDER: usize = 2 * TILE;
    let global = [2, ORDER / BLOCK[0], TILE / BLOCK[1]];
    for first in [0, TILE] {
        let rows = ORDER - first;
        let items = Bounds::new([0, first / BLOCK[0], 0], global);
        let chunk = Chunk { group: [1, GROUP[0], GROUP[1]], ..Chunk::new(items, global) };
        let sides =
            [PartSide::block(0, 1), PartSide::block(1, BLOCK[0]), PartSide::block(2, BLOCK[1])];
        let own = Mapping::PerDimension { sides };
        let accesses = [
            access(0, Bounds::new([0, first, 0], [2, ORDER, TILE]), [2, ORDER, TILE], own),
            access(
                1,
                Bounds::new([0, first, 0], [ORDER, ORDER, 1]),
                [ORDER, ORDER, 1],
                Mapping::Opaque,
            ),
        ];
        let (b, a) = (numbers(ORDER * rows, 1), numbers(ORDER * rows, 2));
        let expected: Vec<_> = (0..2 * rows * TILE)
            .map(|at| {
                let (band, row, column) = (at / TILE / rows, at / TILE % rows, at % TILE);
                b[at] + a[(band * TILE + column) * rows + row]
            })
            .collect();
        let memory = || Memory::default().with(PLACES[0], &b).with(PLACES[1], &a);
        let mut with = memory();
        let counts = launch(&transpose_tiles {}, &chunk, &accesses, &mut with);
        assert_eq!(
            (with.numbers(PLACES[0]), with.numbers(PLACES[1])),
            (expected.clone(), a.clone())
        );
        // Two elements at once of what is in rows of `b` and of a tile, there and back.
        for wide in ["ld.global.v4", "st.global.v4", "ld.shared.v4"] {
            assert_eq!(count(&counts, wide), b.len() / 2, "{wide}: {counts:?}");
        }
        let mut with = memory();
        launch(&transpose_and_increment {}, &chunk, &accesses, &mut with);
        let grown: Vec<_> = a.iter().map(|element| element + 1.0).collect();
        assert_eq!((with.numbers(PLACES[0]), with.numbers(PLACES[1])), (expected, grown));
    }
}

/// Rows of one dimension that begin at `first`, in memory that begins at or before it.
fn rows<const N: usize, T: Number<N>, K: Kernel>(
    kernel: &K,
    first: usize,
    values: &[Vec<T>],
) -> (Vec<T>, Counts) {
    let len = values[0].len();
    let (mut memory, mut accesses) = (Memory::default(), Vec::new());
    for (nth, values) in values.iter().enumerate() {
        // Every other memory holds more than the chunk.
        let held = if nth % 2 == 0 { first / 8 * 4 } else { first };
        memory = memory.with(PLACES[nth], &values[held..]);
        accesses.push(access(
            nth,
            Bounds::new([held, 0, 0], [len, 1, 1]),
            [len, 1, 1],
            Mapping::OneToOne,
        ));
    }
    let chunk = Chunk::new(Bounds::new([first, 0, 0], [len, 1, 1]), [len, 1, 1]);
    let counts = launch(kernel, &chunk, &accesses, &mut memory);
    let mut result = values[0][..first / 8 * 4].to_vec();
    result.extend(memory.numbers::<N, T>(PLACES[0]));
    (result, counts)
}

#[test]
fn zipped_rows_are_computed_in_wide_steps_where_memory_is_aligned() {
    const LEN: usize = 203;
    for first in [0, 4, 100, 101, 202] {
        let of: Vec<_> = (0..3).map(|nth| numbers(LEN, nth)).collect();
        let (found, counts) = rows(&triad { scalar: 3.0 }, first, &of);
        let sum = |i: usize| of[0][i] + if i < first { 0.0 } else { of[1][i] + 3.0 * of[2][i] };
        assert_eq!(found, (0..LEN).map(sum).collect::<Vec<_>>(), "from {first}");
        let wide = if first % 2 == 0 { (LEN - first) / 2 } else { 0 };
        assert_eq!(count(&counts, "st.global.v2.b64"), wide, "from {first}: {counts:?}");

        let of: Vec<Vec<_>> =
            (0..5).map(|nth| numbers(LEN, nth).iter().map(|x| *x as f32).collect()).collect();
        let (found, counts) = rows(&blend {}, first, &of);
        let sum = |i: usize| match i < first {
            true => of[0][i],
            false => of[1][i] * of[2][i] + of[3][i] * of[4][i],
        };
        assert_eq!(found, (0..LEN).map(sum).collect::<Vec<_>>(), "from {first}");
        let wide = if first % 4 == 0 { (LEN - first) / 4 } else { 0 };
        assert_eq!(count(&counts, "st.global.v4"), wide, "from {first}: {counts:?}");
    }
}

#[test]
#[should_panic(expected = "are nobody's memory")]
fn an_address_behind_a_buffer_is_found() {
    let items = Bounds::from_range([16, 1, 1]);
    let accesses = [0, 1, 2].map(|nth| access(nth, items, [16, 1, 1], Mapping::OneToOne));
    let (all, few) = (numbers(16, 0), numbers(15, 1));
    let memory = Memory::default().with(PLACES[0], &all).with(PLACES[1], &few);
    let mut memory = memory.with(PLACES[2], &all);
    launch(&triad { scalar: 3.0 }, &Chunk::new(items, [16, 1, 1]), &accesses, &mut memory);
}

/// A matrix with as many entries in each of its rows, whose columns are all over the vector.
#[test]
fn rows_of_a_sparse_matrix_are_read_without_a_branch_for_each_entry() {
    const ROWS: usize = 8;
    const ENTRIES: usize = 40;
    let numbers = |seed| numbers(ROWS * ENTRIES, seed);
    let (values, x) = (numbers(1), numbers(2));
    let columns: Vec<u32> = (0..ROWS * ENTRIES).map(|at| (at * 37 % x.len()) as u32).collect();
    let ends: Vec<u64> = (0..=ROWS).map(|row| (row * ENTRIES) as u64).collect();
    let line = |len: usize| Bounds::from_range([len, 1, 1]);
    let of = |nth: usize, len: usize, mapping| access(nth, line(len), [len, 1, 1], mapping);
    let accesses = [
        of(0, ROWS, Mapping::OneToOne),
        of(1, ROWS + 1, Mapping::Opaque),
        of(2, columns.len(), Mapping::Opaque),
        of(3, values.len(), Mapping::Opaque),
        of(4, x.len(), Mapping::All),
    ];
    let memory = Memory::default().with(PLACES[0], &[0.0; ROWS]).with(PLACES[1], &ends);
    let memory = memory.with(PLACES[2], &columns).with(PLACES[3], &values);
    let mut memory = memory.with(PLACES[4], &x);
    let chunk = Chunk::new(line(ROWS), [ROWS, 1, 1]);
    let counts = launch(&multiply_sparse {}, &chunk, &accesses, &mut memory);
    let expected = (0..ROWS).map(|row| {
        let entries = row * ENTRIES..(row + 1) * ENTRIES;
        entries.fold(0.0, |sum, at| sum + values[at] * x[columns[at] as usize])
    });
    assert_eq!(memory.numbers::<8, f64>(PLACES[0]), expected.collect::<Vec<_>>());
    // The loop's own, and those of a thread.
    let branches = count(&counts, "bra");
    assert!(branches <= ROWS * (ENTRIES + 16), "{branches}");
}

/// Of a line of items from 2 to 7, what each has of a plane.
#[test]
fn items_mark_what_they_have_of_a_plane() {
    type Case = (PartSide, fn(usize) -> Range<usize>);
    const PLANE: [usize; 2] = [9, 20];
    let window = |stride, first, width| PartSide::Window { from: 0, stride, first, width };
    let share = |first, count, granule| PartSide::Share { from: 0, first, count, granule };
    let rows: Case = (PartSide::constant(0..9), |_| 0..9);
    let columns: Case = (PartSide::constant(3..5), |_| 3..5);
    let cases: [[Case; 2]; 5] = [
        [(window(1, 0, 1), |i| i..i + 1), columns],
        [rows, (window(3, 2, 2), |i| 3 * i + 2..(3 * i + 4).min(20))],
        [(window(1, -4, 1), |i| i.max(4) - 4..i.max(3) - 3), columns],
        [(share(2, 5, 1), |i| (i - 2) * 9 / 5..(i - 1) * 9 / 5), columns],
        [rows, (share(1, 7, 3), |i| (3 * (i - 1)).min(20)..(3 * i).min(20))],
    ];
    let (items, buffer) = (Bounds::new([2, 0, 0], [7, 1, 1]), [PLANE[0], PLANE[1], 1]);
    for [(of_rows, rows), (of_columns, columns)] in cases {
        let mut expected = vec![0_u64; PLANE[0] * PLANE[1]];
        for (item, y) in (2..7).flat_map(|item| rows(item).map(move |y| (item, y))) {
            columns(item).for_each(|x| expected[y * PLANE[1] + x] = mark(item, [0, y, x]));
        }
        let sides = [of_rows, of_columns, PartSide::ALL_OF_NONE];
        let own = Mapping::PerDimension { sides };
        let accesses = [access(0, Bounds::from_range(buffer), buffer, own)];
        let mut memory = Memory::default().with(PLACES[0], &vec![0_u64; expected.len()]);
        launch(&mark_plane {}, &Chunk::new(items, [9, 1, 1]), &accesses, &mut memory);
        assert_eq!(memory.numbers::<8, u64>(PLACES[0]), expected, "{sides:?}");
    }
}

#[test]
fn columns_are_solved_with_a_load_for_each_number() {
    let branches = [9, 25].map(branches_of_columns);
    // Those of a layer alone: of both ways, where the loop's own branch and a check are. Of three lines that are gone along together
    // rustc 1.96 with LLVM 22.1.8 checks two, 4.5 branches of a layer; some that were tried before, one, and 3.
    let [(few, len), (many, longer)] = branches;
    assert!(many - few <= 5 * (longer - len), "{branches:?}");
}

/// How many branches it takes to solve columns of so many layers, and how many numbers these have together.
fn branches_of_columns(layers: usize) -> (usize, usize) {
    const ROWS: [usize; 2] = [2, 5];
    let buffer = [layers, 7, 6];
    let extent = Bounds::new([0, ROWS[0], 0], [layers, ROWS[1], 6]);
    let len = extent.volume();
    let spread: Vec<f32> = numbers(len, 1).iter().map(|&number| number as f32).collect();
    let warmth: Vec<f32> = numbers(len, 2).iter().map(|&number| number as f32).collect();
    let sides = [PartSide::constant(0..layers), PartSide::block(1, 1), PartSide::block(2, 1)];
    let own = Mapping::PerDimension { sides };
    let accesses = [0, 1, 2].map(|nth| access(nth, extent, buffer, own));
    let memory = Memory::default().with(PLACES[0], &warmth).with(PLACES[1], &vec![0.0_f32; len]);
    let mut memory = memory.with(PLACES[2], &spread);
    let items = Bounds::new([0, ROWS[0], 0], [1, ROWS[1], 6]);
    let chunk = Chunk::new(items, [1, buffer[1], buffer[2]]);
    let counts = launch(&spread_in_column {}, &chunk, &accesses, &mut memory);

    let (mut warmth, mut factors) = (warmth, vec![0.0_f32; len]);
    let columns = len / layers;
    for column in 0..columns {
        let (mut factor, mut above, mut below) = (0.0, 0.0, 0.0);
        for at in (0..layers).map(|layer| layer * columns + column) {
            let part = 1.0 / (1.0 + 2.0 * spread[at] - spread[at] * factor);
            (above, factor) = ((warmth[at] + spread[at] * above) * part, spread[at] * part);
            (warmth[at], factors[at]) = (above, factor);
        }
        for at in (0..layers).rev().map(|layer| layer * columns + column) {
            below = warmth[at] + factors[at] * below;
            warmth[at] = below;
        }
    }
    assert_eq!(memory.numbers::<4, f32>(PLACES[0]), warmth);
    assert_eq!(memory.numbers::<4, f32>(PLACES[1]), factors);
    // Two loads of each layer on the way down, and two on the way back.
    assert_eq!(count(&counts, "ld.global"), 4 * len, "{counts:?}");
    // Those with two ways: where code lies that one way alone leads to, is for the driver to say.
    let branches = counts.get("bra").copied().unwrap_or_default();
    assert!(branches <= 5 * len + 24 * columns, "{counts:?}");
    (branches, len)
}

#[test]
fn random_numbers_are_made_of_products_of_32_bits() {
    const ITEMS: usize = 40;
    let line = Bounds::from_range([ITEMS, 1, 1]);
    let mut memory = Memory::default().with(PLACES[0], &[0_u32; ITEMS]);
    let accesses = [access(0, line, [ITEMS, 1, 1], Mapping::OneToOne)];
    let kernel = throw_darts { rounds: 3 };
    let counts = launch(&kernel, &Chunk::new(line, [ITEMS, 1, 1]), &accesses, &mut memory);
    let expected = (0..ITEMS).map(|at| {
        let mut hits = 0;
        kernel.item(Item::new([at], [ITEMS]), &mut hits);
        hits
    });
    assert_eq!(memory.numbers::<4, u32>(PLACES[0]), expected.collect::<Vec<_>>());
    // Of those that look like 64 bits, one is a shift of a half, and one is the place of an element.
    assert!(count(&counts, "mul.lo.s64") <= 3 * ITEMS, "{counts:?}");
    assert!(count(&counts, "mul.wide.u32") >= 3 * 17 * ITEMS, "{counts:?}");
}

/// The size of a plane that stencils look at, and the rows of a chunk in it.
const ROWS: usize = 23;
const FIRST: usize = 4;
const END: usize = 19;

/// A kernel by row that adds what is around cells to them.
trait Stencil: Kernel + for<'a> RowKernel<2, (&'a mut [f64], NeighborhoodRow<'a, f64, 2>)> {}

impl<K> Stencil for K where
    K: Kernel + for<'a> RowKernel<2, (&'a mut [f64], NeighborhoodRow<'a, f64, 2>)>
{
}

/// Compares a star and a square of one radius with what they do on a host.
fn check_both(star: impl Stencil, square: impl Stencil, radius: usize, columns: usize) {
    check_stencil(star, radius, columns, true);
    check_stencil(square, radius, columns, false);
}

/// Compares a stencil of a plane with what the same kernel does on a host, point by point.
fn check_stencil<K: Stencil>(kernel: K, radius: usize, columns: usize, axes_only: bool) {
    let range = [ROWS, columns];
    let buffer = [ROWS, columns, 1];
    let held = FIRST.saturating_sub(radius)..(END + radius).min(ROWS);
    let (out, u) = (numbers((END - FIRST) * columns, 1), numbers(held.len() * columns, 2));

    let reach = match axes_only {
        true => Reach::along_axes([radius; 2]),
        false => Reach::boxed([radius; 2]),
    };
    let part = Bounds::new([held.start, 0], [held.end, columns]);
    let mut expected = out.clone();
    for (at, out) in expected.iter_mut().enumerate() {
        let start = [FIRST + at / columns, at % columns];
        // SAFETY: `u` holds what is around the rows of the chunk, inside of the buffer.
        #[allow(unsafe_code)]
        let u = unsafe {
            NeighborhoodRow::new(u.as_ptr(), &Layout::row_major(&part), &reach, range, start, 1)
        };
        kernel.row(Row::new(start, 1, range), (std::slice::from_mut(out), u));
    }

    let items = Bounds::new([FIRST, 0, 0], [END, columns, 1]);
    let border = [radius, radius, 0];
    let accesses = [
        access(0, items, buffer, Mapping::OneToOne),
        access(
            1,
            Bounds::new([held.start, 0, 0], [held.end, columns, 1]),
            buffer,
            Mapping::Neighborhood { border, axes_only },
        ),
    ];
    let memory = || Memory::default().with(PLACES[0], &out).with(PLACES[1], &u);
    let chunk = Chunk::new(items, buffer);
    let check = |by: &str, memory: Memory| {
        let label = format!("{}, radius {radius}, {columns} columns, {by}", K::DESCRIPTION.name);
        assert_eq!(memory.numbers::<8, f64>(PLACES[0]), expected, "{label}");
    };
    let mut usual = memory();
    launch(&kernel, &chunk, &accesses, &mut usual);
    check("as usual", usual);
    for (entry_kind, steps) in WALKS {
        let mut walked = memory();
        launch_as(&kernel, &Chunk { entry_kind, ..chunk }, Some(steps), &accesses, &mut walked);
        check(&format!("{entry_kind:?} in {steps} steps"), walked);
    }
}

/// How threads of large launches go: the last stacks of a chunk are not whole.
const WALKS: [(EntryKind, u8); 3] =
    [(EntryKind::Plain, 2), (EntryKind::Stacked, 4), (EntryKind::Stacked, 8)];

#[test]
fn stencils_have_the_bits_of_hosts() {
    // Rows that are aligned for runs, and others. Of radius 5 the compiler knows nothing.
    // Narrow rows, and wide ones, whose edges are apart.
    for (radius, columns) in (1..=5).flat_map(|radius| [24, 25, 280].map(|it| (radius, it))) {
        match radius {
            1 => check_both(stencil_star::<1>::new(), stencil_square::<1, 3>::new(), 1, columns),
            2 => check_both(stencil_star::<2>::new(), stencil_square::<2, 5>::new(), 2, columns),
            3 => check_both(stencil_star::<3>::new(), stencil_square::<3, 7>::new(), 3, columns),
            4 => check_both(stencil_star::<4>::new(), stencil_square::<4, 9>::new(), 4, columns),
            _ => check_both(
                stencil_star_of { radius },
                stencil_square_of { radius },
                radius,
                columns,
            ),
        }
    }
}

/// Compares means over a cell and all around it with those of plain loops: of a box's cells but for its first and last plane,
/// or of a plane's but for its first and last row.
fn check_means<K: Kernel, T: Float + Debug + Number<N>, const N: usize>(
    kernel: &K,
    range: [usize; 3],
) {
    let is_plane = K::DESCRIPTION.dims == 2;
    let of = |number| T::from(number as f32);
    let u: Vec<T> = numbers(range.iter().product(), 3).into_iter().map(of).collect();
    let cell = |start: [usize; 3], offset: [isize; 3]| {
        let at = |dim: usize| start[dim].saturating_add_signed(offset[dim]).min(range[dim] - 1);
        u[(at(0) * range[1] + at(1)) * range[2] + at(2)]
    };
    let inner = 1..range[0] - 1;
    let starts = inner.clone().flat_map(|z| (0..range[1]).map(move |y| (z, y)));
    let starts = starts.flat_map(|(z, y)| (0..range[2]).map(move |x| [z, y, x]));
    let expected: Vec<T> = starts
        .map(|start| match is_plane {
            // The last dimension has one cell.
            true => mean(SQUARE.map(|[y, x]| cell(start, [y, x, 0]))),
            false => mean(CUBE.map(|offset| cell(start, offset))),
        })
        .collect();
    let items = Bounds::new([inner.start, 0, 0], [inner.end, range[1], range[2]]);
    let border = if is_plane { [1, 1, 0] } else { [1; 3] };
    let around = Mapping::Neighborhood { border, axes_only: false };
    let accesses = [
        access(0, items, range, Mapping::OneToOne),
        access(1, Bounds::from_range(range), range, around),
    ];
    let memory = || {
        let memory = Memory::default().with(PLACES[0], &vec![T::from(0.0); expected.len()]);
        memory.with(PLACES[1], &u)
    };
    let chunk = Chunk::new(items, range);
    let label = format!("{}, {range:?}", K::DESCRIPTION.entry);
    let mut usual = memory();
    launch(kernel, &chunk, &accesses, &mut usual);
    assert_eq!(usual.numbers::<N, T>(PLACES[0]), expected, "{label}");
    for (entry_kind, steps) in WALKS {
        let mut walked = memory();
        launch_as(kernel, &Chunk { entry_kind, ..chunk }, Some(steps), &accesses, &mut walked);
        let label = format!("{label}, {entry_kind:?} in {steps} steps");
        assert_eq!(walked.numbers::<N, T>(PLACES[0]), expected, "{label}");
    }
}

#[test]
fn means_have_the_bits_of_hosts() {
    // Of four, a run of which both ends are those of its row.
    for (columns, rows) in [(4, 6), (16, 6), (17, 6), (20, 12)] {
        let (plane, space) = ([rows, columns, 1], [rows - 2, 5, columns]);
        check_means::<_, f32, 4>(&mean_of_9::<f32>::new(), plane);
        check_means::<_, f64, 8>(&mean_of_9::<f64>::new(), plane);
        check_means::<_, f32, 4>(&mean_of_9_row::<f32>::new(), plane);
        check_means::<_, f64, 8>(&mean_of_9_row::<f64>::new(), plane);
        check_means::<_, f32, 4>(&mean_of_27::<f32>::new(), space);
        check_means::<_, f64, 8>(&mean_of_27::<f64>::new(), space);
        check_means::<_, f32, 4>(&mean_of_27_row::<f32>::new(), space);
        check_means::<_, f64, 8>(&mean_of_27_row::<f64>::new(), space);
        check_means::<_, f32, 4>(&mean_of_27_in_loops {}, space);
    }
}

/// Compares a generation of a world whose edges meet with that of plain loops: of all rows, as all of them are looked at, and
/// by both kinds of entry points that take it in runs.
fn check_life<K: Kernel>(kernel: &K, range: [usize; 3]) {
    let [rows, columns, _] = range;
    let world: Vec<u8> = (0..rows * columns).map(|i| life::initial([i / columns, i], 7)).collect();
    let cell = |y: usize, x: usize, [down, right]: [isize; 2]| {
        let around = |at: usize, by: isize, size: usize| {
            (at as isize + by).rem_euclid(size as isize) as usize
        };
        world[around(y, down, rows) * columns + around(x, right, columns)]
    };
    let next = |i: usize| {
        let (y, x) = (i / columns, i % columns);
        let neighbours = life::NEIGHBOURS.map(|offset| cell(y, x, offset));
        life::next(world[i], neighbours.iter().sum())
    };
    let expected: Vec<u8> = (0..world.len()).map(next).collect();
    let around =
        Mapping::Periodic { border: [1, 1, 0], axes_only: false, along: [true, true, false] };
    let items = Bounds::from_range(range);
    let accesses = [access(0, items, range, Mapping::OneToOne), access(1, items, range, around)];
    for (entry_kind, steps) in WALKS {
        let memory = Memory::default().with(PLACES[0], &vec![9_u8; world.len()]);
        let mut memory = memory.with(PLACES[1], &world);
        let chunk = Chunk { entry_kind, ..Chunk::new(items, range) };
        launch_as(kernel, &chunk, Some(steps), &accesses, &mut memory);
        let label = format!("{}, {range:?}, {entry_kind:?} in {steps} steps", K::DESCRIPTION.entry);
        assert_eq!(memory.numbers::<1, u8>(PLACES[0]), expected, "{label}");
    }
}

#[test]
fn worlds_whose_edges_meet_live_as_on_hosts() {
    // Stacks at both edges, and one that is not whole; a world that is one stack.
    for range in [[8, 16, 1], [11, 20, 1], [4, 12, 1], [3, 8, 1]] {
        check_life(&life_step {}, range);
        check_life(&life_step_row {}, range);
    }
}

/// Jumps are threaded in these alone, so that what they keep stays in registers.
#[test]
fn arrays_that_iterators_take_by_value_are_as_on_hosts() {
    let range @ [rows, columns, _] = [7, 12, 1];
    let image: Vec<u8> = (0..rows * columns * 3).map(|at| (at * at * 37 % 251) as u8).collect();
    let pixel = |y: isize, x: isize| -> Pixel {
        let inside = |at: isize, size: usize| at.clamp(0, size as isize - 1) as usize;
        let at = 3 * (inside(y, rows) * columns + inside(x, columns));
        [image[at], image[at + 1], image[at + 2]]
    };
    let around = |y: isize, x: isize| {
        std::array::from_fn(|at| pixel(y + at as isize / 3 - 1, x + at as isize % 3 - 1))
    };
    let places = (0..rows as isize).flat_map(|y| (0..columns as isize).map(move |x| (y, x)));
    let expected: Vec<u8> = places.flat_map(|(y, x)| mean_colour(around(y, x))).collect();
    let whole = Bounds::from_range(range);
    let near = Mapping::Neighborhood { border: [1, 1, 0], axes_only: false };
    let accesses = [access(0, whole, range, Mapping::OneToOne), access(1, whole, range, near)];
    for (entry_kind, steps) in WALKS {
        let memory = Memory::default().with(PLACES[0], &vec![0_u8; image.len()]);
        let mut memory = memory.with(PLACES[1], &image);
        let chunk = Chunk { entry_kind, ..Chunk::new(whole, range) };
        let counts = launch_as(&blur {}, &chunk, Some(steps), &accesses, &mut memory);
        assert_eq!(memory.numbers::<1, u8>(PLACES[0]), expected, "{entry_kind:?}");
        assert_eq!(count(&counts, "ld.local") + count(&counts, "st.local"), 0);
    }

    let matrices: Vec<_> = numbers(9 * 20, 3);
    let expected: Vec<f64> = matrices
        .chunks_exact(9)
        .map(|matrix| std::array::from_fn(|y| std::array::from_fn(|x| matrix[3 * y + x])))
        .flat_map(|matrix| product(matrix, matrix).into_iter().flatten())
        .collect();
    let mut memory = Memory::default().with(PLACES[0], &matrices);
    let line = Bounds::from_range([20, 1, 1]);
    let own = [access(0, line, [20, 1, 1], Mapping::OneToOne)];
    launch(&square_matrices {}, &Chunk::new(line, [20, 1, 1]), &own, &mut memory);
    assert_eq!(memory.numbers::<8, f64>(PLACES[0]), expected);
}

#[test]
fn functions_of_normal_numbers_round_once() {
    let all = (0..60_000_u32).map(|at| arguments(at.wrapping_mul(71_569)));
    // As far from both ends as all three want it.
    let are_normal =
        |&(x, y): &(f32, f32)| x > 0.0 && (0..3).all(|which| both(which, x, y).is_some());
    let (x, y): (Vec<f32>, Vec<f32>) = all.filter(are_normal).take(4096).unzip();
    let len = x.len();
    assert_eq!(len, 4096);
    let whole = Bounds::new([0; 3], [len, 1, 1]);
    let accesses: Vec<_> =
        (0..5).map(|nth| access(nth, whole, [len, 1, 1], Mapping::OneToOne)).collect();
    let blank = vec![0.0_f32; len];
    let mut memory = [&blank, &blank, &blank, &x, &y]
        .iter()
        .zip(PLACES)
        .fold(Memory::default(), |memory, (numbers, place)| memory.with(place, numbers));
    let counts = launch(&normal_values {}, &Chunk::new(whole, [len, 1, 1]), &accesses, &mut memory);
    let found: [Vec<f32>; 3] = [0, 1, 2].map(|nth| memory.numbers::<4, f32>(PLACES[nth]));
    for at in 0..len {
        let (x, y) = (x[at], y[at]);
        assert_eq!(
            [found[0][at], found[1][at], found[2][at]],
            [x.sqrt(), 1.0 / x, x / y],
            "{x:e}, {y:e}"
        );
    }
    // Nothing that asks, and nothing that is called.
    assert_eq!((count(&counts, "div"), count(&counts, "sqrt")), (0, 0), "{counts:?}");
}

#[test]
fn groups_count_the_pairs_of_their_part_and_hand_on_what_is_much() {
    // The second part of three, and of the text all that it needs: it ends before the text does, or with it.
    let share = 300 * WIDE;
    for (behind, of_one) in
        [(share + 1, false), (share + 1, true), (77 * WIDE + 6, false), (1, true)]
    {
        let text: Vec<u8> = (0..behind as u64)
            .map(|at| if of_one { 0xa1 } else { (at * at * 40_503 / 8192) as u8 })
            .collect();
        let held = Bounds::new([share, 0, 0], [share + behind, 1, 1]);
        let accesses = [
            access(4, Bounds::new([1, 0, 0], [2, PAIRS, 1]), [3, PAIRS, 1], Mapping::Opaque),
            access(1, held, [share + behind, 1, 1], Mapping::Opaque),
        ];
        let items = Bounds::new([1, 0, 0], [2, 2 * CROWD, 1]);
        let chunk = Chunk { group: [1, CROWD, 1], ..Chunk::new(items, [3, 2 * CROWD, 1]) };
        // Behind all other places there is room for so many counts.
        let memory = Memory::default().with(PLACES[4], &vec![5_u64; PAIRS]);
        let mut memory = memory.with(PLACES[1], &text);
        let counts = launch(&count_pairs { share }, &chunk, &accesses, &mut memory);
        let mut expected = vec![5; PAIRS];
        for pair in text.windows(2) {
            expected[usize::from(pair[0]) * 256 + usize::from(pair[1])] += 1;
        }
        assert!(memory.numbers::<8, u64>(PLACES[4]) == expected, "of {behind} bytes");
        let wide = (behind - 1) / WIDE;
        assert_eq!(count(&counts, "ld.global.v4"), wide * WIDE / 16, "{counts:?}");
        // One byte behind each wide run, and of those that are left, two each.
        let single = wide + 2 * ((behind - 1) % WIDE);
        assert_eq!(count(&counts, "ld.global.nc.b8"), single, "{counts:?}");
    }
}

#[test]
fn triangles_find_what_is_beside_them_in_their_part_and_in_borders() {
    const PARTS: usize = 2;
    const INNER: usize = 64;
    const BORDER: usize = 32;
    const BITS: u32 = BORDER.ilog2();
    let place = |nth: usize| (nth as u64 + 1) << 16;
    // The second part: what is inside of its border, and the border.
    for len in [INNER, BORDER] {
        let single = |seed: usize, len: usize| -> Vec<f32> {
            numbers(len, seed).into_iter().map(|number| number as f32).collect()
        };
        let (u, borders) = (single(1, INNER), single(2, PARTS * BORDER));
        let (here, flows) = (single(3, len), [4, 5, 6].map(|seed| single(seed, len)));
        // Of the first half, all is of the part; of the rest, every third one is of a border.
        let beside = [7, 8, 9].map(|seed| -> Vec<u32> {
            let number = |(at, random): (usize, f64)| {
                let random = (random * 64.0) as usize;
                match at >= len / 2 && random.is_multiple_of(3) {
                    true => INNER + ((random % PARTS) << BITS) + random % BORDER,
                    false => random % INNER,
                }
            };
            numbers(len, seed).into_iter().enumerate().map(number).map(|at| at as u32).collect()
        });
        let row = |len: usize| Bounds::new([PARTS - 1, 0, 0], [PARTS, len, 1]);
        let access = |nth: usize, extent, len: usize, mapping| AccessMemory {
            address: place(nth),
            extent,
            part: extent,
            buffer: [PARTS, len, 1],
            mapping,
        };
        let mut accesses: Vec<_> =
            (0..8).map(|nth| access(nth, row(len), len, Mapping::OneToOne)).collect();
        accesses.push(access(8, row(INNER), INNER, Mapping::Opaque));
        let both = Bounds::from_range([PARTS, BORDER, 1]);
        accesses.push(access(9, both, BORDER, Mapping::Opaque));
        let mut memory = Memory::default().with(place(0), &vec![0.0_f32; len]);
        memory = memory.with(place(1), &here).with(place(8), &u).with(place(9), &borders);
        for side in 0..3 {
            memory = memory.with(place(2 + side), &beside[side]);
            memory = memory.with(place(5 + side), &flows[side]);
        }
        let chunk = Chunk::new(row(len), [PARTS, len, 1]);
        let counts = launch(&mesh_step { bits: BITS }, &chunk, &accesses, &mut memory);
        let temperature = |number: u32| {
            let number = number as usize;
            number.checked_sub(INNER).map_or_else(|| u[number], |number| borders[number])
        };
        let expected: Vec<f32> = (0..len)
            .map(|at| {
                let sides = [0, 1, 2];
                let beside = sides.map(|side| temperature(beside[side][at]));
                next(here[at], beside, sides.map(|side| flows[side][at]))
            })
            .collect();
        assert!(memory.numbers::<4, f32>(place(0)) == expected, "of {len}");
        // All but what is beside triangles in steps of 16 bytes.
        assert_eq!(count(&counts, "ld.global.nc.v4"), 7 * len / 4, "{counts:?}");
        assert_eq!(count(&counts, "st.global.v4"), len / 4, "{counts:?}");
    }
}
