//! Where the numbers of figures come from: which programs run, and how what they print becomes a table. Also which
//! programs draw.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::catalogue::{Curve, Source};
use super::table::{Table, of_markdown};
use super::{effort, predicted, traced};
use crate::bench;
use crate::error::Error;
use crate::mpi::{self, Mpi, installed};
use crate::runner::output;
use crate::testkit::{self, Program};
use crate::workspace::{Workspace, cargo};

const BENCHES: &str = "celerity-benches";
const BASELINES: &str = "celerity-baselines";
const NETWORK: &str = "network";

/// Measures; `None` if a program fails, which has said why.
///
/// # Errors
/// A program that cannot be started, or prints what it should not.
pub(super) fn measure(workspace: &Workspace, source: &Source) -> Result<Option<Table>, Error> {
    match source {
        Source::Bench { bench, counted, curves } => {
            let Some(results) = bench::results(workspace, bench)? else { return Ok(None) };
            of_bench(&results, counted, curves).map(Some).map_err(malformed(workspace, bench))
        }
        Source::Table { program, arguments } => {
            let Some(text) = print(workspace, program, arguments)? else { return Ok(None) };
            Table::parse(&text).map(Some).map_err(malformed(workspace, program))
        }
        Source::Modes { program, arguments, modes } => {
            let Some(text) = print(workspace, program, arguments)? else { return Ok(None) };
            of_modes(&text, modes).map(Some).map_err(malformed(workspace, program))
        }
        Source::Barriers { processes } => {
            let Some(network) = Network::build(workspace)? else { return Ok(None) };
            let mut table = Table::new("nodes", ["MPI_Barrier", "barrier", "fence"]);
            for &count in *processes {
                let arguments = ["--repetitions", "60", "barriers"];
                let Some(text) = network.print(count, &arguments)? else { return Ok(None) };
                let row = of_barriers(&text).map_err(malformed(workspace, NETWORK))?;
                table.rows.push((count.to_string(), row));
            }
            Ok(Some(table))
        }
        Source::Exchanges { arguments, columns } => {
            let Some(network) = Network::build(workspace)? else { return Ok(None) };
            let arguments = [arguments, &["collectives"][..]].concat();
            let Some(text) = network.print(2, &arguments)? else { return Ok(None) };
            of_exchanges(&text, columns).map(Some).map_err(malformed(workspace, NETWORK))
        }
        Source::Predicted(curves) => predicted::table(workspace, curves),
        Source::Effort(efforts) => effort::table(&workspace.root, efforts).map(Some),
        Source::Traces(programs) => match traced::take(workspace, programs)? {
            true => traced::table(&traced::folder(workspace), programs).map(Some),
            false => Ok(None),
        },
    }
}

/// What a program has printed is not what it should be.
fn malformed(workspace: &Workspace, program: &str) -> impl Fn(String) -> Error + use<> {
    let path = workspace.target_dir.join(format!("what `{program}` has printed"));
    move |what| Error::Malformed { path: path.clone(), what }
}

/// Draws a committed table as curves.
pub(super) fn curves(
    workspace: &Workspace,
    table: &Path,
    picture: &Path,
    [title, counted, shows]: [&str; 3],
) -> Result<bool, Error> {
    let mut command = program(workspace, "table_figure");
    command.arg(table).arg(picture).args(["--title", title, "--counted", counted]);
    command.args(["--shows", shows]);
    Ok(output(&mut command)?.is_some())
}

/// Draws what was measured on GPUs.
pub(super) fn gpus(workspace: &Workspace, data: &Path, picture: &Path) -> Result<bool, Error> {
    let [data, picture] = [data, picture].map(|path| path.display().to_string());
    testkit::run(workspace, Program::GpuFigure, &[data, picture])
}

/// A program of the benchmarks, to be built and run.
fn program(workspace: &Workspace, name: &str) -> Command {
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["run", "--quiet", "--release", "--package"]);
    command.args([BENCHES, "--bin", name, "--"]);
    command
}

fn print(workspace: &Workspace, name: &str, arguments: &[&str]) -> Result<Option<String>, Error> {
    output(program(workspace, name).args(arguments))
}

/// `network` of the baselines, with the bindings of an MPI.
struct Network {
    mpi: Mpi,
    path: PathBuf,
}

