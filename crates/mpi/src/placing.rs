//! Where the segments of a collective operation lie in memory, and how MPI counts them. Begins nothing.
#![allow(unsafe_code)]

use std::ffi::c_int;

use celerity_executor::{BasePtr, MemoryPart, find_in};
use celerity_regions::Region;
use mpi::ffi::MPI_Datatype;

use crate::error::MpiError;
use crate::layout::StridedBytes;
use crate::raw;
use crate::raw::collective::ProcessParts;
use crate::segments::Rounds;

/// What MPI counts up to.
pub(crate) const MOST: u64 = c_int::MAX as u64;

/// Where the segments of one side lie: the part of segment `k` for round `r` begins
/// `offsets[k] + r · pitch` bytes behind the base.
#[derive(Clone, Debug)]
pub(crate) struct Placing {
    pub(crate) base: *mut u8,
    pub(crate) offsets: Vec<u64>,
    pub(crate) lengths: Vec<u64>,
    pub(crate) pitch: u64,
    /// Bytes per item of what is counted.
    pub(crate) unit: u64,
}

/// Where nothing is sent from and nothing received: memory all the same, since a dangling pointer may
/// be 1, which means "in place" to Open MPI.
fn nowhere() -> *mut u8 {
    static NOWHERE: u8 = 0;
    (&raw const NOWHERE).cast_mut()
}

pub(crate) fn pointer(address: *mut u8) -> BasePtr {
    BasePtr::of_raw(address).expect("memory has an address")
}

pub(crate) fn lengths(segments: &[Region], elem_size: u64) -> Vec<u64> {
    segments.iter().map(|region| region.volume().saturating_mul(elem_size)).collect()
}

impl Placing {
    /// Of segments that lie in one piece each, all in one array, near enough to be counted.
    pub(crate) fn in_memory(
        parts: &[MemoryPart],
        segments: &[Region],
        elem_size: u64,
        rounds: Rounds,
    ) -> Option<Self> {
        let lengths = lengths(segments, elem_size);
        let mut found = Vec::with_capacity(segments.len());
        for region in segments {
            found.push(if region.is_empty() { None } else { Some(run(parts, region, elem_size)?) });
        }
        let some = || found.iter().flatten();
        let Some((array, _)) = some().next() else {
            let offsets = vec![0; segments.len()];
            return Some(Self { base: nowhere(), offsets, lengths, pitch: rounds.bytes, unit: 1 });
        };
        if some().any(|(other, _)| other != array) {
            return None;
        }
        let first = some().map(|(_, at)| *at).min().unwrap_or(0);
        let offsets: Vec<_> = found.iter().map(|at| at.map_or(0, |(_, at)| at - first)).collect();
        let span = offsets.iter().copied().max().unwrap_or(0);
        let whole = rounds.bytes.is_multiple_of(elem_size) || rounds.count == 1;
        let unit = if span <= MOST { 1 } else { elem_size };
        let fits = span / unit <= MOST && unit <= MOST && (unit == 1 || whole);
        let first = usize::try_from(first).expect("it is in memory");
        let base = array.as_ptr().wrapping_add(first);
        fits.then_some(Self { base, offsets, lengths, pitch: rounds.bytes, unit })
    }

    /// Where a segment's part of a round begins.
    pub(crate) fn address(&self, segment: usize, round: usize) -> *mut u8 {
        let at = self.offsets[segment] + round as u64 * self.pitch;
        self.base.wrapping_add(usize::try_from(at).expect("it is in memory"))
    }

    /// A whole segment in dense memory; `joined` is room for one that lies in parts.
    pub(crate) fn segment(
        &self,
        at: usize,
        rounds: Rounds,
        dense: &[u8],
        joined: &mut Vec<u8>,
    ) -> BasePtr {
        if rounds.count == 1 {
            return pointer(self.address(at, 0));
        }
        for round in 0..rounds.count {
            let (_, length) = rounds.part(round, self.lengths[at]);
            let start = self.offsets[at] + round as u64 * self.pitch;
            let [start, length] =
                [start, length].map(|bytes| usize::try_from(bytes).expect("small"));
            joined.extend_from_slice(&dense[start..start + length]);
        }
        BasePtr::of_slice(joined)
    }
}

/// The array that a region lies in as one piece, in the order in which it is packed, and how many bytes
/// into the array it begins.
fn run(parts: &[MemoryPart], region: &Region, elem_size: u64) -> Option<(BasePtr, u64)> {
    let (mut start, mut end) = (None, 0);
    for elements in region.boxes() {
        let (memory, found) = find_in(parts, elements).next()?;
        let (layout, first) = StridedBytes::new(&memory.extent, &found, elem_size);
        let first = first as u64;
        let goes_on = start.is_none_or(|(base, _)| base == memory.base && end == first);
        if found != *elements || !layout.is_contiguous() || !goes_on {
            return None;
        }
        start.get_or_insert((memory.base, first));
        end = first + layout.run as u64;
    }
    start
}

/// Segments as MPI counts them.
pub(crate) struct Counted {
    pub(crate) placing: Placing,
    datatype: MPI_Datatype,
}

impl Counted {
    pub(crate) fn new(placing: Placing) -> Result<Self, MpiError> {
        let datatype = match placing.unit {
            1 => raw::byte(),
            unit => {
                let bytes = usize::try_from(unit).expect("it is counted");
                raw::commit(raw::strided(1, (bytes, raw::byte()), 0)?)?
            }
        };
        Ok(Self { placing, datatype })
    }

    /// Gives back what MPI keeps for it.
    pub(crate) fn free(self) -> Result<(), MpiError> {
        if self.placing.unit == 1 { Ok(()) } else { raw::free_datatype(self.datatype) }
    }

    /// What goes in one round.
    pub(crate) fn pieces(&self, rounds: Rounds, round: usize) -> ProcessParts {
        let Placing { offsets, lengths, unit, .. } = &self.placing;
        let items = |bytes: u64| {
            raw::count(usize::try_from(bytes / unit).expect("rounds keep what MPI can count"))
        };
        let counts = lengths.iter().map(|length| items(rounds.part(round, *length).1)).collect();
        let displacements = offsets.iter().map(|at| items(*at)).collect();
        let back = usize::try_from(round as u64 * self.placing.pitch).expect("it is in memory");
        let base = self.placing.base.wrapping_add(back);
        ProcessParts { base, counts, displacements, datatype: self.datatype }
    }
}
