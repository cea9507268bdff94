//! Draws the results of the benchmark `scaling` as an SVG picture: the cost of a
//! task against the number of nodes.
//!
//! ```sh
//! scaling_figure target/bench-results.json docs/figures/scheduling-scaling.svg
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::Parser;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
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

const RED: RGBColor = RGBColor(0xb2, 0x18, 0x2b);
const BLUE: RGBColor = RGBColor(0x21, 0x66, 0xac);

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
    let mut picture = String::new();
    draw(&curves, &mut picture)?;
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

const SIZE: (u32, u32) = (800, 520);

fn draw(curves: &[(&Curve, Vec<Point>)], picture: &mut String) -> Result<(), Error> {
    let area = SVGBackend::with_string(picture, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let nodes: Vec<f64> = (0..=10).map(|doublings| f64::from(1 << doublings)).collect();
    let durations: Vec<f64> = (0..=6).map(|decades| 10f64.powi(decades)).collect();
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d(
            (0.9..1150.0).log_scale().with_key_points(nodes),
            (0.5..1_000_000.0).log_scale().with_key_points(durations),
        )?;
    let text = ("sans-serif", 16).into_font().color(&BLACK);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(16)
        .y_labels(16)
        .x_label_formatter(&|nodes| format!("{nodes}"))
        .y_label_formatter(&|micros| duration(*micros))
        .x_desc("nodes")
        .y_desc("scheduling time per task")
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .draw()?;
    for (curve, points) in curves {
        let line = curve.color.stroke_width(2);
        let disc = || Circle::new((0, 0), 4, curve.color.filled());
        // A disc without an inside is a ring.
        let inside = || Circle::new((0, 0), if curve.filled { 0 } else { 2 }, WHITE.filled());
        chart
            .draw_series(LineSeries::new(points.iter().copied(), line))?
            .label(curve.label)
            .legend(move |(x, y)| {
                let sample = PathElement::new([(-12, 0), (12, 0)], line);
                EmptyElement::at((x + 12, y)) + sample + disc() + inside()
            });
        let marks = points.iter().map(|&point| EmptyElement::at(point) + disc() + inside());
        chart.draw_series(marks)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(12)
        .legend_area_size(32)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .label_font(text)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Microseconds in a readable unit.
fn duration(micros: f64) -> String {
    match micros {
        1e6.. => format!("{} s", micros / 1e6),
        1e3.. => format!("{} ms", micros / 1e3),
        _ => format!("{micros} µs"),
    }
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
    fn the_picture_says_what_its_curves_and_axes_are() {
        let results = results();
        let curves: Vec<_> =
            CURVES.iter().map(|curve| (curve, points(&results, curve).unwrap())).collect();
        let mut picture = String::new();
        draw(&curves, &mut picture).unwrap();
        let words = CURVES.map(|curve| curve.label);
        for word in words.into_iter().chain(["nodes", "1024", "1 µs", "100 ms"]) {
            assert!(picture.contains(word), "{word}");
        }
    }
}
