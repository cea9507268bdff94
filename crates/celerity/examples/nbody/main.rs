//! Direct N-body gravity on every node and device there is.
//!
//! ```text
//! cargo run --release --example nbody -- --verify --plot orbits.png
//! CELERITY_DEVICES=2 cargo run --release --example nbody -- --random 20000 --steps 10
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
mod verify;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::gravity::{
    CREW, Place, Velocity, drift, energies, kick, kick_in_groups,
};
use clap::{Parser, ValueEnum};

use catalogue::{Body, CatalogueError, G};
use orbits::Orbits;
use stopwatch::{Measure, Measured, Stopwatch};
use support::{OutputError, check_writable, progress_bar};
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
    #[arg(long, value_enum, default_value_t = Kernel::Row)]
    kernel: Kernel,
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
    /// Whether the bodies are those of the shipped catalogue.
    is_shipped: bool,
}

/// What host tasks gather on the root node.
#[derive(Default)]
struct Gathered {
    places: Vec<Place>,
    velocities: Vec<Velocity>,
    /// The system's energy before and after, in joule.
    energies: Vec<f64>,
}

/// Shared between the program and its host tasks.
struct Observer {
    gathered: Mutex<Gathered>,
    orbits: Option<Orbits>,
}

struct Outcome {
    /// Whether the host tasks of this process have gathered anything.
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// Of all steps that are timed, without the last half of a kick.
    elapsed: Duration,
}

/// The buffers of a running simulation.
struct System {
    places: Buffer<Place, 1>,
    velocities: Buffer<Velocity, 1>,
    count: usize,
    softening: f64,
    kernel: Kernel,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("nbody: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let problem = pose(options)?;
    options.out.iter().chain(&options.plot).try_for_each(|path| check_writable(path))?;
    let orbits = options.plot.is_some().then(|| Orbits::new(problem.bodies.len(), problem.steps));
    let observer = Arc::new(Observer { gathered: Mutex::default(), orbits });

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
    if options.verify { check(&problem, &gathered) } else { Ok(()) }
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
            Problem { bodies, softening: 0.0, steps, dt, is_shipped }
        }
        Some(count) => {
            let radius = catalogue::cluster_radius(count as usize);
            let crossing =
                (radius.powi(3) / (G * bodies.iter().map(|b| b.mass).sum::<f64>())).sqrt();
            // A tenth of the mean distance between neighbours.
            let softening = 0.1 * radius / f64::from(count).cbrt();
            let dt = options.dt.unwrap_or(crossing / 1000.0);
            Problem { bodies, softening, steps: options.steps.unwrap_or(100), dt, is_shipped }
        }
    })
}

/// The program that every node runs: kick, drift, kick, with the two kicks
/// between two drifts made one.
fn simulate(
    queue: &Queue,
    problem: &Problem,
    options: &Options,
    observer: &Arc<Observer>,
) -> celerity::Result<Outcome> {
    let mut stopwatch = Stopwatch::start(options.measure);
    let (places, velocities) = initial_state(&problem.bodies);
    let system = System {
        count: places.len(),
        places: queue.buffer_from([places.len()], places)?.named("places"),
        velocities: queue.buffer_from([velocities.len()], velocities)?.named("velocities"),
        softening: problem.softening,
        kernel: options.kernel,
    };
    system.measure_energy(queue, observer)?;
    let bar = progress_bar(problem.steps, queue.is_root());
    for step in 0..problem.steps {
        stopwatch.before_step(queue, step)?;
        system.kick(queue, if step == 0 { 0.5 * problem.dt } else { problem.dt })?;
        system.drift(queue, problem.dt)?;
        system.observe(queue, observer, step + 1)?;
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    if problem.steps > 0 {
        system.kick(queue, 0.5 * problem.dt)?;
    }
    system.measure_energy(queue, observer)?;
    system.gather(queue, observer)?;
    queue.barrier()?;
    bar.finish_and_clear();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, elapsed })
}

impl System {
    fn kick(&self, queue: &Queue, dt: f64) -> celerity::Result<()> {
        let (task, softening) = (queue.task("kick"), self.softening);
        let (own, all) = (self.places.read(one_to_one()), self.places.read(all()));
        let velocities = self.velocities.read_write(one_to_one());
        match self.kernel {
            Kernel::Row => {
                task.launch_rows(self.count, (velocities, own, all), kick { softening, dt })?
            }
            Kernel::Group => {
                let kick = kick_in_groups { softening, dt };
                task.launch_groups(self.count, CREW, (velocities, all), kick)?
            }
        };
        Ok(())
    }

