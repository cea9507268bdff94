//! For tests of your own programs: small clusters that differ in all that must not matter, and what runs
//! a program on each of them.
//!
//! ```
//! use celerity::prelude::*;
//! use celerity::testing::on_every_cluster;
//!
//! fn squares(queue: &Queue) -> celerity::Result<Vec<u64>> {
//!     let squares = queue.buffer::<u64, 1>(100);
//!     queue.task("square").parallel_for(100, squares.write(one_to_one()), |item, square| {
//!         *square = (item[0] * item[0]) as u64;
//!     })?;
//!     Ok(queue.fence(&squares)?.wait()?.into_vec())
//! }
//!
//! # fn main() -> Result<(), celerity::testing::TestFailure> {
//! let result = on_every_cluster(squares)?;
//! assert_eq!(result, (0..100).map(|i| i * i).collect::<Vec<_>>());
//! # Ok(())
//! # }
//! ```
//!
//! Mappers are tested by themselves, with [`verify_mapper`](crate::verify_mapper). The book's page on
//! testing (`docs/book/testing.md`) tells what else to test.

use std::fmt;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::queue::Queue;

/// Variables of the environment for one cluster each, beside those of [`COMMON`].
const CLUSTERS: [&[(&str, &str)]; 7] = [
    &[("CELERITY_NODES", "1"), ("CELERITY_DEVICES", "1")],
    &[("CELERITY_NODES", "1"), ("CELERITY_DEVICES", "3"), ("CELERITY_LOOKAHEAD", "none")],
    &[("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "1"), ("CELERITY_COLLECTIVES", "off")],
    &[("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "2"), ("CELERITY_HORIZON_STEP", "1")],
    &[("CELERITY_NODES", "3"), ("CELERITY_DEVICES", "2"), ("CELERITY_COLLECTIVES", "always")],
    &[("CELERITY_NODES", "4"), ("CELERITY_DEVICES", "1"), ("CELERITY_DEVICE_MEMORY", "own")],
    &[("CELERITY_NODES", "7"), ("CELERITY_DEVICES", "1"), ("CELERITY_LOOKAHEAD", "infinite")],
];

/// What all of them have: every schedule is proved, and kernels run on CPUs.
const COMMON: [(&str, &str); 2] = [("CELERITY_CHECK", "on"), ("CELERITY_PLATFORM", "cpu")];

/// Characters of a result that are shown before the first one that differs, and from there on.
const SHOWN: [usize; 2] = [40, 80];

/// A small cluster of CPU devices, in this process, on which every schedule is checked before it runs
/// ([`CheckLevel::Full`](crate::CheckLevel::Full)). Prints as the variables of the environment that make a
/// program run on it.
///
/// ```
/// use celerity::testing::TestCluster;
/// let first = TestCluster::all().next().unwrap();
/// assert_eq!(
///     first.to_string(),
///     "CELERITY_NODES=1 CELERITY_DEVICES=1 CELERITY_CHECK=on CELERITY_PLATFORM=cpu"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestCluster {
    variables: &'static [(&'static str, &'static str)],
}

impl TestCluster {
    /// Seven clusters of one to seven nodes and one to three devices per node. They also differ in how far
    /// ahead memory is planned, how soon the past is forgotten, how data moves between nodes, and in which memory
    /// devices work.
    pub fn all() -> impl Iterator<Item = Self> {
        CLUSTERS.iter().map(|&variables| Self { variables })
    }

    /// The configuration to run a program with.
    #[must_use]
    pub fn config(&self) -> Config {
        Config::from_variables(self.variables()).expect("a test runs with each of them")
    }

    fn variables(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.variables.iter().copied().chain(COMMON)
    }
}

impl fmt::Display for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (name, value)) in self.variables().enumerate() {
            write!(f, "{}{name}={value}", if nth == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// Why a program has not passed on [every cluster](on_every_cluster). `Debug` writes what people read, so that a
/// test that ends with `?` or `unwrap` prints it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TestFailure {
    /// The program, or the run, has failed.
    #[error("on {cluster}: {error}")]
    #[non_exhaustive]
    Failed {
        /// Where.
        cluster: TestCluster,
        /// Why.
        #[source]
        error: Error,
    },
    /// The program's result is another one than on the first cluster.
    #[error("on {cluster}, the result is\n  {found}\nand on {first}\n  {expected}")]
    #[non_exhaustive]
    Differs {
        /// Where it differs.
        cluster: TestCluster,
        /// The cluster that it differs from.
        first: TestCluster,
        /// What `Debug` writes of the first result, around the first character that differs.
        expected: String,
        /// The same of the other result.
        found: String,
    },
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { cluster, error } => write!(f, "on {cluster}: {error:?}"),
            Self::Differs { .. } => write!(f, "{self}"),
        }
    }
}

/// Runs a program on [all test clusters](TestCluster::all), one after the other, and returns its result, which
/// is the same on all of them. Floats compare as `==` does: a result that is not a number differs from
/// itself; compare bits (`to_bits`) where there may be such.
///
/// # Errors
/// [`TestFailure::Failed`] if a run fails, and [`TestFailure::Differs`] if a result differs from the first one, with
/// the cluster. The remaining clusters are left out.
///
/// # Panics
/// If the program panics, outside of kernels and host tasks.
pub fn on_every_cluster<R: PartialEq + fmt::Debug + Send>(
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> Result<R, TestFailure> {
    let run = |cluster: TestCluster| {
        let result = cluster.config().run(&program);
        result.map_err(|error| TestFailure::Failed { cluster, error })
    };
    let [first, others @ ..] = CLUSTERS.map(|variables| TestCluster { variables });
    let expected = run(first)?;
    for cluster in others {
        let found = run(cluster)?;
        if found != expected {
            let [expected, found] = around_difference([expected, found].map(|r| format!("{r:?}")));
            return Err(TestFailure::Differs { cluster, first, expected, found });
        }
    }
    Ok(expected)
}

/// What is around the first character in which two texts differ, of each.
fn around_difference(texts: [String; 2]) -> [String; 2] {
    let [one, other] = &texts;
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let [before, from] = SHOWN;
    let begin = same.saturating_sub(before);
    texts.map(|text| {
        let shown: String = text.chars().skip(begin).take(same - begin + from).collect();
        let is_whole = begin + shown.chars().count() == text.chars().count();
        format!("{}{shown}{}", if begin == 0 { "" } else { "…" }, if is_whole { "" } else { "…" })
    })
}

#[cfg(test)]
mod tests {
    use super::{TestCluster, around_difference};

    #[test]
    fn every_cluster_can_be_configured() {
        let configs: Vec<_> = TestCluster::all().map(|cluster| cluster.config()).collect();
        assert!(configs.iter().enumerate().all(|(nth, config)| !configs[..nth].contains(config)));
    }

    #[test]
    fn of_long_results_the_difference_is_shown() {
        let long = |last: &str| format!("{}{last}{}", "x".repeat(100), "y".repeat(100));
        let [one, other] = around_difference([long("1"), long("2")]);
        assert_eq!(one, format!("…{}1{}…", "x".repeat(40), "y".repeat(79)));
        assert_eq!(other.replace('2', "1"), one);
        let short = around_difference(["[1]".to_owned(), "[1, 2]".to_owned()]);
        assert_eq!(short, ["[1]", "[1, 2]"]);
        assert_eq!(around_difference(["é".to_owned(), String::new()]), ["é", ""]);
    }
}
