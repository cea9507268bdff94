//! The parts that whole programs exercise too little, or that no schedule shows, against naive
//! twins: regions, region maps, splits, windows, and the in-process communicator, with and without
//! wires to devices.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, CommunicationError, Communicator, CpuPool,
    ElementArray, MemoryPart, RunError, Waker, Window, WindowSize, WirePayload, local_cluster,
};
use celerity_idag::{DeviceId, MemoryId, MessageId, Pilot};
use celerity_regions::{Box3, Coord3, Region, RegionMap, split_1d, split_2d};
use celerity_tdag::{BufferId, TaskId};
use celerity_testkit::conformance;
use celerity_testkit::element;
use celerity_testkit::fabric::FakeFabric;
use celerity_testkit::hash::Mixer;
use celerity_testkit::wires::{FakeHost, assemble, wire};

type Outcome = Result<(), String>;

/// Checks the geometry of a seed.
///
/// # Errors
/// The first law that does not hold.
pub(crate) fn check_regions(seed: u64) -> Outcome {
    let random = &mut Random(Mixer::for_item(2, [seed, 0, 0]));
    check_split(random)?;
    check_algebra(random)?;
    check_map(Box3::from_range([6, 9, 2]), 12, random)?;
    // From some hundred entries on, a region map is a tree.
    if seed == 0 { check_map(Box3::from_range([40, 40]), 3_000, random) } else { Ok(()) }
}

/// Checks the tables and the communicator.
///
/// # Errors
/// The first law that does not hold.
pub(crate) fn check_executor(seed: u64) -> Outcome {
    check_window(&mut Random(Mixer::for_item(3, [seed, 0, 0])))?;
    // These always do the same.
    match seed {
        0 => check_wake_ups()
            .and_then(|()| check_wires())
            .and_then(|()| check_scatter())
            .and_then(|()| check_roll())
            .and_then(|()| check_conformance()),
        _ => Ok(()),
    }
}

struct Random(Mixer);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.with(0);
        self.0.below(usize::try_from(bound).expect("small")) as u64
    }

    /// A box in `space`, which may be empty.
    fn part(&mut self, space: &Box3) -> Box3 {
        let ends: [[u64; 2]; 3] = space.range().map(|side| [(); 2].map(|()| self.below(side + 1)));
        Box3::new(ends.map(|[a, b]| a.min(b)), ends.map(|[a, b]| a.max(b)))
    }

    fn region(&mut self, space: &Box3) -> Region {
        let boxes = 1 + self.below(4);
        Region::from_boxes((0..boxes).map(|_| self.part(space)).collect::<Vec<_>>())
    }
}

/// Chunks are disjoint, cover the space, and end at whole granules or with it.
fn check_split(random: &mut Random) -> Outcome {
    let space = Box3::from_range([9, 7]);
    let space = Box3::new(space.min(), [1 + random.below(9), 1 + random.below(7), 1]);
    let granularity = [1 + random.below(3), 1 + random.below(3), 1];
    let parts = 1 + usize::try_from(random.below(8)).expect("small");
    for chunks in [split_1d(&space, granularity, parts), split_2d(&space, granularity, parts)] {
        let items: Vec<Coord3> = chunks.iter().flat_map(element::points).collect();
        let whole: BTreeSet<Coord3> = element::points(&space).collect();
        if items.len() != whole.len() || items.into_iter().collect::<BTreeSet<_>>() != whole {
            return Err(format!("{chunks:?} are not all of {space}, each item once"));
        }
        let cuts_granule = |chunk: &&Box3| {
            (0..2).any(|dim| {
                let end = chunk.max()[dim];
                end != space.max()[dim] && !end.is_multiple_of(granularity[dim])
            })
        };
        if let Some(chunk) = chunks.iter().find(cuts_granule) {
            return Err(format!("{chunk} of {space} cuts a granule of {granularity:?}"));
        }
    }
    Ok(())
}

fn points(region: &Region) -> BTreeSet<Coord3> {
    region.boxes().iter().flat_map(element::points).collect()
}

/// Set operations are those of the sets.
fn check_algebra(random: &mut Random) -> Outcome {
    let space = Box3::from_range([5, 6, 2]);
    let (a, b, part) = (random.region(&space), random.region(&space), random.part(&space));
    let (in_a, in_b) = (points(&a), points(&b));
    let in_part: BTreeSet<Coord3> = element::points(&part).collect();
    let laws = [
        ("union", points(&a.union(&b)) == &in_a | &in_b),
        ("difference", points(&a.difference(&b)) == &in_a - &in_b),
        ("difference of boxes", points(&difference(&part, &b)) == &in_part - &bounds(&b)),
        ("intersection", points(&a.intersection(&b)) == &in_a & &in_b),
        ("intersects", a.intersects(&b) != in_a.is_disjoint(&in_b)),
        ("intersects box", a.intersects_box(&part) != in_a.is_disjoint(&in_part)),
        ("contains", a.contains(&b) == in_a.is_superset(&in_b)),
        ("contains box", a.contains_box(&part) == in_a.is_superset(&in_part)),
    ];
    match laws.iter().find(|(_, holds)| !holds) {
        Some((law, _)) => Err(format!("{law} of {a}, {b} and {part}")),
        None => Ok(()),
    }
}