impl Network {
    fn build(workspace: &Workspace) -> Result<Option<Self>, Error> {
        let mpi = installed().into_iter().next().ok_or(Error::NoMpi { program: NETWORK })?;
        let path = mpi::program(workspace, Some(&mpi), BASELINES, ["--bin", NETWORK])?;
        Ok(path.map(|path| Self { mpi, path }))
    }

    fn print(&self, processes: usize, arguments: &[&str]) -> Result<Option<String>, Error> {
        let mut command = self.mpi.launch(&["-n", &processes.to_string()]);
        command.arg(&self.path).args(arguments).env("RAYON_NUM_THREADS", "1");
        output(&mut command)
    }
}

/// Microseconds of the cases of each curve, by number.
fn of_bench(results: &Value, counted: &str, curves: &[Curve]) -> Result<Table, String> {
    let cases = results["cases"].as_array().ok_or("it has no list of cases")?;
    let found: Vec<Vec<(u64, f64)>> = curves.iter().map(|curve| points(cases, curve)).collect();
    let mut counts: Vec<u64> = found.iter().flatten().map(|(count, _)| *count).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut table = Table::new(counted, curves.iter().map(|curve| curve.label));
    for count in counts {
        let value = |points: &Vec<(u64, f64)>| {
            points.iter().find(|point| point.0 == count).map(|point| round(point.1))
        };
        let row: Option<Vec<f64>> = found.iter().map(value).collect();
        let missing = || format!("not every curve has {count} {counted}");
        table.rows.push((count.to_string(), row.ok_or_else(missing)?));
    }
    if table.rows.is_empty() { Err("it has none of the cases".into()) } else { Ok(table) }
}

fn points(cases: &[Value], curve: &Curve) -> Vec<(u64, f64)> {
    let (before, behind) = curve.function.split_once('#').unwrap_or((curve.function, ""));
    let point = |case: &Value| {
        let number = case["function"].as_str()?.strip_prefix(before)?.strip_suffix(behind)?;
        let micros = case["median_ns"].as_f64()? / 1000.0;
        (case["group"] == curve.group).then_some((number.parse().ok()?, micros))
    };
    cases.iter().filter_map(point).collect()
}

/// Rows of programs and modes, columns of numbers of nodes: a curve for each of `modes`, by its name there and here.
fn of_modes(text: &str, modes: &[[&str; 2]]) -> Result<Table, String> {
    let head = text.lines().find(|line| line.starts_with('|')).ok_or("it has no table")?;
    let counts = head.split('|').filter_map(|cell| cell.trim().parse::<u64>().ok());
    let counts: Vec<u64> = counts.collect();
    let mut curves: Vec<(String, Vec<f64>)> = Vec::new();
    // Another table may follow.
    let first = text.split("\n\n").find(|part| part.contains('|')).unwrap_or(text);
    for row in of_markdown(first) {
        let [program, mode, cells @ ..] = row.as_slice() else { continue };
        let Some([_, name]) = modes.iter().find(|[known, _]| known == mode) else { continue };
        curves
            .push((format!("{program} {name}"), cells.iter().filter_map(|c| median(c)).collect()));
    }
    let mut table = Table::new("nodes", curves.iter().map(|(name, _)| name.as_str()));
    for (at, count) in counts.iter().enumerate() {
        let row: Option<Vec<f64>> =
            curves.iter().map(|(_, values)| values.get(at).copied()).collect();
        table.rows.push((count.to_string(), row.ok_or("a row is too short")?));
    }
    if table.len() == 0 { Err("it has none of the modes".into()) } else { Ok(table) }
}

/// The number at the beginning of a cell, before its spread.
fn median(cell: &str) -> Option<f64> {
    cell.split_whitespace().next()?.parse().ok()
}

/// The only row of a table, but for the number of nodes.
fn of_barriers(text: &str) -> Result<Vec<f64>, String> {
    let rows = of_markdown(text);
    let row = rows.first().ok_or("it has no table")?;
    let values: Option<Vec<f64>> = row.iter().skip(1).map(|cell| median(cell)).collect();
    values.filter(|values| values.len() == 3).ok_or_else(|| "a row has three times".into())
}

