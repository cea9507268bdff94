//! `predict`: how a program would run on a cluster, from its schedules and a calibration.
//!
//! Owns the command line and in which order things happen.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use celerity_predict::runs::ProgramRuns;
use celerity_predict::{
    ClusterModel, KernelCosts, PredictError, Prediction, RecordedRun, ReportRow, WorkCosts, csv,
    predict, table, write_timeline,
};
use clap::Parser;

/// Predicts how a program runs on a cluster: schedules it as each node, and executes the schedules in
/// simulated time.
#[derive(Parser)]
#[command(name = "predict")]
struct Options {
    /// The program
    program: PathBuf,
    /// Numbers of nodes: 4, 1,2,4 or 1..128, which doubles
    #[arg(long, default_value = "1..8")]
    nodes: String,
    /// Devices of each node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=61))]
    devices: u32,
    /// What the cluster costs
    #[arg(long, value_name = "FILE.toml")]
    cluster: PathBuf,
    /// Take the costs of kernels from these traces (`CELERITY_TRACE`), and run the program nowhere
    #[arg(long, value_name = "TRACE.json")]
    kernels: Vec<PathBuf>,
    /// Take what kernels cost by the size of their launches from these files, before any trace, and run the program
    /// nowhere
    #[arg(long, value_name = "FILE.toml")]
    costs: Vec<PathBuf>,
    /// A variable of the environment for all runs of the program
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Run the program so often on one node to measure its kernels: the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeat: u32,
    /// Also run the program on so many nodes, as often, and compare: the median counts
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = count)]
    measure: Vec<usize>,
    /// Words that launch nodes as processes when the program is run: `mpirun -n {}`; without, they are nodes
    /// of one process
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    launch: String,
    /// Write what the greatest number of nodes does, as a trace of a run
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Nodes in the trace, from the first on
    #[arg(long, default_value_t = 8)]
    trace_nodes: usize,
    /// Write the table as comma-separated values
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// A folder for what runs write
    #[arg(long, value_name = "FOLDER")]
    scratch: Option<PathBuf>,
    /// The program's arguments
    #[arg(last = true)]
    arguments: Vec<OsString>,
}

fn main() -> Result<(), PredictError> {
    let options = Options::parse();
    let model = ClusterModel::read(&options.cluster)?;
    let mut counts = numbers(&options.nodes)?;
    counts.extend(&options.measure);
    counts.push(1);
    counts.sort_unstable();
    counts.dedup();
    let runs = runs(&options)?;
    let (costs, measured) = measure(&options, &model, &runs)?;
    let mut rows: Vec<ReportRow> = Vec::new();
    for &nodes in &counts {
        let is_last = counts.last() == Some(&nodes);
        let trace = options.trace.as_deref().filter(|_| is_last);
        let prediction = of_nodes(&model, &costs, &runs, nodes, trace, options.trace_nodes)?;
        rows.push(ReportRow { prediction, measured: measured.get(&nodes).copied() });
    }
    drop(std::fs::remove_dir(&runs.scratch));
    report(&options, &model, &rows)
}

/// Predicts a number of nodes; the prediction comes without its spans, which may be many.
fn of_nodes(
    model: &ClusterModel,
    costs: &WorkCosts,
    runs: &ProgramRuns,
    nodes: usize,
    trace: Option<&Path>,
    shown: usize,
) -> Result<Prediction, PredictError> {
    let (schedules, paces) = runs.schedules(model, nodes)?;
    let mut prediction = predict(model, costs, &schedules, &paces)?;
    if let Some(path) = trace {
        write_timeline(path, &prediction, &schedules, shown).map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            PredictError::Write { path: path.to_owned(), source }
        })?;
    }
    prediction.spans = celerity_predict::Spans::default();
    Ok(prediction)
}

fn runs(options: &Options) -> Result<ProgramRuns, PredictError> {
    let own = || std::env::temp_dir().join(format!("celerity-predict-{}", std::process::id()));
    let scratch = options.scratch.clone().unwrap_or_else(own);
    std::fs::create_dir_all(&scratch)
        .map_err(|source| PredictError::Write { path: scratch.clone(), source })?;
    let (program, arguments) = (options.program.clone(), options.arguments.clone());
    let devices = usize::try_from(options.devices).expect("at most 61");
    let launcher = options.launch.split_whitespace().map(str::to_owned).collect();
    let environment = options.env.clone();
    Ok(ProgramRuns { program, arguments, launcher, devices, environment, scratch })
}

