//! Windows of a node's GPUs: memory that the other processes of the host read. One stream per GPU fills its
//! window, another one empties those of others. Decides neither what is copied nor when.
//!
//! A window is allocated once, so that handles are exchanged once: memory of buffers comes from pools and
//! grows where it is, and neither can be exported by CUDA IPC. The copy in between takes what a GPU's own
//! memory takes, a tenth of the way between GPUs and less.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_executor::{
    CARD_LEN, Copied, CopyId, DeviceWindows, ElementArray, MemoryArray, Slot, WindowError,
    WindowSize, WireCopy,
};

use crate::driver::{
    AddressSpace, Driver, DriverError, Event, Gpu, MemoryHandle, Stream, Transfer,
};
use crate::memory::AllocationStream;
use crate::ordered::{Events, OrderedStream};
use crate::transfer::{self, Array};

mod card;

use card::Card;

/// How large windows are, and for what they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Pieces that are in a window at the same time: 1 to 1024.
    pub slots: u16,
    /// Bytes of a piece, at least 65,536.
    pub slot_bytes: u64,
    /// Payloads of less bytes go through host memory.
    pub least: u64,
}

/// The windows of one node's GPUs, and those that it has opened.
pub(crate) struct CudaWindows {
    driver: Arc<dyn Driver>,
    config: WindowConfig,
    devices: Vec<Device>,
    card: Vec<u8>,
    /// By node: by window of it, the address for each GPU of this node.
    peers: HashMap<NodeId, Vec<Vec<u64>>>,
    /// Copies that have begun: the events behind them.
    pending: Vec<(CopyId, Event)>,
    /// Copies that have failed before they could begin.
    failed: Vec<Copied>,
    /// Whether a copy has failed.
    is_broken: bool,
}

/// A GPU of the node.
struct Device {
    gpu: Gpu,
    max_pitch: u64,
    /// Where its window is.
    window: u64,
    fence: Arc<AllocationStream>,
    fills: OrderedStream,
    empties: OrderedStream,
    events: Events,
}

impl CudaWindows {
    /// GPUs of a node whose handles fit on a card.
    pub(crate) const MOST: usize = (CARD_LEN - 8) / size_of::<MemoryHandle>();

    /// Windows of these GPUs, each with the longest stride of its copies and what tells of its memory.
    ///
    /// # Errors
    /// If there is no room, or processes cannot share memory here.
    pub(crate) fn new(
        driver: &Arc<dyn Driver>,
        config: WindowConfig,
        gpus: impl IntoIterator<Item = (Gpu, u64, Arc<AllocationStream>)>,
    ) -> Result<Self, DriverError> {
        let bytes = config.bytes()?;
        let mut all = Self {
            driver: driver.clone(),
            config,
            devices: Vec::new(),
            card: Vec::new(),
            peers: HashMap::new(),
            pending: Vec::new(),
            failed: Vec::new(),
            is_broken: false,
        };
        for (gpu, max_pitch, fence) in gpus {
            let side = || OrderedStream::new(&**driver, gpu);
            let (fills, empties) = (side()?, side()?);
            let window = driver.alloc_shared(gpu, bytes)?;
            let events = Events::new(gpu);
            all.devices.push(Device { gpu, max_pitch, window, fence, fills, empties, events });
        }
        let handles = all.devices.iter().map(|one| driver.export(one.gpu, one.window));
        let card = Card::new(handles.collect::<Result<_, _>>()?);
        for device in &all.devices {
            device.write(&**driver, card.sign)?;
        }
        all.card = card.write();
        Ok(all)
    }

    /// The position of a device, and its parts.
    fn device_of(&self, at: MemoryArray) -> usize {
        let device = at.at.device().map_or(0, |device| device.index());
        usize::try_from(device).expect("a node has few devices")
    }

    /// Puts a copy on one of a GPU's streams.
    ///
    /// # Safety
    /// As for the calls of [`DeviceWindows`], until the copy has ended.
    unsafe fn begin(&mut self, slot: usize, fills: bool, copy: WireCopy, ends: [Array; 2]) {
        let [source, target] = ends;
        let device = &mut self.devices[slot];
        let WireCopy { id, elements, elem_size } = copy;
        let transfers = transfer::plan(&source, &target, &elements, elem_size, device.max_pitch);
        // SAFETY: passed on.
        match unsafe { device.begin(&*self.driver, fills, &transfers) } {
            Ok(event) => self.pending.push((id, event)),
            Err(error) => {
                // Some of it may be on the stream, and touches memory until it has ended.
                drop(self.driver.synchronize(device.stream(fills)));
                self.failed.push(Copied { id, outcome: Err(error.to_string()) });
            }
        }
    }

