//! Items that are combined: into one value, into several, and into arrays.

use core::ops::{Add, Div, Mul, Sub};

use celerity_kernel::{
    And, ArgMax, ArgMin, ArrayReducer, AtomicView, Item, Local, Located, Max, Min, NdItem,
    NeighborhoodItem, NeighborhoodRow, Number, Operator, Or, Product, Reducer, Row, Sum, Xor,
    kernel,
};

/// The sum.
#[kernel(instances(f32, f64, u32, i64))]
pub fn total<T: Number + Send + Sync + 'static>(
    _item: Item<1>,
    (value, sum): (&T, Reducer<'_, T, Sum>),
) {
    sum.combine(*value);
}

/// Values between 0 and 1 whose sum depends on the order.
#[kernel]
pub fn draw(item: Item<1>, value: &mut f32) {
    let mixed = (item[0] as u32).wrapping_mul(2_654_435_761) >> 8;
    *value = mixed as f32 / 16_777_216.0;
}

/// The sum in any order: each warp adds up what it has, and then to the sum. Another each time.
#[kernel]
pub fn unordered(item: NdItem<'_, 1>, (sum, value): (AtomicView<'_, f32, 0>, &f32)) {
    let warp = item.warp();
    let of_warp = warp.sum(*value);
    if warp.lane() == 0 {
        sum.at([]).fetch_add(of_warp);
    }
}

/// The inner product of two vectors.
#[kernel]
pub fn dot(_item: Item<1>, (x, y, sum): (&f32, &f32, Reducer<'_, f32, Sum>)) {
    sum.combine(*x * *y);
}

/// The sum, the least value with its place, and the greatest, over two dimensions.
#[kernel]
pub fn look_over(
    item: Item<2>,
    (value, sum, least, greatest): (
        &f32,
        Reducer<'_, f64, Sum>,
        Reducer<'_, Located<f32>, ArgMin>,
        Reducer<'_, f32, Max>,
    ),
) {
    sum.combine(f64::from(*value));
    least.combine(Located::new(*value, item.linear_id()));
    greatest.combine(*value);
}

/// How rough a field is: the sum of squares of what each element differs from its neighbours.
#[kernel]
pub fn roughness(_item: Item<3>, (u, sum): (NeighborhoodItem<'_, f32, 3>, Reducer<'_, f32, Sum>)) {
    let center = u.clamped([0, 0, 0]);
    for step in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        let difference = u.clamped(step) - center;
        sum.combine(difference * difference);
    }
}

/// A step of a relaxation, the sum of what it changes, squared, and where it changes most.
#[kernel(instances(f32, f64))]
pub fn relax<T>(
    item: Item<2>,
    (new, u, squares, most): (
        &mut T,
        NeighborhoodItem<'_, T, 2>,
        Reducer<'_, T, Sum>,
        Reducer<'_, Located<T>, ArgMax>,
    ),
) where
    T: Number + From<i8> + Send + Sync + 'static,
    T: Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T>,
{
    let around = u.clamped([-1, 0]) + u.clamped([1, 0]) + u.clamped([0, -1]) + u.clamped([0, 1]);
    *new = around / T::from(4);
    let change = *new - u.clamped([0, 0]);
    squares.combine(change * change);
    most.combine(Located::new(change, item.linear_id()));
}

/// The roughness, by row: each run of items adds up what it has first.
#[kernel]
pub fn roughness_by_row(
    _row: Row<3>,
    (u, sum): (NeighborhoodRow<'_, f32, 3>, Reducer<'_, f32, Sum>),
) {
    let center = u.clamped([0, 0, 0]);
    for step in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
        let differences = u.clamped(step).iter().zip(center).map(|(far, near)| far - near);
        sum.combine(differences.fold(0.0, |sum, difference| sum + difference * difference));
    }
}

/// Moves values on, by row, and gives how far in all and at most, and how many have a sign of each
/// kind: less than nothing, nothing, more.
#[kernel]
pub fn advance_by_row(
    row: Row<2>,
    (values, speeds, moved, furthest, signs): (
        &mut [f32],
        &[f32],
        Reducer<'_, f32, Sum>,
        Reducer<'_, Located<f32>, ArgMax>,
        ArrayReducer<'_, u32, Sum, 1>,
    ),
    time: f32,
) {
    for (i, (value, speed)) in values.iter_mut().zip(speeds).enumerate() {
        let distance = *speed * time;
        *value += distance;
        moved.combine(distance);
        furthest.combine(Located::new(distance, row.item(i).linear_id()));
        signs.combine_at(1 + usize::from(*value > 0.0) - usize::from(*value < 0.0), 1);
    }
}

/// The bits that all values have, that any has, and that an odd number has; and the product of
/// twice each value plus 1.
#[kernel]
pub fn bits(
    _item: Item<1>,
    (value, and, or, xor, product): (
        &u64,
        Reducer<'_, u64, And>,
        Reducer<'_, u64, Or>,
        Reducer<'_, u64, Xor>,
        Reducer<'_, u64, Product>,
    ),
) {
    and.combine(*value | 16);
    or.combine(*value);
    xor.combine(*value);
    product.combine(value.wrapping_mul(2) | 1);
}

/// How often each kind of value occurs, modulo the number of kinds, and the least and the greatest
/// of each, as planes of two rows.
#[kernel]
pub fn kinds(
    item: Item<1>,
    (value, counts, extremes): (&u32, ArrayReducer<'_, u32, Sum, 1>, ArrayReducer<'_, i64, Max, 2>),
) {
    let kind = *value as usize % counts.range()[0].max(1);
    counts.combine_at(kind, 1);
    let place = item[0] as i64;
    extremes.combine_at([0, kind], place);
    extremes.combine_at([1, kind], -place);
}

/// Counts each item at its place: wrong if there are more items than places.
#[kernel]
pub fn places(item: Item<2>, counts: ArrayReducer<'_, u32, Sum, 2>) {
    counts.combine_at(item.id(), 1);
}

/// The sum over groups, each of which first turns its values around in its memory; and the least.
#[kernel]
pub fn turned(
    item: NdItem<'_, 2>,
    (value, sum, least): (&f32, Reducer<'_, f32, Sum>, Reducer<'_, f32, Min>),
    values: Local<'_, f32, 256>,
) {
    let (at, all) = (item.local_linear_id(), item.group().len());
    values.set(at % 256, *value);
    item.group().barrier();
    let other = values.get((all - 1 - at) % 256);
    sum.combine(other * (1 + at % 3) as f32);
    least.combine(other);
}

/// Affine maps modulo 2³², one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Then;

impl Operator<[u32; 2]> for Then {
    fn identity(&self) -> [u32; 2] {
        [1, 0]
    }

    fn combine(&self, [a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    }
}

/// All maps, in the order of items: for CPUs, as order is all that matters here.
#[kernel]
pub fn in_order(_item: Item<1>, (map, all): (&[u32; 2], Reducer<'_, [u32; 2], Then>)) {
    all.combine(*map);
}

/// Sums of floats by kind: for CPUs, as their order shows.
#[kernel]
pub fn sums_by_kind(item: Item<1>, (value, sums): (&f32, ArrayReducer<'_, f32, Sum, 1>)) {
    sums.combine_at(item[0] % sums.range()[0].max(1), *value);
}
