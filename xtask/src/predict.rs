//! `cargo xtask predict`: how an example would run on a cluster.
//!
//! Owns what is built; what the options mean, and how predictions are made, is the business of the
//! program `predict` (`crates/predict`).

use clap::Args;

use crate::error::Error;
use crate::mpi::{installed, program};
use crate::runner::describe;
use crate::workspace::{BuildTarget, Workspace};

const FACADE: &str = "celerity";

/// Which example, and what the program `predict` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The example
    example: String,
    /// Build it with the bindings of the MPI that is installed, to measure processes (`--launch`)
    #[arg(long)]
    mpi: bool,
    /// Options of the prediction, `--help` for one, and behind `--` the example's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Builds the example and the program that predicts, and runs the latter. `false` if one of them does
/// not build, or if the prediction fails.
///
/// # Errors
/// [`Error::UnknownExample`], [`Error::NoMpi`], or if Cargo cannot be started.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let known = examples(workspace);
    if !known.contains(&options.example) {
        return Err(Error::UnknownExample { name: options.example.clone(), known });
    }
    let mpi = match (options.mpi, installed().into_iter().next()) {
        (false, _) => None,
        (true, Some(mpi)) => Some(mpi),
        (true, None) => return Err(Error::NoMpi { program: "an example with `--mpi`" }),
    };
    let predict = program(workspace, None, "celerity-predict", ["--bin", "predict"])?;
    let Some(predict) = predict else { return Ok(false) };
    let example = program(workspace, mpi.as_ref(), FACADE, ["--example", &options.example])?;
    let Some(example) = example else { return Ok(false) };
    let mut command = std::process::Command::new(predict);
    command.arg(example).args(&options.options);
    let status = command.status();
    let status = status.map_err(|source| Error::Start { program: describe(&command), source })?;
    Ok(status.success())
}

/// The examples of the facade.
fn examples(workspace: &Workspace) -> Vec<String> {
    let facade = workspace.packages.iter().filter(|package| package.name == FACADE);
    let targets = facade.flat_map(|package| &package.targets);
    let examples = targets.filter(|BuildTarget { kind, .. }| kind == "example");
    examples.map(|example| example.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Options, examples, run};
    use crate::workspace::Workspace;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn all_behind_the_example_goes_to_the_prediction() {
        let line = ["xtask", "--mpi", "wave_sim", "--nodes", "1..8", "--", "--size", "64"];
        let Options { example, mpi, options } = Line::parse_from(line).options;
        assert_eq!((example.as_str(), mpi), ("wave_sim", true));
        assert_eq!(options, ["--nodes", "1..8", "--", "--size", "64"]);
    }

    #[test]
    fn an_example_that_there_is_not_is_named() {
        let workspace = Workspace::load().unwrap();
        assert!(examples(&workspace).iter().any(|name| name == "wave_sim"));
        let options = Line::parse_from(["xtask", "wavesim"]).options;
        let error = run(&workspace, &options).unwrap_err().to_string();
        assert!(error.contains("no example `wavesim`") && error.contains("wave_sim"), "{error}");
    }
}
