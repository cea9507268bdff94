//! The engine against a naive twin that looks at every dependency every time,
//! on random graphs with random completion orders.

use std::collections::{BTreeSet, HashMap, VecDeque};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    lanes: u16,
    /// So many of them, from the first on, can wait for each other.
    joined: u16,
    instructions: Vec<(Vec<u64>, Target)>,
    /// By instruction, older ones that it must not run at the same time as.
    conflicts: Vec<Vec<u64>>,
    /// Picks among what can happen next, over and over.
    choices: Vec<Index>,
}

/// All that the engine's laws say, without any bookkeeping to get wrong.
struct Twin {
    joins: Option<LaneGroup>,
    instructions: Vec<(Vec<u64>, Target)>,
    conflicts: Vec<Vec<u64>>,
    submitted: usize,
    assigned: HashMap<u64, Option<LaneId>>,
    /// By lane: everything that it was ever assigned.
    history: Vec<Vec<u64>>,
    reported: BTreeSet<u64>,
    complete: BTreeSet<u64>,
    on_lanes: Vec<VecDeque<u64>>,
    on_node: Vec<u64>,
}

fn joins(case: &Case) -> Option<LaneGroup> {
    (case.joined > 0).then(|| LaneGroup::new(LaneId::from_slot(0), case.joined))
}

impl Twin {
    fn new(case: &Case) -> Self {
        Self {
            joins: joins(case),
            instructions: case.instructions.clone(),
            conflicts: case.conflicts.clone(),
            submitted: 0,
            assigned: HashMap::new(),
            history: vec![Vec::new(); usize::from(case.lanes)],
            reported: BTreeSet::new(),
            complete: BTreeSet::new(),
            on_lanes: vec![VecDeque::new(); usize::from(case.lanes)],
            on_node: Vec::new(),
        }
    }

