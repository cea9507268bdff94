//! The committed counts: a text file with a line per case, and what differs from it. Owns the
//! format and the tolerance; knows nothing of how instructions are counted.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use super::toolchain::CountedWith;
use crate::error::Error;

/// Of a hundred instructions, so many more or less are no finding: neither what a change
/// elsewhere does to the layout of the program, nor which of two equal choices the compiler takes.
const TOLERATED: u64 = 3;

/// The counts of all cases, with what they were counted with and why they were renewed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) toolchain: CountedWith,
    /// Why they are not what they were before.
    pub(crate) reason: String,
    /// In the order of the cases.
    pub(crate) counts: Vec<(String, u64)>,
}

const TITLE: &str = "Instructions per case, counted by callgrind. Checked by `cargo xtask bench \
                     instructions --check`, renewed by `… --bless REASON`.";

/// A case, the instructions that are committed and those that have been counted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    case: String,
    committed: Option<u64>,
    counted: Option<u64>,
}

/// How counts compare with those that are committed.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct CountsComparison(Vec<Row>);

impl Table {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read or is not what [`Display`](fmt::Display) writes.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|what| Error::Malformed { path: path.to_owned(), what })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::to_owned).ok_or_else(|| format!("there is no line `{name}: …`"))
        };
        let [rustc, libc, valgrind] = ["rustc", "libc", "valgrind"].map(field);
        let (_, rows) = text.split_once("\n\n").ok_or("no empty line comes before the counts")?;
        let counts = rows.lines().map(|line| {
            let (count, case) = line.trim().split_once("  ")?;
            Some((case.to_owned(), count.parse().ok()?))
        });
        Ok(Self {
            toolchain: CountedWith { rustc: rustc?, libc: libc?, valgrind: valgrind? },
            reason: field("reason")?,
            counts: counts.collect::<Option<_>>().ok_or("a line is not `COUNT  CASE`")?,
        })
    }

    /// Every case that either side has, in order.
    pub(crate) fn compare(&self, counted: &[(String, u64)]) -> CountsComparison {
        let of = |counts: &[(String, u64)], case: &str| {
            counts.iter().find(|(name, _)| name == case).map(|(_, count)| *count)
        };
        let gone = self.counts.iter().filter(|(case, _)| of(counted, case).is_none());
        let cases = counted.iter().chain(gone).map(|(case, _)| Row {
            case: case.clone(),
            committed: of(&self.counts, case),
            counted: of(counted, case),
        });
        CountsComparison(cases.collect())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { toolchain: CountedWith { rustc, libc, valgrind }, reason, counts } = self;
        writeln!(f, "{TITLE}")?;
        writeln!(f, "rustc: {rustc}\nlibc: {libc}\nvalgrind: {valgrind}\nreason: {reason}\n")?;
        counts.iter().try_for_each(|(case, count)| writeln!(f, "{count:>12}  {case}"))
    }
}

impl Row {
    /// By how many of a hundred the case takes more than what is committed.
    fn percent(&self) -> Option<f64> {
        let (committed, counted) = (self.committed? as f64, self.counted? as f64);
        Some((counted / committed - 1.0) * 100.0)
    }

    /// Whether the two figures are further apart than what is tolerated.
    fn differs(&self) -> bool {
        let outside = |before: u64, now: u64| before.abs_diff(now) * 100 > before * TOLERATED;
        !matches!((self.committed, self.counted), (Some(a), Some(b)) if !outside(a, b))
    }

    /// What is wrong, and what to do about it.
    fn finding(&self) -> Option<String> {
        let Self { case, committed, counted } = self;
        let renew = "renew it with `cargo xtask bench instructions --bless REASON`";
        if !self.differs() {
            return None;
        }
        Some(match (self.percent(), committed, counted) {
            (Some(more), Some(before), Some(now)) if more > 0.0 => format!(
                "{case}: {now} instructions, {more:.1} % more than {before}; find out why, \
                 or {renew}"
            ),
            (Some(more), Some(before), Some(now)) => format!(
                "{case}: {now} instructions, {:.1} % less than {before}; so that it stays \
                 like that, {renew}",
                -more
            ),
            (_, _, Some(now)) => {
                format!("{case}: {now} instructions, and none are committed; {renew}")
            }
            (_, _, None) => format!("{case}: there is no such case; {renew}"),
        })
    }
}