    fn locate(&self, slot: usize, at: MemoryArray) -> Array {
        let MemoryArray { at, array: ElementArray { base, extent } } = at;
        let place = match at.device() {
            Some(_) => AddressSpace::Gpu(self.devices[slot].gpu),
            None => AddressSpace::Host,
        };
        Array { place, address: base.as_ptr().expose_provenance() as u64, extent }
    }

    /// A piece in a slot of a window, which a GPU sees there.
    fn piece(&self, slot: usize, window: u64, number: u16, copy: &WireCopy) -> Array {
        let address = window + u64::from(number) * self.config.slot_bytes;
        Array { place: AddressSpace::Gpu(self.devices[slot].gpu), address, extent: copy.elements }
    }

    /// Maps a peer's window for all GPUs of this node.
    fn import(&self, handle: &MemoryHandle, sign: u64) -> Result<Vec<u64>, WindowError> {
        let mut mapped = Vec::new();
        for device in &self.devices {
            let found = self.driver.import(device.gpu, handle).and_then(|address| {
                mapped.push(address);
                device.read(&*self.driver, address)
            });
            let why = match found {
                Ok(found) if found == sign => continue,
                Ok(_) => "its window holds something else than it has written there".to_owned(),
                Err(error) => error.to_string(),
            };
            self.forget(&mapped);
            return Err(why);
        }
        Ok(mapped)
    }

    fn forget(&self, mapped: &[u64]) {
        for (device, address) in self.devices.iter().zip(mapped) {
            // SAFETY: it was imported for this GPU, and no copy out of it is under way.
            unsafe { self.driver.forget(device.gpu, *address) };
        }
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        // Of two H100s that exchange 32 KiB, a step takes 59 to 65 µs through host memory and 60 to 67 by windows;
        // of 128 KiB, 85 to 93 and 55 to 71.
        Self { slots: 4, slot_bytes: 16 << 20, least: 128 << 10 }
    }
}

impl WindowConfig {
    /// Elements of up to so many bytes go by windows.
    const LEAST_SLOT: u64 = 1 << 16;
    const SLOTS: RangeInclusive<u16> = 1..=1024;

    /// How large a window is.
    ///
    /// # Errors
    /// If the fields are not what they say that they are: pieces would not have room.
    fn bytes(&self) -> Result<u64, DriverError> {
        let &Self { slots, slot_bytes, .. } = self;
        let bytes = u64::from(slots).checked_mul(slot_bytes);
        let fits = Self::SLOTS.contains(&slots) && slot_bytes >= Self::LEAST_SLOT;
        bytes.filter(|_| fits).ok_or(DriverError::NoWindows { slots, slot_bytes })
    }
}

impl Device {
    /// The stream that fills this GPU's window, or empties those of others.
    fn stream(&self, fills: bool) -> Stream {
        if fills { self.fills.stream } else { self.empties.stream }
    }

    /// # Safety
    /// As for [`Driver::copy`], until the event has happened.
    unsafe fn begin(
        &mut self,
        driver: &dyn Driver,
        fills: bool,
        transfers: &[Transfer],
    ) -> Result<Event, DriverError> {
        let side = if fills { &mut self.fills } else { &mut self.empties };
        side.follow(driver, &self.fence)?;
        for transfer in transfers {
            // SAFETY: passed on.
            unsafe { driver.copy(side.stream, transfer)? };
        }
        self.events.record(driver, side.stream)
    }

    /// Writes the word at the start of the window, and waits for that.
    fn write(&self, driver: &dyn Driver, word: u64) -> Result<(), DriverError> {
        let source = (AddressSpace::Host, (&raw const word).expose_provenance() as u64);
        let target = (AddressSpace::Gpu(self.gpu), self.window);
        // SAFETY: the window is this node's and new, and the word outlives the wait.
        unsafe { driver.copy(self.fills.stream, &Transfer::flat(source, target, 8))? };
        driver.synchronize(self.fills.stream)
    }

    /// Reads a word of a window, and waits for that.
    fn read(&self, driver: &dyn Driver, address: u64) -> Result<u64, DriverError> {
        let mut word = 0_u64;
        let source = (AddressSpace::Gpu(self.gpu), address);
        let target = (AddressSpace::Host, (&raw mut word).expose_provenance() as u64);
        // SAFETY: the window has just been mapped, its owner does not use it yet, and the word outlives
        // the wait.
        unsafe { driver.copy(self.empties.stream, &Transfer::flat(source, target, 8))? };
        driver.synchronize(self.empties.stream)?;
        // SAFETY: `word` lives; it is read anew, since the driver has written it.
        Ok(unsafe { (&raw const word).read_volatile() })
    }
}

