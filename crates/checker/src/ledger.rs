//! Who touched an element last, and what it holds: one ledger per place where
//! a buffer's elements are (the program, a node, an allocation).
//!
//! Owns the rule that conflicting accesses are ordered. Refuses to know graphs
//! and what versions are good for.

use std::convert::Infallible;

use celerity_regions::Box3;
use smallvec::SmallVec;

use crate::ancestors::Ancestors;
use crate::tiles::BoxMap;
use crate::violation::{AbstractValue, Hazard};

/// What is known of an element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) version: AbstractValue,
    /// Who wrote it last; `None` if it was there before the graph began.
    pub(crate) writer: Option<u64>,
    /// Who has read it since: only those that no other reader waits for.
    pub(crate) readers: SmallVec<[u64; 2]>,
}

/// Versions of disjoint parts.
pub(crate) type AbstractValues = SmallVec<[(Box3, AbstractValue); 4]>;

/// Two accesses to the same element that may happen in any order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clash {
    pub(crate) earlier: u64,
    pub(crate) hazard: Hazard,
    pub(crate) part: Box3,
}

/// The cells of one place.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    cells: BoxMap<Cell>,
    /// Number of tiles after the last compaction.
    compacted: usize,
}

/// Ledgers of fewer tiles are left as they are.
const COMPACT_ABOVE: usize = 16;

impl Ledger {
    /// A ledger in which `writer` has left `version` everywhere.
    pub(crate) fn new(extent: Box3, version: AbstractValue, writer: Option<u64>) -> Self {
        let cell = Cell { version, writer, readers: SmallVec::new() };
        Self { cells: BoxMap::new(extent, cell), compacted: 0 }
    }

    /// Number of cells that are told apart.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Calls `each` with the parts of `query`, until one call fails.
    pub(crate) fn visit<E>(
        &self,
        query: &Box3,
        each: impl FnMut(Box3, &Cell) -> Result<(), E>,
    ) -> Result<(), E> {
        self.cells.visit(query, each)
    }

    /// What `part` holds.
    pub(crate) fn versions(&self, part: &Box3) -> AbstractValues {
        let mut versions = AbstractValues::new();
        let Ok(()) = self.visit(part, |part, cell| {
            versions.push((part, cell.version));
            Ok::<(), Infallible>(())
        });
        versions
    }

    /// Calls `each` with the parts of `query` in which neither this ledger nor
    /// `other` changes: the cell here, and the version there.
    pub(crate) fn compare<E>(
        &self,
        other: &Ledger,
        query: &Box3,
        mut each: impl FnMut(Box3, &Cell, AbstractValue) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(query, |part, cell| {
            other.visit(&part, |part, theirs| each(part, cell, theirs.version))
        })
    }

    /// Notes that `reader`, the newest node, reads `part`.
    pub(crate) fn read(
        &mut self,
        order: &Ancestors,
        reader: u64,
        part: &Box3,
    ) -> Result<(), Clash> {
        self.visit(part, |part, cell| match cell.writer {
            Some(writer) if !order.waits_for(reader, writer) => {
                Err(Clash { earlier: writer, hazard: Hazard::ReadAfterWrite, part })
            }
            _ => Ok(()),
        })?;
        self.cells.modify(part, |cell| {
            if !cell.readers.contains(&reader) {
                cell.readers.retain(|earlier| !order.waits_for(reader, *earlier));
                cell.readers.push(reader);
            }
        });
        Ok(())
    }

    /// Whether `writer`, the newest node, may overwrite `part`.
    pub(crate) fn check_write(
        &self,
        order: &Ancestors,
        writer: u64,
        part: &Box3,
    ) -> Result<(), Clash> {
        self.visit(part, |part, cell| {
            check_last(order, writer, part, cell, Hazard::WriteAfterWrite)
        })
    }

    /// Whether `end`, the newest node, may take all memory away.
    pub(crate) fn check_free(&self, order: &Ancestors, end: u64) -> Result<(), Clash> {
        self.cells.visit_all(|part, cell| check_last(order, end, part, cell, Hazard::FreeAfterUse))
    }

    /// Notes that `writer` has left `version` in `part`.
    pub(crate) fn write(&mut self, writer: u64, part: &Box3, version: AbstractValue) {
        let cell = Cell { version, writer: Some(writer), readers: SmallVec::new() };
        self.cells.set(part, cell);
    }