fn difference(part: &Box3, of: &Region) -> Region {
    Region::from(*part).difference_box(&of.bounding_box())
}

fn bounds(of: &Region) -> BTreeSet<Coord3> {
    element::points(&of.bounding_box()).collect()
}

/// A region map is one value for every element.
fn check_map(space: Box3, steps: u64, random: &mut Random) -> Outcome {
    let mut map = RegionMap::new(space, 0);
    let mut naive: BTreeMap<Coord3, u64> = element::points(&space).map(|at| (at, 0)).collect();
    for step in 0..steps {
        let part = match steps > 100 {
            true => element_box(&random.part(&space)),
            false => random.part(&space),
        };
        let value = random.below(if steps > 100 { 1_000 } else { 4 });
        map.update_box(&part, value);
        naive.extend(element::points(&part).map(|at| (at, value)));
        let asked = if step + 1 == steps { space } else { part };
        let mut found: BTreeMap<Coord3, u64> = BTreeMap::new();
        map.for_each_in(&asked, |part, value| {
            found.extend(element::points(&part).map(|at| (at, *value)));
        });
        let wrong = element::points(&asked).find(|at| found.get(at) != naive.get(at));
        if let Some(at) = wrong {
            return Err(format!("{:?} instead of {} at {at:?}", found.get(&at), naive[&at]));
        }
    }
    Ok(())
}

/// The first element of a box.
fn element_box(part: &Box3) -> Box3 {
    if part.is_empty() { *part } else { Box3::new(part.min(), part.min().map(|at| at + 1)) }
}

/// A window holds what was inserted and not removed.
fn check_window(random: &mut Random) -> Outcome {
    let (mut window, mut naive) = (Window::default(), BTreeMap::new());
    let mut next = 0;
    for _ in 0..40 {
        let oldest = naive.keys().next().copied().unwrap_or(next);
        if random.below(2) == 0 {
            window.insert(next, next);
            naive.insert(next, next);
            next += 1;
        }
        let index = oldest + random.below(4);
        if random.below(2) == 0 && window.remove(index) != naive.remove(&index) {
            return Err(format!("removing {index} from a window"));
        }
        if let Some(lost) = (oldest..next).find(|at| window.get(*at) != naive.get(at)) {
            return Err(format!("a window has lost {lost}"));
        }
    }
    Ok(())
}

/// Whoever is sent a pilot is woken.
fn check_wake_ups() -> Outcome {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let waker: Waker = Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let mut ends = local_cluster(vec![Arc::new(|| {}), waker], &pool()?);
    let transfer = TransferId { consumer: TaskId::from_index(1), buffer: BufferId::from_index(0) };
    let (to, message) = (NodeId::from_index(1), MessageId::from_index(0));
    ends[0].send_pilot(
        &Pilot { to, message, transfer, region: Box3::UNIT.into(), from_device: false },
        0,
    );
    match woken.load(Ordering::SeqCst) {
        1 => Ok(()),
        times => Err(format!("the receiver of a pilot is woken {times} times")),
    }
}

fn pool() -> Result<Arc<CpuPool>, String> {
    CpuPool::new(1).map_err(|error| error.to_string())
}

/// A payload of three pieces gets from device to device: all of it, and as it was when it was offered.
fn check_wires() -> Outcome {
    const BYTES: usize = 5 << 15;
    let size = WindowSize { windows: 1, slots: 1, slot_bytes: 1 << 16, least: 1 };
    let ends = local_cluster((0..2).map(|_| Arc::new(|| {}) as Waker).collect(), &pool()?);
    let ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Communicator>).collect();
    let mut ends = wire(ends, &FakeHost::new(size), 1);
    let (mut source, mut target) = (vec![1_u8; BYTES], vec![2_u8; BYTES]);
    let (at, elements) = (MemoryId::of_device(DeviceId::from_index(0)), Box3::from_range([BYTES]));
    let message = MessageId::from_index(0);
    let payload = |bytes: &mut [u8]| {
        let memory = ElementArray { base: BasePtr::of_mut_slice(bytes), extent: elements };
        WirePayload { message, at, memory, elements, elem_size: 1 }
    };
    let (from, to) = (NodeId::from_index(0), NodeId::from_index(1));
    let transfer = TransferId { consumer: TaskId::from_index(1), buffer: BufferId::from_index(0) };
    ends[0].send_pilot(
        &Pilot { to, message, transfer, region: elements.into(), from_device: true },
        0,
    );
    // SAFETY: the source outlives the end, and is written when the payload has been sent.
    unsafe { ends[0].send(to, payload(&mut source)) };
    // SAFETY: the target outlives the end, and is looked at when the payload has been received.
    unsafe { ends[1].receive(from, payload(&mut target)) };
    for _ in 0..10_000 {
        if ends[0].poll() == Some(CommEvent::Sent { message }) {
            source.fill(3);
        }
        match ends[1].poll() {
            Some(CommEvent::Received { .. }) if target.iter().all(|byte| *byte == 1) => {
                return Ok(());
            }
            Some(CommEvent::Received { .. }) => return Err("a wire brings something else".into()),
            Some(CommEvent::Failed(error)) => return Err(error.to_string()),
            _ => {}
        }
    }
    Err("a wire brings nothing".into())
}

