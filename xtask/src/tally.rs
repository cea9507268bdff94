//! Counts tests by reading the summary lines of the two test runners, and names those that fail.
//!
//! Owns the knowledge of how `cargo test` and `cargo nextest` phrase their results.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were not run.
///
/// `Display` gives the closing line of a test run: `12 passed, 0 failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    /// Includes tests that timed out or could not be started.
    pub(crate) failed: u64,
    /// Tests marked to be ignored. Tests that a filter left out are not counted.
    pub(crate) skipped: u64,
}

impl Tally {
    /// Of a single check.
    pub(crate) fn one(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), skipped: 0 }
    }

    /// Reads one line of a runner's output; `None` unless it is a summary.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        // Only nextest indents its summary; an indented `test result` is a failed test's own output,
        // which nextest repeats and has counted already.
        let counts = match line.strip_prefix("test result: ") {
            Some(verdict) => verdict.split_once(". ")?.1,
            None => nextest_counts(line.trim_start())?,
        };
        let mut tally = Self::default();
        for clause in counts.split([',', ';']) {
            tally.count(clause);
        }
        Some(tally)
    }

    /// Adds one clause of a summary, such as `3 passed (1 slow)`. Others, such as the run time, are
    /// passed over.
    fn count(&mut self, clause: &str) {
        let mut words = clause.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else { return };
        match words.next() {
            Some("passed") => self.passed += number,
            // nextest: "1 failed", "1 timed out", "1 exec failed".
            Some("failed" | "timed" | "exec") => self.failed += number,
            Some("ignored" | "skipped") => self.skipped += number,
            _ => {}
        }
    }
}

/// The part of `Summary [ 0.1s] 3 tests run: 3 passed, 0 skipped` behind the colon.
fn nextest_counts(line: &str) -> Option<&str> {
    let (head, counts) = line.strip_prefix("Summary [")?.split_once(": ")?;
    (head.ends_with(" tests run") || head.ends_with(" test run")).then_some(counts)
}

/// The name of a test that has failed, if a runner says so on this line. nextest says it again in its summary.
pub(crate) fn failure(line: &str) -> Option<&str> {
    if let Some(verdict) = line.strip_prefix("test ") {
        return verdict.strip_suffix(" ... FAILED");
    }
    let (how, rest) = line.trim_start().split_once(" [")?;
    let has_failed = matches!(how, "FAIL" | "TIMEOUT" | "ABORT") || how.starts_with("SIG");
    let (_, name) = rest.split_once("s] ")?;
    // Before the name, how many tests have ended of all: `( 12/34) `.
    let name = name
        .strip_prefix('(')
        .and_then(|text| text.split_once(") "))
        .map_or(name, |(_, name)| name);
    has_failed.then_some(name)
}

/// Lines that close a run: which tests of `stage` have failed, each once, in order of names.
pub(crate) fn failed_lines(stage: &str, names: &[String]) -> String {
    let names: BTreeSet<_> = names.iter().collect();
    names.iter().map(|name| format!("FAILED {stage}: {name}\n")).collect()
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, failed_lines, failure};

    #[test]
    fn summaries_of_both_runners_are_read() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.21s",
                (12, 0, 1),
            ),
            (
                "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
                (2, 3, 0),
            ),
            (
                "     Summary [   0.412s] 31 tests run: 31 passed (1 slow, 2 leaky), 2 skipped",
                (31, 0, 2),
            ),
            (
                "     Summary [   9.000s] 5/6 tests run: 1 passed, 2 failed, 1 timed out, 1 exec failed, 0 skipped",
                (1, 4, 0),
            ),
            ("     Summary [   0.002s] 1 test run: 1 passed, 0 skipped", (1, 0, 0)),
        ];
        for (line, (passed, failed, skipped)) in cases {
            assert_eq!(Tally::parse(line), Some(Tally { passed, failed, skipped }), "{line}");
        }
    }

    #[test]
    fn tests_that_have_failed_are_named() {
        let cases = [
            (
                "        FAIL [   0.5s] (  12/2129) celerity::all borders::narrow",
                "celerity::all borders::narrow",
            ),
            ("     TIMEOUT [ 120.0s] celerity-idag ends", "celerity-idag ends"),
            ("     SIGABRT [   0.1s] (3/3) celerity-idag dies", "celerity-idag dies"),
            ("test src/lib.rs - Buffer (line 12) ... FAILED", "src/lib.rs - Buffer (line 12)"),
        ];
        for (line, name) in cases {
            assert_eq!(failure(line), Some(name), "{line}");
        }
        let others = [
            "        PASS [   0.5s] (12/2129) celerity::all borders::narrow",
            "test result: FAILED. 2 passed; 3 failed",
            "    test inner ... FAILED",
            "test borders ... ok",
            "",
        ];
        for line in others {
            assert_eq!(failure(line), None, "{line}");
        }
    }

    #[test]
    fn a_failure_that_is_told_twice_is_one() {
        let names = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(failed_lines("tests", &names), "FAILED tests: a\nFAILED tests: b\n");
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "running 3 tests",
            "test tests::three_passed ... ok",
            "3 passed, 0 failed",
            "Summary [of something else]",
            "test result: unknown",
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            assert_eq!(Tally::parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_closing_line_is_plain() {
        let tally = Tally { passed: 12, failed: 1, skipped: 3 };
        assert_eq!(tally.to_string(), "12 passed, 1 failed");
    }
}
