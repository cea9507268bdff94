//! The suite's arguments, checked before the suite sees them: it ends the process at wrong ones, and goes
//! on without those that it does not know.

use std::fmt;

use crate::graph::Formula;

/// Arguments that the suite takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// As they were given.
    pub(crate) words: Vec<String>,
    /// What each graph's pattern is to Celerity.
    pub(crate) formulas: Vec<Formula>,
}

/// Why arguments are refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("there is no argument `{word}`; there are {}", names(&FLAGS))]
    Unknown { word: String },
    #[error("`{flag}` needs a value")]
    NoValue { flag: &'static str },
    #[error("`{flag} {value}`: {expected} is expected")]
    Value { flag: &'static str, value: String, expected: String },
    #[error("graph {graph}, {pattern}: {what}")]
    Graph { graph: usize, pattern: &'static str, what: String },
}

/// The suite's flags, and whether a value follows.
const FLAGS: [(&str, bool); 15] = [
    ("-steps", true),
    ("-width", true),
    ("-type", true),
    ("-radix", true),
    ("-period", true),
    ("-fraction", true),
    ("-kernel", true),
    ("-iter", true),
    ("-output", true),
    ("-scratch", true),
    ("-sample", true),
    ("-imbalance", true),
    ("-nodes", true),
    ("-and", false),
    ("-v", false),
];

/// Patterns whose shape does not depend on chance at run time.
const PATTERNS: [&str; 11] = [
    "trivial",
    "no_comm",
    "stencil_1d",
    "stencil_1d_periodic",
    "dom",
    "tree",
    "fft",
    "all_to_all",
    "nearest",
    "spread",
    "random_nearest",
];

const KERNELS: [&str; 6] =
    ["empty", "busy_wait", "compute_bound", "compute_bound2", "memory_bound", "load_imbalance"];

/// The widest graph: the suite goes through all pairs of places before it begins.
const MAX_WIDTH: i64 = 4096;
/// The most bytes of a point.
const MAX_BYTES: i64 = 1 << 30;

/// A graph as far as arguments tell, with the suite's defaults.
struct Given {
    steps: i64,
    width: i64,
    pattern: &'static str,
    radix: i64,
    period: Option<i64>,
    kernel: &'static str,
    scratch: i64,
    samples: i64,
}

impl Given {
    const DEFAULT: Self = Self {
        steps: 4,
        width: 4,
        pattern: "trivial",
        radix: 3,
        period: None,
        kernel: "empty",
        scratch: 0,
        samples: 16,
    };
}

/// Checks arguments.
///
/// # Errors
/// What the suite would end the process for, and what it would not have understood.
pub(crate) fn check(words: &[String]) -> Result<Arguments, Refused> {
    let mut formulas = Vec::new();
    let mut given = Given::DEFAULT;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let known = FLAGS.into_iter().find(|(flag, _)| flag == word);
        let (flag, has_value) = known.ok_or_else(|| Refused::Unknown { word: word.clone() })?;
        match has_value {
            true => given.set(flag, rest.next().ok_or(Refused::NoValue { flag })?)?,
            false if flag == "-and" => {
                let graph = std::mem::replace(&mut given, Given::DEFAULT);
                formulas.push(graph.formula(formulas.len())?);
            }
            false => {}
        }
    }
    formulas.push(given.formula(formulas.len())?);
    Ok(Arguments { words: words.to_vec(), formulas })
}

impl Given {
    fn set(&mut self, flag: &'static str, value: &str) -> Result<(), Refused> {
        let whole = |least, most| number(flag, value, least, most);
        match flag {
            "-steps" => self.steps = whole(1, 1_000_000_000)?,
            "-width" => self.width = whole(1, MAX_WIDTH)?,
            "-type" => self.pattern = one_of(flag, value, &PATTERNS)?,
            "-radix" => self.radix = whole(0, MAX_WIDTH)?,
            "-period" => self.period = Some(whole(0, MAX_WIDTH)?),
            "-fraction" => fraction(flag, value, 1.0)?,
            "-kernel" => self.kernel = one_of(flag, value, &KERNELS)?,
            "-iter" => drop(whole(0, i64::MAX)?),
            "-output" => drop(whole(16, MAX_BYTES)?),
            "-scratch" => self.scratch = whole(0, MAX_BYTES)?,
            "-sample" => self.samples = whole(1, 1 << 20)?,
            "-imbalance" => fraction(flag, value, 2.0)?,
            _ => drop(whole(1, 1 << 20)?),
        }
        Ok(())
    }

    /// What the pattern is, if the suite can make such a graph.
    fn formula(&self, graph: usize) -> Result<Formula, Refused> {
        match self.trouble() {
            Some(what) => Err(Refused::Graph { graph, pattern: self.pattern, what }),
            None => Ok(match self.pattern {
                "trivial" => Formula::Nothing,
                "no_comm" => Formula::Around(0),
                "stencil_1d" => Formula::Around(1),
                "dom" => Formula::Before,
                "all_to_all" => Formula::All,
                "nearest" if self.radix % 2 == 1 => Formula::Around(self.radix as usize / 2),
                _ => Formula::Table,
            }),
        }
    }

    /// What arguments say that do not go together.
    fn trouble(&self) -> Option<String> {
        let Self { width, radix, scratch, samples, .. } = *self;
        let is_periodic = ["spread", "random_nearest"].contains(&self.pattern);
        let period = self.period.unwrap_or(if is_periodic { 3 } else { 0 });
        let least = match self.pattern {
            "fft" => 2,
            "stencil_1d_periodic" => 3,
            _ => 1,
        };
        let longest = (width + radix - 1).checked_div(radix).unwrap_or(0);
        if width < least {
            return Some(format!("`-width` is {least} at least"));
        }
        if is_periodic && period == 0 {
            return Some("`-period` is 1 at least".into());
        }
        if !is_periodic && period != 0 {
            return Some("it has no `-period`".into());
        }
        if self.pattern == "spread" && !(1..=width).contains(&radix) {
            return Some(format!("`-radix` is 1 to {width}, the width, and not {radix}"));
        }
        if self.pattern == "spread" && period > longest {
            return Some(format!("`-period` is {longest} at most, and not {period}"));
        }
        if self.kernel == "memory_bound" && (scratch == 0 || scratch % (64 * samples) != 0) {
            return Some(format!(
                "`-scratch` of this kernel is a multiple of 64 bytes for each of {samples} samples, and not {scratch}"
            ));
        }
        if scratch % 64 != 0 {
            return Some(format!("`-scratch` is a multiple of 64 bytes, and not {scratch}"));
        }
        None
    }
}

fn number(flag: &'static str, value: &str, least: i64, most: i64) -> Result<i64, Refused> {
    let found = value.parse().ok().filter(|number| (least..=most).contains(number));
    found.ok_or_else(|| Refused::Value {
        flag,
        value: value.into(),
        expected: format!("a whole number from {least} to {most}"),
    })
}

fn fraction(flag: &'static str, value: &str, most: f64) -> Result<(), Refused> {
    match value.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(()),
        _ => Err(Refused::Value {
            flag,
            value: value.into(),
            expected: format!("a number from 0 to {most}"),
        }),
    }
}

