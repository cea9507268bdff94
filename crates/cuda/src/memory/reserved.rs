//! Addresses of one GPU behind which memory is put as it is needed, in pieces of
//! the driver's size. Owns which pieces are there; whether there is room for
//! more, and who zeroes them, is decided in `device`.

use std::ops::Range;

use super::pages::Block;

/// A range of addresses.
#[derive(Debug)]
pub(super) struct Reserved {
    /// The first of them.
    pub(super) start: u64,
    /// How many, whole pieces.
    pub(super) bytes: u64,
    /// Bytes per piece.
    piece: u64,
    /// Where there is memory, from `start`, as it was put there: disjoint, in order.
    mapped: Vec<Range<u64>>,
    /// What is there, in no order.
    blocks: Vec<Block>,
}

impl Reserved {
    /// Addresses from `start` on, a multiple of `piece` of them.
    pub(super) fn new(start: u64, bytes: u64, piece: u64) -> Self {
        Self { start, bytes, piece, mapped: Vec::new(), blocks: Vec::new() }
    }

    /// The whole pieces that hold `bytes` and are not there, in as few runs as
    /// possible. O(n) in how often something was mapped.
    pub(super) fn missing(&self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let (from, end) = (bytes.start / self.piece, bytes.end.div_ceil(self.piece));
        let (mut from, end) = (from * self.piece, end * self.piece);
        let mut missing = Vec::new();
        for run in &self.mapped {
            if from < run.start.min(end) {
                missing.push(from..run.start.min(end));
            }
            from = from.max(run.end);
        }
        if from < end {
            missing.push(from..end);
        }
        missing
    }

    /// Notes that a run is there now, and consists of these blocks.
    pub(super) fn note(&mut self, run: Range<u64>, blocks: Vec<Block>) {
        self.blocks.extend(blocks);
        let before = self.mapped.partition_point(|known| known.start < run.start);
        self.mapped.insert(before, run);
    }

    /// Where there is memory, as it was put there.
    pub(super) fn mapped(&self) -> &[Range<u64>] {
        &self.mapped
    }

    /// What was there, and nobody will look at there again.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    /// Bytes of memory.
    pub(super) fn resident(&self) -> u64 {
        self.mapped.iter().map(|run| run.end - run.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pieces_are_missing_once() {
        let mut reserved = Reserved::new(1 << 40, 100, 10);
        let missing = |reserved: &Reserved, bytes: Range<u64>| {
            reserved.missing(&bytes).iter().map(|run| (run.start, run.end)).collect::<Vec<_>>()
        };
        assert_eq!(missing(&reserved, 12..35), [(10, 40)]);
        reserved.note(10..40, Vec::new());
        assert_eq!(missing(&reserved, 15..40), []);
        assert_eq!(missing(&reserved, 5..62), [(0, 10), (40, 70)]);
        reserved.note(40..70, Vec::new());
        reserved.note(0..10, Vec::new());
        assert_eq!(missing(&reserved, 0..71), [(70, 80)]);
        assert_eq!(reserved.resident(), 70);
    }
}
