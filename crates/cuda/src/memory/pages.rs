//! A GPU's memory that was behind addresses and is not now. To create memory takes
//! much longer than to put it behind addresses, so what one allocation that grew has
//! left is what the next one grows with.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::{Driver, Pages};

/// Memory without an address, and its bytes.
pub(super) type Block = (Pages, u64);

/// What is free on one GPU: for all nodes of the process that use it.
//
// Blocks keep the sizes that they were created with. All of one piece of 2 MiB would
// fit everywhere, but each costs a call of the driver to create and one to map.
pub(crate) struct PagePool {
    driver: Arc<dyn Driver>,
    /// By their bytes.
    free: Mutex<BTreeMap<u64, Vec<Pages>>>,
}

impl PagePool {
    pub(crate) fn new(driver: &Arc<dyn Driver>) -> Self {
        Self { driver: driver.clone(), free: Mutex::default() }
    }

    /// Free blocks of at most `bytes` together, the largest first; and how many bytes
    /// are missing. O(log n) for each block.
    pub(super) fn take(&self, bytes: u64) -> (Vec<Block>, u64) {
        let (mut free, mut taken, mut missing) = (self.lock(), Vec::new(), bytes);
        while let Some((&size, blocks)) = free.range_mut(..=missing).next_back() {
            let pages = blocks.pop().expect("sizes without blocks are removed");
            if blocks.is_empty() {
                free.remove(&size);
            }
            taken.push((pages, size));
            missing -= size;
        }
        (taken, missing)
    }

    /// Keeps blocks that nobody uses and that are behind no addresses.
    pub(super) fn put(&self, blocks: impl IntoIterator<Item = Block>) {
        let mut free = self.lock();
        blocks.into_iter().for_each(|(pages, size)| free.entry(size).or_default().push(pages));
    }

    /// Gives all that is free back to the driver.
    pub(super) fn release(&self) {
        for pages in std::mem::take(&mut *self.lock()).into_values().flatten() {
            // SAFETY: it was put here, so it is behind no addresses, and now nobody
            // knows of it.
            unsafe { self.driver.destroy_pages(pages) };
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Pages>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