/// Rows of patterns and bytes: a curve for each pattern and each of `columns`, by KiB.
fn of_exchanges(text: &str, columns: &[(usize, &str)]) -> Result<Table, String> {
    let rows = of_markdown(text);
    let mut patterns: Vec<&str> = rows.iter().filter_map(|row| row.first().copied()).collect();
    patterns.dedup();
    let names = patterns.iter().flat_map(|pattern| {
        columns.iter().map(move |(_, name)| format!("{} {name}", plain(pattern)))
    });
    let mut table = Table::new("KiB", names);
    let mut sizes: Vec<u64> = rows.iter().filter_map(|row| row.get(2)?.parse().ok()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for bytes in sizes {
        let row = |pattern: &&str| {
            rows.iter().find(|row| row[0] == *pattern && row.get(2) == Some(&&*bytes.to_string()))
        };
        let cells = patterns.iter().flat_map(|pattern| {
            columns.iter().map(move |(column, _)| median(row(pattern)?.get(*column)?))
        });
        let values: Option<Vec<f64>> = cells.collect();
        let missing = || format!("not every pattern has {bytes} bytes");
        table.rows.push(((bytes / 1024).to_string(), values.ok_or_else(missing)?));
    }
    if table.len() == 0 { Err("it has no row".into()) } else { Ok(table) }
}

/// Without what separates fields of a table.
fn plain(name: &str) -> String {
    name.replace(", ", " ").replace(',', " ")
}

/// Three digits are more than a busy machine repeats.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_become_curves() {
        let case = |function: &str, nanos: f64| json!({"group": "g", "function": function, "median_ns": nanos});
        let cases = [
            case("a/1 nodes", 1500.0),
            case("a/16 nodes", 2e6),
            case("a/2", 1.0),
            case("b/1 nodes", 7.0),
            case("b/16 nodes", 8.0),
        ];
        let curve = |label, function| Curve { label, group: "g", function };
        let curves = [curve("A", "a/# nodes"), curve("B", "b/# nodes")];
        let table = of_bench(&json!({"cases": cases}), "nodes", &curves).unwrap();
        assert_eq!(table.to_string(), "nodes,A,B\n1,1.5,0.007\n16,2000,0.008\n");
        let few = of_bench(&json!({"cases": &cases[..4]}), "nodes", &curves).unwrap_err();
        assert_eq!(few, "not every curve has 16 nodes");
        assert!(of_bench(&json!({"cases": []}), "nodes", &curves).is_err());
        assert!(of_bench(&json!({}), "nodes", &curves).is_err());
    }

    #[test]
    fn modes_become_curves() {
        let text = "| program | collectives | 2 | 16 |\n| --- | --- | ---: | ---: |\n\
                    | p | off | 0.8 (0.8–1.1) | 2.0 (2.0–2.1) |\n| p | auto | 1 (1–1) | 2 (2–2) |\n\
                    | p | always | 1.4 (1–2) | 1.5 (1–2) |\n\n| program | collectives | 2 |\n| --- | --- | --- |\n\
                    | p | off | 2, 1 KiB |\n";
        let table = of_modes(text, &[["off", "a"], ["always", "a and b"]]).unwrap();
        assert_eq!(table.to_string(), "nodes,p a,p a and b\n2,0.8,1.4\n16,2,1.5\n");
        assert!(of_modes(text, &[["none", "a"]]).is_err() && of_modes("", &[]).is_err());
    }

    #[test]
    fn what_processes_print_is_read() {
        let barriers = "\n| nodes | MPI_Barrier [µs] | barrier [µs] | fence [µs] |\n| --- | --- | --- | --- |\n| 2 | 0.21 | 9.28 | 13.41 |\n";
        assert_eq!(of_barriers(barriers).unwrap(), [0.21, 9.28, 13.41]);
        assert!(of_barriers("").is_err());
        let exchanges = "| pattern | processes | bytes | by hand | off | auto |\n| --- | --- | --- | --- | --- | --- |\n\
                         | all-gather | 2 | 1024 | 0.9 | 7.0 | 7.1 |\n| all-gather | 2 | 4096 | 1.9 | 8.0 | 8.1 |\n\
                         | gather, scatter | 2 | 1024 | 1.7 | 19.9 | 10.0 |\n| gather, scatter | 2 | 4096 | 2.7 | 29.9 | 20.0 |\n";
        let table = of_exchanges(exchanges, &[(3, "m"), (5, "m and c")]).unwrap();
        let head = "KiB,all-gather m,all-gather m and c,gather scatter m,gather scatter m and c\n";
        assert_eq!(table.to_string(), format!("{head}1,0.9,7.1,1.7,10\n4,1.9,8.1,2.7,20\n"));
        assert!(of_exchanges("", &[]).is_err());
    }
}
