//! What every [`Communicator`] must do with collective operations.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, CommunicationError, Communicator, ElementArray,
    MemoryPart,
};
use celerity_idag::MemoryId;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};

use super::{
    PATIENCE, Square, assert_silent, failure, last, next_but_pilots, next_event, node, pilot,
};

pub(super) mod some_nodes;

/// Bytes per element.
const SIZE: usize = 6;

/// What memory holds that nobody writes.
const UNTOUCHED: [u8; SIZE] = [255; SIZE];

/// The contents of an element, wherever it is.
fn contents([z, y, x]: [u64; 3]) -> [u8; SIZE] {
    let number = (z * 1009 + y) * 2003 + x + 1;
    std::array::from_fn(|byte| (number >> (8 * byte) & 0x7f).to_le_bytes()[0])
}

/// One node's memory of a field of elements: in one array, or in an array per box that moves.
struct Field {
    arrays: Vec<(Box3, Vec<u8>)>,
}

/// How a node keeps what it exchanges.
#[derive(Clone, Copy, PartialEq)]
enum Keeping {
    /// The whole field in one array.
    Together,
    /// Each box of what it gives, and of what it gets, in an array of its own.
    Apart,
}

impl Field {
    /// Memory for a node's part in a collective; what it provides is there.
    fn new(keeping: Keeping, extent: Box3, collective: &Collective, me: NodeId) -> Self {
        let provided = collective.provided_by(me).into_owned();
        let extents: Vec<_> = match keeping {
            Keeping::Together => vec![extent],
            Keeping::Apart => {
                let arriving = collective.arriving_at(me);
                provided.boxes().iter().chain(arriving.boxes()).copied().collect()
            }
        };
        let bytes = |extent: &Box3| usize::try_from(extent.volume()).expect("small") * SIZE;
        let arrays = extents.iter().map(|extent| (*extent, vec![255; bytes(extent)]));
        let mut field = Self { arrays: arrays.collect() };
        field.each(|at, element| {
            if provided.contains_point(at) {
                element.copy_from_slice(&contents(at));
            }
        });
        field
    }

    fn each(&mut self, mut visit: impl FnMut([u64; 3], &mut [u8])) {
        for (extent, bytes) in &mut self.arrays {
            let points = crate::element::points(extent);
            points.zip(bytes.chunks_mut(SIZE)).for_each(|(at, element)| visit(at, element));
        }
    }

    /// Where the elements of a region are.
    fn parts(&mut self, region: &Region) -> Box<[MemoryPart]> {
        let part = |(extent, bytes): &mut (Box3, Vec<u8>)| {
            let region = region.intersection_box(extent);
            let memory = ElementArray { base: BasePtr::of_mut_slice(bytes), extent: *extent };
            (!region.is_empty()).then_some(MemoryPart { memory, region })
        };
        self.arrays.iter_mut().filter_map(part).collect()
    }

    fn exchange(
        &mut self,
        number: u64,
        collective: &Arc<Collective>,
        me: NodeId,
    ) -> CollectiveExchange {
        let sources = self.parts(&collective.provided_by(me));
        let targets = self.parts(&collective.arriving_at(me));
        let (transfer, elem_size, at) = (transfer(number), SIZE as u64, MemoryId::HOST);
        let collective = collective.clone();
        CollectiveExchange { transfer, collective, elem_size, at, sources, targets }
    }

    /// What arrives is there, and all else is as it was.
    fn assert_exchanged(&mut self, collective: &Collective, me: NodeId) {
        let there = collective.provided_by(me).union(&collective.arriving_at(me));
        self.each(|at, element| {
            let expected = if there.contains_point(at) { contents(at) } else { UNTOUCHED };
            assert_eq!(element, expected, "{me}, {}, element {at:?}", collective.pattern());
        });
    }

    fn assert_untouched(&mut self, collective: &Collective, me: NodeId) {
        let provided = collective.provided_by(me).into_owned();
        self.each(|at, element| {
            let expected = if provided.contains_point(at) { contents(at) } else { UNTOUCHED };
            assert_eq!(element, expected, "{me} has got element {at:?} after an abort");
        });
    }
}