/// The costs of kernels, and how long the program takes on the numbers of nodes that are measured: the
/// medians of runs in turns, so that a machine that is slower for a while is so for all of them.
fn measure(
    options: &Options,
    model: &ClusterModel,
    runs: &ProgramRuns,
) -> Result<(WorkCosts, BTreeMap<usize, u64>), PredictError> {
    let traces = options.kernels.iter().map(|path| RecordedRun::read(path));
    let mut recorded = traces.collect::<Result<Vec<_>, _>>()?;
    let mut measured = BTreeMap::<usize, Vec<u64>>::new();
    for _ in 0..options.repeat {
        if options.kernels.is_empty() && options.costs.is_empty() {
            recorded.push(runs.reference(model)?);
        }
        for &nodes in &options.measure {
            measured.entry(nodes).or_default().push(runs.measure(model, nodes)?);
        }
    }
    let median = |mut all: Vec<u64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let measured = measured.into_iter().map(|(nodes, all)| (nodes, median(all))).collect();
    let mut costs = WorkCosts::of(&recorded, model.device.launch_ns);
    for path in &options.costs {
        costs = costs.given(KernelCosts::read(path)?);
    }
    Ok((costs, measured))
}

fn report(options: &Options, model: &ClusterModel, rows: &[ReportRow]) -> Result<(), PredictError> {
    let single = rows.first().map_or(0, |row| row.prediction.makespan);
    let step = rows.iter().find_map(|row| row.prediction.repeated.as_ref());
    println!("{} on {}", options.program.display(), model.name);
    if let Some(step) = step {
        println!("a step is from one \"{}\" to the next", step.name);
    }
    print!("{}", table(rows, single));
    let guessed = rows.iter().map(|row| row.prediction.guessed).max().unwrap_or(0);
    if guessed > 0 {
        println!(
            "{guessed} runs of host tasks were not in the measured run, and count {} ns per item each",
            model.engine.host_item_ns
        );
    }
    let stretched = rows.iter().filter_map(|row| row.prediction.stretched.as_ref());
    if let Some(kernel) = stretched.max_by_key(|kernel| kernel.factor()) {
        println!(
            "\"{}\" was measured with {} items at most, and has up to {}: what it costs per item is not known. Run \
             the program on several nodes with CELERITY_TRACE, and give the trace with --kernels",
            kernel.name, kernel.measured, kernel.items
        );
    }
    if let Some(path) = &options.csv {
        std::fs::write(path, csv(rows))
            .map_err(|source| PredictError::Write { path: path.clone(), source })?;
    }
    Ok(())
}

/// A number of nodes that can be run.
fn count(text: &str) -> Result<usize, String> {
    let number = text.trim().parse::<usize>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a number of nodes is at least 1".to_owned())
}

/// A name and its value.
fn variable(text: &str) -> Result<(String, String), String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = named.ok_or("a variable is given as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The numbers of nodes that a text means.
fn numbers(given: &str) -> Result<Vec<usize>, PredictError> {
    let bad = || PredictError::BadNodes { given: given.to_owned() };
    let number = |text: &str| count(text).ok();
    if let Some((first, last)) = given.split_once("..") {
        let (first, last) = number(first).zip(number(last)).ok_or_else(bad)?;
        let doubled = std::iter::successors(Some(first), |nodes| nodes.checked_mul(2));
        let mut all: Vec<_> = doubled.take_while(|nodes| *nodes < last).collect();
        all.push(last);
        return if first <= last { Ok(all) } else { Err(bad()) };
    }
    given.split(',').map(|text| number(text).ok_or_else(bad)).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Options, numbers, variable};

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn variables_have_names() {
        let named = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(variable("A=b=c"), named("A", "b=c"));
        assert_eq!(variable("A="), named("A", ""));
        for wrong in ["A", "=b", ""] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_of_nodes_are_lists_or_double() {
        assert_eq!(numbers("4").unwrap(), [4]);
        assert_eq!(numbers("1, 3,8").unwrap(), [1, 3, 8]);
        assert_eq!(numbers("1..8").unwrap(), [1, 2, 4, 8]);
        assert_eq!(numbers("3..20").unwrap(), [3, 6, 12, 20]);
        for wrong in ["", "0", "a", "8..1", "1..", "1,,2"] {
            let error = numbers(wrong).unwrap_err().to_string();
            assert!(error.contains("no list of numbers of nodes"), "{error}");
        }
    }
}
