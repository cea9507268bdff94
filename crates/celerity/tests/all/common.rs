//! What tests of whole programs put into buffers, and how they look at them.

use celerity::prelude::*;
use celerity::{Element, Result};

/// A buffer's contents now.
pub(crate) fn contents<T: Element, const D: usize>(
    queue: &Queue,
    buffer: &Buffer<T, D>,
) -> Result<Vec<T>> {
    Ok(queue.fence(buffer)?.wait()?.into_vec())
}

/// Some values that no two neighbouring elements share.
pub(crate) fn values(count: usize) -> Vec<i64> {
    (0..count as i64).map(|i| (i * 7919 + 13) % 1009).collect()
}

pub(crate) fn indices([h, w]: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    (0..h).flat_map(move |y| (0..w).map(move |x| [y, x]))
}
