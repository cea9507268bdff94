//! Memory behind reserved addresses, on a driver without GPUs: who has it, who gets it
//! next, and that it goes back.
#![allow(unsafe_code)]

use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

use celerity_executor::AllocError;

use super::{GpuMemory, PagePool};
use crate::driver::{Driver, FakeDriver, Gpu};

const GPU: Gpu = Gpu::from_slot(0);
/// Bytes of the GPU.
const TOTAL: u64 = 1 << 16;

/// A GPU, and what nodes that use it have in common.
struct Host {
    fake: Arc<FakeDriver>,
    driver: Arc<dyn Driver>,
    pages: Arc<PagePool>,
}

impl Host {
    fn new() -> Self {
        let fake = Arc::new(FakeDriver::new(1, TOTAL));
        let driver: Arc<dyn Driver> = fake.clone();
        let pages = Arc::new(PagePool::new(&driver));
        Self { fake, driver, pages }
    }

    fn node(&self) -> GpuMemory {
        GpuMemory::new(&self.driver, GPU, None, self.pages.clone(), Vec::new()).unwrap()
    }

    /// How often memory has been created.
    fn created(&self) -> usize {
        self.fake.counts().pages
    }

    fn free_bytes(&self) -> u64 {
        self.driver.trim(GPU).unwrap()
    }
}

/// The GPU's memory at an address that `grown` has returned.
fn contents(address: u64, bytes: Range<u64>) -> &'static mut [u8] {
    let start = crate::address::pointer(address + bytes.start);
    let length = usize::try_from(bytes.end - bytes.start).unwrap();
    // SAFETY: the tests hold so much memory there, and the stream has run empty.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// An allocation of up to all that the GPU has, which grows in these steps and is
/// then full of sevens.
fn grown(
    memory: &mut GpuMemory,
    steps: impl IntoIterator<Item = Range<u64>>,
) -> Result<u64, AllocError> {
    let address = memory.reserve(TOTAL, 8).unwrap();
    for bytes in steps {
        // SAFETY: it was just reserved.
        unsafe { memory.provide(address, &bytes) }.inspect_err(|_| {
            // SAFETY: as above, and nobody uses it.
            unsafe { memory.free(address) };
        })?;
        memory.driver.synchronize(memory.stream).unwrap();
        let new = contents(address, bytes.clone());
        assert!(new.iter().all(|&byte| byte == 0), "{bytes:?} are not zeroed");
        new.fill(7);
    }
    Ok(address)
}

fn free(memory: &mut GpuMemory, address: u64) {
    // SAFETY: the tests free once what they have got, and do not use it later.
    unsafe { memory.free(address) };
}

#[test]
fn what_one_allocation_has_left_is_what_the_next_one_grows_with() {
    let host = Host::new();
    let mut memory = host.node();
    let steps = [0..640, 640..1280, 6400..6464];
    let mut first = grown(&mut memory, steps.clone()).unwrap();
    assert_eq!(host.created(), 3);
    for _ in 0..4 {
        free(&mut memory, first);
        assert_eq!(memory.resident, 0);
        first = grown(&mut memory, steps.clone()).unwrap();
    }
    assert_eq!(host.created(), 3, "the same memory, four times");
    let second = grown(&mut memory, once(0..1280)).unwrap();
    assert_eq!((host.created(), memory.resident), (4, 1344 + 1280));
    free(&mut memory, first);
    // Of the three blocks, next to each other now, and a new one of 64 bytes.
    let third = grown(&mut memory, once(64..1472)).unwrap();
    assert_eq!((host.created(), memory.resident), (5, 1280 + 1408));
    for address in [second, third] {
        free(&mut memory, address);
    }
}

#[test]
fn blocks_that_are_too_large_are_left_alone() {
    let host = Host::new();
    let mut memory = host.node();
    let large = grown(&mut memory, once(0..6400)).unwrap();
    free(&mut memory, large);
    let small = grown(&mut memory, once(0..640)).unwrap();
    assert_eq!(host.created(), 2);
    assert_eq!(host.free_bytes(), TOTAL - 6400 - 640, "the large one is kept");
    free(&mut memory, small);
}

#[test]
fn where_memory_is_short_all_that_is_kept_goes_back_to_the_driver() {
    let host = Host::new();
    let mut memory = host.node();
    let most = 0..TOTAL - 128;
    let kept = grown(&mut memory, once(most.clone())).unwrap();
    free(&mut memory, kept);
    assert_eq!(host.free_bytes(), 128, "it is kept");
    // For an allocation that does not grow,
    let plain = memory.alloc(TOTAL, 8).expect("there is room");
    free(&mut memory, plain);
    let kept = grown(&mut memory, once(most.clone())).unwrap();
    free(&mut memory, kept);
    // for one that grows by less than what is kept in one block,
    let small = grown(&mut memory, [0..256, 256..512]).unwrap();
    assert_eq!(host.free_bytes(), TOTAL - 512);
    free(&mut memory, small);
    // and for another node on the same GPU.
    let kept = grown(&mut memory, once(most)).unwrap();
    free(&mut memory, kept);
    let mut other = host.node();
    let plain = other.alloc(TOTAL, 8).expect("there is room");
    free(&mut other, plain);
}

#[test]
fn what_cannot_be_had_leaves_everything_as_it_was() {
    let host = Host::new();
    let mut memory = host.node();
    let half = TOTAL / 2;
    let plain = memory.alloc(half, 8).unwrap();
    let kept = grown(&mut memory, once(0..half - 64)).unwrap();
    free(&mut memory, kept);
    // What is kept is not enough, and there is no new memory for the rest.
    let error = grown(&mut memory, once(0..half + 64)).unwrap_err();
    assert_eq!(error, AllocError { resident: half, free: Some(half) });
    let all = grown(&mut memory, once(0..half)).unwrap();
    for address in [plain, all] {
        free(&mut memory, address);
    }
}

#[test]
fn at_the_end_everything_is_given_back() {
    let host = Host::new();
    let mut memory = host.node();
    let kept = grown(&mut memory, once(0..640)).unwrap();
    free(&mut memory, kept);
    let _used = grown(&mut memory, [0..640, 640..768]).unwrap();
    let _plain = memory.alloc(100, 8).unwrap();
    drop(memory);
    assert_eq!(host.free_bytes(), TOTAL);
}
