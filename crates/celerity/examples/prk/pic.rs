//! Particles in a grid of charges. A rank keeps its particles wherever they go, and has all charges.

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::prk::pic::{charge_fill, check_particle, push};
use clap::ValueEnum;

use crate::bench::{Bench, Benchmark, Verdict};
use crate::particles::Spread;

#[derive(clap::Args, Debug)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Options {
    /// Steps that are simulated, after a first one.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    steps: u32,
    /// Cells along each side of the grid; an even number.
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    size: u64,
    /// How many particles there are, about.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    particles: u64,
    /// Particles move 2k + 1 cells to the right in each step …
    k: u32,
    /// … and m cells up.
    m: u32,
    /// How particles are spread.
    #[arg(value_enum, ignore_case = true)]
    mode: Mode,
    /// GEOMETRIC: attenuation factor. LINEAR: negative slope, constant offset. PATCH: left, right,
    /// bottom, top.
    numbers: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Mode {
    Geometric,
    Sinusoidal,
    Linear,
    Patch,
}

impl Options {
    fn spread(&self) -> Result<Spread, String> {
        let missing = |mode| Err(format!("Not enough arguments for {mode}"));
        match (self.mode, self.numbers.as_slice()) {
            (Mode::Geometric, &[ratio, ..]) if ratio > 0.0 && ratio != 1.0 => {
                Ok(Spread::Geometric { ratio })
            }
            (Mode::Geometric, [_, ..]) => {
                Err("attenuation factor must be positive, and not 1".to_owned())
            }
            (Mode::Geometric, []) => missing("GEOMETRIC"),
            (Mode::Sinusoidal, _) => Ok(Spread::Sinusoidal),
            (Mode::Linear, &[slope, offset, ..]) if offset >= 0.0 && offset >= slope => {
                Ok(Spread::Linear { slope, offset })
            }
            (Mode::Linear, [_, _, ..]) => {
                Err("linear profile gives negative particle density".to_owned())
            }
            (Mode::Linear, _) => missing("LINEAR"),
            (Mode::Patch, &[left, right, bottom, top, ..]) => {
                let end = self.size as f64 + 1.0;
                let fits = |low: f64, high: f64| low >= 0.0 && low < high && high < end;
                match fits(left, right) && fits(bottom, top) {
                    true => Ok(Spread::Patch {
                        columns: [left as u64, right as u64],
                        rows: [bottom as u64, top as u64],
                    }),
                    false => Err("inconsistent initial patch".to_owned()),
                }
            }
            (Mode::Patch, _) => missing("PATCH"),
        }
    }

    fn spread_lines(&self) -> Vec<String> {
        match self.spread() {
            Ok(Spread::Geometric { ratio }) => {
                vec![format!("  Attenuation factor               = {ratio:.6}")]
            }
            Ok(Spread::Linear { slope, offset }) => vec![
                format!("  Negative slope                   = {slope:.6}"),
                format!("  Offset                           = {offset:.6}"),
            ],
            Ok(Spread::Patch { columns: [left, right], rows: [bottom, top] }) => vec![format!(
                "  Bounding box                     = {left}, {right}, {bottom}, {top}"
            )],
            Ok(Spread::Sinusoidal) | Err(_) => Vec::new(),
        }
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "Particle-in-Cell execution on 2D grid";

    fn check(&self, _: usize) -> Result<(), String> {
        let Self { size, k, m, .. } = *self;
        match () {
            () if size % 2 == 1 => {
                Err(format!("Number of grid cells must be positive and even: {size}"))
            }
            () if size < 2 * u64::from(k) => {
                Err(format!("k-value too large: {k}, must be no greater than {}", size / 2))
            }
            () if size < u64::from(m) => {
                Err(format!("m-value too large: {m}, must be no greater than {size}"))
            }
            () => self.spread().map(|_| ()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let mode = self.mode.to_possible_value().map(|value| value.get_name().to_owned());
        let mut lines = vec![
            format!("Number of ranks                    = {ranks}"),
            "Load balancing                     = None".to_owned(),
            format!("Grid size                          = {}", self.size),
            format!("Number of particles requested      = {}", self.particles),
            format!("Number of time steps               = {}", self.steps),
            format!("Initialization mode                = {}", mode.unwrap_or_default()),
        ];
        lines.extend(self.spread_lines());
        lines.push(format!("Particle charge semi-increment (k) = {}", self.k));
        lines.push(format!("Vertical velocity              (m) = {}", self.m));
        lines
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let (queue, size) = (bench.queue, self.size as f64);
        let spread = self.spread().unwrap_or(Spread::Sinusoidal);
        let placed = spread.place(self.size, self.particles, f64::from(self.k), f64::from(self.m));
        let count = placed.len();
        bench.say(&format!("Number of particles placed         = {count}"));
        if count == 0 {
            let wrong = Some("no particles were placed; ask for more".to_owned());
            return Ok(Verdict { wrong, rate: String::new() });
        }
        let particles = queue.buffer_from(count, placed)?.named("particles");
        let charges = queue.buffer::<f64, 2>([self.size as usize + 1; 2]).named("charges");
        queue.task("charges").launch(charges.range(), charges.write(one_to_one()), charge_fill)?;
        let seconds = bench.time(self.steps, |_| {
            let accesses = (particles.read_write(one_to_one()), charges.read(all()));
            queue.task("push").launch(count, accesses, push { size })?;
            Ok(())
        })?;
        let [right, numbers] =
            ["right", "numbers"].map(|name| queue.buffer::<f64, 0>([]).named(name));
        let accesses = (particles.read(one_to_one()), right.reduce(Sum), numbers.reduce(Sum));
        let check = check_particle { size, steps: f64::from(self.steps + 1) };
        queue.task("check").launch(count, accesses, check)?;
        let (right, numbers, all) = (bench.value(&right)?, bench.value(&numbers)?, count as f64);
        let wrong = match () {
            () if right != all => {
                Some(format!("there are {} miscalculated locations", all - right))
            }
            () if numbers != all * (all + 1.0) / 2.0 => {
                Some("Particle checksum incorrect".to_owned())
            }
            () => None,
        };
        let rate = format!("Rate (Mparticles_moved/s): {:.6}", 1e-6 * all / seconds);
        Ok(Verdict { wrong, rate })
    }
}
