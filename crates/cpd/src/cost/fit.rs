//! From measures to constants: least squares of relative errors, none of the constants below 0.

use std::fmt;

use super::{CostLine, Costs, Movement};
use crate::pattern::Pattern;

/// How long it took to move some data between nodes, measured once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The data that was moved: between how many nodes, and how much.
    pub movement: Movement,
    /// Whether in one operation, or else between pairs of nodes.
    pub is_collective: bool,
    /// Nanoseconds that it took, beside what takes time without it.
    pub nanos: f64,
}

/// There are too few measures to find constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooFewMeasures {
    /// Of what: `message`, or an operation.
    pub name: &'static str,
}

/// Steps, bytes and nanoseconds.
type Point = [f64; 3];

/// Nanoseconds below which measures are taken to be equally good.
const FLOOR: f64 = 1000.0;

impl Costs {
    /// The constants by which the model comes closest to what has been measured. Of messages and of
    /// each operation there must be measures with two sizes at least.
    ///
    /// What does not depend on bytes is taken to be there for each message, and once for an operation,
    /// unless measures on several numbers of nodes clearly say otherwise. So figures of few nodes, which
    /// tell little about many, make neither messages cheap there nor operations dear.
    ///
    /// # Errors
    /// If there are too few measures of something.
    pub fn fitted_to(samples: &[Sample]) -> Result<Self, TooFewMeasures> {
        let points = |wanted: &dyn Fn(&Sample) -> bool| -> Vec<Point> {
            samples.iter().filter(|sample| wanted(sample)).map(Sample::point).collect()
        };
        let messages = points(&|sample| !sample.is_collective);
        let messages =
            line(&messages, [STEP_BYTE, ONCE_BYTE]).ok_or(TooFewMeasures { name: "message" })?;
        let mut collectives = [CostLine::default(); 5];
        for (pattern, found) in Pattern::ALL.into_iter().zip(&mut collectives) {
            let of = |sample: &Sample| sample.is_collective && sample.movement.pattern == pattern;
            let fitted = line(&points(&of), [ONCE_BYTE, STEP_BYTE]);
            *found = fitted.ok_or(TooFewMeasures { name: pattern.name() })?;
        }
        Ok(Self { messages, collectives })
    }
}

impl Sample {
    fn point(&self) -> Point {
        let (steps, bytes) = match self.is_collective {
            true => self.movement.of_collective(),
            false => self.movement.of_pairs(),
        };
        [steps as f64, bytes as f64, self.nanos.max(0.0)]
    }
}

/// Which constants are not 0: once, step, byte.
type Used = [bool; 3];
const ALL: Used = [true, true, true];
const ONCE_BYTE: Used = [true, false, true];
const STEP_BYTE: Used = [false, true, true];

/// How much smaller the squares of errors must be for another line than the preferred one.
const CLEARLY: f64 = 0.5;

/// The line that is close to points; nothing if they have fewer than two sizes. It is the first of
/// `preferred` that is possible, unless another one is clearly closer.
fn line(points: &[Point], preferred: [Used; 2]) -> Option<CostLine> {
    let (first, rest) = points.split_first()?;
    rest.iter().find(|point| point[1] != first[1])?;
    let alone = [[true, false, false], [false, true, false], [false, false, true]];
    let [one, other] = preferred;
    let candidates = [one, other, ALL].into_iter().chain(alone);
    let mut best: Option<([f64; 3], f64)> = None;
    for found in candidates.filter_map(|used| solve(points, used)) {
        let error = points.iter().map(|point| error(point, &found).powi(2)).sum::<f64>();
        if best.is_none_or(|(_, least)| error < least * CLEARLY - 1e-12) {
            best = Some((found, error));
        }
    }
    let ([once, step, byte], _) = best?;
    // Rounded; no machine is so slow that this saturates.
    let whole = |value: f64| value.round() as u64;
    Some(CostLine { once: whole(once), step: whole(step), byte: whole(byte * 1000.0) })
}

/// Of a measure, by how much of it a line is off.
fn error([steps, bytes, nanos]: &Point, line: &[f64; 3]) -> f64 {
    (line[0] + line[1] * steps + line[2] * bytes - nanos) / (nanos + FLOOR)
}

/// The constants in use that make the sum of squared errors least; nothing if points do not tell, or
/// if one would be negative.
fn solve(points: &[Point], used: Used) -> Option<[f64; 3]> {
    let scale = points.iter().map(|point| point[1]).fold(1.0, f64::max);
    let mut matrix = [[0.0; 4]; 3];
    for [steps, bytes, nanos] in points {
        let weight = 1.0 / (nanos + FLOOR);
        let row = [weight, steps * weight, bytes / scale * weight, nanos * weight];
        for (at, to) in (0..3).flat_map(|at| (0..4).map(move |to| (at, to))) {
            matrix[at][to] += row[at] * row[to];
        }
    }
    for at in (0..3).filter(|at| !used[*at]) {
        (0..3).for_each(|other| matrix[other][at] = 0.0);
        matrix[at] = [0.0; 4];
        matrix[at][at] = 1.0;
    }
    let mut found = eliminate(matrix)?;
    found[2] /= scale;
    found.iter().all(|value| *value >= 0.0).then_some(found)
}

