//! Tracks as rows of bars under a time axis, as SVG. Knows no file.

use std::fmt::Write;
use std::ops::Range;

use super::trace::{TimeSlice, Trace, Track};

/// A kind of slice: what it is called, its colour, and the categories of traces.
struct Kind {
    label: &'static str,
    color: &'static str,
    categories: &'static [&'static str],
}

/// Colours that can be told apart by all (Okabe and Ito).
const KINDS: [Kind; 9] = [
    Kind { label: "kernel", color: "#0072b2", categories: &["kernel"] },
    Kind { label: "host task", color: "#56b4e9", categories: &["host"] },
    Kind { label: "copy", color: "#e69f00", categories: &["copy"] },
    Kind { label: "send", color: "#009e73", categories: &["send"] },
    Kind { label: "receive", color: "#cc79a7", categories: &["receive", "payload"] },
    Kind { label: "memory", color: "#999999", categories: &["memory"] },
    Kind { label: "scheduling", color: "#d55e00", categories: &["scheduler"] },
    Kind { label: "program", color: "#f0e442", categories: &["program"] },
    Kind { label: "horizon, epoch, barrier", color: "#000000", categories: &["synchronization"] },
];
const OTHER: Kind = Kind { label: "other", color: "#dddddd", categories: &[] };

const WIDTH: f64 = 1200.0;
/// Room for the names of tracks.
const LABELS: f64 = 210.0;
const MARGIN: f64 = 12.0;
/// Room for half of the last time.
const RIGHT: f64 = 32.0;
const ROW: f64 = 24.0;
const BAR: f64 = 18.0;
/// Above the rows: the axis.
const AXIS: f64 = 34.0;
/// Below them: the legend.
const LEGEND: f64 = 30.0;
/// A letter's width, about.
const LETTER: f64 = 6.6;
/// What is closer to what is drawn already, and of its kind, is part of it.
const MERGED: f64 = 0.2;

/// A picture of `trace`, of which all lies in `window` (microseconds).
pub(super) fn draw(trace: &Trace, window: &Range<f64>) -> String {
    let several = trace.tracks.iter().any(|track| track.process != trace.tracks[0].process);
    let rows = trace.tracks.len() as f64 * ROW;
    let height = AXIS + rows + LEGEND + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let scale = Scale { window, pixels: (WIDTH - LABELS - RIGHT) / (window.end - window.start) };
    svg += &axis(&scale, rows);
    for (nth, track) in trace.tracks.iter().enumerate() {
        svg += &row(track, several, MARGIN + AXIS + nth as f64 * ROW, &scale);
    }
    svg += &legend(trace, height - MARGIN);
    svg + "</svg>\n"
}

/// From microseconds to pixels.
struct Scale<'a> {
    window: &'a Range<f64>,
    /// Per microsecond.
    pixels: f64,
}

impl Scale<'_> {
    fn x(&self, micros: f64) -> f64 {
        LABELS + (micros - self.window.start) * self.pixels
    }
}

/// Lines at round times since the window began, and what they are.
fn axis(scale: &Scale<'_>, rows: f64) -> String {
    let length = scale.window.end - scale.window.start;
    let step = round_step(length / 8.0);
    let (top, bottom) = (MARGIN + AXIS - 6.0, MARGIN + AXIS + rows);
    let mut svg = String::new();
    let ticks = (0..).map(|tick| f64::from(tick) * step).take_while(|&time| time <= length);
    for time in ticks {
        let x = scale.x(scale.window.start + time);
        let label = duration(time);
        text(&mut svg, x, top - 4.0, "middle", &label);
        line(
            &mut svg,
            format_args!(
                "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#cccccc\"/>"
            ),
        );
    }
    let since = format!("{} + …", duration(scale.window.start));
    text(&mut svg, MARGIN, top - 4.0, "start", &since);
    svg
}