    fn incomplete_dependencies(&self, index: u64) -> impl Iterator<Item = u64> + '_ {
        let (dependencies, _) = &self.instructions[usize::try_from(index).unwrap()];
        dependencies.iter().copied().filter(|dependency| !self.complete.contains(dependency))
    }

    /// Those that it conflicts with, have been submitted, and are not complete.
    fn rivals(&self, index: u64) -> impl Iterator<Item = u64> + '_ {
        let of = |one: u64| &self.conflicts[usize::try_from(one).unwrap()];
        let others = (0..self.submitted as u64)
            .filter(move |&other| of(index).contains(&other) || of(other).contains(&index));
        others.filter(|other| !self.complete.contains(other))
    }

    fn runs(&self, index: u64) -> bool {
        self.assigned.contains_key(&index) && !self.complete.contains(&index)
    }

    /// The one lane that would keep all incomplete dependencies in order.
    fn eager_lane(&self, index: u64) -> Option<LaneId> {
        let mut lanes = self
            .incomplete_dependencies(index)
            .map(|dependency| self.assigned.get(&dependency).copied().flatten());
        let first = lanes.next()??;
        lanes.all(|lane| lane == Some(first)).then_some(first)
    }

    fn may_start(&self, index: u64) -> bool {
        if self.rivals(index).any(|other| self.runs(other)) {
            return false;
        }
        let (_, target) = &self.instructions[usize::try_from(index).unwrap()];
        let Target::Lanes(group) = target else {
            return self.incomplete_dependencies(index).next().is_none();
        };
        let joins = |lane| self.joins.is_some_and(|joins| joins.contains(lane));
        let on_joined =
            |dependency| self.assigned.get(&dependency).copied().flatten().is_some_and(joins);
        let joined = joins(group.first()) && self.incomplete_dependencies(index).all(on_joined);
        let eager = self.eager_lane(index).is_some_and(|lane| group.contains(lane));
        // Who may keep others from starting does not take a lane before it can run.
        let ahead = (eager || joined) && self.rivals(index).next().is_none();
        self.incomplete_dependencies(index).next().is_none() || ahead
    }

    /// Its dependencies that have been assigned to a lane and not been reported.
    fn running(&self, index: u64, lane: usize) -> impl Iterator<Item = u64> + '_ {
        let here = move |dependency: &u64| self.on_lanes[lane].contains(dependency);
        self.incomplete_dependencies(index).filter(here)
    }

    /// What a lane must wait for before it runs an instruction.
    fn jobs_before(&self, index: u64, own: LaneId) -> BTreeSet<LaneJob> {
        let others = (0..self.on_lanes.len()).filter(|&lane| lane != own.slot());
        let last = |lane: usize| {
            let number = |job| self.history[lane].iter().position(|&other| other == job).unwrap();
            let number = self.running(index, lane).map(number).max()? as u64;
            Some(LaneJob { lane: LaneId::from_slot(u16::try_from(lane).unwrap()), number })
        };
        others.filter_map(last).collect()
    }

    fn check_and_start(&mut self, assignment: Assignment) {
        let index = assignment.instruction.index();
        assert!(!self.assigned.contains_key(&index), "I{index} is assigned twice");
        assert!(self.may_start(index), "I{index} starts too early");
        let (_, target) = &self.instructions[usize::try_from(index).unwrap()];
        match (target, assignment.lane) {
            (Target::Node, None) => self.on_node.push(index),
            (Target::Lanes(group), Some(lane)) => {
                assert!(group.contains(lane), "I{index} is on a foreign lane");
                self.check_lane(index, *group, lane);
                let after: BTreeSet<_> = assignment.after.iter().copied().collect();
                assert_eq!(after.len(), assignment.after.len(), "a lane is waited for once");
                assert_eq!(after, self.jobs_before(index, lane), "I{index} waits for others");
                self.on_lanes[lane.slot()].push_back(index);
                self.history[lane.slot()].push(index);
            }
            (target, lane) => panic!("I{index} for {target:?} is on {lane:?}"),
        }
        self.assigned.insert(index, assignment.lane);
    }

    fn check_lane(&self, index: u64, group: LaneGroup, lane: LaneId) {
        let joins = self.joins.is_some_and(|joins| joins.contains(lane));
        let eager = self.eager_lane(index).filter(|&lane| group.contains(lane));
        if let Some(eager) = eager.filter(|_| !joins) {
            return assert_eq!(eager, lane, "I{index} leaves its lane");
        }
        let rank = |slot: usize| {
            let last = self.history[slot].last().copied();
            let followed = last.filter(|&last| self.running(index, slot).any(|job| job == last));
            let before = followed.map_or(0, |_| self.running(index, slot).count());
            (std::cmp::Reverse(before), followed, self.on_lanes[slot].len())
        };
        let best = group.slots().map(rank).min().unwrap();
        assert_eq!(rank(lane.slot()), best, "I{index} is on neither its lane nor a free one");
    }

    fn nothing_is_held_back(&self) {
        for index in 0..self.submitted as u64 {
            let waits = !self.assigned.contains_key(&index);
            assert!(!(waits && self.may_start(index)), "I{index} could start, but does not");
        }
    }

    /// What could complete now: the heads of lanes, and anything on the node.
    fn completable(&self) -> Vec<u64> {
        let heads = self.on_lanes.iter().filter_map(|lane| lane.front().copied());
        heads.chain(self.on_node.iter().copied()).collect()
    }

    fn complete(&mut self, index: u64) {
        let joined = self.joins.is_some();
        let over = |index| self.incomplete_dependencies(index).next().is_none();
        assert!(joined || over(index), "lanes keep dependencies");
        self.on_lanes.iter_mut().for_each(|lane| lane.retain(|&other| other != index));
        self.on_node.retain(|&other| other != index);
        self.reported.insert(index);
        // Dependencies are older, so one pass finds all.
        for index in self.reported.clone() {
            if self.incomplete_dependencies(index).next().is_none() {
                self.complete.insert(index);
            }
        }
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let lanes = (1..5_u16).prop_flat_map(|lanes| (Just(lanes), 0..=lanes));
    lanes.prop_flat_map(|(lanes, joined)| {
        let group = (0..lanes).prop_flat_map(move |first| {
            let end = if first < joined { joined } else { lanes };
            (1..=end - first).prop_map(move |count| {
                Target::Lanes(LaneGroup::new(LaneId::from_slot(first), count))
            })
        });
        let target = prop_oneof![1 => Just(Target::Node), 4 => group];
        let distances = prop::collection::btree_set(1..8_u64, 0..5);
        let rivals = prop_oneof![
            2 => Just(BTreeSet::new()),
            1 => prop::collection::btree_set(1..12_u64, 0..6),
        ];
        let instructions = prop::collection::vec((distances, target, rivals), 1..40);
        let choices = prop::collection::vec(any::<Index>(), 128);
        (instructions, choices).prop_map(move |(instructions, choices)| Case {
            lanes,
            joined,
            conflicts: conflicts(&instructions),
            instructions: instructions
                .into_iter()
                .map(|(distances, target, _)| (distances, target))
                .enumerate()
                .map(absolute)
                .collect(),
            choices,
        })
    })
}

