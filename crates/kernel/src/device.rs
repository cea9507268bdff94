//! How a thread of a device takes part in a launch: which items it computes, in runs, in groups, or
//! in a tile with others. What it is made of is in `machine`.

use crate::abi::{LaunchBlock, Place, Seat, Traverse, seat, visit, visit_joined};
use crate::group::NdItem;
use crate::item::Item;
use crate::machine::failure::{leave_edges, leave_launch};
use crate::machine::thread;

pub use crate::abi::PanicRecord;
pub use crate::machine::compare;
pub use crate::machine::failure::{fail, stop_telling, stop_with};
pub use tiles::{Block, run_tile, run_tile_groups, tile};

mod tiles;

/// Calls `call` for all runs of items that this thread takes.
#[inline(always)]
pub fn run<const K: usize, By: Traverse>(
    kernel: &'static str,
    launch: &LaunchBlock,
    call: impl FnMut(Place<K>),
) {
    let thread = thread();
    leave_launch(kernel, launch, K);
    if const { By::TRAVERSAL.run > 1 } && launch.run > 1 && thread.block[0] >= launch.blocks {
        leave_edges::<K>(launch);
    }
    if const { By::TRAVERSAL.is_joined } {
        visit_joined::<K, By>(launch, &thread, call);
    } else {
        visit::<K, By>(launch, &thread, call);
    }
}

/// Calls `call` for the one item that this thread takes of a launch whose blocks are
/// groups. Every thread has one, and all go the same way: nothing here may branch,
/// since threads must reach a barrier together.
#[inline(always)]
pub fn run_groups<const K: usize>(
    kernel: &'static str,
    launch: &LaunchBlock,
    call: impl FnOnce(Place<K>, NdItem<'static, K>),
) {
    leave_launch(kernel, launch, K);
    let Seat { place, local, group, size } = seat(launch, &thread());
    call(place, NdItem::from_parts(Item::new(place.start, place.global), local, group, size));
}
