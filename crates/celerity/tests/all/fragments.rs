//! Buffers that are written in ever other boxes: maps of regions become trees, and small again.

use celerity::prelude::*;
use celerity::{CheckLevel, PartView, Result, fixed, per_dimension};

use crate::common::clusters;

/// A generator of numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// Where a box begins, and its size.
type Part = [[usize; 2]; 2];

/// Boxes anywhere in a square, of up to a length in one dimension and anything up to it in the other.
fn parts(side: usize, longest: usize, count: usize, seed: u64) -> Vec<Part> {
    let mut numbers = Numbers(seed * 7919);
    let mut part = || {
        let at = [numbers.below(side), numbers.below(side)];
        let most = match numbers.below(2) {
            0 => [longest, 1],
            _ => [1 + numbers.below(longest), longest],
        };
        let range = [0, 1].map(|dim| 1 + numbers.below(most[dim].min(side - at[dim])));
        [at, range]
    };
    (0..count).map(|_| part()).collect()
}

fn mixed(element: u32, step: usize) -> u32 {
    element.wrapping_mul(3).wrapping_add(step as u32)
}

/// Each of the boxes is changed by a task.
fn change(queue: &Queue, side: usize, parts: &[Part]) -> Result<Vec<u32>> {
    let square = queue.buffer_from([side, side], vec![0_u32; side * side])?;
    for (step, [at, range]) in parts.iter().enumerate() {
        let change = move |_: Item<2>, element: &mut u32| *element = mixed(*element, step);
        let task = queue.task("change").offset(*at);
        task.parallel_for(*range, square.read_write(one_to_one()), change)?;
    }
    Ok(queue.fence(&square)?.wait()?.into_vec())
}

fn change_by_one(side: usize, parts: &[Part]) -> Vec<u32> {
    let mut square = vec![0; side * side];
    for (step, [at, range]) in parts.iter().enumerate() {
        for y in at[0]..at[0] + range[0] {
            for element in &mut square[y * side + at[1]..][..range[1]] {
                *element = mixed(*element, step);
            }
        }
    }
    square
}

#[test]
fn boxes_anywhere_are_changed_in_order() {
    for (side, longest, tasks, seeds) in [(200, 60, 300, 1..3), (100, 8, 600, 1..3)] {
        for seed in seeds {
            let parts = parts(side, longest, tasks, seed);
            let expected = change_by_one(side, &parts);
            for cluster in clusters([[1, 1], [1, 2], [2, 2], [3, 1]]) {
                let cluster = cluster.check(CheckLevel::Off);
                let found = cluster.run(|queue| change(queue, side, &parts)).unwrap();
                assert!(found == expected, "seed {seed} of {side}² on {cluster:?}");
            }
        }
    }
}

/// A factorisation without pivots, in place: what is left to do is a square that becomes smaller with each step.
fn factorise(queue: &Queue, side: usize) -> Result<Vec<f64>> {
    let matrix = queue.buffer_from([side, side], matrix(side))?;
    for step in 0..side - 1 {
        let (rest, only) = (side - step - 1, Side::only(step..step + 1));
        let pivot = matrix.read(fixed(Subrange::new([step, step], [1, 1])));
        let divide = move |_: Item<2>, (element, pivot): (&mut f64, PartView<'_, f64, 2>)| {
            *element /= pivot[[step, step]];
        };
        let task = queue.task("column").offset([step + 1, step]);
        task.parallel_for([rest, 1], (matrix.read_write(one_to_one()), pivot), divide)?;
        let column = matrix.read(per_dimension([Side::along(0), only]));
        let row = matrix.read(per_dimension([only, Side::along(1)]));
        let task = queue.task("rest").offset([step + 1, step + 1]);
        let accesses = (matrix.read_write(one_to_one()), column, row);
        task.parallel_for([rest, rest], accesses, move |item, (element, column, row)| {
            *element -= column[[item[0], step]] * row[[step, item[1]]];
        })?;
    }
    Ok(queue.fence(&matrix)?.wait()?.into_vec())
}

/// Has factors without pivots: the diagonal is more than all else in a row.
fn matrix(side: usize) -> Vec<f64> {
    let element = |at: usize| match at / side == at % side {
        true => side as f64,
        false => 1.0 / (1 + at % 97) as f64,
    };
    (0..side * side).map(element).collect()
}

fn factorise_by_one(side: usize) -> Vec<f64> {
    let mut matrix = matrix(side);
    for step in 0..side - 1 {
        for y in step + 1..side {
            matrix[y * side + step] /= matrix[step * side + step];
            let factor = matrix[y * side + step];
            for x in step + 1..side {
                matrix[y * side + x] -= factor * matrix[step * side + x];
            }
        }
    }
    matrix
}

#[test]
fn a_matrix_is_factorised_on_all_clusters() {
    for (side, check) in [
        (1, CheckLevel::Full),
        (2, CheckLevel::Full),
        (37, CheckLevel::Full),
        (200, CheckLevel::Off),
    ] {
        let expected = factorise_by_one(side);
        for cluster in clusters([[1, 1], [1, 3], [2, 2], [5, 1]]) {
            let cluster = cluster.check(check);
            let found = cluster.run(|queue| factorise(queue, side)).unwrap();
            assert!(found == expected, "{side}² on {cluster:?}");
        }
    }
}