fn transfer(number: u64) -> TransferId {
    TransferId { consumer: TaskId::from_index(7 + number), buffer: BufferId::from_index(2) }
}

/// A region in equal parts along a dimension, one per node; some are empty if it is short.
fn parts(region: &Region, dim: usize, nodes: usize) -> Vec<Region> {
    let bounds = region.bounding_box();
    let (min, length) = (bounds.min()[dim], bounds.range()[dim]);
    let border = |index: usize| min + length * index as u64 / nodes as u64;
    let part = |index| {
        let (mut low, mut high) = (bounds.min(), bounds.max());
        (low[dim], high[dim]) = (border(index), border(index + 1));
        region.intersection_box(&Box3::new(low, high))
    };
    (0..nodes).map(part).collect()
}

/// All patterns on a field, among all nodes.
fn collectives(extent: Box3, nodes: usize) -> Vec<Collective> {
    patterns(extent, &Members::all(), nodes)
}

/// All patterns on a field, among some nodes of a cluster of so many.
fn patterns(extent: Box3, members: &Members, cluster: usize) -> Vec<Collective> {
    let nodes = members.count(cluster);
    let node = |rank| members.iter(cluster).nth(rank).expect("a member");
    let whole = Region::from(extent);
    let each = |parts: Vec<Region>| Ends::Each(Arc::from(parts));
    let split = |dim| each(parts(&whole, dim, nodes));
    let (first, middle, end) = (node(0), node(nodes / 2), node(nodes - 1));
    let mut alone = vec![Region::empty(); nodes];
    alone[nodes - 1] = whole.clone();
    let border = |part: &Region| match part.bounding_box() {
        part if part.is_empty() => Region::empty(),
        part => {
            let (mut min, mut max) = part.corners();
            min[0] = min[0].saturating_sub(1).max(extent.min()[0]);
            max[0] = (max[0] + 1).min(extent.max()[0]);
            Box3::new(min, max).into()
        }
    };
    let overlapping = parts(&whole, 0, nodes).iter().map(border).collect();
    let (from, to) = extent.corners();
    let rest = Box3::new(from.map(|at| at + 1), to);
    let odd = match extent.range().iter().all(|length| *length > 1) {
        true => whole.difference(&Region::from(Box3::new(rest.min(), rest.min().map(|at| at + 1)))),
        false => whole.clone(),
    };
    let all = [
        (whole.clone(), split(0), Ends::All),
        (whole.clone(), split(1), Ends::All),
        (whole.clone(), split(2), Ends::All),
        (odd.clone(), each(parts(&odd, 1, nodes)), Ends::All),
        (whole.clone(), each(alone), Ends::All),
        (whole.clone(), split(0), Ends::One(end)),
        (whole.clone(), split(1), Ends::One(middle)),
        (whole.clone(), Ends::One(first), Ends::One(end)),
        (whole.clone(), Ends::One(middle), Ends::All),
        (odd.clone(), Ends::One(end), Ends::All),
        (whole.clone(), Ends::One(first), split(1)),
        (whole.clone(), Ends::One(end), each(overlapping)),
        (whole.clone(), split(0), split(1)),
        (whole.clone(), split(2), split(0)),
        (odd.clone(), each(parts(&odd, 0, nodes)), each(parts(&odd, 2, nodes))),
    ];
    let all = all.into_iter().map(|(region, from, to)| {
        let members = members.clone();
        Collective { members, region, from, to }
    });
    all.collect()
}

fn exchanged(number: u64) -> CommEvent {
    CommEvent::Exchanged { transfer: transfer(number) }
}

fn check_all(end: &mut impl Communicator, number: &mut u64, extent: Box3) {
    let me = end.node();
    for collective in collectives(extent, end.nodes()) {
        let collective = Arc::new(collective);
        let odd = me.slot() % 2 == 1;
        let mixed = if odd { Keeping::Apart } else { Keeping::Together };
        for keeping in [Keeping::Together, Keeping::Apart, mixed] {
            let mut field = Field::new(keeping, extent, &collective, me);
            // SAFETY: the field outlives the report, awaited below, and is left alone meanwhile.
            unsafe { end.exchange(field.exchange(*number, &collective, me)) };
            assert_eq!(next_event(end), exchanged(*number));
            field.assert_exchanged(&collective, me);
            *number += 1;
        }
    }
}

