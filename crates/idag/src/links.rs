//! How copies get from one memory to another: which way, and with which stops. Knows the node's
//! wiring, not what is where.

use celerity_regions::Box3;

use crate::instruction::{DeviceId, MemoryId};
use crate::layout::elements_per_row;
use crate::linearize::{CopyEnd, Stops, stops};
use crate::pieces::{Boxes, slabs};
use crate::version::MemorySet;

/// How copies get from one memory to another: between which devices they go
/// directly, and where they stop to be linearised. Host and user memory reach
/// all devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// By device: bit `d` is set if its memory cannot be copied to that of
    /// device `d`. Empty if everything can.
    missing: Box<[u64]>,
    /// Rows of less bytes than this are slow between devices and the host.
    rows_below: u64,
    /// Bytes of the pieces in which transfers go through the host; 0: they go as a whole.
    piece: u64,
    /// Bytes from which on linked devices share what they get from elsewhere; 0: never.
    share_from: u64,
}

impl Links {
    /// Keeps the links for which `direct` says yes, of `devices` devices.
    pub(crate) fn restrict(&mut self, devices: usize, direct: impl Fn(DeviceId, DeviceId) -> bool) {
        let device = |index: usize| DeviceId::from_index(index as u64);
        let lacks = |from: usize, to: usize| from != to && !direct(device(from), device(to));
        let row =
            |from| (0..devices).filter(|&to| lacks(from, to)).fold(0, |row, to| row | 1 << to);
        let missing: Box<[u64]> = (0..devices).map(row).collect();
        self.missing = if missing.iter().all(|&row| row == 0) { [].into() } else { missing };
    }

    /// Calls rows of less than `bytes` slow.
    pub(crate) fn linearize(&mut self, bytes: u64) {
        self.rows_below = bytes;
    }

    /// Whether some rows are slow, so that copies may stop on their way.
    pub(crate) fn linearize_some(&self) -> bool {
        self.rows_below > 0
    }

    /// Whether rows of so many bytes are slow.
    pub(crate) fn are_slow(&self, row: u64) -> bool {
        row < self.rows_below
    }

    /// Whether nothing is ever staged.
    pub(crate) fn are_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether copies go directly.
    pub(crate) fn reach(&self, from: MemoryId, to: MemoryId) -> bool {
        match (from.device(), to.device()) {
            (Some(from), Some(to)) => {
                let row = usize::try_from(from.index()).expect("device counts fit in memory");
                self.missing.get(row).is_none_or(|row| row >> to.index() & 1 == 0)
            }
            _ => true,
        }
    }

    /// The memory to copy a version from that `to` lacks, and that was written to `origin`.
    pub(crate) fn source(&self, origin: MemoryId, to: MemoryId) -> MemoryId {
        if self.reach(origin, to) { origin } else { MemoryId::HOST }
    }

    /// The memories of the devices that are linked with a device and with each other, its own among
    /// them; `None` if one of them is linked with others, or nobody's memory is asked for.
    pub(crate) fn island(&self, memory: MemoryId) -> Option<MemorySet> {
        let device = memory.device()?;
        if self.missing.is_empty() {
            return Some(MemorySet::ALL);
        }
        let linked = |device: usize| !self.missing[device];
        let island = linked(usize::try_from(device.index()).expect("device counts fit in memory"));
        let mut devices = 0..self.missing.len();
        let stays_apart = |device: usize| match island >> device & 1 {
            1 => linked(device) == island,
            _ => linked(device) & island & self.known() == 0,
        };
        devices.all(stays_apart).then(|| {
            let members = (0..self.missing.len()).filter(|device| island >> device & 1 == 1);
            let memory = |device| MemoryId::of_device(DeviceId::from_index(device as u64));
            members.fold(MemorySet::NONE, |all, device| all.with(memory(device)))
        })
    }

    /// A bit for each device.
    fn known(&self) -> u64 {
        (1 << self.missing.len()) - 1
    }

    /// Cuts what goes to other nodes through the host into pieces of so many bytes; 0: nothing.
    pub(crate) fn cut_into(&mut self, bytes: u64) {
        self.piece = bytes;
    }

    /// Whether something goes in pieces.
    pub(crate) fn cut_some(&self) -> bool {
        self.piece > 0
    }

    /// The pieces in which `part` of a buffer of `extent` goes through the host on its way to another
    /// node. What has slow rows is not cut, since it stops in dense stages.
    pub(crate) fn pieces(&self, part: &Box3, extent: &Box3, elem_size: u64) -> Boxes {
        let row = || elements_per_row(part, extent).saturating_mul(elem_size);
        if self.piece == 0 || self.are_slow(row()) {
            return Boxes::from_iter([*part]);
        }
        slabs(part, elem_size, self.piece)
    }

    /// Lets linked devices share what they get from elsewhere, from so many bytes each.
    pub(crate) fn share_from(&mut self, bytes: u64) {
        self.share_from = bytes;
    }

    /// Whether linked devices share some of what they get from elsewhere.
    pub(crate) fn share_some(&self) -> bool {
        self.share_from > 0
    }

    /// Bytes that each of so many linked devices gets, if all of them read `bytes` that none has;
    /// `None` if each gets all of it.
    pub(crate) fn share(&self, bytes: u64, devices: usize) -> Option<u64> {
        let share = bytes.div_ceil(devices as u64);
        (self.share_from > 0 && share >= self.share_from).then_some(share)
    }

    /// Where a copy of `elements` stops on its way.
    pub(crate) fn stops(
        &self,
        ends: (CopyEnd<'_>, CopyEnd<'_>),
        elements: &Box3,
        elem_size: u64,
    ) -> Stops {
        stops(ends, elements, elem_size, self.rows_below)
    }
}
