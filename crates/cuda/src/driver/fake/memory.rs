//! The memories of a fake driver's GPUs, and the host's pinned memory.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use super::{AddressSpace, DriverError, Failure, MemoryHandle, Transfer};
use crate::address::pointer;
use crate::driver::TransferEnd;

pub(super) struct Memory {
    /// Bytes that each GPU has.
    limit: u64,
    /// By address.
    live: BTreeMap<u64, Block>,
    /// How many addresses are reserved, and what lies behind them, by the first.
    /// Which parts of it are there is told by blocks without words.
    reserved: BTreeMap<u64, (u64, Vec<u64>)>,
    /// By name.
    pages: BTreeMap<usize, Pages>,
    /// The next name.
    next_pages: usize,
    /// What GPUs have imported: by GPU and address, how many bytes, and how often. "Other processes"
    /// are users of the same driver, so addresses are the same for all.
    imported: BTreeMap<(usize, u64), (u64, usize)>,
}

/// What can be put behind reserved addresses.
struct Pages {
    place: AddressSpace,
    bytes: u64,
    /// Where it was put.
    at: Option<u64>,
}

struct Block {
    place: AddressSpace,
    bytes: u64,
    /// At least so many bytes, and at most two alignments more; none behind
    /// reserved addresses.
    words: Vec<u64>,
}

/// What new memory is full of.
const RUBBISH: u64 = 0xcdcd_cdcd_cdcd_cdcd;
/// The longest row stride.
pub(super) const MAX_PITCH: u64 = 1 << 20;
/// Alignment of allocations.
const ALIGNMENT: u64 = 4096;
/// Bytes in whose multiples memory is put behind reserved addresses: few, so that
/// small programs need several.
pub(super) const PIECE: u64 = 64;

/// Words full of rubbish, and the first aligned address in them.
fn rubbish(bytes: u64) -> (u64, Vec<u64>) {
    let length = usize::try_from((bytes + ALIGNMENT) / 8 + 1).expect("test sizes");
    let mut words = vec![RUBBISH; length];
    let start = words.as_mut_ptr().expose_provenance() as u64;
    (start.next_multiple_of(ALIGNMENT), words)
}

fn gpu_of(place: AddressSpace) -> usize {
    match place {
        AddressSpace::Gpu(gpu) => gpu.slot(),
        AddressSpace::Host => unreachable!("GPUs import memory"),
    }
}

