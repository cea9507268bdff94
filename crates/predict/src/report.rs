//! Predictions as a table: for people, and as comma-separated values for programs. Computes only ratios.

use std::fmt::Write as _;

use crate::cluster::Nanos;
use crate::prediction::Prediction;
use crate::span::Limit;

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRow {
    /// What is predicted; without its spans.
    pub prediction: Prediction,
    /// How long the program took on so many nodes, in ns, if it was run.
    pub measured: Option<Nanos>,
}

impl ReportRow {
    /// How much longer the prediction is than the measured run, in percent: negative if it is shorter.
    #[must_use]
    pub fn error_percent(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| *measured > 0)? as f64;
        Some(100.0 * (self.prediction.makespan as f64 - measured) / measured)
    }
}

/// The table, with what each number of nodes is beside `single`, the makespan of one node in ns.
#[must_use]
pub fn table(rows: &[ReportRow], single: Nanos) -> String {
    let is_measured = rows.iter().any(|row| row.measured.is_some());
    let measured = if is_measured { "  measured [ms]  difference" } else { "" };
    let mut text = format!(
        "nodes  devices  makespan [ms]{measured}  per step [µs]  speed-up  efficiency  devices busy  \
         limit       way back from the end [%]\n"
    );
    for row in rows {
        let Prediction { nodes, devices, makespan, busy_percent, .. } = &row.prediction;
        let measured = if is_measured { comparison(row) } else { String::new() };
        let speed_up = ratio(single, *makespan);
        let step = row.prediction.repeated.as_ref();
        let step = step.map_or("-".to_owned(), |step| format!("{:.2}", micros(step.period)));
        let _ = writeln!(
            text,
            "{nodes:>5}  {devices:>7}  {:>13.3}{measured}  {step:>13}  {speed_up:>8.2}  {:>9.1}%  \
             {busy_percent:>11.1}%  {:<10}  {}",
            micros(*makespan) / 1000.0,
            100.0 * speed_up / *nodes as f64,
            row.prediction.limit().word(),
            shares(&row.prediction),
        );
    }
    text
}

/// What was measured, and how far the prediction is from it.
fn comparison(row: &ReportRow) -> String {
    match (row.measured, row.error_percent()) {
        (Some(measured), Some(error)) => {
            format!("  {:>13.3}  {error:>+9.1}%", micros(measured) / 1000.0)
        }
        _ => format!("  {:>13}  {:>10}", "-", "-"),
    }
}

/// The same as comma-separated values: times in ns, shares of the way back in percent.
#[must_use]
pub fn csv(rows: &[ReportRow]) -> String {
    let mut text = String::from("nodes,devices,makespan_ns,step_ns,steady_step_ns,busy_percent");
    Limit::ALL.iter().for_each(|limit| {
        let _ = write!(text, ",{}_percent", limit.word());
    });
    text += ",measured_ns\n";
    for ReportRow { prediction, measured } in rows {
        let Prediction { nodes, devices, makespan, busy_percent, .. } = prediction;
        let steps = prediction.repeated.as_ref();
        let steps = steps.map(|step| format!("{},{}", step.period, step.steady_period));
        let steps = steps.unwrap_or_else(|| ",".to_owned());
        let _ = write!(text, "{nodes},{devices},{makespan},{steps},{busy_percent:.2}");
        percents(prediction).into_iter().for_each(|(_, share)| {
            let _ = write!(text, ",{share:.2}");
        });
        let _ = writeln!(text, ",{}", measured.map(|it| it.to_string()).unwrap_or_default());
    }
    text
}

/// `kernel 93, network 5, scheduling 2`: what is at least half a percent.
fn shares(prediction: &Prediction) -> String {
    let mut all: Vec<_> =
        percents(prediction).into_iter().filter(|(_, share)| *share >= 0.5).collect();
    all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let words = all.iter().map(|(limit, share)| format!("{} {share:.0}", limit.word()));
    words.collect::<Vec<_>>().join(", ")
}

fn percents(prediction: &Prediction) -> [(Limit, f64); Limit::ALL.len()] {
    let whole = prediction.makespan.max(1) as f64;
    let mut all = Limit::ALL.map(|limit| (limit, 0.0));
    for ((_, share), took) in all.iter_mut().zip(prediction.critical) {
        *share = 100.0 * took as f64 / whole;
    }
    all
}

fn ratio(one: Nanos, other: Nanos) -> f64 {
    if other == 0 { 1.0 } else { one as f64 / other as f64 }
}

fn micros(nanos: Nanos) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::RepeatedKernel;

    fn row(nodes: usize, makespan: Nanos, measured: Option<Nanos>) -> ReportRow {
        let mut critical = [0; Limit::ALL.len()];
        (critical[0], critical[2]) = (makespan / 4 * 3, makespan / 4);
        let repeated =
            Some(RepeatedKernel { name: "step".to_owned(), period: 1500, steady_period: 1400 });
        let (devices, busy_percent, guessed, spans) = (2, 75.0, 0, crate::span::Spans::default());
        let prediction = Prediction {
            nodes,
            devices,
            makespan,
            critical,
            busy_percent,
            repeated,
            guessed,
            stretched: None,
            spans,
        };
        ReportRow { prediction, measured }
    }

    #[test]
    fn rows_say_how_far_predictions_are_from_measurements() {
        let rows = [row(1, 8_000_000, Some(10_000_000)), row(4, 4_000_000, None)];
        let table = table(&rows, 8_000_000);
        let mut lines = table.lines().skip(1);
        let words = lines.next().unwrap().split_whitespace().collect::<Vec<_>>();
        let expected = ["1", "2", "8.000", "10.000", "-20.0%", "1.50", "1.00", "100.0%", "75.0%"];
        assert_eq!(words[..9], expected);
        assert_eq!(words[9..], ["kernel", "kernel", "75,", "network", "25"]);
        let words = lines.next().unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(words[3..8], ["-", "-", "1.50", "2.00", "50.0%"]);
        let csv = csv(&rows);
        assert_eq!(
            csv.lines().nth(1).unwrap(),
            "1,2,8000000,1500,1400,75.00,75.00,0.00,25.00,0.00,0.00,0.00,0.00,10000000"
        );
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        assert_eq!(row(1, 5, None).error_percent(), None);
        assert_eq!(row(1, 5, Some(0)).error_percent(), None);
        assert!(!table(&[row(1, 0, None)], 0).contains("measured"));
    }
}
