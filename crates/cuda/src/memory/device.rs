//! One GPU's memory, allocated, zeroed and given back in the order of a stream
//! of its own.
//!
//! Nobody waits for that stream on the host. Whoever uses new memory on another
//! stream waits, on the GPU, for the event that [`GpuMemory::ready`] gives.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use celerity_executor::AllocError;

use super::fence::AllocationStream;
use super::padding;
use super::pages::{Block, PagePool};
use super::reserved::Reserved;
use crate::driver::{Driver, DriverError, Event, Gpu, Stream};

/// What the driver promises.
const ALIGNMENT: u64 = 256;

pub(crate) struct GpuMemory {
    driver: Arc<dyn Driver>,
    stream: Stream,
    fence: Arc<AllocationStream>,
    limit: Option<u64>,
    resident: u64,
    /// By the address that was given out: bytes asked for, and where the
    /// allocation starts.
    live: HashMap<u64, (u64, u64)>,
    /// Allocations that grow, by their first address.
    reserved: HashMap<u64, Reserved>,
    /// What these have left.
    pages: Arc<PagePool>,
    /// The GPUs that reach this one's memory.
    users: Vec<Gpu>,
}

impl GpuMemory {
    pub(crate) fn new(
        driver: &Arc<dyn Driver>,
        gpu: Gpu,
        limit: Option<u64>,
        pages: Arc<PagePool>,
        users: Vec<Gpu>,
    ) -> Result<Self, DriverError> {
        let fence = AllocationStream::new(driver, gpu)?;
        Ok(Self {
            driver: driver.clone(),
            stream: fence.stream(),
            fence,
            limit,
            resident: 0,
            live: HashMap::new(),
            reserved: HashMap::new(),
            pages,
            users,
        })
    }

    /// The address of new memory, which will have been zeroed when the event of
    /// [`ready`](Self::ready) has happened.
    pub(crate) fn alloc(&mut self, bytes: u64, alignment: u64) -> Result<u64, AllocError> {
        self.check_limit(bytes)?;
        let padded = bytes.saturating_add(padding(alignment, ALIGNMENT));
        let start = self.alloc_zeroed(padded).map_err(|_| self.no_room())?;
        let address = start.next_multiple_of(alignment.max(1));
        self.fence.moved();
        self.resident += bytes;
        self.live.insert(address, (bytes, start));
        Ok(address)
    }

    /// Addresses for memory that [`provide`](Self::provide) puts there.
    pub(crate) fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<u64, AllocError> {
        let gpu = self.stream.gpu;
        let reserve = || {
            let piece = self.driver.piece(gpu)?;
            let bytes = bytes.next_multiple_of(piece);
            Ok::<_, DriverError>(Reserved::new(self.driver.reserve(gpu, bytes)?, bytes, piece))
        };
        let reserved = reserve().map_err(|_| self.no_room())?;
        let start = reserved.start;
        assert!(start.is_multiple_of(alignment.max(1)), "elements are smaller than pieces");
        self.reserved.insert(start, reserved);
        Ok(start)
    }

    /// Puts zeroed memory behind a part of reserved addresses, where there is
    /// none; it will have been zeroed when the event of [`ready`](Self::ready) has
    /// happened.
    ///
    /// # Safety
    /// `address` came from [`reserve`](Self::reserve) for at least `bytes.end`
    /// bytes and has not been freed.
    pub(crate) unsafe fn provide(
        &mut self,
        address: u64,
        bytes: &Range<u64>,
    ) -> Result<(), AllocError> {
        let missing = self.reserved_at(address).missing(bytes);
        for run in missing {
            let (from, bytes) = (address + run.start, run.end - run.start);
            self.check_limit(bytes)?;
            // SAFETY: whole pieces of what was reserved, with nothing behind them.
            let blocks = unsafe { self.map_zeroed(from, bytes) }.map_err(|_| self.no_room())?;
            self.fence.moved();
            self.resident += bytes;
            self.reserved_at(address).note(run, blocks);
        }
        Ok(())
    }

    fn reserved_at(&mut self, address: u64) -> &mut Reserved {
        self.reserved.get_mut(&address).expect("what grows was reserved here")
    }

    /// Puts memory behind addresses, and says what it consists of.
    ///
    /// # Safety
    /// They are whole pieces of what was reserved, with nothing behind them.
    unsafe fn map_zeroed(&self, address: u64, bytes: u64) -> Result<Vec<Block>, DriverError> {
        let (gpu, blocks) = (self.stream.gpu, self.blocks(bytes)?);
        // SAFETY: passed on.
        let map = || unsafe { self.driver.map(gpu, address, &blocks, &self.users) };
        let outcome = self.with_room_made(map).and_then(|()| {
            // SAFETY: it was just mapped, and nobody else has it.
            let zeroed = unsafe { self.driver.zero(self.stream, address, bytes) };
            zeroed.inspect_err(|_| {
                // SAFETY: as above.
                unsafe { self.driver.unmap(gpu, address, bytes) };
            })
        });
        match outcome {
            Ok(()) => Ok(blocks),
            Err(error) => {
                self.pages.put(blocks);
                Err(error)
            }
        }
    }

