//! Heap allocations per task, as the benchmark `allocations` leaves them beside criterion's results.
//!
//! Owns the file's format. Counts belong to the cases of another benchmark and are matched with them
//! by name.

use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use super::estimates::{is_fresh, read_json};
use crate::error::Error;

/// The file, in criterion's folder.
const FILE: &str = "allocations.json";

/// Allocations per task, by criterion's group and function.
#[derive(Debug, Default)]
pub(crate) struct AllocationCounts {
    per_task: HashMap<(String, String), f64>,
}

impl AllocationCounts {
    /// Reads the counts that were written into `folder` at `since` or later; there are none if the
    /// benchmark did not run since.
    ///
    /// # Errors
    /// If the file cannot be read or is not what the benchmark writes.
    pub(crate) fn load(folder: &Path, since: SystemTime) -> Result<Self, Error> {
        let path = folder.join(FILE);
        if !is_fresh(&path, since) {
            return Ok(Self::default());
        }
        Self::parse(&read_json(&path)?).ok_or_else(|| Error::Malformed {
            path,
            what: "no list `cases` of `group`, `function` and `allocations_per_task`".into(),
        })
    }

    /// Allocations per task of a case; `None` if they were not counted.
    pub(crate) fn per_task(&self, group: &str, function: &str) -> Option<f64> {
        self.per_task.get(&(group.to_owned(), function.to_owned())).copied()
    }

    fn parse(json: &Value) -> Option<Self> {
        let entry = |case: &Value| {
            let text = |key: &str| case[key].as_str().map(str::to_owned);
            Some(((text("group")?, text("function")?), case["allocations_per_task"].as_f64()?))
        };
        let per_task = json["cases"].as_array()?.iter().map(entry).collect::<Option<_>>()?;
        Some(Self { per_task })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::AllocationCounts;

    #[test]
    fn counts_are_found_by_name() {
        let case = json!({ "group": "g", "function": "f", "allocations_per_task": 2.5 });
        let counts = AllocationCounts::parse(&json!({ "cases": [case] })).unwrap();
        assert_eq!(counts.per_task("g", "f"), Some(2.5));
        assert_eq!(counts.per_task("f", "g"), None);
    }

    #[test]
    fn a_case_without_its_count_is_malformed() {
        assert!(AllocationCounts::parse(&json!({})).is_none());
        assert!(
            AllocationCounts::parse(&json!({ "cases": [{ "group": "g", "function": "f" }] }))
                .is_none()
        );
    }

    #[test]
    fn no_file_is_no_counts() {
        let counts =
            AllocationCounts::load("no/such/folder".as_ref(), SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(counts.per_task("g", "f"), None);
    }
}
