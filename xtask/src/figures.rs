//! `cargo xtask figures`: the figures of the papers, with what is measured here.
//!
//! Owns the command: which figures there are is in [`catalogue`], where their numbers come from in [`sources`], what a
//! table of numbers is in [`table`]. Programs that draw and measure exist elsewhere, and are only called.

mod bars;
mod catalogue;
mod effort;
mod predicted;
mod sources;
mod table;
mod traced;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use crate::files::{self, write};
use crate::workspace::Workspace;
use catalogue::{ALL, Drawn, Figure};
use table::Table;

const FOLDER: &str = "docs/figures";

/// What to make.
#[derive(Args)]
pub(crate) struct Options {
    /// Figures, by their names (default: all of them)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the figures, and make none
    #[arg(long, conflicts_with_all = ["names", "check"])]
    list: bool,
    /// Write nothing: measure, and say what is worse than the committed data by more than `--tolerance`
    #[arg(long)]
    check: bool,
    /// With `--check`: how many times as much time is still the same
    #[arg(long, default_value_t = 1.5, requires = "check", value_parser = factor)]
    tolerance: f64,
    /// Of figures that are traces of programs: run none, but take PROGRAM.json or PROGRAM.json.gz of a folder, after
    /// which data and pictures are named
    #[arg(long, value_name = "FOLDER", requires = "names", conflicts_with = "check")]
    traces: Option<PathBuf>,
}

/// Makes figures, or compares what they show now with what is committed. `false` means that a program has failed, or
/// that something got worse.
///
/// # Errors
/// An unknown figure, programs that cannot be started, files that cannot be read or written.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    if options.list {
        ALL.iter()
            .for_each(|figure| println!("{:<18}{}: {}", figure.name, figure.paper, figure.shows));
        return Ok(true);
    }
    let mut all_well = true;
    for figure in select(&options.names)? {
        println!("=== {}: {}, {}", figure.name, figure.paper, figure.shows);
        all_well &= match (options.check, &options.traces) {
            (true, _) => check(workspace, figure, options.tolerance)?,
            (false, None) => make(workspace, figure)?,
            (false, Some(folder)) => from_traces(workspace, figure, folder)?,
        };
    }
    Ok(all_well)
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("a factor from 1 to 1000 is expected".into()),
    }
}

fn select(names: &[String]) -> Result<Vec<&'static Figure>, Error> {
    let find = |name: &String| {
        ALL.iter().find(|figure| figure.name == name).ok_or_else(|| Error::UnknownFigure {
            name: name.clone(),
            known: ALL.iter().map(|figure| figure.name).collect(),
        })
    };
    if names.is_empty() { Ok(ALL.iter().collect()) } else { names.iter().map(find).collect() }
}

/// The committed numbers of a figure.
fn data(workspace: &Workspace, figure: &Figure) -> PathBuf {
    workspace.root.join(FOLDER).join(figure.file).with_extension("csv")
}

fn make(workspace: &Workspace, figure: &Figure) -> Result<bool, Error> {
    let path = data(workspace, figure);
    if let Some(source) = &figure.source {
        let Some(table) = sources::measure(workspace, source)? else { return Ok(false) };
        write(&path, &table.to_string())?;
        print!("{}", table.to_markdown());
    }
    let picture = path.with_extension("svg");
    let drawn = match &figure.drawn {
        Drawn::Curves { title, counted, shows } => {
            sources::curves(workspace, &path, &picture, [title, counted, shows])?
        }
        Drawn::Bars { title } => {
            let table = read(&path)?;
            write(&picture, &bars::draw(&table, title))?;
            true
        }
        Drawn::Gpus { data } => sources::gpus(workspace, &workspace.root.join(data), &picture)?,
        Drawn::Timelines(programs) => {
            traced::draw(&traced::folder(workspace), programs, &path)?;
            true
        }
    };
    pictures(figure, &path).iter().for_each(|path| println!("{}", workspace.relative(path)));
    Ok(drawn)
}

