//! Launches with reductions: the tile of a block, and its threads as a team.
#![allow(unsafe_code)]

use core::arch::{asm, nvptx};

use crate::abi::{
    LaunchBlock, Place, Seat, TileBlock, TileSeat, Traverse, lanes_per_thread, visit_groups,
    visit_tile,
};
use crate::group::NdItem;
use crate::item::Item;
use crate::machine::failure::leave_launch;
use crate::machine::{barrier, shared, thread};
use crate::reduce::{Team, WARP};

/// The tile that this block computes.
#[inline(always)]
pub fn tile<const K: usize>(
    kernel: &'static str,
    launch: &LaunchBlock,
    tiles: &TileBlock,
) -> TileSeat<K> {
    // SAFETY: it only reads a register.
    let block = unsafe { nvptx::_block_idx_x() } as u32;
    let tile = tiles.seat(launch, block);
    // No item is known by its thread: 0 items per thread say that the tile is meant.
    let offset = core::array::from_fn(|dim| tile.min.get(dim).map_or(0, |&first| first as u64));
    leave_launch(kernel, &LaunchBlock { offset, run: 0, ..*launch }, K);
    tile
}

/// Calls `call` for all items of the tile that this thread takes, with which of its accumulators each is combined into.
/// Returns how many the thread has.
#[inline(always)]
pub fn run_tile<const K: usize, By: Traverse>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    call: impl FnMut(Place<K>, usize),
) -> usize {
    let Block { thread, threads, .. } = Block::at(0);
    visit_tile::<K, By>(launch, tile, (thread, threads), call);
    lanes_per_thread::<K, By>(launch)
}

/// Calls `call` for the item that this thread takes of each group of the tile. Returns how many accumulators it has.
#[inline(always)]
pub fn run_tile_groups<const K: usize>(
    launch: &LaunchBlock,
    tile: &TileSeat<K>,
    mut call: impl FnMut(Place<K>, NdItem<'static, K>),
) -> usize {
    visit_groups(launch, tile, &thread(), barrier, |Seat { place, local, group, size }| {
        let item = Item::new(place.start, place.global);
        call(place, NdItem::from_parts(item, local, group, size));
    });
    1
}

/// The threads of this block, and the part of its shared memory in which they combine.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    thread: u32,
    threads: u32,
    address: u32,
}

impl Block {
    /// With the memory from so many bytes on into the launch's dynamic memory.
    #[inline(always)]
    pub fn at(offset: usize) -> Self {
        let at = thread();
        let ([x, y, z], [width, height, depth]) = (at.thread, at.threads);
        let (thread, threads) = ((z * height + y) * width + x, width * height * depth);
        Self { thread, threads, address: shared::base() + offset as u32 }
    }
}

impl Block {
    /// The threads of a warp, as bits: fewer where the block has fewer.
    #[inline(always)]
    fn warp(&self) -> u32 {
        match self.threads {
            few @ 0..WARP => (1 << few) - 1,
            _ => u32::MAX,
        }
    }
}

impl Team for Block {
    #[inline(always)]
    fn thread(&self) -> u32 {
        self.thread
    }

    #[inline(always)]
    fn threads(&self) -> u32 {
        self.threads
    }

    #[inline(always)]
    fn meet(&self) {
        barrier();
    }

    #[inline(always)]
    fn meet_in_warp(&self) {
        // SAFETY: waits for those of the warp that have not ended: the first threads of a block are
        // all there, or as many as the block has.
        unsafe { asm!("bar.warp.sync {mask};", mask = in(reg32) self.warp(), options(nostack)) };
    }

    #[inline(always)]
    unsafe fn load<T: Copy>(&self, place: u32) -> T {
        // SAFETY: passed on; places begin at a multiple of 16.
        unsafe { shared::load(self.address + place * size_of::<T>() as u32) }
    }

    #[inline(always)]
    unsafe fn store<T: Copy>(&self, place: u32, value: T) {
        // SAFETY: as above.
        unsafe { shared::store(self.address + place * size_of::<T>() as u32, value) };
    }
}
