//! The C++ original's figures: nanoseconds per case, from a CSV file in the repository.
//!
//! Owns the file's columns and its quoting. The fair baseline of a case is the *best* of the
//! original's builds, so that is the only figure handed out.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::error::Error;

/// The columns that hold a build's median, in nanoseconds.
const BUILDS: [&str; 3] =
    ["best_median_of_runs_ns", "clang19_median_ns", "clang19_thinlto_native_median_ns"];

/// The column that holds how many tasks a sample submits; empty where it submits none.
const TASKS: &str = "tasks_submitted";

/// Cases with this in their names wait for [`THROTTLE_NS`] between two tasks.
const THROTTLED: &str = "throttled";
const THROTTLE_NS: f64 = 10_000.0;

/// Best figures of the original, by test case and benchmark name.
#[derive(Debug)]
pub(crate) struct Reference {
    cases: HashMap<(String, String), Figures>,
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    best_ns: f64,
    waited_ns: f64,
}

impl Reference {
    /// Reads the CSV file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, lacks a column, or has a row of another length than its header.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|what| Error::Malformed { path: path.to_owned(), what })
    }

    /// The median of the original's fastest build for a case, in nanoseconds; `None` if it has no
    /// such case.
    pub(crate) fn best_ns(&self, test_case: &str, benchmark: &str) -> Option<f64> {
        self.figures(test_case, benchmark).map(|figures| figures.best_ns)
    }

    /// How long a sample does nothing but wait, in nanoseconds: in ours and in the original's alike,
    /// so only what is above it can be compared. Not 0 in throttled cases.
    pub(crate) fn waited_ns(&self, test_case: &str, benchmark: &str) -> f64 {
        self.figures(test_case, benchmark).map_or(0.0, |figures| figures.waited_ns)
    }

    fn figures(&self, test_case: &str, benchmark: &str) -> Option<Figures> {
        self.cases.get(&(test_case.to_owned(), benchmark.to_owned())).copied()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut rows = text.lines().map(fields);
        let header = rows.next().ok_or("it is empty")?;
        let column = |name: &str| {
            header.iter().position(|field| field == name).ok_or(format!("no column `{name}`"))
        };
        let (test_case, benchmark) = (column("test_case")?, column("benchmark")?);
        let tasks = column(TASKS)?;
        let builds = BUILDS.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;

        let mut cases = HashMap::new();
        for (index, row) in rows.enumerate() {
            if row.len() != header.len() {
                let (line, have, want) = (index + 2, row.len(), header.len());
                return Err(format!("line {line} has {have} fields, the header has {want}"));
            }
            // A build that did not run the case leaves its field empty.
            let medians = builds.iter().filter_map(|&build| row[build].parse::<f64>().ok());
            if let Some(best_ns) = medians.reduce(f64::min) {
                let waited_ns = waited_ns(&row[test_case], row[tasks].parse().unwrap_or(0));
                let name = (row[test_case].clone(), row[benchmark].clone());
                cases.insert(name, Figures { best_ns, waited_ns });
            }
        }
        Ok(Self { cases })
    }
}

/// What lies between the tasks of a throttled case.
fn waited_ns(test_case: &str, tasks: u32) -> f64 {
    if test_case.contains(THROTTLED) {
        f64::from(tasks.saturating_sub(1)) * THROTTLE_NS
    } else {
        0.0
    }
}

/// The fields of one line: separated by commas, with commas and doubled quotes allowed inside
/// quotes (RFC 4180, less line breaks inside a field).
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always a field under construction");
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::{Reference, fields};

    const HEADER: &str = "test_case,benchmark,tasks_submitted,best_median_of_runs_ns,clang19_median_ns,clang19_thinlto_native_median_ns";

    #[test]
    fn the_fastest_build_counts() {
        let text = format!("{HEADER}\nsplits,\"small, 2d\",,30,20.5,25\nsplits,large,,,,90\n");
        let reference = Reference::parse(&text).unwrap();
        assert_eq!(reference.best_ns("splits", "small, 2d"), Some(20.5));
        assert_eq!(reference.best_ns("splits", "large"), Some(90.0));
        assert_eq!(reference.best_ns("splits", "medium"), None);
    }

    #[test]
    fn throttled_cases_wait_between_their_tasks() {
        let text = format!("{HEADER}\na > throttled,chain,30,1,1,1\na,chain,30,1,1,1\n");
        let reference = Reference::parse(&text).unwrap();
        assert_eq!(reference.waited_ns("a > throttled", "chain"), 290_000.0);
        assert_eq!(reference.waited_ns("a", "chain"), 0.0);
    }

    #[test]
    fn malformed_files_are_described() {
        assert_eq!(Reference::parse("").unwrap_err(), "it is empty");
        assert_eq!(Reference::parse("test_case\n").unwrap_err(), "no column `benchmark`");
        let short = Reference::parse(&format!("{HEADER}\na,b,1\n")).unwrap_err();
        assert_eq!(short, "line 2 has 3 fields, the header has 6");
    }

    #[test]
    fn quotes_protect_commas_and_quotes() {
        assert_eq!(fields(r#"a,"b, ""c""",,d"#), ["a", r#"b, "c""#, "", "d"]);
    }
}
