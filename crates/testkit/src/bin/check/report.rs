//! What a campaign prints at its end. Knows no terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use celerity_testkit::campaign::{CampaignCounts, CampaignReport};

/// Figures, the table of clusters, and a closing line.
pub(crate) fn text(report: &CampaignReport) -> String {
    let CampaignCounts { programs, runs, tasks, commands, instructions, .. } = report.counts;
    let seconds = report.time.as_secs_f64().max(1e-9);
    let per_second = |count: u64| count as f64 / seconds;
    let mut text = table(&report.counts);
    let mut line = |of: &str, count: u64| {
        let rate = per_second(count);
        writeln!(text, "{count:>12} {of:<13}{rate:>12.0} per second").expect("strings take all");
    };
    line("programs", programs);
    line("tasks", tasks);
    line("commands", commands);
    line("instructions", instructions);
    let failures = usize::from(report.failure.is_some());
    text + &format!("{runs} of {programs} also run; {seconds:.1} s; {failures} failures\n")
}

/// Programs by nodes (down) and devices (across).
fn table(counts: &CampaignCounts) -> String {
    let devices: BTreeSet<usize> = counts.covered.keys().map(|cluster| cluster.1).collect();
    let nodes: BTreeSet<usize> = counts.covered.keys().map(|cluster| cluster.0).collect();
    let cells = |name: String, cell: &dyn Fn(usize) -> String| {
        let row: String = devices.iter().map(|&devices| format!("{:>9}", cell(devices))).collect();
        format!("{name:<10}{row}\n")
    };
    let head = cells("programs".into(), &|devices| format!("{devices} dev"));
    let rows = nodes.iter().map(|&nodes| {
        let covered = |devices| counts.covered.get(&(nodes, devices)).copied().unwrap_or(0);
        cells(format!("{nodes} nodes"), &|devices| covered(devices).to_string())
    });
    rows.fold(head, |text, row| text + &row)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    #[test]
    fn figures_and_clusters_are_shown() {
        let counts = CampaignCounts {
            programs: 30,
            runs: 2,
            instructions: 9_000,
            covered: BTreeMap::from([((1, 1), 10), ((2, 1), 15), ((2, 4), 5)]),
            ..CampaignCounts::default()
        };
        let report = CampaignReport { counts, time: Duration::from_secs(3), failure: None };
        let text = text(&report);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["programs", "1", "dev", "4", "dev"]);
        assert_eq!(rows[1], ["1", "nodes", "10", "0"]);
        assert_eq!(rows[2], ["2", "nodes", "15", "5"]);
        assert!(text.contains("9000 instructions         3000 per second"), "{text}");
        assert_eq!(text.lines().last(), Some("2 of 30 also run; 3.0 s; 0 failures"));
    }
}