    /// Memory without addresses: what is free, and new memory for the rest.
    fn blocks(&self, bytes: u64) -> Result<Vec<Block>, DriverError> {
        let (mut blocks, missing) = self.pages.take(bytes);
        if missing > 0 {
            let gpu = self.stream.gpu;
            match self.with_room_made(|| self.driver.create_pages(gpu, missing)) {
                Ok(pages) => blocks.push((pages, missing)),
                Err(error) => {
                    self.pages.put(blocks);
                    return Err(error);
                }
            }
        }
        Ok(blocks)
    }

    /// Whether the limit, if there is one, leaves room for more.
    fn check_limit(&self, bytes: u64) -> Result<(), AllocError> {
        let left = self.limit.map(|limit| limit.saturating_sub(self.resident));
        match left.is_some_and(|left| left < bytes) {
            true => Err(AllocError { resident: self.resident, free: left }),
            false => Ok(()),
        }
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `address` came from [`alloc`](Self::alloc) or [`reserve`](Self::reserve),
    /// and everything that uses it has ended.
    pub(crate) unsafe fn free(&mut self, address: u64) {
        if let Some(reserved) = self.reserved.remove(&address) {
            self.resident -= reserved.resident();
            // Nobody may have used it, so it may still be about to be zeroed. If
            // something has failed on the GPU, that is reported elsewhere.
            drop(self.driver.synchronize(self.stream));
            // SAFETY: passed on, and the stream is empty.
            return unsafe { self.give_back(reserved) };
        }
        let (bytes, start) = self.live.remove(&address).expect("freed memory was allocated here");
        self.resident -= bytes;
        // SAFETY: passed on.
        unsafe { self.driver.free(self.stream, start) };
    }

    /// As [`AllocationStream::ready`].
    pub(crate) fn ready(&self) -> Result<Option<(u64, Event)>, DriverError> {
        self.fence.ready()
    }

    /// What others ask who use this memory.
    pub(crate) fn fence(&self) -> &Arc<AllocationStream> {
        &self.fence
    }

    /// Gives addresses back to the driver, and keeps what is behind them.
    ///
    /// # Safety
    /// Everything that uses what was reserved has ended, and nobody knows of it.
    unsafe fn give_back(&self, reserved: Reserved) {
        let (gpu, start, bytes) = (self.stream.gpu, reserved.start, reserved.bytes);
        // SAFETY: each run was mapped at once, and then nothing is left.
        unsafe {
            for run in reserved.mapped() {
                self.driver.unmap(gpu, start + run.start, run.end - run.start);
            }
            self.driver.release(gpu, start, bytes);
        }
        self.pages.put(reserved.into_blocks());
    }

    fn alloc_zeroed(&self, bytes: u64) -> Result<u64, DriverError> {
        let address = self.with_room_made(|| self.driver.alloc(self.stream, bytes))?;
        // SAFETY: it was just allocated on this stream, and nobody else has it.
        let zeroed = unsafe { self.driver.zero(self.stream, address, bytes) };
        zeroed.map(|()| address).inspect_err(|_| {
            // SAFETY: as above.
            unsafe { self.driver.free(self.stream, address) };
        })
    }

    /// What the driver gives; asked again, where it had no memory, when all that is
    /// free has been given back to it.
    fn with_room_made<T>(
        &self,
        ask: impl Fn() -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        match ask() {
            Err(error) if error.is_out_of_memory() => {
                self.make_room()?;
                ask()
            }
            outcome => outcome,
        }
    }

    /// Gives all that is free back to the driver, and returns how much it has then:
    /// what has been freed may only be on its way, and what is pooled may have the
    /// wrong sizes.
    fn make_room(&self) -> Result<u64, DriverError> {
        self.driver.synchronize(self.stream)?;
        self.pages.release();
        self.driver.trim(self.stream.gpu)
    }

    fn no_room(&self) -> AllocError {
        let free = self.make_room().ok();
        AllocError { resident: self.resident, free }
    }
}

impl Drop for GpuMemory {
    /// Everything that uses the memory has ended.
    fn drop(&mut self) {
        for (_, start) in self.live.values() {
            // SAFETY: it is allocated, and nobody uses it any more.
            unsafe { self.driver.free(self.stream, *start) };
        }
        // If something has failed on the GPU, it has been reported.
        drop(self.driver.synchronize(self.stream));
        for (_, reserved) in std::mem::take(&mut self.reserved) {
            // SAFETY: nobody uses it any more, and the stream is empty.
            unsafe { self.give_back(reserved) };
        }
        self.pages.release();
    }
}

#[cfg(test)]
mod tests;
