//! The arbiter against a twin that knows every element, on random geometries
//! and orders; and every way in which a pilot can be wrong.

use std::collections::BTreeSet;

use celerity_idag::MemoryId;
use celerity_tdag::BufferId;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const HERE: NodeId = NodeId::from_index(0);
const PEER: NodeId = NodeId::from_index(1);
const TRANSFER: TransferId =
    TransferId { consumer: TaskId::from_index(7), buffer: BufferId::from_index(2) };

fn inbound(region: impl Into<Region>) -> Inbound {
    let region = region.into();
    let target = Placement {
        allocation: AllocationId::from_index(5),
        memory: MemoryId::HOST,
        extent: region.bounding_box(),
    };
    Inbound { transfer: TRANSFER, target, region, elem_size: 8 }
}

fn pilot(message: u64, elements: Box3) -> Pilot {
    pilot_of(message, elements.into())
}

fn pilot_of(message: u64, region: Region) -> Pilot {
    let message = MessageId::from_index(message);
    Pilot { to: HERE, message, transfer: TRANSFER, region, from_device: false }
}

fn id(index: u64) -> InstructionId {
    InstructionId::from_index(index)
}

fn span(from: usize, to: usize) -> Box3 {
    Box3::from_offset_range([from], [to - from])
}

/// One transfer: which element belongs to which receive, message and await.
#[derive(Clone, Debug)]
struct Case {
    /// Receives as vertical bands of a square; the flag makes them split.
    bands: Vec<(Box3, bool)>,
    /// Messages: a grid of boxes over all bands, some of several boxes, each in one band.
    messages: Vec<(NodeId, Region)>,
    /// Parts of split bands.
    awaits: Vec<(usize, Region)>,
    order: Vec<Index>,
}

