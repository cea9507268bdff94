//! What indices of 32 and 64 bits, and checks of bounds, cost: one step of the wave
//! equation in several forms, beside a copy.
//!
//! ```text
//! CELERITY_NODES=1 CELERITY_DEVICES=1 cargo run --release --example kernel_cost -- --size 2048
//! ```
//!
//! Before anything is timed, all forms are compared with each other, bit for bit, on a
//! small field: those of a square, and those of a torus.

mod blocks;
#[path = "../support/checksum.rs"]
mod checksum;
mod functions;
#[path = "../support/rounds.rs"]
mod rounds;
mod shapes;
mod stencils;

use std::process::ExitCode;

use celerity::prelude::*;
use celerity::{Error, Result};
use celerity_example_kernels::costs::{
    copy_row, step_around, step_around_by_index, step_around_row, step_by_index, step_checked_32,
    step_checked_64, step_unchecked_32, step_unchecked_64,
};
use celerity_example_kernels::wave::{wave_fill, wave_step, wave_step_row};
use clap::Parser;

use rounds::fastest;

/// The square of the Courant number.
const C: f32 = 0.25;

/// The side of the field on which results are compared: no multiple of anything.
const SMALL: usize = 131;

/// Times a step of the wave equation in several forms.
#[derive(Parser, Debug)]
struct Options {
    /// Cells along each side
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    size: u32,
    /// Steps of each round
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Rounds, the fastest of which counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only compare the forms
    #[arg(long)]
    verify: bool,
    /// Times other stencils instead: heat and means in a box; a reaction, shallow water and means on the field
    #[arg(long, conflicts_with = "verify")]
    stencils: bool,
    /// Times steps in blocks of several shapes instead
    #[arg(long, conflicts_with_all = ["verify", "stencils"])]
    blocks: bool,
    /// Times kernels of other shapes instead, in a cube of as many planes as the box has and on the field
    #[arg(long, conflicts_with_all = ["verify", "stencils", "blocks"])]
    shapes: bool,
    /// Finds values of functions instead, strict and fast
    #[arg(long, conflicts_with_all = ["verify", "stencils", "blocks", "shapes"])]
    functions: bool,
    /// Tells what these make in one step, as the baseline does, and no times
    #[arg(long, requires = "shapes")]
    checksum: bool,
    /// Planes, rows and columns of the box
    #[arg(
        long,
        num_args = 3,
        value_names = ["PLANES", "ROWS", "COLUMNS"],
        default_values_t = [128, 128, 128],
        value_parser = clap::value_parser!(u32).range(1..=65_535)
    )]
    space: Vec<u32>,
    /// Rows and columns of the plane of other stencils, if not those of the field
    #[arg(
        long,
        num_args = 2,
        value_names = ["ROWS", "COLUMNS"],
        requires = "stencils",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    plane: Vec<u32>,
}

/// A way to compute a step.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// Bytes that a cell moves between memory and device, at least.
    bytes: f64,
    step: Step,
}

/// Submits a step: to which field, from which.
type Step = fn(&Queue, [usize; 2], &Buffer<f32, 2>, &Buffer<f32, 2>) -> Result<()>;

/// A kernel that reads the whole field, as a form.
macro_rules! of_whole {
    ($name:literal, $kernel:ident) => {
        Form {
            name: $name,
            bytes: 12.0,
            step: |queue, range, up, u| {
                let accesses = (up.read_write(one_to_one()), u.read(all()));
                queue.task($name).launch(range, accesses, $kernel { c: C }).map(drop)
            },
        }
    };
}

const COPY: Form = Form {
    name: "copy, by row",
    bytes: 8.0,
    step: |queue, range, to, from| {
        let accesses = (to.write(one_to_one()), from.read(one_to_one()));
        queue.task("copy").launch(range, accesses, copy_row).map(drop)
    },
};

const FORMS: [Form; 7] = [
    Form {
        name: "neighbourhood, by row",
        bytes: 12.0,
        step: |queue, range, up, u| {
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
            queue.task("row").launch(range, accesses, wave_step_row { c: C }).map(drop)
        },
    },
    Form {
        name: "neighbourhood, by item",
        bytes: 12.0,
        step: |queue, range, up, u| {
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
            queue.task("item").launch(range, accesses, wave_step { c: C }).map(drop)
        },
    },
    of_whole!("index, each coordinate checked", step_by_index),
    of_whole!("64 bits, checked", step_checked_64),
    of_whole!("32 bits, checked", step_checked_32),
    of_whole!("64 bits, unchecked", step_unchecked_64),
    of_whole!("32 bits, unchecked", step_unchecked_32),
];

