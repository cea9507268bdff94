//! What it costs to launch kernels that do nothing and depend on each other: on a
//! bare stream, through the backend, and through the whole runtime; on a GPU, and on
//! a driver that does nothing, which leaves the runtime's own part.
//!
//! Nothing is judged. Beside each figure of the runtime stands what its threads did
//! meanwhile, so that one run tells which of them is the slowest.

use std::process::ExitCode;
use std::sync::Arc;

use celerity_cuda::{CudaConfig, Gpu, Gpus};
use celerity_executor::ClusterConfig;
use clap::Parser;

mod bare;
mod empty;
mod idle_driver;
mod runtime;
mod threads;

use idle_driver::IdleDriver;
use runtime::Setting;

/// Measures what a launch costs.
#[derive(Parser)]
struct Options {
    /// Kernels per sample.
    #[arg(long, default_value_t = 20_000)]
    launches: u32,
    /// Samples; the median counts.
    #[arg(long, default_value_t = 5)]
    samples: usize,
    /// No GPU: only the runtime, on a driver that does nothing.
    #[arg(long)]
    dry: bool,
    /// Nanoseconds that a launch takes on the driver that does nothing.
    #[arg(long, value_delimiter = ',', default_value = "0,3000")]
    launch_ns: Vec<u64>,
    /// Horizons that may be outstanding, each measured.
    #[arg(long, value_delimiter = ',', default_value = "16,64,1024")]
    run_ahead: Vec<usize>,
    /// Tasks from horizon to horizon, each measured.
    #[arg(long, value_delimiter = ',', default_value = "4")]
    horizon_step: Vec<u64>,
    /// Jobs that are seen to end together, each measured.
    #[arg(long, value_delimiter = ',', default_value = "16")]
    batch: Vec<usize>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    for &nanoseconds in &options.launch_ns {
        println!("on a driver that does nothing, {nanoseconds} ns per launch:");
        let driver = Arc::new(IdleDriver::new(nanoseconds));
        let gpus = Gpus::new(driver, None).map_err(|error| error.to_string())?;
        whole_runtime(options, &gpus, None)?;
    }
    if options.dry { Ok(()) } else { on_gpu(options) }
}

fn on_gpu(options: &Options) -> Result<(), String> {
    let driver = bare::open()?;
    let gpus = Gpus::new(driver.clone(), None).map_err(|error| error.to_string())?;
    println!("on {}:", gpus.infos()[0].name);
    let alone = bare::all(&driver, options.launches, options.samples)?;
    whole_runtime(options, &gpus, Some(alone))?;
    bare::all(&driver, options.launches, options.samples).map(drop)
}

/// In every setting; `bare` is what a kernel takes on a stream alone, if that is known.
fn whole_runtime(options: &Options, gpus: &Arc<Gpus>, bare: Option<f64>) -> Result<(), String> {
    for &run_ahead in &options.run_ahead {
        for &horizon_step in &options.horizon_step {
            for &batch in &options.batch {
                let cluster = ClusterConfig { run_ahead, horizon_step, ..ClusterConfig::default() };
                let cuda = CudaConfig { batch, ..CudaConfig::default() };
                let setting = Setting { gpus, gpu: Gpu::from_slot(0), cluster, cuda };
                let cost = runtime::chain(&setting, options.launches, options.samples)?;
                let ratio = bare.map_or_else(String::new, |bare| {
                    format!(" ({:.2} × bare)", cost.kernel / bare)
                });
                println!(
                    "  run-ahead {run_ahead}, a horizon every {horizon_step}, batches of {batch}: \
                     {:.2} µs per kernel{ratio}, {:.2} µs until all are submitted",
                    cost.kernel, cost.submission
                );
                cost.threads.iter().for_each(|usage| println!("    {usage}"));
            }
        }
    }
    Ok(())
}

/// The one in the middle; of none, nothing.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