impl CountsComparison {
    /// Whether nothing has to be explained.
    pub(crate) fn is_good(&self) -> bool {
        self.0.iter().all(|row| row.finding().is_none())
    }

    /// A line for everything that has to be explained, and one in closing.
    pub(crate) fn findings(&self) -> String {
        let found: Vec<String> = self.0.iter().filter_map(Row::finding).collect();
        let mut text: String = found.iter().map(|line| format!("FAILED: {line}\n")).collect();
        let (cases, outside) = (self.0.len(), found.len());
        let _ = writeln!(
            text,
            "instructions: {outside} of {cases} cases differ by more than {TOLERATED} % from {}",
            super::FILE
        );
        text
    }

    /// A line for every case.
    pub(crate) fn all(&self, committed: &CountedWith, here: &CountedWith) -> String {
        let mut text = String::new();
        if committed != here {
            let _ = writeln!(text, "committed: {committed}\nhere:      {here}");
        }
        let _ = writeln!(text, "{:>12}  {:>12}  {:>8}  case", "committed", "counted", "");
        for row in &self.0 {
            let figure = |count: Option<u64>| count.map_or("-".to_owned(), |n| n.to_string());
            let percent = row.percent().map_or("-".to_owned(), |more| format!("{more:+.2} %"));
            let (committed, counted) = (figure(row.committed), figure(row.counted));
            let _ = writeln!(text, "{committed:>12}  {counted:>12}  {percent:>8}  {}", row.case);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedWith, Table};

    fn table(counts: &[(&str, u64)]) -> Table {
        let toolchain = CountedWith {
            rustc: "rustc 1".into(),
            libc: "glibc 2".into(),
            valgrind: "valgrind-3".into(),
        };
        let counts = counts.iter().map(|&(case, count)| (case.to_owned(), count)).collect();
        Table { toolchain, reason: "to begin with".into(), counts }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = table(&[("tasks/a chain", 90_273), ("engine: x/y", 7)]);
        assert_eq!(Table::parse(&written.to_string()), Ok(written));
    }

    #[test]
    fn a_file_without_a_version_or_a_count_is_malformed() {
        let text = table(&[("a", 1)]).to_string();
        assert!(Table::parse(&text.replace("libc: ", "")).unwrap_err().contains("`libc: …`"));
        assert!(Table::parse(&text.replace("1  a", "one  a")).unwrap_err().contains("COUNT"));
    }

    #[test]
    fn three_of_a_hundred_are_no_finding_and_four_name_the_row() {
        let committed = table(&[("a", 1000), ("b", 1000), ("c", 1000), ("gone", 1)]);
        let counts = |list: &[(&str, u64)]| table(list).counts;
        let good = counts(&[("a", 1030), ("b", 970), ("c", 1000), ("gone", 1)]);
        assert!(committed.compare(&good).is_good());
        let bad = committed.compare(&counts(&[("a", 1040), ("b", 960), ("c", 1000), ("new", 5)]));
        assert!(!bad.is_good());
        let text = bad.findings();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("FAILED: a: 1040 instructions, 4.0 % more than 1000"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("FAILED: b: 960 instructions, 4.0 % less than 1000"),
            "{text}"
        );
        assert!(lines[2].starts_with("FAILED: new: 5 instructions, and none"), "{text}");
        assert!(lines[3].starts_with("FAILED: gone: there is no such case"), "{text}");
        assert!(lines[4].starts_with("instructions: 4 of 5 cases"), "{text}");
    }
}
