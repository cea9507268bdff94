//! Kernels that fail, to see how that is told.

use core::fmt;

use celerity_kernel::{
    Item, Local, NdItem, NeighborhoodItem, Number, PartView, PartViewMut, kernel,
};

/// Numbers the elements, but for one.
#[kernel]
pub fn number(item: Item<1>, cell: &mut u32, fragile: usize) {
    assert!(item[0] != fragile, "an item of glass");
    *cell = item[0] as u32;
}

/// Looks at one element, which may lie outside of the part that is there.
#[kernel]
pub fn look(_item: Item<1>, (cell, part): (&mut u32, PartView<'_, u32, 1>), index: usize) {
    *cell = part[index];
}

/// The same, which GPUs say at the end.
#[kernel]
pub fn look_deferred(_item: Item<1>, (cell, part): (&mut u32, PartView<'_, u32, 1>), index: usize) {
    let part = part.deferred();
    *cell = part[index];
}

/// Looks, in one of several ways, at what is not there.
#[kernel]
pub fn stray(
    item: Item<2>,
    (mut row, part, near): (
        PartViewMut<'_, u32, 2>,
        PartView<'_, u32, 2>,
        NeighborhoodItem<'_, u32, 2>,
    ),
    way: usize,
) {
    let [y, _] = item.id();
    row[[y, 0]] = match way {
        0 => part[[y, 9]],
        1 => part.row([y])[7],
        2 => part.row([y])[3..8].len() as u32,
        3 => part.vector::<4>([y, 4])[0],
        4 => near.clamped([-2, 1]),
        5 => part.along(0, [y, 2])[y.wrapping_sub(9)],
        _ => 0,
    };
    match way {
        6 => row[[y, 6]] = 1,
        7 => row.along_mut(1, [y, 0])[7] = 1,
        _ => {}
    }
}

/// The same in memory of a group.
#[kernel]
pub fn stray_in_group(item: NdItem<'_, 1>, cell: &mut u32, cells: Local<'_, u32, 32>, at: usize) {
    cells.set(item.local_id()[0], *cell);
    item.group().barrier();
    *cell = cells.get(item.local_id()[0] + at);
}

/// Turns around what the items of a group of 32 have, but for one, which fails while the
/// others of its group wait for it.
#[kernel]
pub fn turn(item: NdItem<'_, 1>, cell: &mut u32, cells: Local<'_, u32, 32>, fragile: usize) {
    let [at] = item.local_id();
    cells.set(at, *cell);
    item.group().barrier();
    assert!(item.id()[0] != fragile, "an item of glass among others");
    *cell = cells.get(31 - at);
    item.group().barrier();
}

/// Complains of one item, in one of several ways.
#[kernel]
pub fn complain(item: Item<2>, cell: &mut f32, of: usize, way: usize) {
    if item.linear_id() != of {
        *cell = 1.0;
        return;
    }
    const { assert!(size_of::<usize>() == 8) };
    let id = item.id();
    let mut todo = way;
    match way {
        0 => panic!("{id:?} has {} of {:.2}, {} and {:?}", *cell, -1.5_f64, true, 'x'),
        1 => assert_eq!(item[1], 0, "column {} of {{{}}}", item[1], item.range()[1]),
        2 => {
            assert!(*cell > 2.5, "{cell} of {of:#06x}, {:>4}|{:<3}|", id[0] as i8 - 9, id[1] as u16)
        }
        3 => *cell = half(of as u32 | 1) as f32,
        4 => unreachable!(),
        5 => assert!(*cell > 2.5 && of > 0),
        6 => panic!("{:?}, {:e}", [*cell, f32::NAN], 1e-30_f64),
        7 => assert_ne!(id[0] as i32 - 7, id[0] as i32 - 7),
        _ if todo != 8 => *cell = 2.0,
        _ => {
            let mut next = || {
                todo += 1;
                todo
            };
            panic!("{0} {0:#x} {1:?} {x:?} {x:#?}", next(), [next()], x = [id[0] as u8; 2]);
        }
    }
}

/// Half of a number, which must be even.
fn half(value: u32) -> u32 {
    use celerity_kernel::told::assert;

    assert!(value.is_multiple_of(2), "{value} is odd");
    value / 2
}

/// Complains of what is more than `most`.
#[kernel(instances(f64, i32))]
pub fn check_at_most<T: Number + fmt::Display>(_item: Item<1>, cell: &T, most: T) {
    assert!(*cell <= most, "{cell} is more than {most}");
}
