//! The C++ original's figures: nanoseconds per case, from CSV files in the repository.
//!
//! Owns the files' columns and their quoting. The fair baseline of a case is the *best* of the
//! original's builds, so that is the only figure handed out.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::error::Error;

/// In the file of its own benchmarks, the columns that hold a build's median, in nanoseconds.
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
    /// Reads the CSV files of the original's own benchmarks and of what was measured of its code
    /// with kernels on devices.
    ///
    /// # Errors
    /// If one cannot be read, lacks a column, or has a row of another length than its header.
    pub(crate) fn load(own: &Path, device_kernels: &Path) -> Result<Self, Error> {
        let mut reference = Self { cases: HashMap::new() };
        reference.add(own, Self::parse)?;
        reference.add(device_kernels, Self::parse_device_kernels)?;
        Ok(reference)
    }

    fn add(
        &mut self,
        path: &Path,
        parse: impl Fn(&str) -> Result<Self, String>,
    ) -> Result<(), Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let more = parse(&text).map_err(|what| Error::Malformed { path: path.to_owned(), what })?;
        self.cases.extend(more.cases);
        Ok(())
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
        let table = Table::parse(text)?;
        let (test_case, benchmark) = (table.column("test_case")?, table.column("benchmark")?);
        let tasks = table.column(TASKS)?;
        let builds = BUILDS.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;

        let mut cases = HashMap::new();
        for row in table.rows {
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

    /// One row per case and build.
    fn parse_device_kernels(text: &str) -> Result<Self, String> {
        let table = Table::parse(text)?;
        let [variant, nodes, devices] =
            [table.column("variant")?, table.column("num_nodes")?, table.column("devices")?];
        let (topology, median) = (table.column("topology")?, table.column("median_ns")?);

        let mut cases = HashMap::<_, Figures>::new();
        for row in table.rows {
            // Remarks have the form of rows, without a median.
            let Ok(median_ns) = row[median].parse::<f64>() else { continue };
            let group = format!("{}/{}/{}", row[variant], row[nodes], row[devices]);
            let figures = Figures { best_ns: median_ns, waited_ns: 0.0 };
            let best = cases.entry((group, row[topology].clone())).or_insert(figures);
            best.best_ns = best.best_ns.min(median_ns);
        }
        Ok(Self { cases })
    }
}

/// A CSV file: the names of its columns, and rows with as many fields.
struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(fields);
        let header = lines.next().ok_or("it is empty")?;
        let rows: Vec<_> = lines.collect();
        match rows.iter().position(|row| row.len() != header.len()) {
            None => Ok(Self { header, rows }),
            Some(index) => {
                let (line, have, want) = (index + 2, rows[index].len(), header.len());
                Err(format!("line {line} has {have} fields, the header has {want}"))
            }
        }
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        self.header.iter().position(|field| field == name).ok_or(format!("no column `{name}`"))
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
    fn device_kernels_have_a_row_per_build() {
        let text = "variant,num_nodes,devices,topology,tasks,compiler,median_ns,ns_per_task\n\
                    kernel,4,2,soup,100,g++12,300,3\n\
                    # of which, something else: 7,,,,g++12,,\n\
                    kernel,4,2,soup,100,clang19,200,2\n";
        let reference = Reference::parse_device_kernels(text).unwrap();
        assert_eq!(reference.best_ns("kernel/4/2", "soup"), Some(200.0));
        assert_eq!(reference.best_ns("kernel/4/4", "soup"), None);
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