fn cuts(length: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(1..length, 0..4).prop_map(move |inner| {
        let mut cuts = vec![0];
        cuts.extend(inner);
        cuts.push(length);
        cuts
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    let bands = (cuts(8), prop::collection::vec(any::<bool>(), 8));
    let grids = prop::collection::vec((cuts(8), any::<bool>()), 8);
    let parts = prop::collection::vec((any::<Index>(), 0..8_usize, 1..9_usize), 0..6);
    let order = prop::collection::vec(any::<Index>(), 64);
    let bundles = prop::collection::vec(any::<Index>(), 256);
    (bands, grids, parts, order, bundles).prop_map(
        |((columns, split), grids, parts, order, bundles)| {
            let bands: Vec<_> = columns
                .windows(2)
                .zip(split)
                .map(|(cut, split)| {
                    (Box3::from_offset_range([0, cut[0]], [8, cut[1] - cut[0]]), split)
                })
                .collect();
            let messages = bands.iter().zip(&grids).flat_map(|((band, _), grid)| cells(band, grid));
            let messages = bundled(messages.zip(bundles), &bands);
            let messages = messages
                .into_iter()
                .enumerate()
                .map(|(index, region)| (NodeId::from_index(1 + index as u64 % 3), region))
                .collect();
            let splits: Vec<_> = (0..bands.len()).filter(|&band| bands[band].1).collect();
            let awaits =
                parts.into_iter().filter(|_| !splits.is_empty()).map(|(band, from, rows)| {
                    let band = splits[band.index(splits.len())];
                    let rows = Box3::from_offset_range([from, 0], [rows.min(8 - from), 8]);
                    (band, bands[band].0.intersection(&rows).into())
                });
            let awaits = awaits.collect();
            Case { bands, messages, awaits, order }
        },
    )
}

/// Joins each cell with one of the messages before it, unless that would make boxes that lie in two bands.
fn bundled(cells: impl Iterator<Item = (Box3, Index)>, bands: &[(Box3, bool)]) -> Vec<Region> {
    let mut messages = Vec::<Region>::new();
    for (cell, with) in cells {
        // As often as not, a message begins.
        let with = with.index(2 * messages.len() + 1);
        let joined = messages.get(with).map(|message| message.union(&cell.into()));
        let is_whole = |part: &Box3| bands.iter().any(|(band, _)| band.contains(part));
        match joined.filter(|region| region.boxes().iter().all(is_whole)) {
            Some(joined) => messages[with] = joined,
            None => messages.push(cell.into()),
        }
    }
    messages
}

/// A band in rows, or in rows cut in half.
fn cells(band: &Box3, (rows, halved): &(Vec<usize>, bool)) -> Vec<Box3> {
    let (min, max) = (band.min(), band.max());
    let middle = if *halved && max[1] - min[1] > 1 { min[1] + 1 } else { max[1] };
    let mut cells = Vec::new();
    for cut in rows.windows(2) {
        let (top, bottom) = (cut[0] as u64, cut[1] as u64);
        cells.push(Box3::new([top, min[1], 0], [bottom, middle, 1]));
        cells.push(Box3::new([top, middle, 0], [bottom, max[1], 1]));
    }
    cells.retain(|cell| !cell.is_empty());
    cells
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Begin(usize),
    Await(usize),
    Pilot(usize),
    Arrive(usize),
}

/// What has happened, element by element.
struct Twin<'a> {
    case: &'a Case,
    happened: Vec<Event>,
    arrived: BTreeSet<Coord3>,
    completed: BTreeSet<InstructionId>,
    posted: BTreeSet<usize>,
}

use celerity_regions::Coord3;

fn points(elements: &Box3) -> Vec<Coord3> {
    let (min, max) = (elements.min(), elements.max());
    let line = |y: u64| (min[1]..max[1]).map(move |x| [y, x, 0]);
    (min[0]..max[0]).flat_map(line).collect()
}

fn await_id(index: usize) -> InstructionId {
    id(100 + index as u64)
}

impl Twin<'_> {
    fn possible(&self) -> Vec<Event> {
        let case = self.case;
        let begun = |band: usize| self.happened.contains(&Event::Begin(band));
        let begins = (0..case.bands.len()).map(Event::Begin);
        let awaits = (0..case.awaits.len()).filter(|&part| begun(case.awaits[part].0));
        let pilots = (0..case.messages.len()).map(Event::Pilot);
        let arrivals = self.posted.iter().copied().map(Event::Arrive);
        let all = begins.chain(awaits.map(Event::Await)).chain(pilots).chain(arrivals);
        all.filter(|event| !self.happened.contains(event)).collect()
    }

    fn covered(&self, elements: &Region) -> bool {
        elements.boxes().iter().flat_map(points).all(|point| self.arrived.contains(&point))
    }

    fn expected(&self) -> BTreeSet<InstructionId> {
        let waits = self.happened.iter().filter_map(|event| match *event {
            Event::Begin(band) if !self.case.bands[band].1 => {
                Some((id(band as u64), self.case.bands[band].0.into()))
            }
            Event::Await(part) => Some((await_id(part), self.case.awaits[part].1.clone())),
            _ => None,
        });
        waits.filter(|(_, region)| self.covered(region)).map(|(id, _)| id).collect()
    }

    fn expected_posts(&self) -> BTreeSet<usize> {
        let has_begun = |part: &Box3| {
            let band = self.case.bands.iter().position(|(band, _)| band.contains(part));
            self.happened.contains(&Event::Begin(band.unwrap()))
        };
        let announced = |message: &usize| {
            self.happened.contains(&Event::Pilot(*message))
                && self.case.messages[*message].1.boxes().iter().all(has_begun)
        };
        (0..self.case.messages.len()).filter(announced).collect()
    }
}

fn perform(arbiter: &mut Arbiter, case: &Case, event: Event) -> Result<(), ArbiterError> {
    match event {
        Event::Begin(band) => {
            let (elements, split) = case.bands[band];
            let instruction = id(band as u64);
            match split {
                true => arbiter.begin_split_receive(instruction, &inbound(elements)),
                false => arbiter.begin_receive(instruction, &inbound(elements)),
            }
        }
        Event::Await(part) => arbiter.begin_await(await_id(part), TRANSFER, &case.awaits[part].1),
        Event::Pilot(message) => {
            let (from, region) = case.messages[message].clone();
            arbiter.pilot(from, pilot_of(message as u64, region))
        }
        Event::Arrive(message) => {
            arbiter.arrived(case.messages[message].0, MessageId::from_index(message as u64))
        }
    }
}

