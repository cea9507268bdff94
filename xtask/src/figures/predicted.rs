//! Predictions beside what was measured: programs on so many GPUs of a cluster, by the program `predict`.
//!
//! Owns which clusters are asked for, and how the costs of kernels follow from committed measurements of GPUs. Which programs
//! a figure has is in the catalogue; how predictions are made is the business of `crates/predict`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::table::Table;
use crate::error::Error;
use crate::files::{read, write};
use crate::mpi::program;
use crate::runner::{describe, output};
use crate::workspace::Workspace;

/// What everything but kernels takes.
const CLUSTER: &str = "crates/predict/clusters/h200-infiniband.toml";
/// Rates of programs on one, two and four GPUs: of those that the first has not, the second.
const RATES: [&str; 2] =
    ["docs/benchmarks/h200-compare.csv", "docs/benchmarks/h200-compare-four.csv"];
/// In it, ours, with the bits of CPUs.
const OURS: &str = "ours-strict";
/// Of the columns of a prediction: a step without what is done once.
const STEP: &str = "steady_step_ns";
/// As many as a host of the papers' clusters has.
const PER_HOST: u64 = 4;
const COUNTS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];

/// A program on so many GPUs.
#[derive(Debug)]
pub(super) struct Predicted {
    pub(super) label: &'static str,
    pub(super) example: &'static str,
    /// Its arguments on so many GPUs.
    pub(super) arguments: fn(u64) -> String,
    /// Variables of its environment, `NAME=VALUE`.
    pub(super) environment: &'static [&'static str],
    pub(super) costs: Costs,
    /// The greatest number of GPUs.
    pub(super) up_to: u64,
    /// What it is called in the committed rates: its steps of there become a second curve.
    pub(super) measured: Option<&'static str>,
}

/// Where the costs of kernels come from.
#[derive(Debug)]
pub(super) enum Costs {
    /// A committed trace of GPUs, compressed.
    Trace(&'static str),
    /// Steps of the committed rates count as launches of one kernel.
    Steps {
        program: &'static str,
        /// Measured on so many GPUs, each with a launch of its share.
        gpus: &'static [u64],
        kernel: &'static str,
        /// Items of all launches together, by the size of there.
        items: fn(u64) -> u64,
        /// How much longer an item takes here than there, by the size of there and the number of GPUs here.
        longer: fn(u64, u64) -> f64,
        /// Kernels beside it, which take no more than a launch.
        others: &'static [&'static str],
    },
    /// Kernels move so many bytes per item, at this part of the rate of a copy within a GPU.
    Bytes { kernels: &'static [(&'static str, f64)], part: f64, others: &'static [&'static str] },
}

/// A row per number of GPUs, with µs per step; `None` if a program fails.
///
/// # Errors
/// A program that cannot be started, or a file that cannot be read or written.
pub(super) fn table(workspace: &Workspace, all: &[Predicted]) -> Result<Option<Table>, Error> {
    let Some(predict) = program(workspace, None, "celerity-predict", ["--bin", "predict"])? else {
        return Ok(None);
    };
    let folder = workspace.target_dir.join("figures");
    fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    let rates = Rates::load(&workspace.root)?;
    let tools = Tools { workspace, predict, folder, rates };
    let mut table = Table::new("GPUs", std::iter::empty::<String>());
    table.rows = COUNTS.map(|count| (count.to_string(), Vec::new())).to_vec();
    for predicted in all {
        let Some(column) = tools.column(predicted)? else { return Ok(None) };
        let measured = predicted.measured.map(|name| tools.measured(name));
        let (program, _) = predicted.label.rsplit_once(' ').unwrap_or((predicted.label, ""));
        let measured = measured.map(|column| (format!("{program} measured"), column));
        let columns = [(predicted.label.to_owned(), column)].into_iter().chain(measured);
        for (label, column) in columns {
            table.curves.push(label);
            table.rows.iter_mut().zip(column).for_each(|((_, row), micros)| row.push(micros));
        }
    }
    Ok(Some(table))
}

struct Tools<'w> {
    workspace: &'w Workspace,
    predict: PathBuf,
    /// For what is no result.
    folder: PathBuf,
    rates: Rates,
}

