//! `cargo xtask timeline`: a trace as a picture, for those who have no viewer at hand.
//!
//! Owns the command; how traces are read is in `trace`, how they are drawn in `picture`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::{read, write};

mod picture;
mod trace;

pub(crate) use picture::escaped;
pub(crate) use trace::{TimeSlice, Trace};

/// What to draw.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What `CELERITY_TRACE` has written
    trace: PathBuf,
    /// Where the picture begins, in µs since the run began (default: with the first event)
    #[arg(long, value_name = "MICROS")]
    from: Option<f64>,
    /// Where it ends (default: with the last event)
    #[arg(long, value_name = "MICROS")]
    to: Option<f64>,
    /// The picture
    #[arg(short, long, value_name = "FILE.svg", default_value = "timeline.svg")]
    output: PathBuf,
}

/// Draws what happened between two times, a row per track that has anything then.
///
/// # Errors
/// If a file cannot be read or written, is no trace, or nothing happened then.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let Options { trace: path, from, to, output } = options;
    let picture = draw(path, &read(path)?, *from, *to)?;
    write(output, &picture)?;
    println!("{}", output.display());
    Ok(true)
}

/// A trace.
///
/// # Errors
/// If the file cannot be read, or is no trace.
pub(crate) fn load(path: &Path) -> Result<Trace, Error> {
    parse(path, &read(path)?)
}

/// A picture of a part of a trace, in µs since the run began.
pub(crate) fn picture_of(trace: &Trace, window: &Range<f64>) -> String {
    picture::draw(&trace.within(window), window)
}

fn draw(path: &Path, text: &str, from: Option<f64>, to: Option<f64>) -> Result<String, Error> {
    let trace = parse(path, text)?;
    let all = trace.extent().unwrap_or_default();
    let window = from.unwrap_or(all.start)..to.unwrap_or(all.end);
    if trace.within(&window).tracks.is_empty() {
        return Err(Error::NothingThen { path: path.to_owned(), asked: window, trace: all });
    }
    Ok(picture_of(&trace, &window))
}

/// A trace that has something to show.
fn parse(path: &Path, text: &str) -> Result<Trace, Error> {
    let malformed = |what| Error::Malformed { path: path.to_owned(), what };
    let trace = Trace::parse(text).map_err(malformed)?;
    let nothing = || malformed("it has no event with a length".to_owned());
    trace.extent().is_some().then_some(trace).ok_or_else(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"[
{"name":"celerity_clock","ph":"M","pid":0,"tid":0,"args":{"unix_ns":"1"}},
{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"N0"}},
{"name":"thread_name","ph":"M","pid":0,"tid":102,"args":{"name":"D0 copies"}},
{"name":"thread_name","ph":"M","pid":0,"tid":100,"args":{"name":"D0 kernels 1"}},
{"ts":10.000,"ph":"X","dur":20.000,"pid":0,"tid":100,"name":"step <1>","cat":"kernel","args":{}},
{"ts":25.000,"ph":"C","pid":0,"name":"held back","args":{"tasks":2}},
{"ts":30.000,"ph":"X","dur":5.500,"pid":0,"tid":102,"name":"copy u","cat":"copy","args":{}},
{"ts":40.000,"ph":"X","dur":20.000,"pid":0,"tid":100,"name":"late","cat":"kernel","args":{}},
{"ts":41.000,"ph":"X","du"#;

    fn drawn(from: Option<f64>, to: Option<f64>) -> Result<String, Error> {
        draw(Path::new("trace.json"), TRACE, from, to)
    }

    #[test]
    fn a_trace_whose_end_is_missing_is_drawn_with_its_tracks_in_order() {
        let picture = drawn(None, None).unwrap();
        let at = |text: &str| picture.find(text).unwrap_or_else(|| panic!("{text}: {picture}"));
        assert!(at(">D0 kernels 1<") < at(">D0 copies<"), "{picture}");
        let slices = ["step &lt;1&gt;, 20 µs", "copy u, 5.5 µs", "late, 20 µs"];
        assert!(slices.iter().all(|slice| at(slice) > 0));
        assert!([">kernel<", ">copy<", ">50 µs<"].iter().all(|text| at(text) > 0), "{picture}");
        assert!(!picture.contains(">send<"), "the legend has what there is");
    }

    #[test]
    fn only_what_happens_in_the_window_is_drawn() {
        let picture = drawn(Some(28.0), Some(38.0)).unwrap();
        assert!(
            picture.contains("step &lt;1&gt;, 20 µs") && picture.contains("copy u"),
            "{picture}"
        );
        assert!(!picture.contains("late"), "{picture}");
        let error = drawn(Some(35.5), Some(40.0)).unwrap_err().to_string();
        assert!(error.contains("the trace has 10 to 60 µs"), "{error}");
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let text = TRACE.replace("25.000", "x");
        let error = draw(Path::new("trace.json"), &text, None, None).unwrap_err();
        assert!(error.to_string().contains("line 7"), "{error}");
        let error = draw(Path::new("trace.json"), "[\n]\n", None, None).unwrap_err();
        assert!(error.to_string().contains("no event"), "{error}");
    }
}
