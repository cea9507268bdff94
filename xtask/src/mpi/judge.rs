//! What a stage must lead to, and whether it did.

use crate::tally::{Tally, failure};

/// What is expected of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Success, as for any command.
    Success,
    /// A summary of checks, all passed.
    Checks,
    /// Lines that contain these, no panic, and a certain end.
    Told(&'static [&'static str], End),
}

/// How a launcher ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With success.
    Well,
    /// With an exit status that says that something was wrong.
    Badly,
    /// As it likes.
    Somehow,
}

/// What `timeout` exits with if it has ended a command.
const HUNG: i32 = 124;

impl Expected {
    /// Judges by the exit code, if there is one, and all that was printed. What hangs has
    /// never ended as it should.
    pub(super) fn judge(self, code: Option<i32>, lines: &[String]) -> Tally {
        let succeeded = code == Some(0);
        let passed = match self {
            Self::Success => succeeded,
            Self::Checks => return checks(succeeded, lines),
            Self::Told(wanted, end) => {
                let has = |text: &&str| lines.iter().any(|line| line.contains(text));
                let ended = code != Some(HUNG) && end.is(succeeded);
                wanted.iter().all(has) && !has(&"panicked at") && ended
            }
        };
        Tally::one(passed)
    }
}

/// Checks that did not run are a failure.
fn checks(succeeded: bool, lines: &[String]) -> Tally {
    let mut tally = Tally::default();
    lines.iter().filter_map(|line| Tally::parse(line)).for_each(|counted| tally += counted);
    if !succeeded || tally.passed == 0 {
        tally.failed = tally.failed.max(1);
    }
    tally
}

/// What somebody reads first about a stage that has failed: how it has ended, and the line that most likely says why.
pub(super) fn blame(code: Option<i32>, lines: &[String]) -> String {
    let end = match code {
        Some(HUNG) => "it hung".to_owned(),
        Some(code) => format!("exit code {code}"),
        None => "ended by a signal".to_owned(),
    };
    let lines = || lines.iter().map(|line| line.trim());
    // What a panic says stands on the line below.
    let panic = lines()
        .skip_while(|line| !line.contains("panicked at"))
        .take(2)
        .collect::<Vec<_>>()
        .join(" ");
    let why = lines().find_map(failure).or_else(|| Some(&*panic).filter(|text| !text.is_empty()));
    let why = why.or_else(|| lines().find(|line| line.contains("error")));
    let why = why.or_else(|| lines().rfind(|line| !line.is_empty()));
    let why: String = why.unwrap_or("nothing was printed").chars().take(LINE).collect();
    format!("{end}; {why}")
}

/// How many characters are enough to see what a line is about.
const LINE: usize = 240;

impl End {
    fn is(self, succeeded: bool) -> bool {
        match self {
            Self::Well => succeeded,
            Self::Badly => !succeeded,
            Self::Somehow => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Expected, HUNG, blame};

    fn failed(expected: Expected, succeeded: bool, lines: &[&str]) -> u64 {
        failed_with(expected, i32::from(!succeeded), lines)
    }

    fn failed_with(expected: Expected, code: i32, lines: &[&str]) -> u64 {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        expected.judge(Some(code), &lines).failed
    }

    #[test]
    fn checks_that_did_not_run_are_a_failure() {
        let summary = "test result: ok. 3 passed; 0 failed; 0 ignored";
        assert_eq!(failed(Expected::Checks, true, &[summary]), 0);
        assert_eq!(failed(Expected::Checks, true, &[]), 1);
        assert_eq!(failed(Expected::Checks, false, &[summary]), 1);
    }

    #[test]
    fn a_death_has_to_be_seen() {
        let silent = Expected::Told(&[], End::Badly);
        assert_eq!(failed(silent, false, &[]), 0);
        assert_eq!(failed(silent, true, &[]), 1);
        assert_eq!(failed(silent, false, &["thread 'main' panicked at"]), 1);
        let told = Expected::Told(&["N0: N2 has died", "N1: N2 has died"], End::Somehow);
        let lines = ["N1: N2 has died: silent", "N0: N2 has died: silent"];
        assert_eq!(failed(told, true, &lines), 0);
        assert_eq!(failed(told, true, &lines[1..]), 1);
    }

    #[test]
    fn what_hangs_has_not_ended_badly_enough() {
        for end in [End::Badly, End::Somehow] {
            let told = Expected::Told(&[], end);
            assert_eq!((failed_with(told, 137, &[]), failed_with(told, HUNG, &[])), (0, 1));
        }
    }

    #[test]
    fn the_line_that_says_why_is_found() {
        let blame = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
            blame(Some(1), &lines)
        };
        let panic =
            ["N0: so far", "thread 'main' panicked at x.rs:1:", "left: 1", "an error follows"];
        assert_eq!(blame(&panic), "exit code 1; thread 'main' panicked at x.rs:1: left: 1");
        assert_eq!(blame(&["well", "error: none", ""]), "exit code 1; error: none");
        assert_eq!(blame(&["well", "last", ""]), "exit code 1; last");
        assert_eq!(blame(&["test a ... FAILED"]), "exit code 1; a");
        assert_eq!(super::blame(Some(HUNG), &[]), "it hung; nothing was printed");
    }

    #[test]
    fn a_good_end_has_to_be_good() {
        let verified = Expected::Told(&["verified"], End::Well);
        assert_eq!(failed(verified, true, &["verified: all"]), 0);
        assert_eq!(failed(verified, false, &["verified: all"]), 1);
    }
}