// SAFETY: a copy is told when the event behind it has happened, or when its stream has failed. Own windows
// are allocated here, and nobody but `pack` is told where they are.
unsafe impl DeviceWindows for CudaWindows {
    fn size(&self) -> WindowSize {
        let WindowConfig { slots, slot_bytes, least } = self.config;
        let windows = u16::try_from(self.devices.len()).expect("a node has few devices");
        WindowSize { windows, slots, slot_bytes, least }
    }

    fn card(&self) -> Vec<u8> {
        self.card.clone()
    }

    fn open(&mut self, peer: NodeId, card: &[u8]) -> Result<(), WindowError> {
        let Card { sign, handles } = Card::read(card).ok_or("its card makes no sense")?;
        let mut windows = Vec::new();
        for handle in &handles {
            match self.import(handle, sign) {
                Ok(mapped) => windows.push(mapped),
                Err(why) => {
                    windows.iter().for_each(|mapped: &Vec<u64>| self.forget(mapped));
                    return Err(why);
                }
            }
        }
        self.peers.insert(peer, windows);
        Ok(())
    }

    unsafe fn pack(&mut self, copy: WireCopy, source: MemoryArray, slot: Slot) {
        let device = self.device_of(source);
        let window = self.devices[device].window;
        let piece = self.piece(device, window, slot.number, &copy);
        let ends = [self.locate(device, source), piece];
        // SAFETY: passed on; the slot lies in the window, which has room for so many.
        unsafe { self.begin(device, true, copy, ends) };
    }

    unsafe fn unpack(&mut self, copy: WireCopy, peer: NodeId, slot: Slot, target: MemoryArray) {
        let device = self.device_of(target);
        let window =
            self.peers.get(&peer).and_then(|windows| windows.get(usize::from(slot.window)));
        match window.filter(|_| slot.number < self.config.slots) {
            Some(window) => {
                let piece = self.piece(device, window[device], slot.number, &copy);
                let ends = [piece, self.locate(device, target)];
                // SAFETY: passed on.
                unsafe { self.begin(device, false, copy, ends) };
            }
            None => {
                let outcome = Err(format!("{peer} has no {slot:?}"));
                self.failed.push(Copied { id: copy.id, outcome });
            }
        }
    }

    unsafe fn scatter(&mut self, copy: WireCopy, source: ElementArray, target: MemoryArray) {
        let device = self.device_of(target);
        let address = source.base.as_ptr().expose_provenance() as u64;
        let source = Array { place: AddressSpace::Host, address, extent: source.extent };
        let ends = [source, self.locate(device, target)];
        // SAFETY: passed on.
        unsafe { self.begin(device, false, copy, ends) };
    }

    fn poll(&mut self) -> Option<Copied> {
        if let Some(failed) = self.failed.pop() {
            self.is_broken = true;
            return Some(failed);
        }
        for position in 0..self.pending.len() {
            let (id, event) = self.pending[position];
            let outcome = match self.driver.query(event) {
                Ok(false) => continue,
                Ok(true) if self.is_broken => Err("an earlier copy has failed".to_owned()),
                Ok(true) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            self.is_broken |= outcome.is_err();
            self.pending.remove(position);
            let device = self.devices.iter_mut().find(|device| device.gpu == event.gpu);
            device.expect("events belong to GPUs of this node").events.give_back(event);
            return Some(Copied { id, outcome });
        }
        None
    }

    fn close(&mut self) {
        for (_, windows) in std::mem::take(&mut self.peers) {
            windows.iter().for_each(|mapped| self.forget(mapped));
        }
    }
}

impl Drop for CudaWindows {
    fn drop(&mut self) {
        self.close();
        for device in &self.devices {
            for side in [&device.fills, &device.empties] {
                // What has failed on the GPU has been reported.
                drop(self.driver.synchronize(side.stream));
                // SAFETY: it was made here, and this is its last use.
                unsafe { self.driver.destroy_stream(side.stream) };
            }
            // SAFETY: it was allocated here; the network is dropped before the windows beside it, when
            // other processes have given them up.
            unsafe { self.driver.free_shared(device.gpu, device.window) };
        }
        let pending = self.pending.iter().map(|(_, event)| *event);
        for event in self.devices.iter().flat_map(|device| device.events.spare()).chain(pending) {
            // SAFETY: it was made here, its stream has run empty, and this is its last use.
            unsafe { self.driver.destroy_event(event) };
        }
    }
}

#[cfg(test)]
mod tests;
