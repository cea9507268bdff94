//! Draws a table of times per number of nodes, or of something else, as an SVG picture: a column is a curve. Of
//! two columns named `x` and `x and y` the former has rings, the latter discs.
//!
//! ```sh
//! table_figure docs/figures/epochs.csv docs/figures/epochs.svg --title "time per graph"
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use celerity_benches::figure::{Axes, COLORS, Curve, Unit, draw};
use clap::Parser;
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
    let Options { table, figure, title, counted } = options;
    let at = |path: &Path| {
        let path = path.to_owned();
        |source| Error::File { path, source }
    };
    let text = fs::read_to_string(table).map_err(at(table))?;
    let curves = curves(&text).map_err(|(line, curves)| {
        let path = table.clone();
        Error::Table { path, line, curves }
    })?;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let nodes = points().map(|point| point.0).fold(1.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.1).fold(0.0, f64::max);
    // Room for the legend above the curves.
    let values = least / 2.0..most * (most / least).powf(0.1 * curves.len() as f64).max(4.0);
    let (most, unit) = (nodes as u32, Unit::Micros);
    let axes = Axes { counted, most, values, title, unit };
    fs::write(figure, draw(&axes, &curves)?).map_err(at(figure))
}

/// The columns of a table; otherwise the line that is wrong, and how many there should be.
fn curves(text: &str) -> Result<Vec<Curve<'_>>, (usize, usize)> {
    let mut lines = (1..).zip(text.lines());
    let names: Vec<_> = lines.next().map_or("", |(_, line)| line).split(',').skip(1).collect();
    let is_second =
        |name: &str| names.iter().any(|other| name.starts_with(&format!("{other} and ")));
    let mut color = 0;
    let mut curves: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(nth, &label)| {
            let filled = is_second(label);
            color += usize::from(nth > 0 && !filled);
            Curve { label, color: COLORS[color % COLORS.len()], filled, points: Vec::new() }
        })
        .collect();
    for (number, line) in lines {
        let numbers: Result<Vec<f64>, _> = line.split(',').map(str::parse).collect();
        let wrong = (number, names.len());
        let numbers = numbers.map_err(|_| wrong)?;
        let (&nodes, times) = numbers.split_first().ok_or(wrong)?;
        if times.len() != names.len() {
            return Err(wrong);
        }
        curves.iter_mut().zip(times).for_each(|(curve, &time)| curve.points.push((nodes, time)));
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
    fn lines_that_are_no_rows_are_named() {
        assert_eq!(curves("nodes,a\n1,2\n2,x\n").unwrap_err(), (3, 1));
        assert_eq!(curves("nodes,a\n1,2,3\n").unwrap_err(), (2, 1));
    }
}