/// Makes a figure of traces that are there already, beside the one of runs here.
fn from_traces(workspace: &Workspace, figure: &Figure, folder: &Path) -> Result<bool, Error> {
    let Drawn::Timelines(programs) = &figure.drawn else {
        let is_traced = |figure: &&Figure| matches!(figure.drawn, Drawn::Timelines(_));
        let known = ALL.iter().filter(is_traced).map(|figure| figure.name).collect();
        return Err(Error::NotOfTraces { name: figure.name, known });
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = data(workspace, figure).with_file_name(format!("{}-{name}.csv", figure.file));
    let table = traced::table(folder, programs)?;
    write(&path, &table.to_string())?;
    print!("{}", table.to_markdown());
    traced::draw(folder, programs, &path)?;
    pictures(figure, &path).iter().for_each(|path| println!("{}", workspace.relative(path)));
    Ok(true)
}

/// What is drawn of such data.
fn pictures(figure: &Figure, data: &Path) -> Vec<PathBuf> {
    match &figure.drawn {
        Drawn::Timelines(programs) => {
            programs.iter().map(|program| traced::picture_of(data, program)).collect()
        }
        _ => vec![data.with_extension("svg")],
    }
}

fn check(workspace: &Workspace, figure: &Figure, tolerance: f64) -> Result<bool, Error> {
    let Some(source) = &figure.source else {
        println!("measured on other machines: nothing to compare here");
        return Ok(true);
    };
    let before = read(&data(workspace, figure))?;
    let Some(now) = sources::measure(workspace, source)? else { return Ok(false) };
    let worse = table::worse(&before, &now, tolerance);
    worse.iter().for_each(|line| println!("worse: {line}"));
    println!("{} of {} values got worse", worse.len(), before.len());
    Ok(worse.is_empty())
}

fn read(path: &Path) -> Result<Table, Error> {
    Table::parse(&files::read(path)?).map_err(|what| Error::Malformed { path: path.into(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_all_or_those_named() {
        assert_eq!(select(&[]).unwrap().len(), ALL.len());
        assert_eq!(select(&["ijpp-2022-7".to_owned()]).unwrap()[0].file, "epochs");
        let error = select(&["ijpp-2022-9".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("ijpp-2022-9") && error.contains("ccgrid-2023-1"), "{error}");
    }

    /// What `--check` compares with is there, and every picture, too.
    #[test]
    fn committed_data_can_be_read() {
        let workspace = Workspace::load().unwrap();
        for figure in &ALL {
            let path = data(&workspace, figure);
            assert!(pictures(figure, &path).iter().all(|it| it.is_file()), "{}", figure.name);
            if figure.source.is_some() {
                assert!(read(&path).unwrap().len() > 0, "{}", figure.name);
            }
        }
    }

    /// What predictions are made from is committed, and says what it should.
    #[test]
    fn kernels_of_predictions_have_costs() {
        let root = Workspace::load().unwrap().root;
        let rates = predicted::Rates::load(&root).unwrap();
        let mut known = 0;
        for figure in &ALL {
            let Some(catalogue::Source::Predicted(curves)) = &figure.source else { continue };
            for curve in *curves {
                match &curve.costs {
                    predicted::Costs::Trace(path) => assert!(root.join(path).is_file(), "{path}"),
                    costs => assert!(rates.costs(costs, 8).is_ok(), "{}", curve.label),
                }
                known += 1;
            }
        }
        assert!(known > 0);
    }

    #[test]
    fn all_that_is_counted_is_there() {
        let root = Workspace::load().unwrap().root;
        let mut counted = 0;
        for figure in &ALL {
            if let Some(catalogue::Source::Effort(efforts)) = &figure.source {
                let table = effort::table(&root, efforts).unwrap();
                assert!(table.rows.iter().all(|(_, values)| values.iter().all(|v| *v > 0.0)));
                counted += table.len();
            }
        }
        assert!(counted > 0);
    }

    #[test]
    fn tolerances_are_factors() {
        assert_eq!(factor("1.25"), Ok(1.25));
        for wrong in ["0.5", "x", "nan", "1e9"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
    }
}
