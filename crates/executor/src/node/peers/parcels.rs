//! Messages of several boxes: their elements leave and arrive in one [row](celerity_idag::in_transit), so that a network need not know
//! how they lie in memory. Owns the rows; refuses to know who sends, and when.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_idag::{MessageId, in_transit};
use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::communicator::dense_boxes;
use crate::copy::{ElementArray, copy_elements};
use crate::memory::BasePtr;
use crate::window::IdMap;

/// Boxes, each with the memory that it lies in.
pub(super) type Places = SmallVec<[(Box3, ElementArray); 1]>;

/// Rows that are kept for later messages.
const SPARE: usize = 64;

/// The rows of messages under way. They stay where they are until their message has left or arrived, or this is dropped.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    leaving: IdMap<MessageId, Vec<u8>>,
    arriving: IdMap<(NodeId, MessageId), Arriving>,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Arriving {
    row: Vec<u8>,
    places: Places,
    elem_size: u64,
}

impl Parcels {
    /// Copies a region to the row that it leaves in, which is there until it [has left](Self::left).
    ///
    /// # Safety
    /// The source holds the region, is live, and nobody writes these elements meanwhile.
    pub(super) unsafe fn pack(
        &mut self,
        message: MessageId,
        source: ElementArray,
        region: &Region,
        elem_size: u64,
    ) -> ElementArray {
        let (row, at) = self.row(in_transit(region), elem_size);
        for (elements, dense) in dense_boxes(region.boxes(), elem_size, at.base) {
            // SAFETY: the source is the caller's promise; the row is as long as all boxes together, and nobody else's.
            unsafe { copy_elements(source, dense, &elements, elem_size) };
        }
        self.leaving.insert(message, row);
        at
    }

    /// The row in which a message arrives, until its elements [are brought](Self::unpack) to these places.
    pub(super) fn expect(
        &mut self,
        from: NodeId,
        message: MessageId,
        places: Places,
        elem_size: u64,
    ) -> ElementArray {
        let region = Region::from_boxes(places.iter().map(|(part, _)| *part));
        let (row, at) = self.row(in_transit(&region), elem_size);
        self.arriving.insert((from, message), Arriving { row, places, elem_size });
        at
    }

    /// A message has left.
    pub(super) fn left(&mut self, message: MessageId) {
        if let Some(row) = self.leaving.remove(&message) {
            self.keep(row);
        }
    }

    /// A message has arrived: its elements are brought to their places, if it has come in a row.
    ///
    /// # Safety
    /// The places are live, and nobody else touches these elements.
    pub(super) unsafe fn unpack(&mut self, from: NodeId, message: MessageId) {
        let Some(Arriving { mut row, places, elem_size }) = self.arriving.remove(&(from, message))
        else {
            return;
        };
        #[cfg(feature = "mutants")]
        let places = celerity_mutants::Mutant::UnpackedBackwards.alter(places, |mut places| {
            places.reverse();
            places
        });
        let base = BasePtr::of_mut_slice(&mut row);
        let boxes: SmallVec<[Box3; 1]> = places.iter().map(|(part, _)| *part).collect();
        for ((elements, dense), (_, place)) in dense_boxes(&boxes, elem_size, base).zip(&places) {
            // SAFETY: the row holds all boxes, one behind the other; the places are the caller's promise.
            unsafe { copy_elements(dense, *place, &elements, elem_size) };
        }
        self.keep(row);
    }

    fn row(&mut self, elements: Box3, elem_size: u64) -> (Vec<u8>, ElementArray) {
        let bytes = elements.volume().saturating_mul(elem_size);
        let mut row = self.spare.pop().unwrap_or_default();
        row.resize(usize::try_from(bytes).expect("live memory fits the address space"), 0);
        let base = BasePtr::of_mut_slice(&mut row);
        (row, ElementArray { base, extent: elements })
    }

    fn keep(&mut self, row: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_arrive_in_their_places() {
        let (from, message) = (NodeId::from_index(1), MessageId::from_index(4));
        let parts =
            [[1, 2], [5, 6], [8, 12]].map(|[start, end]| Box3::new([0, 0, start], [1, 1, end]));
        let array = |memory: &mut Vec<u16>| {
            let base = BasePtr::of_raw(memory.as_mut_ptr().cast()).unwrap();
            ElementArray { base, extent: Box3::new([0; 3], [1, 1, 12]) }
        };
        let (mut source, mut near, mut far) =
            ((0..12).collect::<Vec<u16>>(), vec![99; 12], vec![99; 12]);
        let mut parcels = Parcels::default();
        for round in 0..2 {
            let (near, far) = (array(&mut near), array(&mut far));
            let places = Places::from_iter(parts.into_iter().zip([near, far, near]));
            // SAFETY: the arrays outlive what is done with them, on this thread alone.
            unsafe {
                let sent = parcels.pack(message, array(&mut source), &Region::from_boxes(parts), 2);
                let received = parcels.expect(from, message, places, 2);
                assert_eq!(sent.extent, received.extent);
                copy_elements(sent, received, &sent.extent, 2);
                parcels.unpack(from, message);
                parcels.unpack(from, MessageId::from_index(5));
            }
            parcels.left(message);
            assert_eq!(
                (parcels.leaving.len(), parcels.arriving.len(), parcels.spare.len()),
                (0, 0, 2),
                "{round}"
            );
        }
        let expected = |held: &'static [usize]| {
            (0..12).map(|at| if held.contains(&at) { at as u16 } else { 99 })
        };
        assert!(near.into_iter().eq(expected(&[1, 8, 9, 10, 11])));
        assert!(far.into_iter().eq(expected(&[5])));
    }
}
