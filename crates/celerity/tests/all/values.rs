//! Elements and parameters of more than one number: half precision, complex numbers, arrays and
//! structs, in closures and in kernels that `#[kernel]` has made, in reductions, and as views of
//! `ndarray`. On a machine with GPUs and a facade that has them, kernels run there, too.
#![cfg(all(feature = "half", feature = "ndarray", feature = "num-complex"))]

use std::fmt::Debug;

use celerity::half::{bf16, f16};
use celerity::ndarray::{Array2, Axis, array};
use celerity::num_complex::Complex;
use celerity::prelude::*;
use celerity::{Element, Max, Min, Number, PlainData, Platform, Product, Sum};
use celerity_example_kernels::values::{
    Body, Field, Step, count_up, move_body, saxpy_half, turn_all,
};

use crate::common::{clusters, contents, everywhere, scalar};

/// Nodes and devices, of CPUs.
const CLUSTERS: [[usize; 2]; 5] = [[1, 1], [1, 2], [2, 1], [2, 2], [5, 1]];

/// Where closures run.
fn cpus() -> impl Iterator<Item = Config> {
    clusters(CLUSTERS).map(|cluster| cluster.platform(Platform::Cpu))
}

/// Where compiled kernels run: on what devices there are as well.
fn all_devices() -> impl Iterator<Item = Config> {
    let shared = |nodes| Config::from_env().unwrap().share_gpus(true).nodes(nodes).devices(1);
    cpus().chain([1, 2].map(shared))
}

/// Sum, product, least and greatest by closure.
fn reduced<T: Element + Number + PartialEq + Debug>(values: Vec<T>) -> [T; 4] {
    everywhere(cpus(), |queue| {
        let buffer = queue.buffer_from(values.len(), values.clone())?;
        let results = [0; 4].map(|_| queue.buffer::<T, 0>([]));
        let [sum, product, least, greatest] = &results;
        let accesses = (
            buffer.read(one_to_one()),
            sum.reduce(Sum),
            product.reduce(Product),
            least.reduce(Min),
            greatest.reduce(Max),
        );
        let task = queue.task("reduce");
        task.parallel_for(values.len(), accesses, |_, (value, sum, product, least, greatest)| {
            sum.combine(*value);
            product.combine(*value);
            least.combine(*value);
            greatest.combine(*value);
        })?;
        let [sum, product, least, greatest] = results;
        Ok([
            scalar(queue, &sum)?,
            scalar(queue, &product)?,
            scalar(queue, &least)?,
            scalar(queue, &greatest)?,
        ])
    })
}

#[test]
fn half_precision_is_reduced() {
    let values: Vec<f16> =
        (0..1500_u16).map(|i| f16::from_f32(if i == 700 { -2.0 } else { 1.0 })).collect();
    assert_eq!(reduced(values), [1497.0, -2.0, -2.0, 1.0].map(f16::from_f32));
    let values: Vec<bf16> =
        (0..200_u16).map(|i| bf16::from_f32(if i == 150 { 3.0 } else { 1.0 })).collect();
    assert_eq!(reduced(values), [202.0, 3.0, 1.0, 3.0].map(bf16::from_f32));
}

#[test]
fn sums_that_round_have_the_same_bits_everywhere() {
    let values: Vec<f16> = (0..9_000_u32).map(|i| f16::from_f32((i % 97) as f32 * 0.013)).collect();
    let sum = everywhere(cpus(), |queue| {
        let buffer = queue.buffer_from(values.len(), values.clone())?;
        let sum = queue.buffer::<f16, 0>([]);
        let accesses = (buffer.read(one_to_one()), sum.reduce(Sum));
        queue.task("sum").parallel_for(values.len(), accesses, |_, (x, sum)| sum.combine(*x))?;
        Ok(scalar(queue, &sum)?.to_bits())
    });
    let exact: f32 = values.iter().map(|x| x.to_f32()).sum();
    assert!((f16::from_bits(sum).to_f32() - exact).abs() < 0.02 * exact, "{sum:#x}");
}

