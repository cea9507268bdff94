//! Draws what `compare.sh` of the bundle has measured as an SVG picture: how much each GPU
//! does of what one GPU does by hand, against the number of GPUs.
//!
//! ```sh
//! gpu_figure docs/benchmarks/h200-compare-four.csv docs/figures/gpu-scaling.svg
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

use celerity_benches::figure::{Axes, COLORS, Curve, Legend, Unit, draw};
use clap::Parser;
use plotters::drawing::DrawingAreaErrorKind;

/// Draws how programs scale with GPUs, ours (discs) and by hand (rings).
#[derive(Parser)]
struct Options {
    /// What `compare.sh` has written
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
    #[error("{} has no program by hand on one GPU with ours beside it", path.display())]
    Nothing { path: PathBuf },
    #[error("cannot draw: {0}")]
    Draw(#[from] DrawingAreaErrorKind<io::Error>),
}

const HEADER: &str = "program,variant,gpus,size,steps,seconds,rate,unit";
const BY_HAND: &str = "strict";
const OURS: &str = "ours-strict";

/// The highest rate, by number of GPUs.
type Rates = BTreeMap<u32, f64>;

/// A program as it was written by hand and as it is here.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pair<'a> {
    program: &'a str,
    by_hand: Rates,
    ours: Rates,
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
    let pairs = pairs(&text).map_err(|line| Error::Line { path: table.clone(), line })?;
    let pairs: Vec<_> = pairs.into_iter().filter(Pair::is_complete).collect();
    if pairs.is_empty() {
        return Err(Error::Nothing { path: table.clone() });
    }
    fs::write(figure, picture(&pairs)?).map_err(at(figure))
}

impl Pair<'_> {
    fn is_complete(&self) -> bool {
        self.by_hand.contains_key(&1) && !self.ours.is_empty()
    }

    /// GPUs, and what each does of what one does by hand.
    fn parts(&self, rates: &Rates) -> Vec<(f64, f64)> {
        let one = self.by_hand[&1];
        let part = |(&gpus, &rate): (&u32, &f64)| (gpus.into(), rate / f64::from(gpus) / one);
        rates.iter().map(part).collect()
    }
}

/// The programs in the order of the table; otherwise the number of the line that is wrong.
fn pairs(text: &str) -> Result<Vec<Pair<'_>>, usize> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| *line != HEADER) {
        let fields: Vec<_> = line.split(',').collect();
        let [program, variant, gpus, _, _, _, rate, _] = fields[..] else { return Err(number) };
        let gpus: u32 = gpus.parse().ok().filter(|&gpus| gpus > 0).ok_or(number)?;
        let rate: f64 = rate.parse().map_err(|_| number)?;
        let known = pairs.iter().position(|pair| pair.program == program);
        let nth = known.unwrap_or_else(|| {
            pairs.push(Pair { program, ..Pair::default() });
            pairs.len() - 1
        });
        let rates = match variant {
            BY_HAND => &mut pairs[nth].by_hand,
            OURS => &mut pairs[nth].ours,
            _ => continue,
        };
        let best = rates.entry(gpus).or_insert(rate);
        *best = best.max(rate);
    }
    Ok(pairs)
}

fn picture(pairs: &[Pair<'_>]) -> Result<String, Error> {
    let mut curves = Vec::new();
    for (nth, pair) in pairs.iter().enumerate() {
        let color = COLORS[nth % COLORS.len()];
        let (by_hand, ours) = (pair.parts(&pair.by_hand), pair.parts(&pair.ours));
        curves.push(Curve { label: "", color, filled: false, points: by_hand });
        curves.push(Curve { label: pair.program, color, filled: true, points: ours });
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.0).fold(2.0, f64::max) as u32;
    let least = points().map(|point| point.1).fold(1.0, f64::min);
    let title = "rate per GPU, of one GPU by hand (rings: by hand)";
    let (counted, most, unit) = ("GPUs", most.next_power_of_two(), Unit::Parts);
    let axes =
        Axes { counted, most, values: least * 0.9..1.3, title, unit, legend: Legend::Bottom };
    Ok(draw(&axes, &curves)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "program,variant,gpus,size,steps,seconds,rate,unit
copy_by_driver,strict,1,1,1,1,1e3,bytes/s
wave,strict,1,8,5,0.4,2e+11,cells/s
wave,strict,1,8,5,0.4,3e+11,cells/s
wave,strict,2,8,5,0.4,6e+11,cells/s
wave,ours-strict,2,8,5,0.4,3e11,cells/s
wave,ours-fast,2,8,5,0.4,9e11,cells/s
";

    #[test]
    fn the_fastest_runs_count_and_parts_are_of_one_gpu_by_hand() {
        let pairs = pairs(TABLE).unwrap();
        let complete: Vec<_> = pairs.iter().filter(|pair| pair.is_complete()).collect();
        let [wave] = complete[..] else { panic!("{complete:?}") };
        assert_eq!(wave.parts(&wave.by_hand), [(1.0, 1.0), (2.0, 1.0)]);
        assert_eq!(wave.parts(&wave.ours), [(2.0, 0.5)]);
    }

    #[test]
    fn the_picture_names_programs_once() {
        let pairs: Vec<_> = pairs(TABLE).unwrap().into_iter().filter(Pair::is_complete).collect();
        let picture = picture(&pairs).unwrap();
        let count = |text| picture.matches(text).count();
        assert_eq!((count("\nwave\n"), count("GPUs"), count("copy")), (1, 1, 0), "{picture}");
    }

    #[test]
    fn lines_that_are_wrong_are_numbered() {
        assert_eq!(pairs("wave,strict,1\n"), Err(1));
        assert_eq!(pairs(&format!("{TABLE}wave,strict,0,8,5,0.4,1e9,cells/s\n")), Err(8));
    }
}
