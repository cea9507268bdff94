//! Messages of several boxes: their elements leave and arrive in one [row](celerity_idag::in_transit), so that a network need not know
//! how they lie in memory. Owns the rows; refuses to know who sends, and when.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_idag::{MessageId, in_transit};
use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::communicator::{WirePayload, dense_boxes};
use crate::copy::{ElementArray, copy_elements};
use crate::memory::BasePtr;
use crate::window::IdMap;
use crate::wires::MemoryArray;

/// Boxes, each with the memory that it lies in.
pub(super) type Places = SmallVec<[(Box3, MemoryArray); 1]>;

/// Boxes that are to be brought to memory of devices: where each lies on the host, and where it goes.
pub(super) type Scattered = SmallVec<[(ElementArray, WirePayload); 1]>;

/// Rows that are kept for later messages.
const SPARE: usize = 64;

/// The rows of messages under way. They stay where they are until their message has left or arrived, or this is dropped.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    leaving: IdMap<MessageId, Vec<u8>>,
    arriving: IdMap<(NodeId, MessageId), Arriving>,
    /// Those of which boxes are on their way to memory of devices.
    scattering: IdMap<(NodeId, MessageId), Vec<u8>>,
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

    /// A message has arrived: its elements are brought to their places, if it has come in a row; those in memory of devices are for
    /// the caller to bring there, from the row, which stays until the message has arrived once more.
    ///
    /// # Safety
    /// The places are live, and nobody else touches these elements.
    pub(super) unsafe fn unpack(&mut self, from: NodeId, message: MessageId) -> Scattered {
        let Some(Arriving { mut row, places, elem_size }) = self.arriving.remove(&(from, message))
        else {
            if let Some(row) = self.scattering.remove(&(from, message)) {
                self.keep(row);
            }
            return Scattered::new();
        };
        #[cfg(feature = "mutants")]
        let places = celerity_mutants::Mutant::UnpackedBackwards.alter(places, |mut places| {
            places.reverse();
            places
        });
        let base = BasePtr::of_mut_slice(&mut row);
        let boxes: SmallVec<[Box3; 1]> = places.iter().map(|(part, _)| *part).collect();
        let mut scattered = Scattered::new();
        for ((elements, dense), (_, place)) in dense_boxes(&boxes, elem_size, base).zip(&places) {
            let MemoryArray { at, array: memory } = *place;
            if at.device().is_some() {
                let payload = WirePayload { message, at, memory, elements, elem_size };
                scattered.push((dense, payload));
                continue;
            }
            // SAFETY: the row holds all boxes, one behind the other; the places are the caller's promise.
            unsafe { copy_elements(dense, memory, &elements, elem_size) };
        }
        match scattered.is_empty() {
            true => self.keep(row),
            // Moving the vector moves none of its bytes.
            false => drop(self.scattering.insert((from, message), row)),
        }
        scattered
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
    use celerity_idag::{DeviceId, MemoryId};

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
        let device = MemoryId::of_device(DeviceId::from_index(1));
        for (round, at) in [MemoryId::HOST, device, MemoryId::HOST].into_iter().enumerate() {
            far.fill(99);
            let (near, far) = (array(&mut near), array(&mut far));
            let [near, far] =
                [(MemoryId::HOST, near), (at, far)].map(|(at, array)| MemoryArray { at, array });
            let places = Places::from_iter(parts.into_iter().zip([near, far, near]));
            // SAFETY: the arrays outlive what is done with them, on this thread alone.
            unsafe {
                let sent = parcels.pack(message, array(&mut source), &Region::from_boxes(parts), 2);
                let received = parcels.expect(from, message, places, 2);
                assert_eq!(sent.extent, received.extent);
                copy_elements(sent, received, &sent.extent, 2);
                let scattered = parcels.unpack(from, message);
                assert_eq!(scattered.len(), usize::from(at == device), "{round}");
                for (dense, payload) in scattered {
                    assert_eq!((payload.elements, payload.at), (parts[1], device));
                    copy_elements(dense, payload.memory, &payload.elements, 2);
                }
                assert_eq!(parcels.unpack(from, MessageId::from_index(5)), Scattered::new());
                assert_eq!(parcels.scattering.len(), usize::from(at == device), "{round}");
                assert_eq!(parcels.unpack(from, message), Scattered::new(), "it is back");
            }
            parcels.left(message);
            assert!(parcels.leaving.is_empty() && parcels.arriving.is_empty());
            assert!(parcels.scattering.is_empty() && parcels.spare.len() == 2, "{round}");
        }
        assert_eq!(near, [99, 1, 99, 99, 99, 99, 99, 99, 8, 9, 10, 11]);
        assert_eq!(far[4..7], [99, 5, 99]);
    }
}
