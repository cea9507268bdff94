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

/// The table, with what each number of nodes is beside one node.
#[must_use]
pub fn table(rows: &[ReportRow], single: Nanos) -> String {
    let mut text = String::from(
        "nodes  devices  makespan [ms]  per step [µs]  speed-up  efficiency  devices busy  limit       \
         way back to the beginning, %",
    );
    let is_measured = rows.iter().any(|row| row.measured.is_some());
    if is_measured {
        text += "  measured [ms]  difference";
    }
    text.push('\n');
    for row in rows {
        let Prediction { nodes, devices, makespan, busy_percent, .. } = &row.prediction;
        let speed_up = ratio(single, *makespan);
        let step = row.prediction.repeated.as_ref();
        let step = step.map_or("-".to_owned(), |step| format!("{:.2}", micros(step.period)));
        let _ = write!(
            text,
            "{nodes:>5}  {devices:>7}  {:>13.3}  {step:>13}  {speed_up:>8.2}  {:>9.1}%  \
             {busy_percent:>11.1}%  {:<10}  {}",
            micros(*makespan) / 1000.0,
            100.0 * speed_up / *nodes as f64,
            row.prediction.limit().word(),
            shares(&row.prediction),
        );
        if let (Some(measured), Some(error)) = (row.measured, row.error_percent()) {
            let _ = write!(text, "  {:.3} ms measured, {error:+.1} %", micros(measured) / 1000.0);
        }
        text.push('\n');
    }
    text
}

/// The same as comma-separated values: times in ns, shares of the way back in percent.
#[must_use]
pub fn csv(rows: &[ReportRow]) -> String {
    let mut text = String::from("nodes,devices,makespan_ns,step_ns,busy_percent");
    Limit::ALL.iter().for_each(|limit| {
        let _ = write!(text, ",{}_percent", limit.word());
    });
    text += ",measured_ns\n";
    for ReportRow { prediction, measured } in rows {
        let Prediction { nodes, devices, makespan, busy_percent, .. } = prediction;
        let step = prediction.repeated.as_ref().map(|step| step.period);
        let _ = write!(
            text,
            "{nodes},{devices},{makespan},{},{busy_percent:.2}",
            step.map(|step| step.to_string()).unwrap_or_default()
        );
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
