//! The result of the proof as text: which check sees which bug.

use crate::hunt::{By, CHECKS, Finding, Row};

/// A table with a row per bug and a column per check.
///
/// `7`: found with the seventh program; `7!`: by an assertion of the code itself; `.`: not
/// found; empty: the check does not run that code.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let names = CHECKS.iter().map(|check| format!(" {} |", check.name)).collect::<String>();
    let rule = " --- |".repeat(CHECKS.len());
    let mut text = format!("| bug | layer |{names} ms |\n| --- | --- |{rule} --- |\n");
    for row in rows {
        let cells: String =
            row.findings.iter().map(|finding| format!(" {} |", cell(finding))).collect();
        let (layer, time) = (row.mutant.layer().name(), row.time.as_millis());
        text += &format!("| `{:?}` | {layer} |{cells} {time} |\n", row.mutant);
    }
    text + &sums(rows)
}

/// What the check says that needs the fewest programs, a line per bug.
pub(crate) fn details(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let (check, program, what) = row.first(|_| true)?;
        let (mutant, what) = (row.mutant, what.lines().next().unwrap_or_default());
        let (means, time) = (mutant.description(), row.time.as_millis());
        Some(format!("{mutant:?} ({means})\n    {check}, program {program}, {time} ms: {what}\n"))
    };
    rows.iter().filter_map(line).collect()
}

fn cell(finding: &Finding) -> String {
    match finding {
        Finding::NotExercised => String::new(),
        Finding::Blind => ".".into(),
        Finding::Found { program, by: By::Check, .. } => program.to_string(),
        Finding::Found { program, by: By::Assertion, .. } => format!("{program}!"),
    }
}

/// How many of the bugs that each check could see it sees.
fn sums(rows: &[Row]) -> String {
    let column = |at: usize| {
        let cells = rows.iter().map(|row| &row.findings[at]);
        let exercised = cells.filter(|finding| !matches!(finding, Finding::NotExercised));
        let seen = |finding: &&Finding| matches!(finding, Finding::Found { .. });
        let (all, seen) = (exercised.clone().count(), exercised.filter(seen).count());
        format!(" {seen} of {all} |")
    };
    let cells: String = (0..CHECKS.len()).map(column).collect();
    let time: u128 = rows.iter().map(|row| row.time.as_millis()).sum();
    format!("| **found** | |{cells} {time} |\n")
}