type RawInstruction = (BTreeSet<u64>, Target, BTreeSet<u64>);

/// What runs on lanes may conflict with older ones that do.
fn conflicts(instructions: &[RawInstruction]) -> Vec<Vec<u64>> {
    let on_lanes = |index: usize| matches!(instructions[index].1, Target::Lanes(_));
    let of = |(index, (_, _, rivals)): (usize, &RawInstruction)| {
        let earlier = rivals.iter().filter_map(|distance| (index as u64).checked_sub(*distance));
        let earlier = earlier.filter(|&other| on_lanes(usize::try_from(other).unwrap()));
        if on_lanes(index) { earlier.collect() } else { Vec::new() }
    };
    instructions.iter().enumerate().map(of).collect()
}

fn absolute((index, (distances, target)): (usize, (BTreeSet<u64>, Target))) -> (Vec<u64>, Target) {
    let earlier = distances.iter().filter_map(|distance| (index as u64).checked_sub(*distance));
    (earlier.collect(), target)
}

fn check(case: &Case) {
    let mut engine = Engine::new(usize::from(case.lanes)).with_joins(joins(case));
    let mut twin = Twin::new(case);
    for choice in case.choices.iter().cycle() {
        while let Some(assignment) = engine.next_assignment() {
            twin.check_and_start(assignment);
        }
        twin.nothing_is_held_back();
        let completable = twin.completable();
        let submittable = usize::from(twin.submitted < case.instructions.len());
        match completable.len() + submittable {
            0 => break,
            options => match completable.get(choice.index(options)) {
                Some(&index) => {
                    twin.complete(index);
                    let _ = engine.complete(InstructionId::from_index(index));
                }
                None => {
                    let (dependencies, target) = &case.instructions[twin.submitted];
                    let dependencies: Vec<_> = dependencies
                        .iter()
                        .map(|&index| InstructionId::from_index(index))
                        .collect();
                    let id = InstructionId::from_index(twin.submitted as u64);
                    let rivals = case.conflicts[twin.submitted].iter();
                    let rivals: Vec<_> =
                        rivals.map(|&index| InstructionId::from_index(index)).collect();
                    twin.submitted += 1;
                    let _ = engine.submit(id, &dependencies, *target);
                    if !rivals.is_empty() {
                        let _ = engine.exclude(id, &rivals);
                    }
                }
            },
        }
        assert_eq!(engine.incomplete(), twin.submitted - twin.complete.len());
    }
    assert_eq!(twin.complete.len(), case.instructions.len(), "everything completes");
    assert_eq!((engine.incomplete(), engine.width(), engine.edges.live()), (0, 0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn agrees_with_the_naive_twin(case in any_case()) {
        check(&case);
    }
}

const KERNELS: Target = Target::Lanes(LaneGroup::new(LaneId::from_slot(0), 2));
const COPIES: Target = Target::Lanes(LaneGroup::new(LaneId::from_slot(2), 1));

fn ids<const N: usize>() -> [InstructionId; N] {
    std::array::from_fn(|index| InstructionId::from_index(index as u64))
}

#[test]
fn independent_kernels_spread_over_lanes_and_joins_wait() {
    let [left, right, join] = ids();
    let mut engine = Engine::new(3);
    let _ = engine.submit(left, &[], KERNELS);
    let _ = engine.submit(right, &[], KERNELS);
    let _ = engine.submit(join, &[left, right], KERNELS);
    let (first, second) = (engine.next_assignment().unwrap(), engine.next_assignment().unwrap());
    assert_ne!(first.lane, second.lane);
    assert_eq!(engine.next_assignment(), None);
    assert_eq!(engine.complete(left), Step::Issue, "the rest is on one lane");
    assert_eq!(engine.next_assignment().unwrap().lane, second.lane);
}

#[test]
fn other_lanes_are_no_substitute_for_completion() {
    let [kernel, copy] = ids();
    let mut engine = Engine::new(3);
    let _ = engine.submit(kernel, &[], KERNELS);
    let _ = engine.submit(copy, &[kernel], COPIES);
    let _ = engine.next_assignment().unwrap();
    assert_eq!(engine.next_assignment(), None);
    assert_eq!(engine.complete(kernel), Step::Issue);
    assert_eq!(engine.next_assignment().unwrap().instruction, copy);
}

#[test]
fn lanes_that_wait_for_each_other_start_at_once_and_end_in_any_order() {
    let [first, second, copy, epoch] = ids();
    let mut engine = Engine::new(3).with_joins(Some(LaneGroup::new(LaneId::from_slot(0), 3)));
    let _ = engine.submit(first, &[], KERNELS);
    let _ = engine.submit(second, &[first], KERNELS);
    let _ = engine.submit(copy, &[first, second], COPIES);
    let _ = engine.submit(epoch, &[copy], Target::Node);
    let kernels = [(); 2].map(|()| engine.next_assignment().unwrap());
    let after = engine.next_assignment().unwrap().after;
    let last = LaneJob { lane: kernels[1].lane.unwrap(), number: 1 };
    assert_eq!(after.as_slice(), [last]);
    assert_eq!(engine.complete(copy), Step::Wait, "its kernels have not been reported");
    assert_eq!(engine.complete(first), Step::Wait);
    assert_eq!(engine.complete(second), Step::Issue);
    assert_eq!(engine.next_assignment().unwrap().instruction, epoch);
}

#[test]
fn who_can_stands_behind_nothing_but_what_it_depends_on() {
    let [border, inner, next_border, next_inner] = ids();
    let mut engine = Engine::new(3).with_joins(Some(LaneGroup::new(LaneId::from_slot(0), 3)));
    let _ = engine.submit(border, &[], KERNELS);
    let _ = engine.submit(inner, &[border], KERNELS);
    let _ = engine.submit(next_border, &[border, inner], KERNELS);
    let _ = engine.submit(next_inner, &[border, inner], KERNELS);
    let [.., third, fourth] = [(); 4].map(|()| engine.next_assignment().unwrap());
    // The lane of both dependencies now ends with what is none.
    assert_ne!(third.lane, fourth.lane);
    let before = LaneJob { lane: third.lane.unwrap(), number: 1 };
    assert_eq!((third.after.as_slice(), fourth.after.as_slice()), (&[][..], &[before][..]));
}

#[test]
fn instructions_of_the_node_go_first() {
    let [kernel, send] = ids();
    let mut engine = Engine::new(3);
    let _ = engine.submit(kernel, &[], KERNELS);
    assert_eq!(engine.submit(send, &[], Target::Node), Step::Issue);
    assert_eq!(engine.next_assignment().unwrap().instruction, send);
    assert_eq!(engine.next_assignment().unwrap().instruction, kernel);
}

#[test]
#[should_panic(expected = "I0 completes, but is not running")]
fn completion_before_assignment_is_refused() {
    let mut engine = Engine::new(1);
    let [only] = ids();
    let _ = engine.submit(only, &[], Target::Node);
    let _ = engine.complete(only);
}

#[test]
#[should_panic(expected = "I2 is out of order")]
fn gaps_are_refused() {
    let mut engine = Engine::new(1);
    let [first, _, third] = ids();
    let _ = engine.submit(first, &[], Target::Node);
    let _ = engine.submit(third, &[], Target::Node);
}

#[test]
fn a_long_run_reuses_its_window() {
    let mut engine = Engine::new(3);
    let mut widths = 0;
    for index in 0..10_000_u64 {
        let id = InstructionId::from_index(index);
        let before = index.checked_sub(1).map(InstructionId::from_index);
        let _ = engine.submit(id, before.as_slice(), KERNELS);
        let _ = engine.next_assignment().unwrap();
        if let Some(old) = index.checked_sub(16) {
            let _ = engine.complete(InstructionId::from_index(old));
        }
        widths = widths.max(engine.width());
    }
    assert_eq!(widths, 16);
}

#[test]
fn of_a_star_of_conflicts_all_but_the_centre_start() {
    let [first, centre, left, right] = ids();
    let mut engine = Engine::new(3);
    let _ = engine.submit(first, &[], KERNELS);
    let _ = engine.submit(centre, &[], KERNELS);
    let _ = engine.exclude(centre, &[first]);
    let _ = engine.submit(left, &[], KERNELS);
    let _ = engine.exclude(left, &[centre]);
    let _ = engine.submit(right, &[], COPIES);
    let _ = engine.exclude(right, &[centre]);
    let started = std::iter::from_fn(|| engine.next_assignment());
    let started: Vec<_> = started.map(|assignment| assignment.instruction).collect();
    assert_eq!(started, [first, left, right]);
    assert_eq!((engine.complete(left), engine.next_assignment()), (Step::Issue, None));
    let _ = engine.complete(first);
    assert_eq!(engine.next_assignment(), None);
    let _ = engine.complete(right);
    assert_eq!(engine.next_assignment().unwrap().instruction, centre);
}

#[test]
fn who_conflicts_takes_no_lane_before_it_can_run() {
    let [kernel, behind, rival] = ids();
    let mut engine = Engine::new(3);
    let _ = engine.submit(kernel, &[], KERNELS);
    let _ = engine.submit(behind, &[kernel], KERNELS);
    let _ = engine.submit(rival, &[], COPIES);
    let _ = engine.exclude(rival, &[behind]);
    // Eagerly, `behind` would follow `kernel` on its lane, and keep `rival` waiting.
    let started = std::iter::from_fn(|| engine.next_assignment());
    let started: Vec<_> = started.map(|assignment| assignment.instruction).collect();
    assert_eq!(started, [kernel, rival]);
    let _ = engine.complete(kernel);
    assert_eq!(engine.next_assignment(), None);
    let _ = engine.complete(rival);
    assert_eq!(engine.next_assignment().unwrap().instruction, behind);
}

#[test]
fn conflicts_leave_nothing_behind() {
    let mut engine = Engine::new(3);
    for index in 0..10_000_u64 {
        let id = InstructionId::from_index(index);
        let rivals: Vec<_> =
            (index.saturating_sub(5)..index).map(InstructionId::from_index).collect();
        let _ = engine.submit(id, &[], KERNELS);
        let _ = engine.exclude(id, &rivals);
        if let Some(old) = index.checked_sub(3) {
            let next = engine.next_assignment().unwrap();
            assert_eq!((next.instruction.index(), engine.next_assignment()), (old, None));
            let _ = engine.complete(next.instruction);
        }
        assert!(engine.exclusions.as_ref().is_none_or(|some| some.len() <= 4));
    }
    while let Some(next) = engine.next_assignment() {
        let _ = engine.complete(next.instruction);
    }
    assert_eq!((engine.incomplete(), engine.exclusions.is_none()), (0, true));
}

#[test]
#[should_panic(expected = "I1 is for the node itself")]
fn a_conflict_of_the_node_is_refused() {
    let [first, second] = ids();
    let mut engine = Engine::new(1);
    let _ = engine.submit(first, &[], Target::Lanes(LaneGroup::new(LaneId::from_slot(0), 1)));
    let _ = engine.submit(second, &[], Target::Node);
    let _ = engine.exclude(second, &[first]);
}