/// The same step where opposite edges meet.
const AROUND: [Form; 3] = [
    Form {
        name: "periodic, by row",
        bytes: 12.0,
        step: |queue, range, up, u| {
            let around = neighborhood([1, 1]).periodic();
            let accesses = (up.read_write(one_to_one()), u.read(around));
            queue.task("row").launch(range, accesses, step_around_row { c: C }).map(drop)
        },
    },
    Form {
        name: "periodic, by item",
        bytes: 12.0,
        step: |queue, range, up, u| {
            let around = neighborhood([1, 1]).periodic();
            let accesses = (up.read_write(one_to_one()), u.read(around));
            queue.task("item").launch(range, accesses, step_around { c: C }).map(drop)
        },
    },
    of_whole!("periodic by index, all checked", step_around_by_index),
];

fn main() -> ExitCode {
    let options = Options::parse();
    match celerity::run(|queue| measure(queue, &options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kernel_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(queue: &Queue, options: &Options) -> Result<()> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    if options.functions {
        return functions::measure(queue, (options.rounds, options.steps));
    }
    compare(queue, &FORMS)?;
    compare(queue, &AROUND)?;
    if options.verify {
        if queue.is_root() {
            println!("verified: all forms give the same fields, bit for bit");
        }
        return Ok(());
    }
    let range = [options.size as usize; 2];
    if options.checksum {
        queue.require_results("--checksum")?;
        return shapes::measure(queue, &options.shapes(), &|_, _, _| ());
    }
    let (up, u) = fields(queue, range)?;
    let rounds = (options.rounds, options.steps);
    let time = |form: &Form| fastest(queue, rounds, || (form.step)(queue, range, &up, &u));
    let bytes = |form: &Form| form.bytes * (range[0] * range[1]) as f64;
    let copied = bytes(&COPY) / time(&COPY)?;
    let tell = |name: &str, seconds: f64, bytes: f64| {
        if queue.is_root() {
            let (ms, rate, part) = (seconds * 1e3, bytes / seconds / 1e9, bytes / seconds / copied);
            println!("{name:32}{ms:9.3} ms{rate:9.1} GB/s{part:7.3} of the copy");
        }
    };
    tell(COPY.name, bytes(&COPY) / copied, bytes(&COPY));
    if options.stencils {
        let space = std::array::from_fn(|dim| options.space[dim] as usize);
        let plane = match options.plane[..] {
            [rows, columns] => [rows as usize, columns as usize],
            _ => range,
        };
        return stencils::measure(queue, &stencils::Sizes { space, plane, rounds }, &tell);
    }
    if options.shapes {
        return shapes::measure(queue, &options.shapes(), &tell);
    }
    if options.blocks {
        return blocks::measure(queue, range, rounds, &(up, u));
    }
    for form in FORMS.iter().chain(&AROUND) {
        tell(form.name, time(form)?, bytes(form));
    }
    Ok(())
}

impl Options {
    fn shapes(&self) -> shapes::Sizes {
        shapes::Sizes {
            sides: (self.space[0] as usize, self.size as usize),
            rounds: (self.rounds, self.steps),
            checksums: self.checksum,
        }
    }
}

/// Two fields with drops in them.
fn fields(queue: &Queue, range: [usize; 2]) -> Result<(Buffer<f32, 2>, Buffer<f32, 2>)> {
    let fields = (queue.buffer::<f32, 2>(range), queue.buffer::<f32, 2>(range));
    for field in [&fields.0, &fields.1] {
        let fill = wave_fill { size: range[1] };
        queue.task("fill").launch(range, field.write(one_to_one()), fill)?;
    }
    Ok(fields)
}

/// Whether all forms give the same.
fn compare(queue: &Queue, forms: &[Form]) -> Result<()> {
    let range = [SMALL, SMALL];
    let mut first: Option<Vec<f32>> = None;
    for form in forms {
        let (up, u) = fields(queue, range)?;
        (form.step)(queue, range, &up, &u)?;
        (form.step)(queue, range, &u, &up)?;
        let found = queue.fence(&u)?.wait()?.as_slice().to_vec();
        let bits = |field: &[f32]| field.iter().map(|cell| cell.to_bits()).collect::<Vec<_>>();
        match &first {
            None => first = Some(found),
            Some(first) if bits(first) == bits(&found) => {}
            Some(_) => {
                let (one, other) = (forms[0].name, form.name);
                return Err(Error::user(format!("`{one}` and `{other}` give different fields")));
            }
        }
    }
    Ok(())
}