/// Solves three equations; nothing if they are not independent. They are of a matrix that is
/// symmetric and positive, so no rows need to be swapped.
fn eliminate(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let (diagonal, pivot) = (rows[at][at], rows[at]);
        let original = pivot.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        if diagonal <= 1e-9 * original || diagonal <= f64::MIN_POSITIVE {
            return None;
        }
        for other in (0..3).filter(|other| *other != at) {
            let factor = rows[other][at] / diagonal;
            (at..4).for_each(|column| rows[other][column] -= factor * pivot[column]);
        }
    }
    Some([0, 1, 2].map(|at| rows[at][3] / rows[at][at]))
}

impl fmt::Display for TooFewMeasures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name } = self;
        write!(f, "there are too few measures of `{name}`: at least two sizes are needed")
    }
}

impl std::error::Error for TooFewMeasures {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures of a machine without noise.
    fn samples(costs: &Costs, nodes: &[usize]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for pattern in Pattern::ALL {
            for (nodes, bytes) in
                nodes.iter().flat_map(|&n| [1 << 10, 1 << 16, 1 << 22].map(|b| (n, b)))
            {
                let from = if matches!(pattern, Pattern::Broadcast | Pattern::Scatter) {
                    1
                } else {
                    nodes
                };
                let to = if pattern == Pattern::Gather { 1 } else { nodes };
                let movement = Movement { pattern, nodes, from, to, bytes };
                let estimate = costs.estimate(&movement);
                for (is_collective, nanos) in [(true, estimate.collective), (false, estimate.pairs)]
                {
                    samples.push(Sample { movement, is_collective, nanos: nanos as f64 });
                }
            }
        }
        samples
    }

    fn machine() -> Costs {
        let line = |at: u64| CostLine { once: 9000 + at, step: 700 + 10 * at, byte: 150 + at };
        Costs { messages: line(1), collectives: [2, 3, 4, 5, 6].map(line) }
    }

    fn assert_close(found: &CostLine, expected: &CostLine) {
        let [found, expected] = [found, expected].map(|line| [line.once, line.step, line.byte]);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found.abs_diff(expected) <= 1 + expected / 100, "{found} for {expected}");
        }
    }

    #[test]
    fn constants_are_found_again() {
        let machine = machine();
        let found = Costs::fitted_to(&samples(&machine, &[2, 4, 8])).expect("they tell");
        assert_close(&found.messages, &machine.messages);
        for (found, expected) in found.collectives.iter().zip(&machine.collectives) {
            assert_close(found, expected);
        }
    }

    #[test]
    fn one_number_of_nodes_does_not_tell_steps_from_the_rest() {
        let machine = machine();
        let found = Costs::fitted_to(&samples(&machine, &[2])).expect("they tell");
        let CostLine { once, step, byte } = machine.messages;
        assert_close(&found.messages, &CostLine { once: 0, step: once + step, byte });
        let CostLine { once, step, byte } = machine.collectives[0];
        assert_close(&found.collectives[0], &CostLine { once: once + step, step: 0, byte });
    }

    #[test]
    fn constants_are_never_negative() {
        let mut samples = samples(&machine(), &[2, 4]);
        for sample in samples.iter_mut().filter(|sample| sample.movement.bytes > 1 << 20) {
            // As if messages were faster than they can be, and noise.
            sample.nanos = -5.0;
        }
        let found = Costs::fitted_to(&samples).expect("they tell");
        assert!(found.messages.at(1, 0) < 1_000_000, "{found}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let all = samples(&machine(), &[2]);
        let unfit = |keep: &dyn Fn(&Sample) -> bool| {
            let kept: Vec<_> = all.iter().copied().filter(|sample| keep(sample)).collect();
            Costs::fitted_to(&kept).unwrap_err().to_string()
        };
        let end = ": at least two sizes are needed";
        let message = unfit(&|sample| sample.is_collective);
        assert_eq!(message, format!("there are too few measures of `message`{end}"));
        let scatter = unfit(&|sample| {
            let is_scatter = sample.is_collective && sample.movement.pattern == Pattern::Scatter;
            !is_scatter || sample.movement.bytes == 1 << 10
        });
        assert_eq!(scatter, format!("there are too few measures of `scatter`{end}"));
    }
}
