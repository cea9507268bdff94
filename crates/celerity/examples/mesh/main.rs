//! How heat spreads over a surface of triangles, on every node and device there is: finite volumes on an
//! unstructured mesh. The surface is a cow, Keenan Crane's Spot, unless a file or a sphere is asked for.
//!
//! ```text
//! cargo run --release --example mesh -- --refine 2 --steps 5000
//! cargo run --release --example mesh -- --sphere 6 --steps 2000 --verify
//! CELERITY_NODES=2 CELERITY_DEVICES=2 cargo run --release --example mesh -- --mesh bunny.obj
//! ```
//!
//! The mesh is cut into as many parts as there are devices, by recursive coordinate bisection, before
//! it is computed on (CCGrid 2023, section V). A part is two rows of buffers, one for each number that a triangle
//! has, so that threads beside each other load what lies side by side: a row of the triangles that other parts need, the
//! part's border, and one of the rest. In a step, borders come first, and travel while the rest is computed; whose
//! borders a part needs, a mapper looks up in a table.
//!
//! Spot has 5,856 triangles. For more devices, `--refine` cuts each triangle of any mesh into four, again and again.

mod heat;
mod obj;
mod partition;
mod picture;
#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;
mod twin;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use celerity::prelude::*;
use clap::Parser;
use image::ImageFormat;

use heat::Heat;
use obj::{Mesh, MeshError, distance};
use partition::{Cell, Parts};
use stopwatch::{Measure, Measured, Stopwatch, cluster, counted};
use support::{OutputError, check_writable, progress_bar};

/// The surface if no other one is asked for.
const SPOT: &str = include_str!("../data/spot.obj");

/// Lets heat spread over a surface of triangles, one end of which is warm at the start, and draws the
/// surface: a cow, unless another one is asked for.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// A surface, in the format of Wavefront: lines `v X Y Z` for corners, `f A B C` for
    /// triangles.
    #[arg(long, value_name = "FILE.obj", conflicts_with = "sphere")]
    mesh: Option<PathBuf>,
    /// A sphere instead: of 20 triangles, each of which is cut into four, so many times.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(..=12))]
    sphere: Option<u32>,
    /// Cuts each triangle of whichever surface into four, so many times.
    #[arg(long, value_name = "TIMES", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(..=12))]
    refine: u32,
    /// Time steps, as long as is stable.
    #[arg(long, default_value_t = 500)]
    steps: u64,
    /// Parts of the mesh per device.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    parts: u32,
    /// The picture.
    #[arg(long, value_name = "FILE.png", default_value = "mesh.png")]
    out: PathBuf,
    /// Compares temperatures with those of a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Mesh(#[from] MeshError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Mismatch(#[from] twin::Mismatch),
}

struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    elapsed: Duration,
    /// Of each triangle.
    temperatures: Vec<f32>,
}

/// A mesh, and what a step needs of it.
struct Surface {
    mesh: Mesh,
    centres: Vec<[f32; 3]>,
    cells: Vec<Cell>,
    /// Temperatures at the start.
    initial: Vec<f32>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("mesh: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let mesh = match (&options.mesh, options.sphere) {
        (Some(path), _) => Mesh::read(path, options.refine)?,
        (None, Some(levels)) => Mesh::sphere(levels + options.refine)?,
        (None, None) => Mesh::parse(Path::new("spot.obj"), SPOT, options.refine)?,
    };
    let surface = Surface::new(mesh);
    let outcome = celerity::run(|queue| spread(queue, options, &surface))?;
    if !outcome.is_root {
        return Ok(());
    }
    picture::draw(&surface.mesh, &outcome.temperatures)
        .save_with_format(&options.out, ImageFormat::Png)
        .map_err(|error| OutputError::new(&options.out, std::io::Error::other(error)))?;
    report(options, &outcome);
    if options.verify {
        twin::compare(&surface, options.steps, &outcome.temperatures)?;
        println!("verified: every triangle equals that of the sequential program, bit for bit");
    }
    Ok(())
}

