//! Our figures beside the original's: a table for people, JSON for programs.

use std::fmt;

use serde_json::json;

use super::counts::AllocationCounts;
use super::estimates::CriterionEstimate;
use super::reference::Reference;

/// All measured cases, each with its reference and its count of heap allocations where there is one.
#[derive(Debug)]
pub(crate) struct Comparison {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    ours: CriterionEstimate,
    reference_ns: Option<f64>,
    /// What both do nothing but wait for.
    waited_ns: f64,
    allocations_per_task: Option<f64>,
}

impl Row {
    /// How many times faster than the original we are, above what both wait for; less than one
    /// means slower.
    fn speedup(&self) -> Option<f64> {
        // Of a sample that is said to have taken less than it waited nothing can be said.
        let ours = self.ours.median_ns - self.waited_ns;
        self.reference_ns.filter(|_| ours > 0.0).map(|ns| (ns - self.waited_ns) / ours)
    }

    fn name(&self) -> String {
        match self.ours.function.as_str() {
            "" => self.ours.group.clone(),
            function => format!("{} / {function}", self.ours.group),
        }
    }
}

impl Comparison {
    /// Looks up the reference and the count of each case by its names.
    pub(crate) fn new(
        cases: Vec<CriterionEstimate>,
        reference: &Reference,
        counts: &AllocationCounts,
    ) -> Self {
        let row = |ours: CriterionEstimate| Row {
            reference_ns: reference.best_ns(&ours.group, &ours.function),
            waited_ns: reference.waited_ns(&ours.group, &ours.function),
            allocations_per_task: counts.per_task(&ours.group, &ours.function),
            ours,
        };
        Self { rows: cases.into_iter().map(row).collect() }
    }

    /// The same figures as one JSON object, times in nanoseconds and with what is waited for; `quick`
    /// records how they were measured.
    pub(crate) fn to_json(&self, quick: bool) -> String {
        let cases = self.rows.iter().map(|row| {
            json!({
                "group": row.ours.group,
                "function": row.ours.function,
                "median_ns": row.ours.median_ns,
                "reference_ns": row.reference_ns,
                "waited_ns": row.waited_ns,
                "speedup": row.speedup(),
                "allocations_per_task": row.allocations_per_task,
            })
        });
        let json = json!({ "quick": quick, "cases": cases.collect::<Vec<_>>() });
        format!("{json:#}\n")
    }

    /// The row with the smallest speedup, among those that have one.
    fn worst(&self) -> Option<(&Row, f64)> {
        let rated = self.rows.iter().filter_map(|row| Some((row, row.speedup()?)));
        rated.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rows.iter().map(Row::name);
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0).max("case".len());
        writeln!(
            f,
            "{:width$}  {:>14}  {:>14}  {:>8}  {:>10}",
            "case", "ours ns", "C++ best ns", "speedup", "alloc/task"
        )?;
        for row in &self.rows {
            let or_dash = |text: Option<String>| text.unwrap_or("-".into());
            let reference =
                or_dash(row.reference_ns.map(|ns| format!("{:.1}", ns - row.waited_ns)));
            let speedup = or_dash(row.speedup().map(|ratio| format!("{ratio:.2}x")));
            let allocations = or_dash(row.allocations_per_task.map(|count| format!("{count:.2}")));
            let (name, ours) = (row.name(), row.ours.median_ns - row.waited_ns);
            writeln!(
                f,
                "{name:width$}  {ours:>14.1}  {reference:>14}  {speedup:>8}  {allocations:>10}"
            )?;
        }
        match self.worst() {
            Some((row, speedup)) => writeln!(f, "worst: {} at {speedup:.2}x", row.name()),
            None => writeln!(f, "worst: no case has a reference"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Comparison, Row};
    use crate::bench::estimates::CriterionEstimate;

    fn comparison() -> Comparison {
        let row = |function: &str, median_ns, reference_ns| Row {
            ours: CriterionEstimate {
                group: "graphs".into(),
                function: function.into(),
                median_ns,
            },
            reference_ns,
            waited_ns: 0.0,
            allocations_per_task: reference_ns.map(|_| 1.25),
        };
        Comparison {
            rows: vec![
                row("soup", 100.0, Some(400.0)),
                row("chain", 100.0, Some(150.0)),
                row("ours only", 1.0, None),
            ],
        }
    }

    #[test]
    fn the_table_ends_with_the_smallest_speedup() {
        let table = comparison().to_string();
        assert_eq!(table.lines().last(), Some("worst: graphs / chain at 1.50x"));
        assert_eq!(table.lines().count(), 5);
        assert!(table.lines().nth(1).unwrap().ends_with("4.00x        1.25"), "{table}");
        assert!(table.lines().nth(3).unwrap().ends_with("-           -"), "{table}");
    }

    #[test]
    fn a_table_without_references_says_so() {
        let table = Comparison { rows: Vec::new() }.to_string();
        assert_eq!(table.lines().last(), Some("worst: no case has a reference"));
    }

    #[test]
    fn what_both_wait_for_is_not_compared() {
        let mut comparison = comparison();
        comparison.rows[1].waited_ns = 90.0;
        assert_eq!(comparison.rows[1].speedup(), Some(6.0));
        comparison.rows[1].waited_ns = 110.0;
        assert_eq!(comparison.rows[1].speedup(), None);
    }

    #[test]
    fn json_keeps_every_case() {
        let json: Value = serde_json::from_str(&comparison().to_json(true)).unwrap();
        assert_eq!(json["cases"][0]["speedup"], 4.0);
        assert_eq!(json["cases"][0]["allocations_per_task"], 1.25);
        assert_eq!(json["cases"][2]["reference_ns"], Value::Null);
        assert_eq!(json["quick"], true);
    }
}
