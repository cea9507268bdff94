//! How far the functions of fast kernels are off, measured: over all `f32`, and for `f64` over random numbers. And
//! whether those for [normal](celerity_kernel::math::normal) numbers have the bits that they promise.
//!
//! ```text
//! CELERITY_PLATFORM=cuda cargo run --release --features cuda --example accuracy
//! cargo run --release --example accuracy -- --every 4096
//! ```
//!
//! On CPUs fast kernels compute as strict ones do, so the errors are those of strict functions.

use std::f32::consts::PI;
use std::process::ExitCode;

use celerity::prelude::*;
use celerity::{Element, Max, Sum};
use celerity_example_kernels::accuracy::{
    FUNCTIONS, NORMAL, OF_DOUBLE, apart_from_strict, approximate, approximate_inverse_root,
    approximate_of_double, differences, errors, errors_of_inverse_roots,
};
use celerity_kernel::{ItemKernel, Reducer};
use clap::Parser;

/// Arguments that are looked at together.
const BATCH: usize = 1 << 24;

/// Prints, for each function, the largest error in units in the last place and as a number, and for how many
/// arguments either side is not finite and the other is something else. Fails if a function for normal numbers has not
/// the ordinary one's bits.
#[derive(Parser, Debug)]
struct Options {
    /// Looks at every so-many-th argument: 1 looks at all 2³².
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    every: u32,
    /// Only this function.
    #[arg(long)]
    function: Option<String>,
}

/// What is looked at by itself: a function's number, and the sizes of its argument.
struct Range {
    which: u32,
    sizes: [f32; 2],
}

