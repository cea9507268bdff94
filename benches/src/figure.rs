//! Curves over a number of nodes or GPUs, as SVG pictures. Knows nothing of what they stand for.

use std::io;
use std::ops::Range;

use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

pub use plotters::style::RGBColor;

/// A line with a mark at each point.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// What it shows; without one, the legend does not name it.
    pub label: &'a str,
    /// Its colour.
    pub color: RGBColor,
    /// Whether points are drawn as discs, not as rings.
    pub filled: bool,
    /// What stands on the two axes, in order.
    pub points: Vec<(f64, f64)>,
}

/// Both axes are logarithmic.
#[derive(Clone, Debug)]
pub struct Axes<'a> {
    /// What is counted on the horizontal axis.
    pub counted: &'a str,
    /// The most of these, a power of two.
    pub most: u32,
    /// The ends of the vertical axis.
    pub values: Range<f64>,
    /// What the vertical axis shows.
    pub title: &'a str,
    /// What its values are.
    pub unit: Unit,
    /// Where the legend is in the left half.
    pub legend: Legend,
}

/// Where a legend has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legend {
    /// Above curves that rise.
    Top,
    /// Below curves that fall.
    Bottom,
}

/// What the values of a vertical axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times.
    Micros,
    /// Parts of something, around 1.
    Parts,
    /// How many times as much, from 1 on.
    Times,
}

impl Unit {
    /// Where an axis with these ends is marked.
    fn marks(self, ends: &Range<f64>) -> Vec<f64> {
        let mut marks: Vec<f64> = match self {
            Self::Micros => (-1..=6).map(|decades| 10f64.powi(decades)).collect(),
            Self::Parts => vec![0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0],
            Self::Times => (0..=10).map(|doublings| f64::from(1 << doublings)).collect(),
        };
        // Others would be drawn beside the axis.
        marks.retain(|mark| ends.contains(mark));
        marks
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Micros => duration(value),
            Self::Parts if value < 0.1 => format!("{value:.2}"),
            Self::Parts => format!("{value:.1}"),
            Self::Times => format!("{value}"),
        }
    }
}

/// Colours that go together.
pub const COLORS: [RGBColor; 12] = [
    RGBColor(0xb2, 0x18, 0x2b),
    RGBColor(0x21, 0x66, 0xac),
    RGBColor(0x1b, 0x78, 0x37),
    RGBColor(0x76, 0x2a, 0x83),
    RGBColor(0xe0, 0x82, 0x14),
    RGBColor(0x01, 0x85, 0x71),
    RGBColor(0x66, 0x66, 0x66),
    RGBColor(0xd6, 0x60, 0xa4),
    RGBColor(0x8c, 0x51, 0x0a),
    RGBColor(0x67, 0xa9, 0xcf),
    RGBColor(0x92, 0xb3, 0x2a),
    RGBColor(0x00, 0x00, 0x00),
];

const SIZE: (u32, u32) = (800, 520);

/// The picture, as text.
///
/// # Errors
/// If the drawing library refuses something, such as an empty range.
pub fn draw(
    axes: &Axes<'_>,
    curves: &[Curve<'_>],
) -> Result<String, DrawingAreaErrorKind<io::Error>> {
    let mut picture = String::new();
    draw_on(&SVGBackend::with_string(&mut picture, SIZE).into_drawing_area(), axes, curves)?;
    Ok(picture)
}

fn draw_on(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    axes: &Axes<'_>,
    curves: &[Curve<'_>],
) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    area.fill(&WHITE)?;
    let Axes { counted, most, ref values, title, unit, legend } = *axes;
    let doublings = 0..=most.ilog2();
    let counts: Vec<f64> = doublings.map(|doublings| f64::from(1 << doublings)).collect();
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d(
        (0.9..1.12 * f64::from(most)).log_scale().with_key_points(counts),
        values.clone().log_scale().with_key_points(unit.marks(values)),
    )?;
    let text = ("sans-serif", 16).into_font().color(&BLACK);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(16)
        .y_labels(16)
        .x_label_formatter(&|count| format!("{count}"))
        .y_label_formatter(&|value| unit.text(*value))
        .x_desc(counted)
        .y_desc(title)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .draw()?;
    for curve in curves {
        let line = curve.color.stroke_width(2);
        let disc = || Circle::new((0, 0), 4, curve.color.filled());
        // A disc without an inside is a ring.
        let inside = || Circle::new((0, 0), if curve.filled { 0 } else { 2 }, WHITE.filled());
        let drawn = chart.draw_series(LineSeries::new(curve.points.iter().copied(), line))?;
        if !curve.label.is_empty() {
            drawn.label(curve.label).legend(move |(x, y)| {
                let sample = PathElement::new([(-12, 0), (12, 0)], line);
                EmptyElement::at((x + 12, y)) + sample + disc() + inside()
            });
        }
        let marks = curve.points.iter().map(|&point| EmptyElement::at(point) + disc() + inside());
        chart.draw_series(marks)?;
    }
    chart
        .configure_series_labels()
        .position(match legend {
            Legend::Top => SeriesLabelPosition::UpperLeft,
            Legend::Bottom => SeriesLabelPosition::LowerLeft,
        })
        .margin(12)
        .legend_area_size(32)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .label_font(text)
        .draw()?;
    area.present()
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

    #[test]
    fn the_picture_says_what_its_curves_and_axes_are() {
        let curve = |label, color, filled| Curve {
            label,
            color,
            filled,
            points: vec![(1.0, 3.0), (1024.0, 2e5)],
        };
        let curves = [curve("one", COLORS[0], true), curve("other", COLORS[1], false)];
        let (counted, values, title) = ("nodes", 0.5..1e6, "time");
        let (unit, legend) = (Unit::Micros, Legend::Top);
        let axes = Axes { counted, most: 1024, values, title, unit, legend };
        let picture = draw(&axes, &curves).unwrap();
        for word in ["one", "other", "time", "nodes", "1024", "1 µs", "100 ms"] {
            assert!(picture.contains(word), "{word}");
        }
        let axes = Axes { counted: "GPUs", most: 4, values: 0.2..2.0, unit: Unit::Parts, ..axes };
        let picture = draw(&axes, &curves[..1]).unwrap();
        assert!(["GPUs", "0.5", "1.0"].iter().all(|word| picture.contains(word)), "{picture}");
        assert!(!picture.contains("µs"), "{picture}");
        let axes = Axes { most: 8, values: 0.5..200.0, unit: Unit::Times, ..axes };
        let picture = draw(&axes, &curves[..1]).unwrap();
        assert!(["8", "64", "128"].iter().all(|word| picture.contains(word)), "{picture}");
    }
}
