//! One payload, and one collective operation, of more bytes than an MPI message can have.

use celerity_executor::{CommEvent, Communicator};
use celerity_mpi::MpiOptions;
use celerity_regions::Box3;

use crate::exchanges::gather_large;
use crate::messages::{next_but_pilots, node, payload, pilot};
use crate::world::World;

/// 2.06 GiB: beyond what 31 bits count, and no multiple of a message's limit. Most of
/// the time that this takes, the system spends on finding memory.
const ROWS: usize = 33;
const ROW: usize = 64 << 20;

/// Bytes that are looked at lie so far apart, which is no power of two.
const STRIDE: usize = (1 << 20) + 7;

/// `N0` sends it to `N1`.
pub(crate) fn run(world: &World) {
    assert!(world.size >= 2, "two nodes at least");
    let mut end = world.connect(&MpiOptions::default());
    let whole = Box3::from_range([ROWS, ROW]);
    let mut memory = vec![0; if world.rank < 2 { ROWS * ROW } else { 0 }];
    match world.rank {
        0 => {
            (0..memory.len()).step_by(STRIDE).for_each(|at| memory[at] = stamp(at));
            end.send_pilot(&pilot(node(1), 0, whole), 0);
            // SAFETY: the memory outlives the report, awaited below.
            unsafe { end.send(node(1), payload(&mut memory, whole, whole, 0)) };
            assert!(matches!(next_but_pilots(&mut end), CommEvent::Sent { .. }));
        }
        1 => {
            // SAFETY: as above.
            unsafe { end.receive(node(0), payload(&mut memory, whole, whole, 0)) };
            assert!(matches!(next_but_pilots(&mut end), CommEvent::Received { .. }));
            let wrong = (0..memory.len()).step_by(STRIDE).find(|&at| memory[at] != stamp(at));
            assert_eq!(wrong, None);
        }
        _ => {}
    }
    world.meet();
    if world.size == 2 {
        gather_large(world, &mut end, &mut memory, STRIDE);
    }
    world.meet();
    world.count(1);
}

/// Depends on all bits of a position.
fn stamp(at: usize) -> u8 {
    let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.to_be_bytes()[0]
}