    /// Forgets what is known of `part`, though nobody has written it.
    pub(crate) fn outdate(&mut self, part: &Box3) {
        self.cells.modify(part, |cell| cell.version = AbstractValue::Undefined);
    }

    /// Lets `floor` stand in for all older nodes, if there are many cells.
    pub(crate) fn compact(&mut self, floor: u64) {
        if self.cells.len() <= COMPACT_ABOVE.max(2 * self.compacted) {
            return;
        }
        self.cells.compact(|cell| {
            cell.writer = cell.writer.map(|writer| writer.max(floor));
            cell.readers.iter_mut().for_each(|reader| *reader = (*reader).max(floor));
            cell.readers.sort_unstable();
            cell.readers.dedup();
        });
        self.compacted = self.cells.len();
    }
}

/// Whoever ends the life of a cell's contents waits for all who use them.
fn check_last(
    order: &Ancestors,
    last: u64,
    part: Box3,
    cell: &Cell,
    overwriting: Hazard,
) -> Result<(), Clash> {
    let hazard = match overwriting {
        Hazard::WriteAfterWrite => Hazard::WriteAfterRead,
        other => other,
    };
    // A message may write for as long as nobody has awaited it.
    if let (AbstractValue::Arriving, Some(earlier)) = (cell.version, cell.writer) {
        return Err(Clash { earlier, hazard: overwriting, part });
    }
    let mut readers = cell.readers.iter();
    if let Some(&earlier) = readers.find(|&&reader| !order.waits_for(last, reader)) {
        return Err(Clash { earlier, hazard, part });
    }
    match cell.writer {
        Some(earlier) if !order.waits_for(last, earlier) => {
            Err(Clash { earlier, hazard: overwriting, part })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Box3 = Box3::new([0; 3], [8, 1, 1]);
    const HALF: Box3 = Box3::new([0; 3], [4, 1, 1]);

    /// `0 ← 1`, `0 ← 2`, and `3` waits for what it is told.
    fn order(last: &[u64]) -> Ancestors {
        let mut order = Ancestors::default();
        [&[][..], &[0], &[0], last].into_iter().for_each(|edges| order.push(edges));
        order
    }

    fn read_twice(last: &[u64]) -> (Ledger, Ancestors) {
        let order = order(last);
        let mut ledger = Ledger::new(WHOLE, AbstractValue::Undefined, Some(0));
        ledger.read(&order, 1, &HALF).expect("1 waits for 0");
        ledger.read(&order, 2, &WHOLE).expect("2 waits for 0");
        (ledger, order)
    }

    #[test]
    fn a_writer_waits_for_all_readers() {
        let (ledger, order) = read_twice(&[1]);
        let clash = ledger.check_write(&order, 3, &HALF).unwrap_err();
        assert_eq!((clash.earlier, clash.hazard), (2, Hazard::WriteAfterRead));
        let (ledger, order) = read_twice(&[1, 2]);
        assert!(ledger.check_write(&order, 3, &WHOLE).is_ok());
    }

    #[test]
    fn only_readers_of_the_same_elements_count() {
        let (ledger, order) = read_twice(&[2]);
        let other_half = Box3::new([4, 0, 0], WHOLE.max());
        assert!(ledger.check_write(&order, 3, &other_half).is_ok());
        assert_eq!(ledger.check_free(&order, 3).unwrap_err().hazard, Hazard::FreeAfterUse);
    }

    #[test]
    fn a_reader_that_another_waits_for_is_forgotten() {
        let order = order(&[1, 2]);
        let mut ledger = Ledger::new(WHOLE, AbstractValue::Initial, None);
        (1..4).for_each(|reader| ledger.read(&order, reader, &WHOLE).expect("nobody writes"));
        let collected = ledger.visit(&WHOLE, |_, cell| match cell.readers.as_slice() {
            [3] => Ok(()),
            more => Err(more.to_vec()),
        });
        assert_eq!(collected, Ok(()));
    }

    #[test]
    fn a_read_waits_for_the_last_writer() {
        let order = order(&[2]);
        let mut ledger = Ledger::new(WHOLE, AbstractValue::Undefined, None);
        ledger.write(1, &HALF, AbstractValue::Initial);
        let clash = ledger.read(&order, 3, &WHOLE).unwrap_err();
        assert_eq!((clash.earlier, clash.part), (1, HALF));
    }
}
