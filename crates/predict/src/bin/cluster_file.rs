//! `cluster_file`: makes a cluster file of what `cargo xtask calibrate --cluster` has measured, and prints it.

use std::path::PathBuf;
use std::process::ExitCode;

use celerity_predict::{Calibration, ClusterModel, ExchangeCosts, MachineSamples, PredictError};
use clap::Parser;

/// Makes a cluster file of traces of the measuring program, and of constants of exchanges.
#[derive(Parser)]
#[command(name = "cluster_file")]
struct Options {
    /// What was measured
    #[arg(long)]
    name: String,
    /// When, and how busy the machine was
    #[arg(long)]
    circumstances: String,
    /// Nodes that were measured together
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..))]
    nodes: u16,
    /// They are processes
    #[arg(long)]
    processes: bool,
    /// Bytes of the largest message that leaves before its receiver is ready
    #[arg(long)]
    eager: u64,
    /// Who says so
    #[arg(long)]
    eager_by: String,
    /// The trace of one node
    #[arg(long)]
    alone: PathBuf,
    /// The trace of all nodes
    #[arg(long)]
    together: PathBuf,
    /// The trace of one node with two devices that have memories of their own
    #[arg(long)]
    copies: PathBuf,
    /// What `calibrate fit` has printed
    #[arg(long)]
    exchanges: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cluster_file: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, Box<dyn std::error::Error>> {
    let path = &options.exchanges;
    let text = std::fs::read_to_string(path)
        .map_err(|source| PredictError::Read { path: path.clone(), source })?;
    let calibration = Calibration {
        name: options.name.clone(),
        circumstances: options.circumstances.clone(),
        nodes: options.nodes.into(),
        processes: options.processes,
        eager: (options.eager, options.eager_by.clone()),
        alone: MachineSamples::read(&options.alone)?,
        together: MachineSamples::read(&options.together)?,
        copies: MachineSamples::read(&options.copies)?,
        exchanges: ExchangeCosts::parse(&text, path)?,
    };
    let text = calibration.to_toml()?;
    ClusterModel::parse(&text, "the cluster file".as_ref())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Options::command().debug_assert();
    }
}