fn pieces(address: u64, bytes: u64) -> impl Iterator<Item = u64> {
    (0..bytes / PIECE).map(move |piece| address + piece * PIECE)
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        let (live, reserved) = (BTreeMap::new(), BTreeMap::new());
        let (pages, imported) = (BTreeMap::new(), BTreeMap::new());
        Self { limit, live, reserved, pages, next_pages: 0, imported }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn free_bytes(&self, place: AddressSpace) -> u64 {
        // What is behind reserved addresses counts as pages.
        let is_own = |block: &&Block| block.place == place && !block.words.is_empty();
        let blocks = self.live.values().filter(is_own).map(|block| block.bytes);
        let pages = self.pages.values().filter(|pages| pages.place == place);
        let used = blocks.chain(pages.map(|pages| pages.bytes)).sum::<u64>();
        self.limit - used.min(self.limit)
    }

    pub(super) fn alloc(&mut self, place: AddressSpace, bytes: u64) -> Result<u64, DriverError> {
        self.check_room(place, bytes)?;
        let (address, words) = rubbish(bytes);
        self.live.insert(address, Block { place, bytes, words });
        Ok(address)
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        assert!(bytes.is_multiple_of(PIECE), "whole pieces are reserved");
        let (address, words) = rubbish(bytes);
        self.reserved.insert(address, (bytes, words));
        address
    }

    pub(super) fn create_pages(
        &mut self,
        place: AddressSpace,
        bytes: u64,
    ) -> Result<usize, DriverError> {
        assert!(bytes > 0 && bytes.is_multiple_of(PIECE), "whole pieces");
        self.check_room(place, bytes)?;
        self.next_pages += 1;
        self.pages.insert(self.next_pages, Pages { place, bytes, at: None });
        Ok(self.next_pages)
    }

    pub(super) fn destroy_pages(&mut self, name: usize) {
        let pages = self.pages.remove(&name).expect("pages are destroyed once");
        assert_eq!(pages.at, None, "destroyed pages are mapped");
    }

    pub(super) fn map(&mut self, place: AddressSpace, address: u64, (name, bytes): (usize, u64)) {
        let pages = self.pages.get_mut(&name).expect("pages that are there");
        assert_eq!((pages.place, pages.bytes, pages.at), (place, bytes, None), "mapped once");
        pages.at = Some(address);
        let reserved = self.reserved.range(..=address).next_back();
        let (start, (reserved, _)) = reserved.expect("what is mapped was reserved");
        let offset = address - start;
        assert!(offset.is_multiple_of(PIECE), "whole pieces");
        assert!(offset + bytes <= *reserved, "what is mapped was reserved");
        for piece in pieces(address, bytes) {
            let block = Block { place, bytes: PIECE, words: Vec::new() };
            assert!(self.live.insert(piece, block).is_none(), "nothing is mapped twice");
        }
    }

    pub(super) fn unmap(&mut self, address: u64, bytes: u64) {
        for piece in pieces(address, bytes) {
            self.live.remove(&piece).expect("what is unmapped was mapped");
        }
        let range = address..address + bytes;
        for pages in self.pages.values_mut() {
            if let Some(at) = pages.at.filter(|at| range.contains(at)) {
                assert!(at + pages.bytes <= range.end, "pages are unmapped as a whole");
                pages.at = None;
            }
        }
    }

    pub(super) fn release(&mut self, address: u64) {
        let released = self.reserved.remove(&address);
        let (bytes, words) = released.expect("released addresses were reserved");
        assert_eq!(self.live.range(address..address + bytes).count(), 0, "still mapped");
        drop(words);
    }

    fn check_room(&self, place: AddressSpace, bytes: u64) -> Result<(), DriverError> {
        if place == AddressSpace::Host || self.free_bytes(place) >= bytes {
            return Ok(());
        }
        let (code, meaning) = ("FAKE_OUT_OF_MEMORY".to_owned(), "no memory".to_owned());
        let failure = Failure::OutOfMemory;
        Err(DriverError::Failed { call: "alloc", code, meaning, failure })
    }

    pub(super) fn export(&self, address: u64) -> MemoryHandle {
        assert!(self.live.contains_key(&address), "what is exported is allocated");
        let mut handle = [0; 64];
        handle[..8].copy_from_slice(&address.to_le_bytes());
        handle
    }

    pub(super) fn import(&mut self, place: AddressSpace, handle: &MemoryHandle) -> Option<u64> {
        let address = u64::from_le_bytes(*handle.first_chunk()?);
        let bytes = self.live.get(&address)?.bytes;
        self.imported.entry((gpu_of(place), address)).or_insert((bytes, 0)).1 += 1;
        Some(address)
    }

    pub(super) fn forget(&mut self, place: AddressSpace, address: u64) {
        let known = self.imported.get_mut(&(gpu_of(place), address));
        let (_, users) = known.expect("what is given up was imported");
        *users -= 1;
        if *users == 0 {
            self.imported.remove(&(gpu_of(place), address));
        }
    }

    /// Whether a GPU has imported these bytes, and somebody has them.
    fn is_imported(&self, place: AddressSpace, address: u64, bytes: u64) -> bool {
        let AddressSpace::Gpu(gpu) = place else { return false };
        let before = self.imported.range(..=(gpu.slot(), address)).next_back();
        before.is_some_and(|((slot, start), (all, _))| {
            *slot == gpu.slot() && address + bytes <= start + all && self.live.contains_key(start)
        })
    }

    pub(super) fn alloc_words(
        &mut self,
        place: AddressSpace,
        words: &[u64],
    ) -> Result<u64, DriverError> {
        let address = self.alloc(place, 8 * words.len() as u64)?;
        // SAFETY: it was just allocated, and is aligned for more than words.
        unsafe { pointer(address).cast::<u64>().copy_from(words.as_ptr(), words.len()) };
        Ok(address)
    }

    pub(super) fn free(&mut self, address: u64) {
        let block = self.live.remove(&address).expect("freed memory was allocated");
        drop(block.words);
    }

    pub(super) fn zero(&self, place: AddressSpace, address: u64, bytes: u64) -> Result<(), String> {
        self.expect(place, address, bytes)?;
        // SAFETY: a block has these bytes, as was just checked, and whoever puts
        // operations on streams orders those that touch the same bytes.
        unsafe { pointer(address).write_bytes(0, size(bytes)) };
        Ok(())
    }

    pub(super) fn copy(&self, transfer: &Transfer) -> Result<(), String> {
        for plane in 0..transfer.planes {
            for row in 0..transfer.rows {
                let from = address_of(&transfer.source, plane, row);
                let to = address_of(&transfer.target, plane, row);
                self.expect(transfer.source.place, from, transfer.row)?;
                self.expect(transfer.target.place, to, transfer.row)?;
                // SAFETY: as above; host memory that is not known here is the
                // caller's promise.
                unsafe { pointer(from).copy_to_nonoverlapping(pointer(to), size(transfer.row)) };
            }
        }
        Ok(())
    }

    /// Checks that bytes are where they are said to be. Host memory may be
    /// anybody's, but no GPU's.
    fn expect(&self, place: AddressSpace, address: u64, bytes: u64) -> Result<(), String> {
        if self.is_imported(place, address, bytes) {
            return Ok(());
        }
        let (mut from, end) = (address, address + bytes);
        loop {
            let before = self.live.range(..=from).next_back();
            let block = before.filter(|(start, block)| from < **start + block.bytes);
            from = match block {
                Some((start, block)) if block.place == place => start + block.bytes,
                None if place == AddressSpace::Host && from == address => end,
                _ => return Err(format!("{bytes} bytes at {address:#x} are not {place:?}")),
            };
            // Only pieces behind reserved addresses go on in the next one.
            let goes_on = block.is_none_or(|(_, block)| block.words.is_empty());
            if from >= end {
                return Ok(());
            }
            if !goes_on {
                return Err(format!("{bytes} bytes at {address:#x} reach too far"));
            }
        }
    }
}

/// Whether a driver would take it: rows must fit between rows, and planes
/// between planes.
pub(super) fn is_valid(transfer: &Transfer) -> bool {
    let fits = |side: &TransferEnd| {
        side.pitch >= transfer.row
            && side.pitch <= MAX_PITCH
            && side.rows_per_plane >= transfer.rows
    };
    transfer.rows * transfer.planes == 1 || fits(&transfer.source) && fits(&transfer.target)
}

fn address_of(side: &TransferEnd, plane: u64, row: u64) -> u64 {
    side.address + (plane * side.rows_per_plane + row) * side.pitch
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit hosts only")
}
