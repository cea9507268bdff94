//! Draws the results of the benchmark `scaling` as an SVG picture: the cost of a
//! task against the number of nodes.
//!
//! ```sh
//! scaling_figure target/bench-results.json docs/figures/scheduling-scaling.svg
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use celerity_benches::figure::{self, Axes, COLORS, Legend, RGBColor, Unit};
use clap::Parser;
use plotters::drawing::DrawingAreaErrorKind;
use serde_json::Value;

/// Draws what scheduling costs on 1 to 1024 nodes.
#[derive(Parser)]
struct Options {
    /// What `cargo xtask bench scaling` has written
    results: PathBuf,
    /// The picture
    figure: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is not what `cargo xtask bench scaling` writes: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("the results have no case of {group} / {function}: run `cargo xtask bench scaling`")]
    NoCase { group: &'static str, function: &'static str },
    #[error("cannot draw: {0}")]
    Draw(#[from] DrawingAreaErrorKind<io::Error>),
}

/// A curve, and the criterion group and function that it comes from.
struct Curve {
    label: &'static str,
    group: &'static str,
    function: &'static str,
    color: RGBColor,
    /// Whether points are drawn as discs, not as rings.
    filled: bool,
}

const RED: RGBColor = COLORS[0];
const BLUE: RGBColor = COLORS[1];

const CURVES: [Curve; 4] = [
    Curve {
        label: "all-gather, central: commands of all nodes",
        group: "scaling/all-gather",
        function: "central",
        color: RED,
        filled: false,
    },
    Curve {
        label: "all-gather, one node: its commands and instructions",
        group: "scaling/all-gather",
        function: "one node",
        color: RED,
        filled: true,
    },
    Curve {
        label: "stencil, central: commands of all nodes",
        group: "scaling/stencil",
        function: "central",
        color: BLUE,
        filled: false,
    },
    Curve {
        label: "stencil, one node: its commands and instructions",
        group: "scaling/stencil",
        function: "one node",
        color: BLUE,
        filled: true,
    },
];

/// Nodes and microseconds.
type Point = (f64, f64);

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
    let results = read(&options.results)?;
    let mut curves = Vec::new();
    for curve in &CURVES {
        curves.push((curve, points(&results, curve)?));
    }
    let picture = draw(curves)?;
    let path = &options.figure;
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    written
        .and_then(|()| fs::write(path, picture))
        .map_err(|source| Error::File { path: path.clone(), source })
}

fn read(path: &Path) -> Result<Value, Error> {
    let text = fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| Error::Json { path: path.to_owned(), source })
}

/// The cases named `function/nodes` of the curve's group, by number of nodes.
fn points(results: &Value, curve: &Curve) -> Result<Vec<Point>, Error> {
    let point = |case: &Value| {
        let (function, nodes) = case["function"].as_str()?.rsplit_once('/')?;
        let wanted = case["group"] == curve.group && function == curve.function;
        let micros = case["median_ns"].as_f64()? / 1000.0;
        wanted.then_some((nodes.parse().ok()?, micros))
    };
    let cases = results["cases"].as_array().into_iter().flatten();
    let mut points: Vec<Point> = cases.filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.is_empty() {
        return Err(Error::NoCase { group: curve.group, function: curve.function });
    }
    Ok(points)
}

fn draw(curves: Vec<(&Curve, Vec<Point>)>) -> Result<String, Error> {
    let curve = |(curve, points): (&Curve, _)| {
        let Curve { label, color, filled, .. } = *curve;
        figure::Curve { label, color, filled, points }
    };
    let curves: Vec<_> = curves.into_iter().map(curve).collect();
    let axes = Axes {
        counted: "nodes",
        most: 1024,
        values: 0.5..1e6,
        title: "scheduling time per task",
        unit: Unit::Micros,
        legend: Legend::Top,
    };
    Ok(figure::draw(&axes, &curves)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Value {
        let case = |curve: &Curve, nodes: u32| {
            let function = format!("{}/{nodes}", curve.function);
            json!({ "group": curve.group, "function": function, "median_ns": nodes * 1500 })
        };
        let of_curve = |curve| [16, 2].map(|nodes| case(curve, nodes));
        json!({ "cases": CURVES.iter().flat_map(of_curve).collect::<Vec<_>>() })
    }

    #[test]
    fn points_are_in_order_and_in_microseconds() {
        for curve in &CURVES {
            assert_eq!(points(&results(), curve).unwrap(), [(2.0, 3.0), (16.0, 24.0)]);
        }
    }

    #[test]
    fn a_curve_without_cases_is_named() {
        let error = points(&json!({ "cases": [] }), &CURVES[3]).unwrap_err();
        assert!(error.to_string().contains("scaling/stencil / one node:"), "{error}");
    }

    #[test]
    fn the_picture_names_all_curves() {
        let results = results();
        let curves: Vec<_> =
            CURVES.iter().map(|curve| (curve, points(&results, curve).unwrap())).collect();
        let picture = draw(curves).unwrap();
        assert!(CURVES.iter().all(|curve| picture.contains(curve.label)), "{picture}");
    }
}
