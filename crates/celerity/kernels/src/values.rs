//! Elements and parameters of more than one number: half precision, complex numbers, arrays and
//! structs.

use celerity_kernel::half::{bf16, f16};
use celerity_kernel::num_complex::Complex;
use celerity_kernel::{Item, Max, PlainData, Reducer, Row, Sum, kernel};

/// A body in three dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, PlainData)]
#[repr(C)]
pub struct Body {
    /// Where it is.
    pub place: [f32; 3],
    /// How much there is of it.
    pub mass: f32,
    /// Where it goes.
    pub velocity: [f32; 3],
    /// What it is.
    pub kind: u16,
    /// How strongly air slows it down.
    pub drag: f16,
}

/// A force that is the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
pub struct Field {
    /// Per unit of mass.
    pub acceleration: [f32; 3],
    /// Of bodies of each kind.
    pub factors: [bf16; 2],
}

/// What changes from step to step.
#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
pub struct Step {
    /// Counted from 0.
    pub number: u64,
    /// In two dimensions of a plane, as one number.
    pub wind: Complex<f64>,
    /// Gravity.
    pub field: Field,
    /// Seconds.
    pub seconds: f32,
    /// Nothing: a struct has no padding.
    pub reserved: u32,
}

/// Moves a body by one step.
#[kernel]
pub fn move_body(_item: Item<1>, body: &mut Body, step: Step, sign: i8) {
    let factor = step.field.factors[usize::from(body.kind) % 2].to_f32() * f32::from(sign);
    let slower = 1.0 - body.drag.to_f32();
    let wind = [step.wind.re as f32, step.wind.im as f32, 0.0];
    for (dim, wind) in wind.into_iter().enumerate() {
        let gained = step.field.acceleration[dim] * factor + wind;
        body.velocity[dim] = body.velocity[dim] * slower + gained * step.seconds;
        body.place[dim] += body.velocity[dim] * step.seconds;
    }
    body.kind = (step.number % 7) as u16;
}

/// Half precision: `y = a x + y`, with the sum of all `y` and the greatest of each kind of number.
#[kernel]
#[allow(clippy::type_complexity)]
pub fn saxpy_half(
    _item: Item<1>,
    (y, x, sum, greatest, brain): (
        &mut f16,
        &f16,
        Reducer<'_, f16, Sum>,
        Reducer<'_, f16, Max>,
        Reducer<'_, bf16, Sum>,
    ),
    a: f16,
) {
    *y += a * *x;
    sum.combine(*y);
    greatest.combine(*y);
    brain.combine(bf16::from_f32(y.to_f32()));
}

/// Turns complex numbers by one of them, and adds them up.
#[kernel]
pub fn turn_all(
    _row: Item<2>,
    (z, sum): (&mut Complex<f32>, Reducer<'_, Complex<f32>, Sum>),
    by: Complex<f32>,
) {
    *z *= by;
    sum.combine(*z);
}

/// Adds one to a corner of each element that is a matrix, by row.
#[kernel]
pub fn count_up(_row: Row<1>, matrices: &mut [[[u16; 3]; 2]], by: [u16; 3]) {
    for matrix in matrices {
        for (element, by) in matrix[1].iter_mut().zip(by) {
            *element = element.wrapping_add(by);
        }
    }
}
