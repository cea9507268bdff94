//! The rule of reductions: what a combination reads of the partial results of a node's tiles is what
//! the node has left there, so that each tile counts once, and in order.
//!
//! A kernel leaves a result for each of its tiles. A host task on its chunks then brings them to the
//! roots of the largest subtrees of the binary tree over all tiles, which take the first places of
//! each range of tiles; what was in the others counts no more. Roots are found here by their
//! definition, from the top of the tree.

use std::collections::BTreeMap;
use std::ops::Range;

use celerity_regions::Box3;
use celerity_tdag::{AccessMode, BufferAccess, BufferId, Mapper, Work};

use crate::buffers::TrackedBuffer;
use crate::geometry::{Boxes, difference, overlap};
use crate::violation::{Check, Vertex, Violation};

/// What this node has left of the partial results of each reduction under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(BTreeMap<BufferId, Left>);

/// The partial results of this node's tiles in one buffer.
#[derive(Clone, Debug)]
struct Left {
    /// Those of its tiles.
    tiles: Boxes,
    /// Those that count.
    roots: Boxes,
}

impl Roots {
    /// Takes note of partial results that this node's chunk of a task leaves: `parts` are those of
    /// its tiles.
    pub(crate) fn note(
        &mut self,
        work: &Work,
        access: &BufferAccess,
        parts: &Boxes,
        buffer: &TrackedBuffer,
    ) {
        if !matches!(access.mapper, Mapper::Tiles(_)) || !access.mode.writes() {
            return;
        }
        let tiles = ranges(parts);
        let is_folded =
            matches!(work, Work::HostSplit { .. }) && access.mode == AccessMode::ReadWrite;
        let all = buffer.info.extent.max()[0];
        let roots = tiles.iter().map(|tiles| match is_folded {
            true => tiles.start..tiles.start + subtrees(tiles, 0..all.next_power_of_two(), all),
            false => tiles.clone(),
        });
        let roots = roots.map(interval).collect();
        let tiles = tiles.iter().cloned().map(interval).collect();
        self.0.insert(access.buffer, Left { tiles, roots });
    }

    /// Checks what a combination reads of a buffer.
    pub(crate) fn check(&self, reader: Vertex, read: &Boxes, buffer: &TrackedBuffer) -> Check {
        let Some(Left { tiles, roots }) = self.0.get(&buffer.info.id) else { return Ok(()) };
        let violation = |part: &Box3, why| {
            let place = buffer.place(*part);
            Err(Violation::Roots { reader, place, why }.into())
        };
        if let Some(part) = difference(roots, read).first() {
            return violation(part, "leaves out what this node has left of its tiles");
        }
        let here: Boxes = tiles
            .iter()
            .flat_map(|tiles| read.iter().filter_map(|part| overlap(part, tiles)))
            .collect();
        match difference(&here, roots).first() {
            Some(part) => violation(part, "reads what this node has combined with another tile's"),
            None => Ok(()),
        }
    }

    /// Forgets a buffer.
    pub(crate) fn forget(&mut self, buffer: BufferId) {
        self.0.remove(&buffer);
    }

    /// How many buffers are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// How many of the largest subtrees make up `tiles`, of which all are in the subtree over `node`,
/// and `all` exist. One whose second half would be empty is its first half.
fn subtrees(tiles: &Range<u64>, node: Range<u64>, all: u64) -> u64 {
    let end = node.end.min(all);
    if tiles.end <= node.start || end <= tiles.start {
        return 0;
    }
    if tiles.start <= node.start && end <= tiles.end {
        return 1;
    }
    let middle = node.start + (node.end - node.start) / 2;
    let first = subtrees(tiles, node.start..middle, all);
    first + if middle < all { subtrees(tiles, middle..node.end, all) } else { 0 }
}

/// Intervals, with those joined that touch.
fn ranges(parts: &Boxes) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = parts.iter().map(|part| part.min()[0]..part.max()[0]).collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn interval(Range { start, end }: Range<u64>) -> Box3 {
    Box3::new([start, 0, 0], [end, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_made_of_the_largest_subtrees() {
        let count = |tiles, all: u64| subtrees(&tiles, 0..all.next_power_of_two(), all);
        assert_eq!([count(0..8, 8), count(0..7, 7), count(0..5, 8)], [1, 1, 2]);
        assert_eq!([count(1..8, 8), count(3..5, 8), count(4..5, 5), count(3..5, 5)], [3, 2, 1, 2]);
        assert_eq!(count(0..700, 1024), 6);
        assert_eq!([count(5..5, 8), count(0..1, 1)], [0, 1]);
    }
}
