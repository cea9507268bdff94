//! Direct N-body gravity on every node and device there is.
//!
//! ```text
//! cargo run --release --example nbody -- --verify --plot orbits.png
//! CELERITY_DEVICES=2 cargo run --release --example nbody -- --random 20000 --steps 10
//! cargo run --release --example nbody -- --random 20000 --steps 10 --precision single
//! ```
//!
//! Without options, the solar system moves through one sidereal year. The
//! results are the same, bit for bit, however the work is split.

mod catalogue;
mod gravity;
mod orbits;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;
mod system;
mod units;
mod verify;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::gravity::{drift, energies, kick, kick_fast, kick_in_groups};
use celerity_kernel::Kernel as Compiled;
use clap::{Parser, ValueEnum};

use catalogue::{Body, CatalogueError, G};
use orbits::Orbits;
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};
use system::{Gathered, Observer, System};
use units::{Number, Units};
use verify::{Mismatch, SIDEREAL_YEAR};

/// Steps of four hours through a sidereal year.
const DEFAULT_STEPS: u64 = 2192;

/// Moves bodies under their mutual gravity: by default the solar system, from
/// J2000.0 through one sidereal year.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// The bodies: name,mass_kg,x_m,y_m,z_m,vx_m_s,vy_m_s,vz_m_s.
    #[arg(long, value_name = "FILE.csv")]
    bodies: Option<PathBuf>,
    /// Takes N random stars instead.
    #[arg(long, value_name = "N", conflicts_with = "bodies",
          value_parser = clap::value_parser!(u32).range(1..))]
    random: Option<u32>,
    /// Which random stars.
    #[arg(long, default_value_t = 1, requires = "random")]
    seed: u64,
    /// Time steps [default: 2192, or 100 for random stars].
    #[arg(long)]
    steps: Option<u64>,
    /// Length of a step [default: a sidereal year over the steps, or 1/1000 of
    /// the time in which random stars cross their cluster].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    dt: Option<f64>,
    /// How the pull is computed: for runs of bodies, or for groups of 128, of which
    /// there must be a whole number.
    #[arg(long, value_enum, default_value_t = Kernel::Row, requires_if("fast", "random"))]
    kernel: Kernel,
    /// The numbers to compute with. Single precision takes the radius of the stars' cluster and
    /// the time in which they cross it as units, since numbers in metres and seconds are too large.
    #[arg(long, value_enum, default_value_t = Precision::Double, requires_if("single", "random"))]
    precision: Precision,
    /// Checks the result: against a sequential program, and whether the Earth is
    /// back at its place if a sidereal year has passed.
    #[arg(long)]
    verify: bool,
    /// Where to write the final state, in the format of --bodies.
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Where to draw the orbits.
    #[arg(long, value_name = "FILE.png")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Called for each run of bodies; vectorises.
    Row,
    /// Called for groups of bodies, which share those that attract them.
    Group,
    /// As groups, of random stars alone, in the fast form: GPUs fuse and approximate, and sums are in
    /// another order, so that --verify allows for differences.
    Fast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// What is to be computed.
struct Problem {
    bodies: Vec<Body>,
    /// Metre.
    softening: f64,
    steps: u64,
    /// Seconds.
    dt: f64,
    /// What to compute in.
    units: Units,
    /// Whether the bodies are those of the shipped catalogue.
    is_shipped: bool,
}

impl Problem {
    fn scaled_dt<T: Number>(&self) -> T {
        T::nearest(self.dt / self.units.time)
    }

    fn scaled_softening<T: Number>(&self) -> T {
        T::nearest(self.softening / self.units.length)
    }
}

struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// Of all steps that are timed, without the last half of a kick.
    elapsed: Duration,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.precision {
        Precision::Single => run::<f32>(&options),
        Precision::Double => run::<f64>(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nbody: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run<T: Number>(options: &Options) -> Result<(), Failure>
where
    kick<T>: Compiled,
    kick_in_groups<T>: Compiled,
    kick_fast<T>: Compiled,
    drift<T>: Compiled,
    energies<T>: Compiled,
{
    let problem = pose(options)?;
    options.out.iter().chain(&options.plot).try_for_each(|path| check_writable(path))?;
    let orbits = options.plot.is_some().then(|| Orbits::new(problem.bodies.len(), problem.steps));
    let observer = Arc::new(Observer::<T>::new(orbits));

    let outcome = celerity::run(|queue| simulate(queue, &problem, options, &observer))?;
    if !outcome.is_root {
        return Ok(());
    }

    let gathered = observer.gathered.lock().expect("no host task panicked");
    if let Some(path) = &options.out {
        fs::write(path, final_state(&problem, &gathered))
            .map_err(|error| OutputError::new(path, error))?;
    }
    if let (Some(path), Some(orbits)) = (&options.plot, &observer.orbits) {
        orbits.save(path)?;
    }
    report(&problem, &gathered, &outcome, options.measure);
    match options.verify {
        true => check(&problem, &gathered, options.kernel),
        false => Ok(()),
    }
}

fn pose(options: &Options) -> Result<Problem, Failure> {
    let bodies = match (&options.bodies, options.random) {
        (Some(path), _) => catalogue::read(path)?,
        (None, Some(count)) => catalogue::random_cluster(count as usize, options.seed),
        (None, None) => catalogue::solar_system(),
    };
    let is_shipped = options.bodies.is_none() && options.random.is_none();
    Ok(match options.random {
        None => {
            let steps = options.steps.unwrap_or(DEFAULT_STEPS);
            let dt = options.dt.unwrap_or(SIDEREAL_YEAR / steps.max(1) as f64);
            Problem { bodies, softening: 0.0, steps, dt, units: Units::SI, is_shipped }
        }
        Some(count) => {
            let radius = catalogue::cluster_radius(count as usize);
            let crossing =
                (radius.powi(3) / (G * bodies.iter().map(|b| b.mass).sum::<f64>())).sqrt();
            // A tenth of the mean distance between neighbours.
            let softening = 0.1 * radius / f64::from(count).cbrt();
            let dt = options.dt.unwrap_or(crossing / 1000.0);
            let units = match options.precision {
                Precision::Single => Units { length: radius, time: crossing },
                Precision::Double => Units::SI,
            };
            let steps = options.steps.unwrap_or(100);
            Problem { bodies, softening, steps, dt, units, is_shipped }
        }
    })
}

/// The program that every node runs: kick, drift, kick, with the two kicks
/// between two drifts made one.
fn simulate<T: Number>(
    queue: &Queue,
    problem: &Problem,
    options: &Options,
    observer: &Arc<Observer<T>>,
) -> celerity::Result<Outcome>
where
    kick<T>: Compiled,
    kick_in_groups<T>: Compiled,
    kick_fast<T>: Compiled,
    drift<T>: Compiled,
    energies<T>: Compiled,
{
    if options.verify {
        queue.require_results("--verify")?;
    }
    let mut stopwatch = Stopwatch::start(options.measure);
    let (dt, softening) = (problem.scaled_dt::<T>(), problem.scaled_softening());
    let half = T::nearest(0.5) * dt;
    let system =
        System::new(queue, problem.units.state(&problem.bodies), softening, options.kernel)?;
    system.measure_energy(queue, observer)?;
    let bar = progress_bar(problem.steps, queue.is_root());
    for step in 0..problem.steps {
        stopwatch.before_step(queue, step)?;
        system.kick(queue, if step == 0 { half } else { dt })?;
        system.drift(queue, dt)?;
        system.observe(queue, observer, step + 1)?;
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    if problem.steps > 0 {
        system.kick(queue, half)?;
    }
    system.measure_energy(queue, observer)?;
    system.gather(queue, observer)?;
    queue.barrier()?;
    bar.finish_and_clear();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

fn final_state<T: Number>(problem: &Problem, gathered: &Gathered<T>) -> String {
    let states = gathered.places.iter().zip(&gathered.velocities);
    let bodies: Vec<Body> = problem
        .bodies
        .iter()
        .zip(states)
        .map(|(body, (place, velocity))| Body {
            position: problem.units.metres(place),
            velocity: problem.units.metres_per_second(velocity),
            ..body.clone()
        })
        .collect();
    let seconds = problem.dt * problem.steps as f64;
    catalogue::to_csv(&format!("{seconds} s after the initial state"), &bodies)
}

fn report<T: Number>(
    problem: &Problem,
    gathered: &Gathered<T>,
    outcome: &Outcome,
    measure: Measure,
) {
    let measured = Measured {
        program: "nbody",
        devices: outcome.nodes * outcome.devices,
        size: problem.bodies.len(),
        steps: problem.steps,
        elapsed: outcome.elapsed,
        work: (problem.bodies.len() as f64).powi(2),
        unit: "pairs",
    };
    println!(
        "nbody: {bodies} bodies, {steps} of {dt:.0} s, {cluster}, \
         {seconds:.3} s, {rate:.1} million pairs/s",
        bodies = problem.bodies.len(),
        steps = counted(problem.steps, "step"),
        dt = problem.dt,
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(measure) / 1e6,
    );
    let numbers =
        [bytemuck::cast_slice(&gathered.places), bytemuck::cast_slice(&gathered.velocities)];
    measured.print(measure, &numbers);
    if let [before, .., after] = gathered.energies[..] {
        println!(
            "energy: {:e} J at the start, relative drift {:.2e}",
            problem.units.joule(before),
            (after - before) / before
        );
    }
}

fn check<T: Number>(
    problem: &Problem,
    gathered: &Gathered<T>,
    kernel: Kernel,
) -> Result<(), Failure> {
    let start = problem.units.state(&problem.bodies);
    let (softening, dt) = (problem.scaled_softening::<T>(), problem.scaled_dt());
    let expected = gravity::reference(start, softening, dt, problem.steps);
    let actual = (&gathered.places[..], &gathered.velocities[..]);
    let expected = (&expected.0[..], &expected.1[..]);
    if kernel == Kernel::Fast {
        let off = verify::close_state(actual, expected)?;
        println!("verified: off from the sequential program by {off:.1e} of the norm");
        return Ok(());
    }
    verify::same_state(&problem.bodies, actual, expected)?;
    println!("verified: every number equals that of the sequential program, bit for bit");
    let places: Vec<_> = gathered.places.iter().map(|place| problem.units.metres(place)).collect();
    let seconds = problem.dt * problem.steps as f64;
    match verify::earth_returned(&problem.bodies, &places, seconds, problem.is_shipped)? {
        Some(where_it_is) => println!("verified: the Earth is {where_it_is}"),
        None => println!("not checked: the Earth's return, since no sidereal year has passed"),
    }
    Ok(())
}

/// A number of seconds that time can advance by.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if f64::is_finite(number) && number > 0.0 => Ok(number),
        _ => Err("expected a finite number greater than zero".to_owned()),
    }
}