pub(super) fn move_what_they_should<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let (mut end, mut number) = (connect(), 0);
    for extent in [
        Box3::from_range([1]),
        Box3::from_range([11]),
        Box3::from_offset_range([3, 2], [5, 4]),
        Box3::from_offset_range([0, 5, 1], [4, 3, 6]),
    ] {
        check_all(&mut end, &mut number, extent);
    }
    meet();
    assert_silent(&mut end);
}

pub(super) fn large_ones_too<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let (mut end, mut number) = (connect(), 0);
    check_all(&mut end, &mut number, Box3::from_offset_range([1, 1], [130, 257]));
    meet();
    assert_silent(&mut end);
}

/// An all-gather of a line.
fn gathered(length: usize, nodes: usize) -> (Box3, Arc<Collective>) {
    let extent = Box3::from_range([length]);
    let region = Region::from(extent);
    let from = Ends::Each(Arc::from(parts(&region, 0, nodes)));
    (extent, Arc::new(Collective { members: Members::all(), region, from, to: Ends::All }))
}

pub(super) fn wait_for_everybody<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let (me, nodes) = (end.node(), end.nodes());
    for round in 0..nodes + 2 {
        let late = me.slot() == round % nodes;
        let extent = Box3::from_range([16]);
        let from = Ends::One(node((round + 1) % nodes));
        let to = if round % 2 == 0 { Ends::All } else { Ends::One(node(round % nodes)) };
        let collective =
            Arc::new(Collective { members: Members::all(), region: extent.into(), from, to });
        let mut field = Field::new(Keeping::Together, extent, &collective, me);
        let mine = field.exchange(round as u64, &collective, me);
        if !late {
            // SAFETY: the field outlives the report, awaited below.
            unsafe { end.exchange(mine.clone()) };
        }
        assert_silent(&mut end);
        meet();
        if late {
            // SAFETY: as above.
            unsafe { end.exchange(mine) };
        }
        assert_eq!(next_event(&mut end), exchanged(round as u64));
        field.assert_exchanged(&collective, me);
    }
    meet();
}

/// Several at once, between them a payload and behind them a barrier.
pub(super) fn overlap<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    let mut end = connect();
    let (me, to) = (end.node(), last(&end));
    let extent = Box3::from_range([9, 70]);
    let all: Vec<_> = collectives(extent, end.nodes()).into_iter().map(Arc::new).collect();
    let mut fields: Vec<_> =
        all.iter().map(|one| Field::new(Keeping::Together, extent, one, me)).collect();
    let whole = Box3::from_range([40, 40]);
    let (mut source, mut target) = (Square::new(40, |_| 1), Square::new(40, |_| 2));
    let mut expected: Vec<_> = (0..all.len() as u64).map(exchanged).collect();
    let is_pair = me != to && me == node(0);
    if is_pair {
        end.send_pilot(&pilot(to, 0, whole), 0);
    }
    for (number, (field, collective)) in (0..).zip(fields.iter_mut().zip(&all)) {
        if number == 3 && is_pair {
            let payload = source.payload(0, whole);
            expected.push(CommEvent::Sent { message: payload.message });
            // SAFETY: the square outlives the report, awaited below.
            unsafe { end.send(to, payload) };
        }
        // SAFETY: the fields outlive the reports, awaited below.
        unsafe { end.exchange(field.exchange(number, collective, me)) };
    }
    if me == to && me != node(0) {
        let payload = target.payload(0, whole);
        expected.push(CommEvent::Received { from: node(0), message: payload.message });
        // SAFETY: as above.
        unsafe { end.receive(node(0), payload) };
    }
    while !expected.is_empty() {
        let event = next_but_pilots(&mut end);
        let position = expected.iter().position(|one| *one == event);
        expected.remove(position.unwrap_or_else(|| panic!("{event:?} is not expected")));
    }
    for (field, collective) in fields.iter_mut().zip(&all) {
        field.assert_exchanged(collective, me);
    }
    end.enter_barrier(TaskId::from_index(99));
    assert_eq!(next_but_pilots(&mut end), CommEvent::BarrierReached);
    drop(end);
    meet();
}