/// Boxes that have arrived in a row are all in a device's memory when that is told, once.
fn check_scatter() -> Outcome {
    // So many that they do not all end while one is told of.
    const BOXES: usize = 40;
    let size = WindowSize { windows: 1, slots: 1, slot_bytes: 1 << 16, least: 1 };
    let ends = local_cluster((0..2).map(|_| Arc::new(|| {}) as Waker).collect(), &pool()?);
    let ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Communicator>).collect();
    let mut ends = wire(ends, &FakeHost::new(size), 1);
    let (mut row, mut target) = ([1_u8; BOXES], [0_u8; 2 * BOXES]);
    let memory = ElementArray {
        base: BasePtr::of_mut_slice(&mut target),
        extent: Box3::from_range([2 * BOXES]),
    };
    let (from, message) = (NodeId::from_index(0), MessageId::from_index(7));
    let at = MemoryId::of_device(DeviceId::from_index(0));
    let part = |(nth, byte): (usize, &mut u8)| {
        let elements = Box3::from_offset_range([2 * nth], [1]);
        let base = BasePtr::of_mut_slice(std::slice::from_mut(byte));
        let payload = WirePayload { message, at, memory, elements, elem_size: 1 };
        (ElementArray { base, extent: elements }, payload)
    };
    let parts: Vec<_> = row.iter_mut().enumerate().map(part).collect();
    // SAFETY: row and target outlive the end, and the latter is looked at when all has been received.
    unsafe { ends[1].scatter(from, &parts) };
    let mut told = 0;
    for _ in 0..10_000 {
        match ends[1].poll() {
            Some(CommEvent::Received { .. }) if target.iter().step_by(2).all(|byte| *byte == 1) => {
                told += 1;
            }
            Some(CommEvent::Received { .. }) => return Err("some boxes are not there".into()),
            _ => {}
        }
    }
    if told == 1 { Ok(()) } else { Err(format!("boxes are told of {told} times")) }
}

/// Nodes that come to different collectives of devices are told, and do not wait for each other.
fn check_roll() -> Outcome {
    let ends = local_cluster((0..2).map(|_| Arc::new(|| {}) as Waker).collect(), &pool()?);
    let ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Communicator>).collect();
    let fabric = FakeFabric::default();
    let wired = assemble(ends, |node| Ok(Box::new(fabric.device(node, 1))));
    let mut ends: Vec<_> = wired.into_iter().map(|one| one.end).collect();
    let extent = Box3::from_range([8]);
    let (region, from) = (Region::from(extent), Ends::One(NodeId::from_index(0)));
    let collective = Collective { members: Members::all(), region, from, to: Ends::All };
    let collective = Arc::new(collective);
    let mut memory = [[1_u8; 8], [0; 8]];
    for (node, bytes) in memory.iter_mut().enumerate() {
        let (consumer, buffer) = (TaskId::from_index(node as u64), BufferId::from_index(0));
        let memory = ElementArray { base: BasePtr::of_mut_slice(bytes), extent };
        let part = Box::from([MemoryPart { memory, region: extent.into() }]);
        let (sources, targets) =
            if node == 0 { (part, Box::default()) } else { (Box::default(), part) };
        let exchange = CollectiveExchange {
            transfer: TransferId { consumer, buffer },
            collective: collective.clone(),
            elem_size: 1,
            at: MemoryId::of_device(DeviceId::from_index(0)),
            sources,
            targets,
        };
        // SAFETY: the memory outlives the ends.
        unsafe { ends[node].exchange(exchange) };
    }
    let mut told = [false; 2];
    for _ in 0..1000 {
        for (end, told) in ends.iter_mut().zip(&mut told) {
            let event = end.poll();
            *told |= matches!(event, Some(CommEvent::Failed(CommunicationError::Apart { .. })));
        }
    }
    let over = RunError::Internal { message: "it is over".to_owned() };
    ends.iter_mut().for_each(|end| end.abort(&over));
    while !ends.iter_mut().all(|end| {
        while end.poll().is_some() {}
        end.is_quiet()
    }) {}
    match told {
        [true, true] => Ok(()),
        _ => Err("nodes wait for each other in different collectives".into()),
    }
}

/// The communicator's contract; that check says by a panic what is broken.
fn check_conformance() -> Outcome {
    let pool = pool()?;
    let cluster =
        |nodes| local_cluster((0..nodes).map(|_| Arc::new(|| {}) as Waker).collect(), &pool);
    catch_unwind(AssertUnwindSafe(|| conformance::check(cluster)))
        .map_err(|_| "the communicator breaks its contract".to_owned())
}
