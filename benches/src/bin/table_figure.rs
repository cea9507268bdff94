//! Draws a table of times per number of nodes, or of something else, as an SVG picture: a column is a curve. Of
//! two columns named `x` and `x and y`, or `x predicted` and `x measured`, the former has rings, the latter discs; what is
//! measured is not named again. A cell may be empty.
//!
//! ```sh
//! table_figure docs/figures/epochs.csv docs/figures/epochs.svg --title "time per graph"
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use celerity_benches::figure::{Axes, COLORS, Curve, Legend, Unit, draw};
use clap::{Parser, ValueEnum};
use plotters::drawing::DrawingAreaErrorKind;

/// Draws a table of times per number of nodes.
#[derive(Parser)]
struct Options {
    /// Comma-separated: `nodes` and the curves' names, then numbers, in microseconds
    table: PathBuf,
    /// The picture
    figure: PathBuf,
    /// What the times are
    #[arg(long)]
    title: String,
    /// What the first column counts
    #[arg(long, default_value = "nodes")]
    counted: String,
    /// What is drawn of the times
    #[arg(long, value_enum, default_value_t = Shown::Time)]
    shows: Shown,
}

/// What is drawn of a column's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shown {
    /// The times.
    Time,
    /// The first time over each time.
    SpeedUp,
    /// The same as parts of 1: each has as much to do for itself as the first, and should take as long.
    Efficiency,
}

impl Shown {
    fn value(self, first: f64, time: f64) -> f64 {
        match self {
            Self::Time => time,
            Self::SpeedUp | Self::Efficiency => first / time,
        }
    }

    /// The ends of the axis for values between two, with room above them for a legend of so many curves.
    fn range(self, [least, most]: [f64; 2], named: usize) -> Range<f64> {
        if self == Self::Time {
            return least / 2.0..most * (most / least).powf(0.1 * named as f64).max(4.0);
        }
        let low = least / 1.25;
        // A line of the legend is a twentieth of the axis or so, which is logarithmic.
        let part = (0.05 * (named + 1) as f64).min(0.7);
        low..most * (most / low).powf(part / (1.0 - part)).max(1.25)
    }

    fn unit(self) -> Unit {
        match self {
            Self::Time => Unit::Micros,
            Self::SpeedUp => Unit::Times,
            Self::Efficiency => Unit::Parts,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}:{line}: expected a number of nodes and {curves} times", path.display())]
    Table { path: PathBuf, line: usize, curves: usize },
    #[error("cannot draw: {0}")]
    Draw(#[from] DrawingAreaErrorKind<io::Error>),
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

fn run(options: &Options) -> Result<(), Error> {
    let Options { table, figure, title, counted, shows } = options;
    let at = |path: &Path| {
        let path = path.to_owned();
        |source| Error::File { path, source }
    };
    let text = fs::read_to_string(table).map_err(at(table))?;
    let mut curves = curves(&text).map_err(|(line, curves)| {
        let path = table.clone();
        Error::Table { path, line, curves }
    })?;
    for Curve { points, .. } in &mut curves {
        let first = points.first().map_or(1.0, |point| point.1);
        points.iter_mut().for_each(|(_, time)| *time = shows.value(first, *time));
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let nodes = points().map(|point| point.0).fold(1.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.1).fold(0.0, f64::max);
    let named = curves.iter().filter(|curve| !curve.label.is_empty()).count();
    let values = shows.range([least, most], named);
    let (most, unit) = (nodes as u32, shows.unit());
    let axes = Axes { counted, most, values, title, unit, legend: Legend::Top };
    fs::write(figure, draw(&axes, &curves)?).map_err(at(figure))
}

/// The columns of a table; otherwise the line that is wrong, and how many there should be.
fn curves(text: &str) -> Result<Vec<Curve<'_>>, (usize, usize)> {
    let mut lines = (1..).zip(text.lines());
    let names: Vec<_> = lines.next().map_or("", |(_, line)| line).split(',').skip(1).collect();
    let predicted = |name: &str| {
        let program = name.strip_suffix(" measured")?;
        names.contains(&format!("{program} predicted").as_str()).then_some(())
    };
    let is_second = |name: &str| {
        predicted(name).is_some()
            || names.iter().any(|other| name.starts_with(&format!("{other} and ")))
    };
    let mut color = 0;
    let mut curves: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(nth, &label)| {
            let filled = is_second(label);
            color += usize::from(nth > 0 && !filled);
            let shown = if predicted(label).is_some() { "" } else { label };
            Curve { label: shown, color: COLORS[color % COLORS.len()], filled, points: Vec::new() }
        })
        .collect();
    for (number, line) in lines {
        let wrong = (number, names.len());
        let number = |cell: &str| cell.parse::<f64>().map_err(|_| wrong);
        let (nodes, times) = line.split_once(',').ok_or(wrong)?;
        let (nodes, times) = (number(nodes)?, times.split(',').collect::<Vec<_>>());
        if times.len() != names.len() {
            return Err(wrong);
        }
        for (curve, time) in curves.iter_mut().zip(times).filter(|(_, time)| !time.is_empty()) {
            curve.points.push((nodes, number(time)?));
        }
    }
    Ok(curves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_curves() {
        let curves = curves("nodes,a,a and b,c\n1,2,3,4\n2,5.5,6,7\n").unwrap();
        let labels: Vec<_> = curves.iter().map(|curve| (curve.label, curve.filled)).collect();
        assert_eq!(labels, [("a", false), ("a and b", true), ("c", false)]);
        assert_eq!(curves[0].points, [(1.0, 2.0), (2.0, 5.5)]);
        assert_eq!(curves[0].color, curves[1].color);
        assert_ne!(curves[0].color, curves[2].color);
    }

    #[test]
    fn what_is_measured_is_beside_what_is_predicted_and_may_have_gaps() {
        let curves = curves("GPUs,a predicted,a measured,b measured\n1,2,3,4\n2,1,,2\n").unwrap();
        let labels: Vec<_> = curves.iter().map(|curve| (curve.label, curve.filled)).collect();
        assert_eq!(labels, [("a predicted", false), ("", true), ("b measured", false)]);
        assert_eq!(curves[1].points, [(1.0, 3.0)]);
        assert_eq!(curves[0].color, curves[1].color);
    }

    #[test]
    fn legends_have_room_above_the_curves() {
        // Nine curves and a line more are half of a logarithmic axis.
        let range = Shown::Efficiency.range([0.125, 1.0], 9);
        assert!((range.start - 0.1).abs() < 1e-9 && (range.end - 10.0).abs() < 1e-9, "{range:?}");
        assert_eq!(Shown::Time.range([2.0, 2.0], 1), 1.0..8.0);
    }

    #[test]
    fn times_become_speed_ups() {
        assert_eq!(Shown::Time.value(6.0, 3.0), 3.0);
        assert_eq!(Shown::SpeedUp.value(6.0, 3.0), 2.0);
        assert_eq!(
            (Shown::Efficiency.value(3.0, 6.0), Shown::Efficiency.unit()),
            (0.5, Unit::Parts)
        );
    }

    #[test]
    fn lines_that_are_no_rows_are_named() {
        assert_eq!(curves("nodes,a\n1,2\n2,x\n").unwrap_err(), (3, 1));
        assert_eq!(curves("nodes,a\n1,2,3\n").unwrap_err(), (2, 1));
    }
}