#[test]
fn complex_numbers_are_computed_and_reduced() {
    let values: Vec<Complex<f64>> =
        (0..600).map(|i| Complex::new(f64::from(i % 5), f64::from(i % 3) - 1.0)).collect();
    let (turned, sum, product) = everywhere(cpus(), |queue| {
        let z = queue.buffer_from([20, 30], values.clone())?;
        let (sum, product) = (queue.buffer([]), queue.buffer([]));
        let accesses = (z.read_write(one_to_one()), sum.reduce(Sum), product.reduce(Product));
        let by = Complex::new(0.0, 1.0);
        queue.task("turn").parallel_for([20, 30], accesses, move |_, (z, sum, product)| {
            *z *= by;
            sum.combine(*z);
            product.combine(by);
        })?;
        Ok((contents(queue, &z)?, scalar(queue, &sum)?, scalar(queue, &product)?))
    });
    let by = Complex::new(0.0, 1.0);
    assert_eq!(turned, values.iter().map(|z| z * by).collect::<Vec<_>>());
    assert_eq!(sum, values.iter().map(|z| z * by).sum());
    // 600 quarter turns.
    assert_eq!(product, Complex::new(1.0, 0.0));
}

#[test]
fn kernels_over_half_precision() {
    let count = 5_000;
    let values = |step: usize| -> Vec<f16> {
        (0..count).map(|i| f16::from_f32((i * step % 61) as f32 * 0.03 - 0.7)).collect()
    };
    let a = f16::from_f32(1.75);
    let compiled = everywhere(all_devices(), |queue| {
        let y = queue.buffer_from(count, values(7))?;
        let x = queue.buffer_from(count, values(13))?;
        let (sum, greatest, brain) = (queue.buffer([]), queue.buffer([]), queue.buffer([]));
        let accesses = (
            y.read_write(one_to_one()),
            x.read(one_to_one()),
            sum.reduce(Sum),
            greatest.reduce(Max),
            brain.reduce(Sum),
        );
        queue.task("saxpy").launch(count, accesses, saxpy_half { a })?;
        let bits = [scalar(queue, &sum)?, scalar(queue, &greatest)?].map(f16::to_bits);
        Ok((contents(queue, &y)?, bits, scalar::<bf16>(queue, &brain)?.to_bits()))
    });
    let expected: Vec<f16> =
        values(7).into_iter().zip(values(13)).map(|(y, x)| y + a * x).collect();
    assert_eq!(compiled.0, expected);
    let greatest = expected.iter().copied().fold(f16::NEG_INFINITY, f16::max);
    assert_eq!(compiled.1[1], greatest.to_bits());
    let by_closure = everywhere(cpus(), |queue| {
        let y = queue.buffer_from(count, expected.clone())?;
        let (sum, brain) = (queue.buffer([]), queue.buffer([]));
        let accesses = (y.read(one_to_one()), sum.reduce(Sum), brain.reduce(Sum));
        queue.task("sum").parallel_for(count, accesses, |_, (y, sum, brain)| {
            sum.combine(*y);
            brain.combine(bf16::from_f32(y.to_f32()));
        })?;
        Ok((scalar::<f16>(queue, &sum)?.to_bits(), scalar::<bf16>(queue, &brain)?.to_bits()))
    });
    assert_eq!((compiled.1[0], compiled.2), by_closure);
}

#[test]
fn kernels_over_complex_numbers_and_arrays() {
    let by = Complex::new(0.5_f32, -2.0);
    let values: Vec<Complex<f32>> =
        (0..999).map(|i| Complex::new(i as f32 * 0.25, 3.0 - i as f32)).collect();
    let (turned, sum) = everywhere(all_devices(), |queue| {
        let z = queue.buffer_from([27, 37], values.clone())?;
        let sum = queue.buffer::<Complex<f32>, 0>([]);
        let accesses = (z.read_write(one_to_one()), sum.reduce(Sum));
        queue.task("turn").launch([27, 37], accesses, turn_all { by })?;
        Ok((contents(queue, &z)?, scalar(queue, &sum)?))
    });
    assert_eq!(turned, values.iter().map(|z| z * by).collect::<Vec<_>>());
    let exact: Complex<f32> = turned.iter().sum();
    assert!((sum - exact).norm_sqr() <= 1e-6 * exact.norm_sqr(), "{sum} instead of {exact}");

    let matrices = everywhere(all_devices(), |queue| {
        let matrices = queue.buffer_from(70, vec![[[1_u16, 2, 3], [4, 5, 6]]; 70])?;
        let by = [10, 20, u16::MAX];
        queue.task("count").launch(70, matrices.read_write(one_to_one()), count_up { by })?;
        contents(queue, &matrices)
    });
    assert_eq!(matrices, [[[1, 2, 3], [14, 25, 5]]; 70]);
}