/// What was found.
struct Errors {
    /// In units in the last place.
    units: f64,
    absolute: f64,
    /// Arguments.
    odd: u64,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(
        "{name} has other bits than the ordinary function for {differing} of {looked_at} arguments"
    )]
    Differing { name: &'static str, differing: u64, looked_at: u64 },
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("accuracy: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let different = celerity::run(|queue| measure(queue, options))?;
    different.map_or(Ok(()), Err)
}

/// Prints what it finds. Returns the last function for normal numbers that has other bits.
fn measure(queue: &Queue, options: &Options) -> celerity::Result<Option<Failure>> {
    if queue.is_root() {
        println!(
            "| function | argument's size | units in the last place | absolute | of another kind |"
        );
        println!("| --- | --- | --- | --- | --- |");
    }
    for range in ranges().filter(|range| is_wanted(options, FUNCTIONS[range.which as usize])) {
        let Errors { units, absolute, odd } = look_at(queue, options, &range)?;
        let (name, [low, high]) = (FUNCTIONS[range.which as usize], range.sizes);
        if queue.is_root() {
            println!("| {name} | {low:e} to {high:e} | {units:.2} | {absolute:.1e} | {odd} |");
        }
    }
    if is_wanted(options, "rsqrt") {
        let approximate = |first| approximate_inverse_root { first };
        let units = largest_of_double(queue, options, approximate, errors_of_inverse_roots)?;
        if queue.is_root() {
            println!("| rsqrt, `f64` | normal | {units:.2} | | |");
        }
    }
    for which in OF_DOUBLE {
        let name = FUNCTIONS[which as usize];
        if is_wanted(options, name) {
            let approximate = |first| approximate_of_double { which, first };
            let units =
                largest_of_double(queue, options, approximate, apart_from_strict { which })?;
            if queue.is_root() {
                println!("| {name}, `f64` | 2⁻²⁴ to 2¹⁰ | {units:.2} from the strict one | | |");
            }
        }
    }
    let mut different = None;
    for (which, &name) in NORMAL.iter().enumerate().filter(|(_, name)| is_wanted(options, name)) {
        let [differing, looked_at] = compare(queue, options, which as u32)?;
        if queue.is_root() {
            println!("{name}: {differing} of {looked_at} arguments have other bits");
        }
        if differing > 0 {
            different = Some(Failure::Differing { name, differing, looked_at });
        }
    }
    Ok(different)
}

/// For how many arguments a function for normal numbers has other bits, and how many were looked at.
fn compare(queue: &Queue, options: &Options, which: u32) -> celerity::Result<[u64; 2]> {
    let stride = options.every;
    let all = (1 << 32) / u64::from(stride);
    let batch = BATCH.min(all as usize);
    let mut counts = [0; 2];
    for number in (0..all).step_by(batch) {
        let first = (number as u32).wrapping_mul(stride);
        let (differing, looked_at) = (queue.buffer::<u64, 0>([]), queue.buffer::<u64, 0>([]));
        let accesses = (differing.reduce(Sum), looked_at.reduce(Sum));
        queue.task("compare").launch([batch], accesses, differences { which, first, stride })?;
        counts[0] += scalar(queue, &differing)?;
        counts[1] += scalar(queue, &looked_at)?;
    }
    Ok(counts)
}

fn is_wanted(options: &Options, name: &str) -> bool {
    options.function.as_deref().is_none_or(|wanted| wanted == name)
}

/// All arguments of each function, and by themselves those that it treats in another way.
fn ranges() -> impl Iterator<Item = Range> {
    let all = [0.0, f32::INFINITY];
    let parts = move |name: &str| match name {
        "rsqrt" | "1 / x" | "x / y" | "sqrt" => vec![all, [f32::MIN_POSITIVE, f32::INFINITY]],
        "ln" | "log2" | "log10" => vec![all, [0.0, 0.5], [0.5, 2.0], [2.0, f32::INFINITY]],
        "sin" | "cos" | "tan" => vec![all, [0.0, PI], [PI, 65_536.0]],
        _ => vec![all],
    };
    FUNCTIONS.iter().zip(0..).flat_map(move |(name, which)| {
        parts(name).into_iter().map(move |sizes| Range { which, sizes })
    })
}

fn look_at(queue: &Queue, options: &Options, range: &Range) -> celerity::Result<Errors> {
    let Range { which, sizes } = *range;
    let stride = options.every;
    let all = (1 << 32) / u64::from(stride);
    let batch = BATCH.min(all as usize);
    let found = queue.buffer::<f32, 1>([batch]).named("found");
    let mut most = Errors { units: 0.0, absolute: 0.0, odd: 0 };
    for number in (0..all).step_by(batch) {
        let first = (number as u32).wrapping_mul(stride);
        queue.task("approximate").launch(
            [batch],
            found.write(one_to_one()),
            approximate { which, first, stride },
        )?;
        let (units, absolute) = (queue.buffer::<f64, 0>([]), queue.buffer::<f64, 0>([]));
        let odd = queue.buffer::<u64, 0>([]);
        let reductions = (units.reduce(Max), absolute.reduce(Max), odd.reduce(Sum));
        let accesses = (found.read(one_to_one()), reductions.0, reductions.1, reductions.2);
        queue.task("errors").launch([batch], accesses, errors { which, first, stride, sizes })?;
        most.units = most.units.max(scalar(queue, &units)?);
        most.absolute = most.absolute.max(scalar(queue, &absolute)?);
        most.odd += scalar(queue, &odd)?;
    }
    Ok(most)
}

/// The largest error of a function of `f64`, in units in the last place: what `approximate` finds for numbers from so many on, `judge`
/// says how far it is off.
fn largest_of_double<A, J>(
    queue: &Queue,
    options: &Options,
    approximate: impl Fn(u64) -> A,
    judge: J,
) -> celerity::Result<f64>
where
    A: for<'a> ItemKernel<1, (&'a mut f64, &'a mut f64)>,
    J: for<'a> ItemKernel<1, (&'a f64, &'a f64, Reducer<'a, f64, Max>)> + Copy,
{
    let batch = (BATCH / options.every as usize).max(1);
    let numbers = queue.buffer::<f64, 1>([batch]).named("numbers");
    let found = queue.buffer::<f64, 1>([batch]).named("found");
    let mut most: f64 = 0.0;
    for number in 0..16 {
        let accesses = (numbers.write(one_to_one()), found.write(one_to_one()));
        let kernel = approximate(number * BATCH as u64);
        queue.task("approximate").launch([batch], accesses, kernel)?;
        let units = queue.buffer::<f64, 0>([]);
        let accesses = (numbers.read(one_to_one()), found.read(one_to_one()), units.reduce(Max));
        queue.task("errors").launch([batch], accesses, judge)?;
        most = most.max(scalar(queue, &units)?);
    }
    Ok(most)
}

fn scalar<T: Element>(queue: &Queue, buffer: &Buffer<T, 0>) -> celerity::Result<T> {
    Ok(queue.fence(buffer)?.wait()?[[]])
}