fn one_of(
    flag: &'static str,
    value: &str,
    known: &'static [&'static str],
) -> Result<&'static str, Refused> {
    let found = known.iter().find(|name| **name == value).copied();
    found.ok_or_else(|| Refused::Value {
        flag,
        value: value.into(),
        expected: format!("one of {}", known.join(", ")),
    })
}

/// The flags, as a list.
fn names(flags: &[(&'static str, bool)]) -> impl fmt::Display {
    flags.iter().map(|(flag, _)| *flag).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: &str) -> Result<Vec<Formula>, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        check(&words).map(|arguments| arguments.formulas).map_err(|refused| refused.to_string())
    }

    #[test]
    fn patterns_have_formulas() {
        assert_eq!(checked(""), Ok(vec![Formula::Nothing]));
        assert_eq!(checked("-type stencil_1d -width 8"), Ok(vec![Formula::Around(1)]));
        assert_eq!(checked("-type nearest -radix 5"), Ok(vec![Formula::Around(2)]));
        assert_eq!(checked("-type nearest -radix 4"), Ok(vec![Formula::Table]));
        let two = "-type dom -and -type spread -width 8 -radix 2 -period 4 -v";
        assert_eq!(checked(two), Ok(vec![Formula::Before, Formula::Table]));
    }

    #[test]
    fn what_the_suite_would_end_for_is_refused() {
        for (line, why) in [
            ("-stesp 4", "there is no argument `-stesp`; there are -steps, -width"),
            ("-steps", "`-steps` needs a value"),
            ("-steps 0", "`-steps 0`: a whole number from 1"),
            ("-type random_spread", "`-type random_spread`: one of trivial, no_comm"),
            ("-kernel compute_dgemm", "`-kernel compute_dgemm`: one of empty"),
            ("-fraction 1.5", "`-fraction 1.5`: a number from 0 to 1"),
            ("-type fft -width 1", "graph 0, fft: `-width` is 2 at least"),
            ("-type stencil_1d_periodic -width 2", "`-width` is 3 at least"),
            ("-type tree -period 2", "graph 0, tree: it has no `-period`"),
            ("-type random_nearest -period 0", "`-period` is 1 at least"),
            ("-and -type spread -width 2", "graph 1, spread: `-radix` is 1 to 2"),
            ("-type spread -width 2 -radix 2", "`-period` is 1 at most, and not 3"),
            ("-kernel memory_bound -scratch 64", "a multiple of 64 bytes for each of 16 samples"),
            ("-scratch 8", "`-scratch` is a multiple of 64 bytes, and not 8"),
        ] {
            let error = checked(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
