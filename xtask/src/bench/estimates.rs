//! Finds the results that criterion left on disk.
//!
//! Criterion keeps, per case, a folder `…/new` with `benchmark.json` (names as the benchmark gave
//! them; folder names are mangled) and `estimates.json` (times in nanoseconds per iteration).

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use crate::error::Error;

/// One measured case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CriterionEstimate {
    /// Criterion's group, which is the reference's test case.
    pub(crate) group: String,
    /// Criterion's function and parameter, which is the reference's benchmark.
    pub(crate) function: String,
    /// Median time of one iteration, in nanoseconds.
    pub(crate) median_ns: f64,
}

/// All cases below `folder` measured at `since` or later, sorted by group and function, numbers in them
/// by how large they are. Older results stay on disk but are of another build, so they are left out.
///
/// # Errors
/// If a folder or file cannot be read or is not what criterion writes.
pub(crate) fn collect(folder: &Path, since: SystemTime) -> Result<Vec<CriterionEstimate>, Error> {
    let mut found = Vec::new();
    if folder.is_dir() {
        visit(folder, since, &mut found)?;
    }
    found.sort_by_cached_key(|case| (in_order(&case.group), in_order(&case.function)));
    Ok(found)
}

/// The text in pieces of digits and of others, of which those of digits are compared as numbers.
fn in_order(text: &str) -> Vec<(u64, String)> {
    let is_same_kind = |a: &u8, b: &u8| a.is_ascii_digit() == b.is_ascii_digit();
    let pieces = text.as_bytes().chunk_by(is_same_kind).map(String::from_utf8_lossy);
    // What is no number comes behind all numbers, as it does among letters.
    pieces.map(|piece| (piece.parse().unwrap_or(u64::MAX), piece.into_owned())).collect()
}

fn visit(
    folder: &Path,
    since: SystemTime,
    found: &mut Vec<CriterionEstimate>,
) -> Result<(), Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !path.is_dir() {
            continue;
        }
        if !path.ends_with("new") {
            visit(&path, since, found)?;
        } else if is_fresh(&path.join("estimates.json"), since) {
            found.push(read_case(&path)?);
        }
    }
    Ok(())
}

/// Whether the file exists and was written at `since` or later.
pub(super) fn is_fresh(path: &Path, since: SystemTime) -> bool {
    fs::metadata(path).and_then(|data| data.modified()).is_ok_and(|modified| modified >= since)
}

fn read_case(folder: &Path) -> Result<CriterionEstimate, Error> {
    let names = read_json(&folder.join("benchmark.json"))?;
    let estimates_path = folder.join("estimates.json");
    let median = read_json(&estimates_path)?["median"]["point_estimate"].as_f64();
    let median_ns = median.ok_or_else(|| Error::Malformed {
        path: estimates_path,
        what: "no number `median.point_estimate`".into(),
    })?;
    let parts = ["function_id", "value_str"].map(|key| names[key].as_str());
    Ok(CriterionEstimate {
        group: names["group_id"].as_str().unwrap_or_default().to_owned(),
        function: parts.into_iter().flatten().collect::<Vec<_>>().join("/"),
        median_ns,
    })
}

/// The JSON in the file at `path`.
///
/// # Errors
/// If it cannot be read, or is no JSON.
pub(super) fn read_json(path: &Path) -> Result<Value, Error> {
    let text = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Malformed { path: path.to_owned(), what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::{CriterionEstimate, collect, in_order};

    /// A criterion folder with one case in it, removed when dropped.
    struct Results(PathBuf);

    impl Results {
        fn new(name: &str, benchmark: &str, estimates: &str) -> Self {
            let root = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            let case = root.join("a_group/a_function/new");
            fs::create_dir_all(&case).unwrap();
            fs::write(case.join("benchmark.json"), benchmark).unwrap();
            fs::write(case.join("estimates.json"), estimates).unwrap();
            Self(root)
        }
    }

    impl Drop for Results {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const NAMES: &str =
        r#"{"group_id": "a group", "function_id": "a, function", "value_str": "4"}"#;

    #[test]
    fn names_come_from_the_file_beside_the_figures() {
        let results = Results::new("names", NAMES, r#"{"median": {"point_estimate": 12.5}}"#);
        let expected = CriterionEstimate {
            group: "a group".into(),
            function: "a, function/4".into(),
            median_ns: 12.5,
        };
        assert_eq!(collect(&results.0, SystemTime::UNIX_EPOCH).unwrap(), [expected]);
    }

    #[test]
    fn numbers_are_in_order_of_how_large_they_are() {
        let mut names =
            ["4 x 4/soup", "a/1024", "16 x 1", "a/2", "a/128/x", "a", "a/128", "4 x 16"];
        names.sort_by_cached_key(|name| in_order(name));
        let expected = ["4 x 4/soup", "4 x 16", "16 x 1", "a", "a/2", "a/128", "a/128/x", "a/1024"];
        assert_eq!(names, expected);
    }

    #[test]
    fn results_of_an_earlier_run_are_left_out() {
        let results = Results::new("earlier", NAMES, r#"{"median": {"point_estimate": 12.5}}"#);
        let later = SystemTime::now() + Duration::from_secs(3600);
        assert_eq!(collect(&results.0, later).unwrap(), []);
    }

    #[test]
    fn a_missing_median_names_the_file() {
        let results = Results::new("median", NAMES, "{}");
        let error = collect(&results.0, SystemTime::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("estimates.json is malformed"), "{error}");
    }

    #[test]
    fn no_results_yet_is_an_empty_list() {
        assert_eq!(collect("no/such/folder".as_ref(), SystemTime::UNIX_EPOCH).unwrap(), []);
    }
}
