//! Draws what `roofline.sh` of the bundle has counted as an SVG picture, and prints it as a table: what kernels reach
//! of what the GPU's memory and its arithmetic can do.
//!
//! ```sh
//! roofline docs/benchmarks/h100-roofline.csv docs/figures/roofline.svg
//! ```

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

use clap::Parser;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

/// Draws rooflines with kernels below them, ours (discs) and by hand (rings), and prints the table.
#[derive(Parser)]
struct Options {
    /// What `roofline.sh` has written
    table: PathBuf,
    /// The picture
    figure: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}:{line}: expected {HEADER}", path.display())]
    Line { path: PathBuf, line: usize },
    #[error("{} has no rate of {what}: a row whose variant is {ROOF}", path.display())]
    NoRoof { path: PathBuf, what: &'static str },
    #[error("cannot draw: {0}")]
    Draw(#[from] DrawingAreaErrorKind<io::Error>),
}

const HEADER: &str = "program,variant,kernel,seconds,bytes,single,double,issued";
const ROOF: &str = "roof";

/// Kernels that take less of what those of a program take together are not shown.
const LEAST_PART: f64 = 0.1;

/// A launch of a kernel, or what the GPU does in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row<'a> {
    program: &'a str,
    variant: &'a str,
    kernel: &'a str,
    seconds: f64,
    bytes: f64,
    /// Operations in single precision, and in double.
    operations: [f64; 2],
    /// Of all slots for instructions, in percent.
    issued: f64,
}

/// What the GPU does per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Roofs {
    bytes: f64,
    operations: [f64; 2],
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

fn run(Options { table, figure }: &Options) -> Result<(), Error> {
    let at = |path: &PathBuf| {
        let path = path.clone();
        |source| Error::File { path, source }
    };
    let text = fs::read_to_string(table).map_err(at(table))?;
    let rows = rows(&text).map_err(|line| Error::Line { path: table.clone(), line })?;
    let roofs = Roofs::of(&rows).map_err(|what| Error::NoRoof { path: table.clone(), what })?;
    let shown = shown(&rows);
    print!("{}", roofs.table(&shown));
    fs::write(figure, picture(&roofs, &shown)?).map_err(at(figure))
}

/// All rows; otherwise the number of the line that is wrong.
fn rows(text: &str) -> Result<Vec<Row<'_>>, usize> {
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| *line != HEADER);
    let row = |(number, line): (usize, _)| Row::of(line).ok_or(number);
    numbered.map(row).collect()
}

/// Kernels that are worth a look.
fn shown<'a>(rows: &[Row<'a>]) -> Vec<Row<'a>> {
    let kernels = || rows.iter().copied().filter(|row| row.variant != ROOF);
    let all_of = |of: Row<'_>| -> f64 {
        let same = |row: &Row<'_>| (row.program, row.variant) == (of.program, of.variant);
        kernels().filter(same).map(|row| row.seconds).sum()
    };
    kernels().filter(|&row| row.seconds >= LEAST_PART * all_of(row)).collect()
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let fields: Vec<_> = line.split(',').collect();
        let [program, variant, kernel, ref numbers @ ..] = fields[..] else { return None };
        let numbers: Result<Vec<f64>, _> = numbers.iter().map(|number| number.parse()).collect();
        let [seconds, bytes, single, double, issued] = numbers.ok()?[..] else { return None };
        let operations = [single, double];
        (seconds > 0.0).then_some(Self {
            program,
            variant,
            kernel,
            seconds,
            bytes,
            operations,
            issued,
        })
    }

    fn is_ours(&self) -> bool {
        self.variant.starts_with("ours")
    }

    fn all_operations(&self) -> f64 {
        self.operations.iter().sum()
    }

    /// Operations for each byte.
    fn intensity(&self) -> f64 {
        self.all_operations() / self.bytes.max(1.0)
    }
}