fn step(number: u64) -> Step {
    Step {
        number,
        wind: Complex::new(0.01 * number as f64, -0.5),
        field: Field {
            acceleration: [0.0, 0.125, -9.75],
            factors: [1.0, 0.5 + number as f32].map(bf16::from_f32),
        },
        seconds: 0.25,
        reserved: 0,
    }
}

fn bodies(count: u16) -> Vec<Body> {
    let body = |i: u16| Body {
        place: [f32::from(i), 1.0, -2.0],
        mass: 2.0,
        velocity: [0.0, f32::from(i % 7), 0.5],
        kind: i % 3,
        drag: f16::from_f32(0.125),
    };
    (0..count).map(body).collect()
}

/// The structs of a program, of which one is nested in the other: each step has other values, in
/// kernels as parameters, in closures as captures.
#[test]
fn structs_are_elements_and_change_as_parameters_in_each_step() {
    const STEPS: u64 = 12;
    let by_kernel = everywhere(all_devices(), |queue| {
        let all = queue.buffer_from(300, bodies(300))?;
        for number in 0..STEPS {
            let (step, sign) = (step(number), if number == 5 { -1 } else { 1 });
            let kernel = move_body { step, sign };
            queue.task("move").launch(300, all.read_write(one_to_one()), kernel)?;
        }
        contents(queue, &all)
    });
    let by_closure = everywhere(cpus(), |queue| {
        let all = queue.buffer_from(300, bodies(300))?;
        for number in 0..STEPS {
            let (step, sign) = (step(number), if number == 5 { -1 } else { 1 });
            let kernel = move_body { step, sign };
            let accesses = all.read_write(one_to_one());
            queue.task("move").parallel_for(300, accesses, move |item, body| {
                celerity::kernels::ItemKernel::item(&kernel, item, body);
            })?;
        }
        contents(queue, &all)
    });
    assert_eq!(by_kernel, by_closure);
    assert_eq!(by_kernel[1].kind, ((STEPS - 1) % 7) as u16);
    // Other parameters are other results.
    assert_ne!(by_kernel[1].velocity, bodies(300)[1].velocity);
}

#[test]
fn structs_of_a_program_are_plain() {
    #[derive(Clone, Copy, Debug, PartialEq, PlainData)]
    #[repr(transparent)]
    struct Celsius(f32);

    #[derive(Clone, Copy, Debug, PartialEq, PlainData)]
    #[repr(C)]
    struct Cell(Celsius, [u8; 3], u8);

    let cell = |i: usize| Cell(Celsius(i as f32), [i as u8, 0, 1], 7);
    let found = everywhere(cpus(), |queue| {
        let cells = queue.buffer::<Cell, 3>([3, 4, 5]);
        queue.task("make").parallel_for(
            [3, 4, 5],
            cells.write(one_to_one()),
            move |item, out| {
                *out = cell(item.linear_id());
            },
        )?;
        contents(queue, &cells)
    });
    assert_eq!(found, (0..60).map(cell).collect::<Vec<_>>());
}

#[test]
fn host_tasks_see_arrays_of_their_parts() {
    let found = everywhere(cpus(), |queue| {
        let u = queue.buffer_from([6, 5], (0..30).collect::<Vec<u32>>())?;
        let rows = queue.buffer::<u32, 1>(6);
        let accesses = (u.read(slice(1)), rows.write(disjoint_rows()));
        queue.host_task("sum").distributed([6, 1]).submit(accesses, |part, (u, mut rows)| {
            let (u, first) = (u.as_array(), u.bounds().min()[0]);
            assert_eq!(first, part.subrange().offset[0]);
            rows.as_array_mut().assign(&u.sum_axis(Axis(1)));
            assert_eq!(u[[0, 4]] as usize, 5 * first + 4);
        })?;
        let total = queue.buffer::<u32, 2>([2, 3]);
        queue.host_task("total").once(
            (rows.read(all()), total.write(all())),
            |(rows, mut total)| {
                total.as_array_mut().fill(rows.as_array().sum());
                total.as_array_mut()[[1, 2]] = 0;
            },
        )?;
        let snapshot = queue.fence_part(&total, Subrange::new([0, 1], [2, 2]))?.wait()?;
        let square: Array2<u32> = snapshot.as_array().to_owned();
        assert_eq!(square, array![[435, 435], [435, 0]]);
        contents(queue, &rows)
    });
    assert_eq!(found, [10, 35, 60, 85, 110, 135]);
}

/// Of each row of a plane its element in a line.
fn disjoint_rows() -> celerity::PerDimension<1> {
    select([0])
}