impl Tools<'_> {
    /// What a step of a program takes on each number of GPUs, in µs; not a number on too many.
    fn column(&self, predicted: &Predicted) -> Result<Option<Vec<f64>>, Error> {
        let example = program(self.workspace, None, "celerity", ["--example", predicted.example])?;
        let Some(example) = example else { return Ok(None) };
        let step = |count: u64| match count <= predicted.up_to {
            true => self.step(predicted, &example, count),
            false => Ok(Some(f64::NAN)),
        };
        COUNTS.into_iter().map(step).collect()
    }

    /// What was measured of one, likewise.
    fn measured(&self, name: &str) -> Vec<f64> {
        let step = |count| self.rates.step(name, OURS, count);
        COUNTS
            .into_iter()
            .map(|count| step(count).map_or(f64::NAN, |step| micros(step.1)))
            .collect()
    }

    /// What a step of a program takes on so many GPUs, in µs.
    fn step(&self, predicted: &Predicted, example: &Path, gpus: u64) -> Result<Option<f64>, Error> {
        let (nodes, devices) = cluster(gpus);
        let csv = self.folder.join("prediction.csv");
        let mut command = Command::new(&self.predict);
        command.arg(example).arg("--cluster").arg(self.workspace.root.join(CLUSTER));
        command.args(["--nodes", &nodes.to_string(), "--devices", &devices.to_string()]);
        predicted.environment.iter().for_each(|variable| {
            command.args(["--env", variable]);
        });
        if !self.add_costs(&mut command, &predicted.costs, gpus)? {
            return Ok(None);
        }
        command.arg("--csv").arg(&csv).arg("--");
        command.args((predicted.arguments)(gpus).split_whitespace());
        let Some(_) = output(&mut command)? else { return Ok(None) };
        let step = step_of(&read(&csv)?, nodes);
        let step = step.map_err(|what| Error::Malformed { path: csv, what })?;
        let plural = if gpus == 1 { "" } else { "s" };
        println!("{}, {gpus} GPU{plural}: {step} µs per step", predicted.label);
        Ok(Some(step))
    }

    /// Says `predict` where the costs of kernels are. `false` if a program fails.
    fn add_costs(&self, command: &mut Command, costs: &Costs, gpus: u64) -> Result<bool, Error> {
        match costs {
            Costs::Trace(path) => {
                let trace = self.folder.join("trace.json");
                if !unpack(&self.workspace.root.join(path), &trace)? {
                    return Ok(false);
                }
                command.arg("--kernels").arg(trace);
            }
            _ => {
                let path = self.folder.join("kernels.toml");
                let text = self.rates.costs(costs, gpus);
                let rates = || self.workspace.root.join(RATES[0]);
                write(&path, &text.map_err(|what| Error::Malformed { path: rates(), what })?)?;
                command.arg("--costs").arg(path);
            }
        }
        Ok(true)
    }
}

/// Nodes, and GPUs of each.
fn cluster(gpus: u64) -> (u64, u64) {
    let per_host = gpus.min(PER_HOST);
    (gpus / per_host, per_host)
}

/// `false` if the program that unpacks fails.
pub(super) fn unpack(from: &Path, to: &Path) -> Result<bool, Error> {
    let file = fs::File::create(to).map_err(|source| Error::Write { path: to.into(), source })?;
    let mut gunzip = Command::new("gunzip");
    gunzip.arg("-c").arg(from).stdin(Stdio::null()).stdout(file);
    let status = gunzip.status();
    let status = status.map_err(|source| Error::Start { program: describe(&gunzip), source })?;
    Ok(status.success())
}

/// The µs per step of so many nodes, of what `predict --csv` has written.
fn step_of(csv: &str, nodes: u64) -> Result<f64, String> {
    let head = csv.lines().next().unwrap_or_default();
    let column =
        head.split(',').position(|name| name == STEP).ok_or("it has no `steady_step_ns`")?;
    let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.into_iter().find(|row| row.first() == Some(&&*nodes.to_string()));
    let step = row.as_ref().and_then(|row| row.get(column)?.parse::<f64>().ok());
    step.map(micros).ok_or_else(|| format!("it has no step on {nodes} nodes"))
}

/// Of ns, with three digits behind the point.
fn micros(nanos: f64) -> f64 {
    nanos.round() / 1000.0
}

/// What `compare.sh` has measured.
#[derive(Debug)]
pub(super) struct Rates(Vec<Rate>);

#[derive(Debug)]
struct Rate {
    program: String,
    variant: String,
    gpus: u64,
    size: u64,
    /// Of a step, in ns.
    step: f64,
}

impl Rates {
    /// What is committed.
    ///
    /// # Errors
    /// A file that cannot be read, or is no table.
    pub(super) fn load(root: &Path) -> Result<Self, Error> {
        RATES.into_iter().try_fold(Self(Vec::new()), |rates, file| {
            let path = root.join(file);
            let more = Self::parse(&read(&path)?);
            Ok(rates.and(more.map_err(|what| Error::Malformed { path, what })?))
        })
    }

    /// With programs of another table that are not in this one.
    fn and(mut self, mut other: Self) -> Self {
        other.0.retain(|new| self.0.iter().all(|known| known.program != new.program));
        self.0.append(&mut other.0);
        self
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = (1..).zip(text.lines()).skip(1);
        let rates = lines.map(|(number, line)| {
            let cells: Vec<_> = line.split(',').collect();
            let rate = || {
                let [program, variant, gpus, size, steps, seconds, _, _] = cells[..] else {
                    return None;
                };
                let (steps, seconds) = (steps.parse::<f64>().ok()?, seconds.parse::<f64>().ok()?);
                let (gpus, size) = (gpus.parse().ok()?, size.parse().ok()?);
                let (program, variant) = (program.to_owned(), variant.to_owned());
                Some(Rate { program, variant, gpus, size, step: seconds * 1e9 / steps })
            };
            rate().ok_or_else(|| format!("line {number} is no measurement"))
        });
        rates.collect::<Result<_, _>>().map(Self)
    }