/// A track; `with_process` if there is more than one process to tell apart.
fn row(track: &Track, with_process: bool, top: f64, scale: &Scale<'_>) -> String {
    let name = match with_process {
        true => format!("{} {}", track.process, track.name),
        false => track.name.clone(),
    };
    let mut svg = String::new();
    text(&mut svg, MARGIN, top + BAR - 5.0, "start", &fitting(&name, LABELS - MARGIN));
    let mut drawn: Option<(f64, &str)> = None;
    for slice in &track.slices {
        let color = kind_of(slice).color;
        let (left, right) = (scale.x(slice.time.start), scale.x(slice.time.end));
        if drawn.is_some_and(|(end, last)| last == color && right < end + MERGED) {
            continue;
        }
        drawn = Some((right, color));
        bar(&mut svg, slice, color, top, left..right);
    }
    svg
}

fn bar(svg: &mut String, slice: &TimeSlice, color: &str, top: f64, x: Range<f64>) {
    let width = (x.end - x.start).max(0.5);
    let title = format!("{}, {}", slice.name, duration(slice.length));
    line(
        svg,
        format_args!(
            "<rect x=\"{:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{color}\">\
         <title>{}</title></rect>",
            x.start,
            escaped(&title)
        ),
    );
    if slice.name.chars().count() as f64 * LETTER < width - 4.0 {
        let (middle, base) = ((x.start + x.end) / 2.0, top + BAR - 5.0);
        let ink = if is_dark(color) { "#ffffff" } else { "#000000" };
        line(
            svg,
            format_args!(
                "<text x=\"{middle:.1}\" y=\"{base}\" text-anchor=\"middle\" fill=\"{ink}\" \
             pointer-events=\"none\">{}</text>",
                escaped(&slice.name)
            ),
        );
    }
}

/// The kinds that there are.
fn legend(trace: &Trace, base: f64) -> String {
    let slices = || trace.tracks.iter().flat_map(|track| &track.slices);
    let there = |kind: &&Kind| slices().any(|slice| kind_of(slice).label == kind.label);
    let (mut svg, mut x) = (String::new(), LABELS);
    for kind in KINDS.iter().chain([&OTHER]).filter(there) {
        let top = base - 11.0;
        line(
            &mut svg,
            format_args!(
                "<rect x=\"{x:.1}\" y=\"{top}\" width=\"14\" height=\"14\" fill=\"{}\"/>",
                kind.color
            ),
        );
        text(&mut svg, x + 20.0, base, "start", kind.label);
        x += 44.0 + kind.label.chars().count() as f64 * LETTER;
    }
    svg
}

fn kind_of(slice: &TimeSlice) -> &'static Kind {
    let known = KINDS.iter().find(|kind| kind.categories.contains(&&*slice.category));
    known.unwrap_or(&OTHER)
}

/// Whether white letters can be read on it: the mean of red, green and blue is low.
fn is_dark(color: &str) -> bool {
    let parts = [1..3, 3..5, 5..7].map(|part| u32::from_str_radix(&color[part], 16).unwrap_or(0));
    parts.iter().sum::<u32>() < 330
}

/// The least of 1, 2 and 5 times a power of ten that is not below.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|step| step * decade)
        .into_iter()
        .find(|&step| step >= least * 0.999)
        .unwrap_or(10.0 * decade)
}

/// Microseconds in a readable unit, to a thousandth of it.
fn duration(micros: f64) -> String {
    let (value, unit) = match micros {
        1e6.. => (micros / 1e6, "s"),
        1e3.. => (micros / 1e3, "ms"),
        _ => (micros, "µs"),
    };
    let digits = format!("{value:.3}");
    format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// As much of a text as fits into so many pixels.
fn fitting(text: &str, pixels: f64) -> String {
    let most = (pixels / LETTER) as usize;
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escaped(text);
    line(svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"));
}

/// A text as it stands in a picture.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn line(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(svg, "{arguments}").expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_durations_are_round() {
        let steps = [0.9, 1.1, 3.0, 70.0].map(round_step);
        assert_eq!(steps, [1.0, 2.0, 5.0, 100.0]);
        let durations = [0.0, 12.5, 1500.0, 2e6].map(duration);
        assert_eq!(durations, ["0 µs", "12.5 µs", "1.5 ms", "2 s"]);
    }

    #[test]
    fn names_that_are_too_long_are_cut() {
        assert_eq!(fitting("scheduler", 40.0), "sched…");
        assert_eq!(fitting("D0", 40.0), "D0");
    }
}
