//! The kernels as values on a host: what launching them on a CPU device calls.

use celerity_example_kernels::{gravity, hash, linear, wave};
use celerity_kernel::abi::{AccessMemory, Chunk, EntryKind, Geometry, Mapping};
use celerity_kernel::{
    Bounds, Item, ItemKernel, Kernel, Layout, NeighborhoodItem, NeighborhoodRow, Reach, Row,
    RowKernel, WholeView,
};

const RANGE: [usize; 2] = [3, 8];

fn heights() -> [f32; 24] {
    std::array::from_fn(|i| (i * i % 7) as f32)
}

fn surroundings(u: &[f32; 24], start: [usize; 2], len: usize) -> NeighborhoodRow<'_, f32, 2> {
    let (layout, reach) = (Layout::row_major(&Bounds::from_range(RANGE)), Reach::boxed([1, 1]));
    // SAFETY: `u` holds all elements of the layout.
    #[allow(unsafe_code)]
    unsafe {
        NeighborhoodRow::new(u.as_ptr(), &layout, &reach, RANGE, start, len)
    }
}

#[test]
fn items_and_rows_agree_to_the_last_bit() {
    let u = heights();
    let (mut by_item, mut by_row) = ([0.25; 6], [0.25; 6]);
    let row = surroundings(&u, [1, 1], 6);
    for (i, up) in by_item.iter_mut().enumerate() {
        let item = Item::new([1, 1 + i], RANGE);
        wave::wave_step { c: 0.3 }.item(item, (up, row.item(i)));
    }
    wave::wave_step_row::new(0.3).row(Row::new([1, 1], 6, RANGE), (&mut by_row, row));
    assert_eq!(by_item, by_row);
}

/// Views with a lifetime to come, as a runtime has them for its accesses.
trait Accesses {
    type Views<'a>;
}

struct Stencil;

impl Accesses for Stencil {
    type Views<'a> = (&'a mut f32, NeighborhoodItem<'a, f32, 2>);
}

/// What a runtime asks of a kernel for its accesses.
fn launched<A: Accesses, K>(_: A, _: K) -> &'static str
where
    K: for<'a> ItemKernel<2, A::Views<'a>>,
{
    K::DESCRIPTION.entry
}

#[test]
fn kernels_take_the_views_of_accesses_whatever_their_lifetime() {
    assert_eq!(launched(Stencil, wave::wave_step { c: 0.3 }), "wave_step");
}

#[test]
fn a_single_view_is_bare() {
    let mut cells = [1_u64, 2, 3];
    let mut expected = cells;
    hash::stir_row { salt: 5 }.row(Row::new([0, 1, 2], 3, [1, 2, 5]), &mut cells);
    for (i, cell) in expected.iter_mut().enumerate() {
        hash::stir { salt: 5 }.item(Item::new([0, 1, 2 + i], [1, 2, 5]), cell);
    }
    assert_eq!(cells, expected);
}

#[test]
fn instances_of_generic_kernels_are_values() {
    let mut y = [1.0_f64, 2.0];
    linear::saxpy::new(2.0).row(Row::new([0], 2, [2]), (&mut y[..], &[10.0, 20.0][..]));
    assert_eq!(y, [21.0, 42.0]);
    let mut ones = [0_u32; 3];
    linear::fill::new(1).row(Row::new([0], 3, [3]), &mut ones);
    assert_eq!(ones, [1; 3]);
}

#[test]
fn rows_of_five_slices_are_zipped() {
    let mut out = [0.0; 2];
    let views = (&mut out[..], &[1.0, 2.0][..], &[3.0; 2][..], &[-1.0, 0.5][..], &[4.0; 2][..]);
    linear::blend.row(Row::new([0], 2, [2]), views);
    assert_eq!(out, [-1.0, 8.0]);
}

#[test]
fn bodies_attract_each_other() {
    let places = [[0.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 1.0]];
    let mut velocities = [[0.0; 3]; 2];
    let kick = gravity::kick::new(0.0, 1.0);
    let views = (&mut velocities[..], &places[..], WholeView::new(&places, [2]));
    kick.row(Row::new([0], 2, [2]), views);
    assert_eq!(velocities, [[0.25, 0.0, 0.0], [-0.25, 0.0, 0.0]]);
}

#[test]
fn a_launch_ends_with_what_the_kernel_takes_by_value() {
    let memory = |address, mapping| AccessMemory {
        address,
        extent: Bounds::from_range([64, 64, 1]),
        part: Bounds::from_range([64, 64, 1]),
        buffer: [64, 64, 1],
        mapping,
    };
    let around = Mapping::Neighborhood { border: [1, 1, 0], axes_only: false };
    let accesses = [memory(0x1000, Mapping::OneToOne), memory(0x2000, around)];
    let (items, global) = (Bounds::from_range([64, 64, 1]), [64, 64, 1]);
    let chunk = Chunk { entry_kind: EntryKind::Narrow, ..Chunk::new(items, global) };
    let mut bytes = Vec::new();
    let geometry = wave::wave_step_row { c: 0.5 }
        .put_launch(&chunk, &accesses, &mut |piece, alignment| {
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            bytes.extend_from_slice(piece);
        })
        .unwrap();
    // Rows are narrow, so that their runs look over edges.
    assert_eq!(geometry, Geometry { grid: [1, 8, 1], block: [16, 8, 1], shared_bytes: 0 });
    assert_eq!(bytes.len(), 128 + 2 * (8 + 184) + 4);
    assert_eq!(bytes[128..136], 0x1000_u64.to_ne_bytes());
    assert_eq!(bytes[bytes.len() - 4..], 0.5_f32.to_ne_bytes());
}