impl Roofs {
    /// The highest of each; otherwise what there is no rate of.
    fn of(rows: &[Row<'_>]) -> Result<Self, &'static str> {
        let most = |what, number: fn(&Row<'_>) -> f64| {
            let roofs = rows.iter().filter(|row| row.variant == ROOF);
            let most = roofs.map(|row| number(row) / row.seconds).fold(0.0, f64::max);
            if most > 0.0 { Ok(most) } else { Err(what) }
        };
        Ok(Self {
            bytes: most("copied bytes", |row| row.bytes)?,
            operations: [
                most("operations in single precision", |row| row.operations[0])?,
                most("operations in double precision", |row| row.operations[1])?,
            ],
        })
    }

    /// The parts of a copy's rate, and of the rate of operations, that a kernel reaches.
    fn reached(&self, row: &Row<'_>) -> [f64; 2] {
        let [single, double] = [0, 1].map(|at| row.operations[at] / self.operations[at]);
        [row.bytes / self.bytes, single + double].map(|seconds| seconds / row.seconds)
    }

    fn table(&self, rows: &[Row<'_>]) -> String {
        let mut text = format!(
            "A copy moves {:.0} GB/s; {:.1} · 10¹² operations per second in single precision, {:.1} in double.\n\n\
             | program | variant | kernel | µs | operations per byte | of a copy's rate | of operations | of instructions |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            self.bytes / 1e9,
            self.operations[0] / 1e12,
            self.operations[1] / 1e12,
        );
        for row in rows {
            let Row { program, variant, kernel, seconds, issued, .. } = *row;
            let ([memory, arithmetic], intensity) = (self.reached(row), row.intensity());
            let micros = seconds * 1e6;
            text += &format!(
                "| {program} | {variant} | {kernel} | {micros:.0} | {intensity:.2} | {memory:.2} | {arithmetic:.2} | {:.2} |\n",
                issued / 100.0,
            );
        }
        text
    }
}

const SIZE: (u32, u32) = (800, 560);

/// Both axes are logarithmic: operations per byte, and per second.
fn picture(roofs: &Roofs, rows: &[Row<'_>]) -> Result<String, Error> {
    let mut picture = String::new();
    let area = SVGBackend::with_string(&mut picture, SIZE).into_drawing_area();
    draw(&area, roofs, rows)?;
    drop(area);
    Ok(picture)
}

/// The ends of the horizontal axis, which all points are moved between.
const INTENSITIES: Range<f64> = 0.05..5000.0;

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    roofs: &Roofs,
    rows: &[Row<'_>],
) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    area.fill(&WHITE)?;
    let within = |intensity: f64| intensity.clamp(INTENSITIES.start, INTENSITIES.end * 0.99);
    let highest = roofs.operations[0].max(roofs.operations[1]);
    let rates = highest / 5000.0..highest * 2.0;
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d(INTENSITIES.log_scale(), rates.log_scale())?;
    let text = ("sans-serif", 16).into_font().color(&BLACK);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_label_formatter(&|intensity| format!("{intensity}"))
        .y_label_formatter(&|rate| format!("{}", rate / 1e9))
        .x_desc("operations per byte of memory")
        .y_desc("10⁹ operations per second")
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .draw()?;
    for (roof, name) in roofs.operations.into_iter().zip(["single precision", "double precision"]) {
        // From where the slope of memory meets it.
        let line = [INTENSITIES.start, roof / roofs.bytes, INTENSITIES.end]
            .map(|x| (x, roof.min(x * roofs.bytes)));
        chart.draw_series(LineSeries::new(line, BLACK.stroke_width(2)))?;
        let place = (INTENSITIES.end / 20.0, roof * 1.1);
        chart.draw_series([Text::new(name, place, text.clone())])?;
    }
    let mut programs: Vec<_> = rows.iter().map(|row| row.program).collect();
    programs.dedup();
    for (nth, program) in programs.iter().enumerate() {
        let color = HSLColor(nth as f64 / programs.len() as f64, 0.8, 0.4);
        let disc = move || Circle::new((0, 0), 5, color.filled());
        // A disc without an inside is a ring.
        let inside = |filled| Circle::new((0, 0), if filled { 0 } else { 3 }, WHITE.filled());
        let marks = rows.iter().filter(|row| row.program == *program).map(|row| {
            let place = (within(row.intensity()), row.all_operations() / row.seconds);
            EmptyElement::at(place) + disc() + inside(row.is_ours())
        });
        let drawn = chart.draw_series(marks)?.label(*program);
        drawn.legend(move |(x, y)| EmptyElement::at((x + 8, y)) + disc());
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .margin(12)
        .legend_area_size(24)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .label_font(text)
        .draw()?;
    area.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "program,variant,kernel,seconds,bytes,single,double,issued
copy_by_driver,roof,,1,2000,0,0,0
copy_by_kernel,roof,,2,6000,0,0,0
peak_fused_single,roof,,1,0,80000,0,0
peak_fused_double,roof,,1,0,0,40000,0
wave,ours-strict,wave_step,0.5,1200,600,0,20.0
wave,ours-strict,wave_fill,0.01,1,0,0,1.0
wave,strict,step,0.5,1500,600,0,20.0
pairs,ours-fast,kick,2,0,40000,40000,93.0
";

    #[test]
    fn rows_are_measured_by_the_highest_roofs() {
        let rows = rows(TABLE).unwrap();
        let roofs = Roofs::of(&rows).unwrap();
        assert_eq!(roofs, Roofs { bytes: 3000.0, operations: [80000.0, 40000.0] });
        let shown = shown(&rows);
        let names: Vec<_> = shown.iter().map(|row| row.kernel).collect();
        assert_eq!(names, ["wave_step", "step", "kick"]);
        assert_eq!(roofs.reached(&shown[0]), [0.8, 0.015]);
        // Of both precisions, each for a part of the time.
        assert_eq!(roofs.reached(&shown[2]), [0.0, 0.75]);
        assert!(
            roofs.table(&shown).ends_with("| kick | 2000000 | 80000.00 | 0.00 | 0.75 | 0.93 |\n")
        );
    }

    #[test]
    fn the_picture_names_roofs_and_programs_once() {
        let rows = rows(TABLE).unwrap();
        let picture = picture(&Roofs::of(&rows).unwrap(), &shown(&rows)).unwrap();
        let count = |text| picture.matches(text).count();
        assert_eq!((count("\nwave\n"), count("single"), count("double")), (1, 1, 1), "{picture}");
    }

    #[test]
    fn what_is_wrong_or_missing_is_named() {
        assert_eq!(rows("wave,strict,step,1,2,3,4\n"), Err(1));
        assert_eq!(rows(&format!("{TABLE}wave,strict,step,0,1,1,1,1\n")), Err(10));
        let without: String = TABLE.lines().filter(|line| !line.contains("double,roof")).collect();
        assert!(rows(&without).is_err());
        let rows = rows("copy,roof,,1,2,3,0,0\n").unwrap();
        assert_eq!(Roofs::of(&rows), Err("operations in double precision"));
    }
}
