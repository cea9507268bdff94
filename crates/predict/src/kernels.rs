//! What kernels take, as a file says instead of a measured run: by the size of a launch. Owns the format and its errors,
//! and what is between and beyond the sizes that were measured.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::cluster::{Nanos, line_of};
use crate::error::PredictError;

/// The costs of kernels by the names of their tasks, from a file.
///
/// A kernel has a list of launches that were measured: how many items, and how many ns. Between two of them a launch
/// takes what the line between them says; below the smallest, what the line through the two smallest says, since a GPU
/// takes its time for few items, too; above the largest, as much per item as the largest. Of a kernel with one launch,
/// all others cost as much per item.
///
/// ```
/// # use celerity_predict::KernelCosts;
/// let text = "name = 'rates of an H200'
/// [kernels]
/// step = [[100, 1000], [300, 2000]]
/// ";
/// let costs = KernelCosts::parse(text, "costs.toml".as_ref())?;
/// let of = |items| costs.of_launch("step", items, 0);
/// assert_eq!([of(200), of(20), of(600)], [Some(1500), Some(600), Some(4000)]);
/// assert_eq!(costs.of_launch("fill", 1, 0), None);
/// # Ok::<(), celerity_predict::PredictError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCosts {
    /// What the numbers are of.
    pub name: String,
    /// By name, the launches that were measured, in ascending order of items.
    kernels: BTreeMap<String, Vec<MeasuredSize>>,
}

/// Items of a launch, and what it took, in ns.
type MeasuredSize = (u64, Nanos);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    name: String,
    kernels: BTreeMap<String, Spanned<Vec<MeasuredSize>>>,
}

impl KernelCosts {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PredictError::Read`], or as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, PredictError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PredictError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// The costs of a text; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] with the line, if it is no TOML, if a key is missing or unknown, if a kernel has no
    /// launch, or one without items, or two with as many.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        let malformed = |start: usize, what| PredictError::Malformed {
            path: path.to_owned(),
            line: line_of(text, start.min(text.len())),
            what,
        };
        let fields: Fields = toml::from_str(text).map_err(|error| {
            malformed(error.span().map_or(0, |span| span.start), error.message().to_owned())
        })?;
        let mut kernels = BTreeMap::new();
        for (kernel, launches) in fields.kernels {
            let start = launches.span().start;
            let launches = ascending(launches.into_inner())
                .map_err(|what| malformed(start, format!("`{kernel}` {what}")))?;
            kernels.insert(kernel, launches);
        }
        Ok(Self { name: fields.name, kernels })
    }

    /// What a launch of so many items of a kernel takes, in ns, on a device whose launches take `launch` ns beside their
    /// items; `None` if the file does not have the kernel.
    #[must_use]
    pub fn of_launch(&self, kernel: &str, items: u64, launch: Nanos) -> Option<Nanos> {
        let sizes = self.kernels.get(kernel)?.as_slice();
        let after = sizes.partition_point(|(measured, _)| *measured < items);
        let took = match (sizes, after) {
            // The line through the two that are around it, or the smallest.
            ([_, _, ..], after) if after < sizes.len() => {
                let upper = after.max(1);
                line([sizes[upper - 1], sizes[upper]], items)
            }
            _ => {
                let (most, took) = *sizes.last()?;
                line([(0, launch.min(took)), (most, took)], items)
            }
        };
        Some(took.max(launch))
    }
}

fn ascending(mut launches: Vec<MeasuredSize>) -> Result<Vec<MeasuredSize>, &'static str> {
    launches.sort_unstable();
    match launches.as_slice() {
        [] => Err("has no launch: write [[items, ns]]"),
        [(0, _), ..] => Err("has a launch without items, which takes nothing"),
        sorted if sorted.windows(2).any(|two| two[0].0 == two[1].0) => {
            Err("has two launches of as many items")
        }
        _ => Ok(launches),
    }
}

/// The value at `items` of the line through two sizes, of which the former is smaller; not below zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn line([(from, low), (until, high)]: [MeasuredSize; 2], items: u64) -> Nanos {
    let slope = (high as f64 - low as f64) / (until - from) as f64;
    (low as f64 + slope * (items as f64 - from as f64)).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KernelCosts, PredictError> {
        KernelCosts::parse(text, "k.toml".as_ref())
    }

    #[test]
    fn launches_are_on_lines_through_measured_ones() {
        let costs =
            parse("name = ''\nkernels.step = [[400, 5000], [100, 2000], [200, 3000]]").unwrap();
        let of = |items| costs.of_launch("step", items, 500).unwrap();
        assert_eq!([of(100), of(200), of(400)], [2000, 3000, 5000]);
        assert_eq!([of(150), of(300)], [2500, 4000]);
        assert_eq!([of(50), of(0)], [1500, 1000], "the line through the two smallest");
        assert_eq!(of(800), 9500, "as much per item as the largest, beside the launch");
        let steep = parse("name = ''\nkernels.step = [[100, 1000], [200, 5000]]").unwrap();
        assert_eq!(steep.of_launch("step", 1, 500), Some(500), "no less than a launch");
    }

    #[test]
    fn one_launch_says_what_an_item_costs() {
        let costs =
            parse("name = ''\nkernels = { step = [[100, 1500]], none = [[1, 0]] }").unwrap();
        let of = |items| costs.of_launch("step", items, 500).unwrap();
        assert_eq!([of(50), of(100), of(200)], [1000, 1500, 2500]);
        assert_eq!(costs.of_launch("none", 1 << 40, 500), Some(500));
    }

    #[test]
    fn gaps_and_mistakes_are_named_with_their_line() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said("name = ''\n"), "k.toml:1: missing field `kernels`");
        let unknown = said("name = ''\nkernel = {}\n");
        assert!(unknown.starts_with("k.toml:2: unknown field `kernel`"), "{unknown}");
        let head = "name = ''\n[kernels]\n";
        let step = |launches: &str| said(&format!("{head}step = {launches}\n"));
        assert_eq!(step("[]"), "k.toml:3: `step` has no launch: write [[items, ns]]");
        assert!(step("[[0, 1]]").starts_with("k.toml:3: `step` has a launch without items"));
        assert!(step("[[1, 2], [1, 3]]").starts_with("k.toml:3: `step` has two launches"));
        for wrong in ["[[1, -2]]", "[[1]]", "[1, 2]", "7", "'a'"] {
            assert!(step(wrong).starts_with("k.toml:3: "), "{wrong}: {}", step(wrong));
        }
    }
}
