//! What only this communicator has of collective operations: rounds, and sizes that MPI does not count.

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, Communicator, ElementArray, MemoryPart,
};
use celerity_idag::MemoryId;
use celerity_mpi::MpiOptions;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};

use crate::messages::{Check, next_event};
use crate::world::World;

pub(crate) const CHECKS: &[(&str, Check)] =
    &[("collectives beyond the limit go in rounds", rounds_bring_all)];

/// The rows, or the columns, of a square in equal parts.
fn parts(extent: Box3, dim: usize, nodes: usize) -> Ends {
    let length = extent.range()[dim];
    let border = |index: usize| length * index as u64 / nodes as u64;
    let part = |index| {
        let (mut low, mut high) = extent.corners();
        (low[dim], high[dim]) = (border(index), border(index + 1));
        Region::from(Box3::new(low, high))
    };
    Ends::Each((0..nodes).map(part).collect())
}

/// This node's part in an operation on memory of a byte per element.
fn part_of(
    memory: &mut [u8],
    extent: Box3,
    collective: &Arc<Collective>,
    (number, me): (u64, NodeId),
) -> CollectiveExchange {
    let memory = ElementArray { base: BasePtr::of_mut_slice(memory), extent };
    let part = |region: Region| {
        let part = (!region.is_empty()).then_some(MemoryPart { memory, region });
        part.into_iter().collect()
    };
    CollectiveExchange {
        transfer: TransferId {
            consumer: TaskId::from_index(number),
            buffer: BufferId::from_index(0),
        },
        collective: collective.clone(),
        elem_size: 1,
        at: MemoryId::HOST,
        sources: part(collective.provided_by(me).into_owned()),
        targets: part(collective.arriving_at(me)),
    }
}

fn place(world: &World) -> NodeId {
    NodeId::from_index(world.rank as u64)
}

/// All nodes gather a line.
pub(crate) fn gathered(memory: &mut [u8], world: &World) -> CollectiveExchange {
    gathered_among(memory, world, Members::all())
}

/// Some nodes gather a line, this one among them.
pub(crate) fn gathered_among(
    memory: &mut [u8],
    world: &World,
    members: Members,
) -> CollectiveExchange {
    let extent = Box3::from_range([memory.len()]);
    let from = parts(extent, 0, members.count(world.size));
    let collective = Arc::new(Collective { members, region: extent.into(), from, to: Ends::All });
    part_of(memory, extent, &collective, (1, place(world)))
}

/// Depends on all bits of a position.
fn stamp(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]
}

/// The side of a square.
const SIDE: usize = 23;

fn rounds_bring_all(world: &World) {
    let extent = Box3::from_range([SIDE, SIDE]);
    let split = |dim| parts(extent, dim, world.size);
    let root = || Ends::One(NodeId::from_index(world.size as u64 - 1));
    let me = place(world);
    for max_message in [40, 200] {
        let mut end = world.connect(&MpiOptions { max_message, ..MpiOptions::default() });
        let shapes = [
            (split(0), Ends::All),
            (split(1), Ends::All),
            (split(1), root()),
            (root(), Ends::All),
            (root(), split(1)),
            (split(0), split(1)),
        ];
        for (number, (from, to)) in (0..).zip(shapes) {
            let collective =
                Arc::new(Collective { members: Members::all(), region: extent.into(), from, to });
            let provided = collective.provided_by(me).into_owned();
            let arriving = collective.arriving_at(me);
            let at = |index: usize| [index as u64 / SIDE as u64, index as u64 % SIDE as u64, 0];
            let given = |index| if provided.contains_point(at(index)) { stamp(index) } else { 0 };
            let mut memory: Vec<u8> = (0..SIDE * SIDE).map(given).collect();
            let part = part_of(&mut memory, extent, &collective, (number, me));
            let transfer = part.transfer;
            // SAFETY: the memory outlives the report, awaited below, and is left alone.
            unsafe { end.exchange(part) };
            assert_eq!(next_event(&mut end), CommEvent::Exchanged { transfer });
            for (index, found) in memory.iter().enumerate() {
                let there =
                    provided.contains_point(at(index)) || arriving.contains_point(at(index));
                let expected = if there { stamp(index) } else { 0 };
                assert_eq!(*found, expected, "{me}, {}, element {index}", collective.pattern());
            }
        }
        drop(end);
        world.meet();
    }
}

/// An all-gather of more bytes than 31 bits count, into `memory`, of which all of this node's part is
/// written before.
pub(crate) fn gather_large(
    world: &World,
    end: &mut impl Communicator,
    memory: &mut [u8],
    stride: usize,
) {
    let part = gathered(memory, world);
    let me = place(world);
    let own = part.collective.provided_by(me).bounding_box();
    let own = usize::try_from(own.min()[0]).expect("in memory")
        ..usize::try_from(own.max()[0]).expect("in memory");
    (0..memory.len()).step_by(stride).for_each(|at| {
        memory[at] = if own.contains(&at) { stamp(at) } else { 0 };
    });
    // SAFETY: the memory outlives the report, awaited below, and is left alone.
    unsafe { end.exchange(part) };
    loop {
        match end.poll() {
            Some(CommEvent::Exchanged { .. }) => break,
            Some(event) => panic!("{event:?}"),
            None => std::thread::yield_now(),
        }
    }
    let wrong = (0..memory.len()).step_by(stride).find(|&at| memory[at] != stamp(at));
    assert_eq!(wrong, None);
}