/// The last node comes to something else: another task, other parts, or a barrier.
pub(super) fn are_told_apart<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    for (task, length, barrier) in [(1, 8, false), (0, 9, false), (1, 8, true)] {
        let mut end = connect();
        let me = end.node();
        let odd = end.nodes() > 1 && me == last(&end);
        let (number, length) = if odd { (task, length) } else { (0, 8) };
        let (extent, collective) = gathered(length, end.nodes());
        let mut field = Field::new(Keeping::Together, extent, &collective, me);
        if odd && barrier {
            end.enter_barrier(transfer(number).consumer);
        } else {
            // SAFETY: the field is dropped after the end.
            unsafe { end.exchange(field.exchange(number, &collective, me)) };
        }
        match next_event(&mut end) {
            CommEvent::Exchanged { .. } => assert_eq!(end.nodes(), 1),
            CommEvent::Failed(CommunicationError::Apart { node, task: one, other, other_task }) => {
                let task_of = |node| {
                    let number = if node == last(&end) { task } else { 0 };
                    transfer(number).consumer
                };
                assert_eq!((one, other_task), (task_of(node), task_of(other)));
                assert!([node, other].contains(&last(&end)), "{node} and {other} agree");
            }
            event => panic!("{event:?}"),
        }
        // It cannot go on: whoever hears of it stops the run.
        meet();
        end.abort(&failure(me, "apart"));
        drop(end);
        meet();
    }
}

/// All but one have come, which stops the run instead.
pub(super) fn do_not_outlive_an_abort<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    let (me, aborts) = (end.node(), end.node() == last(&end));
    let (extent, collective) = gathered(5000, end.nodes());
    let mut fields = [0, 1].map(|_| Field::new(Keeping::Together, extent, &collective, me));
    for (number, field) in (0..).zip(&mut fields).filter(|_| !aborts) {
        // SAFETY: the fields outlive the end.
        unsafe { end.exchange(field.exchange(number, &collective, me)) };
    }
    meet();
    if aborts {
        end.abort(&failure(me, "over"));
    }
    assert_eq!(next_event(&mut end), CommEvent::Aborted(failure(last(&end), "over")));
    if aborts {
        // SAFETY: as above.
        unsafe { end.exchange(fields[0].exchange(0, &collective, me)) };
    }
    let start = Instant::now();
    while !end.is_quiet() {
        assert_silent(&mut end);
        assert!(start.elapsed() < PATIENCE, "{me} does not become quiet");
    }
    drop(end);
    fields.iter_mut().for_each(|field| field.assert_untouched(&collective, me));
    // The next run finds nothing of this one.
    let (mut end, mut number) = (connect(), 0);
    check_all(&mut end, &mut number, Box3::from_range([3, 4]));
    drop(end);
    meet();
}

/// All have come, when one stops the run.
pub(super) fn may_be_aborted<C: Communicator>(connect: &mut dyn FnMut() -> C, meet: &dyn Fn()) {
    for length in [10, 100_000] {
        let mut end = connect();
        let me = end.node();
        let (extent, collective) = gathered(length, end.nodes());
        let mut fields = [0, 1, 2].map(|_| Field::new(Keeping::Together, extent, &collective, me));
        for (number, field) in (0..).zip(&mut fields) {
            // SAFETY: the fields outlive the end.
            unsafe { end.exchange(field.exchange(number, &collective, me)) };
        }
        if me == node(0) {
            end.abort(&failure(me, "in the middle"));
        }
        let mut over = Vec::new();
        loop {
            match next_event(&mut end) {
                CommEvent::Exchanged { transfer } => over.push(transfer),
                CommEvent::Aborted(error) => {
                    break assert_eq!(error, failure(node(0), "in the middle"));
                }
                event => panic!("{event:?}"),
            }
        }
        let start = Instant::now();
        while !end.is_quiet() {
            assert_silent(&mut end);
            assert!(start.elapsed() < PATIENCE, "{me} does not become quiet");
        }
        drop(end);
        for (number, field) in (0..).zip(&mut fields) {
            if over.contains(&transfer(number)) {
                field.assert_exchanged(&collective, me);
            }
        }
        meet();
    }
}