    fn drift(&self, queue: &Queue, dt: f64) -> celerity::Result<()> {
        let accesses = (self.places.read_write(one_to_one()), self.velocities.read(one_to_one()));
        queue.task("drift").launch_rows([self.count], accesses, drift { dt })?;
        Ok(())
    }

    /// Adds the system's energy to what is gathered.
    fn measure_energy(&self, queue: &Queue, observer: &Arc<Observer>) -> celerity::Result<()> {
        let contributions = queue.buffer::<f64, 1>([self.count]).named("energies");
        let accesses = (
            contributions.write(one_to_one()),
            self.places.read(one_to_one()),
            self.velocities.read(one_to_one()),
            self.places.read(all()),
        );
        let energies = energies { softening: self.softening };
        queue.task("energies").launch_rows([self.count], accesses, energies)?;
        let observer = Arc::clone(observer);
        queue.host_task("sum_energies").once(contributions.read(all()), move |energies| {
            let energy = energies.as_slice().iter().sum::<f64>() / G;
            observer.gathered.lock().expect("no host task panics").energies.push(energy);
        })?;
        Ok(())
    }

    /// Records where the bodies are, if the picture wants it.
    fn observe(
        &self,
        queue: &Queue,
        observer: &Arc<Observer>,
        steps_done: u64,
    ) -> celerity::Result<()> {
        if observer.orbits.as_ref().is_some_and(|orbits| orbits.wants(steps_done)) {
            let observer = Arc::clone(observer);
            queue.host_task("observe").once(self.places.read(all()), move |places| {
                observer.orbits.iter().for_each(|orbits| orbits.record(places.as_slice()));
            })?;
        }
        Ok(())
    }

    fn gather(&self, queue: &Queue, observer: &Arc<Observer>) -> celerity::Result<()> {
        let observer = Arc::clone(observer);
        queue.host_task("gather").once(
            (self.places.read(all()), self.velocities.read(all())),
            move |(places, velocities)| {
                let mut gathered = observer.gathered.lock().expect("no host task panics");
                gathered.places = places.as_slice().to_vec();
                gathered.velocities = velocities.as_slice().to_vec();
            },
        )?;
        Ok(())
    }
}

fn initial_state(bodies: &[Body]) -> (Vec<Place>, Vec<Velocity>) {
    let place = |body: &Body| {
        let [x, y, z] = body.position;
        [x, y, z, G * body.mass]
    };
    (bodies.iter().map(place).collect(), bodies.iter().map(|body| body.velocity).collect())
}

fn final_state(problem: &Problem, gathered: &Gathered) -> String {
    let states = gathered.places.iter().zip(&gathered.velocities);
    let bodies: Vec<Body> = problem
        .bodies
        .iter()
        .zip(states)
        .map(|(body, (&[x, y, z, _], &velocity))| Body {
            position: [x, y, z],
            velocity,
            ..body.clone()
        })
        .collect();
    let seconds = problem.dt * problem.steps as f64;
    catalogue::to_csv(&format!("{seconds} s after the initial state"), &bodies)
}

fn report(problem: &Problem, gathered: &Gathered, outcome: &Outcome, measure: Measure) {
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
        "nbody: {bodies} bodies, {steps} steps of {dt:.0} s, {nodes} nodes × {devices} devices, \
         {seconds:.3} s, {rate:.1} million pairs/s",
        bodies = problem.bodies.len(),
        steps = problem.steps,
        dt = problem.dt,
        nodes = outcome.nodes,
        devices = outcome.devices,
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(measure) / 1e6,
    );
    let numbers =
        [bytemuck::cast_slice(&gathered.places), bytemuck::cast_slice(&gathered.velocities)];
    measured.print(measure, &numbers);
    if let [before, .., after] = gathered.energies[..] {
        println!(
            "energy: {before:e} J at the start, relative drift {:.2e}",
            (after - before) / before
        );
    }
}

fn check(problem: &Problem, gathered: &Gathered) -> Result<(), Failure> {
    let (places, velocities) = initial_state(&problem.bodies);
    let Problem { softening, dt, steps, .. } = *problem;
    let expected = gravity::reference(places, velocities, softening, dt, steps);
    verify::same_state(
        &problem.bodies,
        (&gathered.places, &gathered.velocities),
        (&expected.0, &expected.1),
    )?;
    println!("verified: every number equals that of the sequential program, bit for bit");
    let seconds = problem.dt * problem.steps as f64;
    match verify::earth_returned(&problem.bodies, &gathered.places, seconds, problem.is_shipped)? {
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
