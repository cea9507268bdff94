//! A sparse matrix, a star on a periodic grid whose points are in an order that has nothing to do with
//! their places, times a vector.

use celerity_kernel::{Item, PartView, PartViewMut, WholeView, kernel};

/// The point that takes the place of point `index` of 2^`bits`: its bits in reverse order.
#[inline]
#[must_use]
pub const fn scrambled(index: u64, bits: u32) -> u64 {
    if bits == 0 { index } else { index.reverse_bits() >> (u64::BITS - bits) }
}

/// A row of the matrix, which one item has: in which columns it has entries, ascending, and these. The grid has
/// 2^`log2` points along each side, the star 4 · `radius` + 1 points.
#[kernel]
pub fn sparse_fill(
    item: Item<2>,
    (mut columns, mut values): (PartViewMut<'_, u64, 2>, PartViewMut<'_, f64, 2>),
    log2: u32,
    radius: u64,
) {
    let (row, side) = (item[0] as u64, 1 << log2);
    let [y, x] = [row >> log2, row % side];
    let column = |y: u64, x: u64| scrambled(((y % side) << log2) | (x % side), 2 * log2);
    let mut used = 0;
    let mut insert = |column: u64| {
        let mut at: usize = used;
        while at > 0 && columns[[item[0], at - 1]] > column {
            columns[[item[0], at]] = columns[[item[0], at - 1]];
            at -= 1;
        }
        columns[[item[0], at]] = column;
        used += 1;
    };
    insert(column(y, x));
    for r in 1..=radius {
        insert(column(y, x + r));
        insert(column(y, x + side - r));
        insert(column(y + r, x));
        insert(column(y + side - r, x));
    }
    for at in 0..used {
        values[[item[0], at]] = 1.0 / (columns[[item[0], at]] + 1) as f64;
    }
}

/// Each element of a vector grows by its number, from 1.
#[kernel]
pub fn grow(item: Item<1>, element: &mut f64) {
    *element += (item[0] + 1) as f64;
}

/// `result += matrix · vector`, for a matrix with equally many entries in all rows.
#[kernel]
pub fn sparse_multiply(
    item: Item<1>,
    (result, columns, values, vector): (
        &mut f64,
        PartView<'_, u64, 2>,
        PartView<'_, f64, 2>,
        WholeView<'_, f64, 1>,
    ),
) {
    let (columns, values) = (columns.row([item[0]]), values.row([item[0]]));
    let vector = vector.deferred();
    let mut sum = 0.0;
    for (column, value) in columns.iter().zip(values.iter()) {
        sum += *value * vector[*column as usize];
    }
    *result += sum;
}

#[cfg(test)]
mod tests {
    use super::scrambled;

    #[test]
    fn bits_are_reversed() {
        assert_eq!([0, 1, 6, 255].map(|index| scrambled(index, 8)), [0, 128, 96, 255]);
        assert_eq!(scrambled(0, 0), 0);
    }
}