    /// The size of a program on so many GPUs, and its fastest step in ns.
    fn step(&self, program: &str, variant: &str, gpus: u64) -> Option<(u64, f64)> {
        let is_it =
            |rate: &&Rate| (&*rate.program, &*rate.variant, rate.gpus) == (program, variant, gpus);
        let all = self.0.iter().filter(is_it).map(|rate| (rate.size, rate.step));
        all.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The costs of kernels on so many GPUs, as a file for `predict --costs`.
    pub(super) fn costs(&self, costs: &Costs, here: u64) -> Result<String, String> {
        let (mut text, others) = match costs {
            Costs::Trace(path) => return Err(format!("{path} has the costs itself")),
            Costs::Steps { program, gpus, kernel, items, longer, others } => {
                let launch = |&there: &u64| {
                    let (size, step) = self.step(program, OURS, there)?;
                    Some(format!("[{}, {:.0}]", items(size) / there, step * longer(size, here)))
                };
                let launches: Option<Vec<_>> = gpus.iter().map(launch).collect();
                let launches =
                    launches.ok_or_else(|| format!("{program} is not on {gpus:?} GPUs"))?;
                let head = format!(
                    "name = \"{program} on H200s, by {}\"\n[kernels]\n",
                    RATES.join(" and ")
                );
                (head + &format!("{kernel} = [{}]\n", launches.join(", ")), others)
            }
            Costs::Bytes { kernels, part, others } => {
                let copy = self.step("copy_by_driver", "strict", 1);
                // MiB, which are read and written.
                let (size, nanos) = copy.ok_or("it has no copy_by_driver on one GPU")?;
                let byte = nanos / (2.0 * size as f64 * f64::from(1 << 20)) / part;
                let mut text = format!(
                    "name = \"bytes at {part} of the copies of {}\"\n[kernels]\n",
                    RATES[0]
                );
                for (kernel, bytes) in *kernels {
                    // For so many items, as times are whole ns.
                    let items = 1_000_000_000;
                    text +=
                        &format!("{kernel} = [[{items}, {:.0}]]\n", bytes * byte * items as f64);
                }
                (text, others)
            }
        };
        others.iter().for_each(|kernel| text += &format!("{kernel} = [[1, 0]]\n"));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "program,variant,gpus,size,steps,seconds,rate,unit\n\
                        copy_by_driver,strict,1,1024,50,0.05,4e12,bytes/s\n\
                        p,ours-strict,1,1000,10,0.2,1,x/s\np,ours-strict,1,1000,10,0.1,1,x/s\n\
                        p,ours-strict,2,1000,10,0.06,1,x/s\np,strict,1,1000,10,0.01,1,x/s\n";

    #[test]
    fn the_fastest_step_counts() {
        let rates = Rates::parse(TEXT).unwrap();
        assert_eq!(rates.step("p", OURS, 1), Some((1000, 1e7)));
        assert_eq!(rates.step("p", OURS, 4), None);
        assert_eq!(Rates::parse("head\na,b\n").unwrap_err(), "line 2 is no measurement");
        let later = "head\np,ours-strict,1,7,1,1,1,x\nq,ours-strict,1,7,1,1,1,x\n";
        let both = rates.and(Rates::parse(later).unwrap());
        assert_eq!(both.step("p", OURS, 1), Some((1000, 1e7)));
        assert_eq!(both.step("q", OURS, 1), Some((7, 1e9)));
    }

    #[test]
    fn costs_follow_from_rates() {
        let rates = Rates::parse(TEXT).unwrap();
        let steps = |gpus| Costs::Steps {
            program: "p",
            gpus,
            kernel: "k",
            items: |size| size,
            longer: |_, here| here as f64,
            others: &["o"],
        };
        let text = rates.costs(&steps(&[1, 2]), 3).unwrap();
        let (_, kernels) = text.split_once("[kernels]\n").unwrap();
        assert_eq!(kernels, "k = [[1000, 30000000], [500, 18000000]]\no = [[1, 0]]\n");
        assert!(rates.costs(&steps(&[4]), 1).unwrap_err().contains("[4]"));
        let bytes = Costs::Bytes { kernels: &[("k", 8.0)], part: 0.5, others: &[] };
        let text = rates.costs(&bytes, 1).unwrap();
        // 2 GiB in 1 ms, half as fast.
        assert!(text.ends_with("[kernels]\nk = [[1000000000, 7450581]]\n"), "{text}");
        assert!(rates.costs(&Costs::Trace("t"), 1).is_err());
    }

    #[test]
    fn hosts_have_four_gpus() {
        assert_eq!(
            [1, 2, 4, 8, 128, 1024].map(cluster),
            [(1, 1), (1, 2), (1, 4), (2, 4), (32, 4), (256, 4)]
        );
    }

    #[test]
    fn steps_are_read_from_predictions() {
        let csv = "nodes,devices,step_ns,steady_step_ns\n1,4,9,5000\n32,4,9,1234\n64,4,9,\n";
        assert_eq!(step_of(csv, 32), Ok(1.234));
        assert!(step_of(csv, 64).is_err() && step_of(csv, 2).is_err() && step_of("", 1).is_err());
    }
}