fn check(case: &Case) {
    let mut arbiter = Arbiter::new(HERE);
    let mut twin = Twin {
        case,
        happened: Vec::new(),
        arrived: BTreeSet::new(),
        completed: BTreeSet::new(),
        posted: BTreeSet::new(),
    };
    for choice in case.order.iter().cycle() {
        let possible = twin.possible();
        if possible.is_empty() {
            break;
        }
        let event = possible[choice.index(possible.len())];
        perform(&mut arbiter, case, event).unwrap();
        twin.happened.push(event);
        if let Event::Arrive(message) = event {
            twin.arrived.extend(case.messages[message].1.boxes().iter().flat_map(points));
        }
        while let Some(post) = arbiter.next_post() {
            let message = usize::try_from(post.message.index()).unwrap();
            let region = Region::from_boxes(post.parts.iter().map(|(part, _)| *part));
            assert!(region.boxes().iter().eq(post.parts.iter().map(|(part, _)| part)));
            assert_eq!((post.from, region), case.messages[message]);
            assert!(post.parts.iter().all(|(part, target)| target.extent.contains(part)));
            assert!(twin.posted.insert(message), "{post:?} twice");
        }
        assert_eq!(twin.posted, twin.expected_posts());
        while let Some(instruction) = arbiter.next_completed() {
            assert!(twin.completed.insert(instruction), "{instruction} completes twice");
        }
        assert_eq!(twin.completed, twin.expected());
    }
    assert_eq!(arbiter.close_before(TRANSFER.consumer.next()), Ok(()));
    assert!(arbiter.transfers.is_empty() && arbiter.announced.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn agrees_with_the_element_twin(case in any_case()) {
        check(&case);
    }
}

#[test]
fn await_receives_complete_in_all_three_geometries() {
    let geometries: [&[Box3]; 3] =
        [&[span(0, 4), span(4, 8)], &[span(0, 8)], &[span(0, 2), span(2, 6), span(6, 8)]];
    let completed_after: [&[usize]; 3] = [&[1, 2], &[2], &[0, 1, 2]];
    for (messages, completed_after) in geometries.into_iter().zip(completed_after) {
        let mut arbiter = Arbiter::new(HERE);
        arbiter.begin_split_receive(id(0), &inbound(span(0, 8))).unwrap();
        arbiter.begin_await(id(1), TRANSFER, &span(0, 4).into()).unwrap();
        arbiter.begin_await(id(2), TRANSFER, &span(4, 8).into()).unwrap();
        let mut completed = 0;
        for (message, elements) in messages.iter().enumerate() {
            arbiter.pilot(PEER, pilot(message as u64, *elements)).unwrap();
            assert_eq!(arbiter.next_post().unwrap().parts[0].0, *elements);
            arbiter.arrived(PEER, MessageId::from_index(message as u64)).unwrap();
            completed += std::iter::from_fn(|| arbiter.next_completed()).count();
            assert_eq!(completed, completed_after[message], "{messages:?}");
        }
    }
}

#[test]
fn a_payload_inside_two_receives_is_refused_wherever_it_meets_them() {
    let straddling = pilot(0, span(2, 6));
    let refused = |outcome| matches!(outcome, Err(ArbiterError::OutsideRegion { .. }));

    let mut early = Arbiter::new(HERE);
    early.pilot(PEER, straddling.clone()).unwrap();
    assert!(refused(early.begin_receive(id(0), &inbound(span(0, 4)))));

    let mut late = Arbiter::new(HERE);
    late.begin_receive(id(0), &inbound(span(0, 4))).unwrap();
    late.begin_receive(id(1), &inbound(span(4, 8))).unwrap();
    assert!(refused(late.pilot(PEER, straddling)));
    assert_eq!(late.next_post(), None, "nothing is posted for it");
}

#[test]
fn several_boxes_wait_for_all_of_their_receives() {
    let mut arbiter = Arbiter::new(HERE);
    let region = Region::from_boxes([span(0, 1), span(2, 3), span(5, 6)]);
    let (message, rest) = (MessageId::from_index(0), MessageId::from_index(1));
    arbiter.pilot(PEER, pilot_of(0, region)).unwrap();
    arbiter.begin_receive(id(0), &inbound(span(0, 4))).unwrap();
    assert_eq!(arbiter.next_post(), None, "[5..6] goes elsewhere");
    assert!(arbiter.expects_pilots());
    arbiter.begin_receive(id(1), &inbound(span(5, 6))).unwrap();
    let post = arbiter.next_post().expect("both have begun");
    let parts = post.parts.iter().map(|(part, target)| (*part, target.extent));
    let expected = [(0, 1, 0, 4), (2, 3, 0, 4), (5, 6, 5, 6)];
    assert!(parts.eq(expected.map(|(from, to, first, end)| (span(from, to), span(first, end)))));
    arbiter.arrived(PEER, message).unwrap();
    assert_eq!([arbiter.next_completed(), arbiter.next_completed()], [Some(id(1)), None]);
    let left = Region::from_boxes([span(1, 2), span(3, 4)]);
    assert_eq!(arbiter.missing(id(0)), Some(left.clone()));
    arbiter.pilot(PEER, pilot_of(1, left)).unwrap();
    arbiter.arrived(PEER, rest).unwrap();
    assert_eq!(arbiter.next_completed(), Some(id(0)));
}

#[test]
fn malformed_pilots_are_refused() {
    let mut arbiter = Arbiter::new(HERE);
    arbiter.begin_receive(id(0), &inbound(span(0, 8))).unwrap();
    let elsewhere = Pilot { to: PEER, ..pilot(0, span(0, 2)) };
    assert!(matches!(arbiter.pilot(PEER, elsewhere), Err(ArbiterError::Misdirected { .. })));
    let nothing = arbiter.pilot(PEER, pilot(0, Box3::EMPTY));
    assert!(matches!(nothing, Err(ArbiterError::OutsideRegion { .. })));
    arbiter.pilot(PEER, pilot(0, span(0, 4))).unwrap();
    let same_message = arbiter.pilot(PEER, pilot(0, span(4, 8)));
    assert!(matches!(same_message, Err(ArbiterError::Duplicate { .. })));
    let same_elements = arbiter.pilot(PEER, pilot(1, span(3, 5)));
    assert!(matches!(same_elements, Err(ArbiterError::Duplicate { .. })));
}

#[test]
fn pilots_that_nobody_waits_for_are_found_when_the_transfer_closes() {
    let mut arbiter = Arbiter::new(HERE);
    arbiter.pilot(PEER, pilot(0, span(0, 4))).unwrap();
    assert_eq!(arbiter.close_before(TRANSFER.consumer), Ok(()), "it may still be asked for");
    let closed = arbiter.close_before(TRANSFER.consumer.next());
    assert!(matches!(closed, Err(ArbiterError::Unexpected { from: PEER, .. })));
    let late = arbiter.pilot(PEER, pilot(1, span(0, 4)));
    assert!(matches!(late, Err(ArbiterError::Unexpected { .. })));
}

#[test]
fn receives_and_payloads_that_do_not_fit_are_refused() {
    let mut arbiter = Arbiter::new(HERE);
    arbiter.begin_receive(id(0), &inbound(span(0, 4))).unwrap();
    let overlapping = arbiter.begin_receive(id(1), &inbound(span(3, 8)));
    assert!(matches!(overlapping, Err(ArbiterError::InconsistentReceives { .. })));
    let not_split = arbiter.begin_await(id(2), TRANSFER, &span(0, 2).into());
    assert!(matches!(not_split, Err(ArbiterError::InconsistentReceives { .. })));
    let unknown = arbiter.arrived(PEER, MessageId::from_index(9));
    assert!(matches!(unknown, Err(ArbiterError::UnknownPayload { .. })));
    assert!(arbiter.expects_into(AllocationId::from_index(5)));
}