impl Surface {
    fn new(mesh: Mesh) -> Self {
        let triangles = 0..mesh.triangles.len();
        let centres: Vec<_> = triangles.clone().map(|at| mesh.centre(at)).collect();
        // What flows through a side: as much as it is long, and the less, the farther centres are apart.
        let mut cells: Vec<_> = (triangles.clone().zip(mesh.neighbours()))
            .map(|(at, beside)| {
                let (lengths, area) = (mesh.lengths(at), mesh.area(at));
                let conductances = [0, 1, 2].map(|side| match beside[side] {
                    Some(other) => {
                        let apart = distance(centres[at], centres[other as usize]);
                        lengths[side] / apart.max(f32::MIN_POSITIVE) / area
                    }
                    None => 0.0,
                });
                Cell { beside, conductances }
            })
            .collect();
        // A step may at most exchange all of what a triangle has.
        let fastest = cells.iter().map(|cell| cell.conductances.iter().sum::<f32>());
        let step = 0.9 / fastest.fold(f32::MIN_POSITIVE, f32::max);
        for cell in &mut cells {
            cell.conductances = cell.conductances.map(|conductance| conductance * step);
        }
        let initial = warm_end(&centres);
        Self { mesh, centres, cells, initial }
    }
}

/// Temperature 1 for what is in the last fifth along the axis along which triangles reach farthest, and
/// 0 for the rest.
fn warm_end(centres: &[[f32; 3]]) -> Vec<f32> {
    let ends = |axis: usize| {
        let coordinates = centres.iter().map(|centre| centre[axis]);
        coordinates.fold((f32::MAX, f32::MIN), |(least, most), at| (at.min(least), at.max(most)))
    };
    let extent = |axis: usize| ends(axis).1 - ends(axis).0;
    let axis = (0..3).rev().max_by(|&a, &b| extent(a).total_cmp(&extent(b))).unwrap_or(0);
    let (least, most) = ends(axis);
    let is_warm = |centre: &[f32; 3]| centre[axis] >= most - 0.2 * (most - least);
    centres.iter().map(|centre| if is_warm(centre) { 1.0 } else { 0.0 }).collect()
}

/// The program that every node runs.
fn spread(queue: &Queue, options: &Options, surface: &Surface) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let rows = queue.nodes() * queue.devices() * options.parts as usize;
    let parts = Parts::new(&surface.cells, &surface.centres, rows);
    let mut heat = Heat::new(queue, parts, surface.initial.iter().copied())?;

    let mut stopwatch = Stopwatch::start(options.measure);
    let bar = progress_bar(options.steps, queue.is_root());
    for number in 0..options.steps {
        stopwatch.before_step(queue, number)?;
        heat.step(queue)?;
        bar.inc(1);
    }
    let elapsed = stopwatch.stop(queue)?;
    bar.finish_and_clear();
    let temperatures = heat.temperatures(queue)?;
    let (is_root, nodes, devices) = (queue.is_root(), queue.nodes(), queue.devices());
    Ok(Outcome { is_root, nodes, devices, elapsed, temperatures })
}

fn report(options: &Options, outcome: &Outcome) {
    let triangles = outcome.temperatures.len();
    let measured = Measured {
        program: "mesh",
        devices: outcome.nodes * outcome.devices,
        size: triangles,
        steps: options.steps,
        elapsed: outcome.elapsed,
        work: triangles as f64,
        unit: "triangles",
    };
    println!(
        "mesh: {triangles}, {steps}, {cluster}, {seconds:.3} s, {rate:.1} million triangles/s, {out}",
        triangles = counted(triangles as u64, "triangle"),
        steps = counted(options.steps, "step"),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    measured.print(options.measure, &[bytemuck::cast_slice(&outcome.temperatures)]);
}
