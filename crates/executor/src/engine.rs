//! The out-of-order engine (002 §4.1): decides which instruction may start,
//! and on which in-order lane. Owns the dependency window; refuses to know what
//! instructions do, when it is, and who runs them.
//!
//! ```
//! use celerity_executor::{Engine, LaneGroup, LaneId, Target};
//! use celerity_idag::InstructionId;
//! let [alloc, fill, step] = [0, 1, 2].map(InstructionId::from_index);
//! let kernels = Target::Lanes(LaneGroup::new(LaneId::from_slot(0), 2));
//!
//! let mut engine = Engine::new(2);
//! let _ = engine.submit(alloc, &[], Target::Node);
//! let _ = engine.submit(fill, &[alloc], kernels);
//! let _ = engine.submit(step, &[fill], kernels);
//!
//! let assignment = engine.next_assignment().unwrap();
//! assert_eq!((assignment.instruction, assignment.lane), (alloc, None));
//! assert!(engine.next_assignment().is_none(), "the kernels wait for their memory");
//!
//! let _ = engine.complete(alloc);
//! let first = engine.next_assignment().unwrap();
//! let second = engine.next_assignment().unwrap(); // eagerly, behind the first on its lane
//! assert_eq!((first.instruction, second.instruction), (fill, step));
//! assert_eq!(first.lane, second.lane);
//! ```

use std::collections::VecDeque;

use celerity_idag::InstructionId;

mod edges;
mod slot;
#[cfg(test)]
mod tests;

use edges::EdgePool;
use slot::{Slot, State};

/// One in-order queue of a backend: what is put on it runs in that order, one
/// after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(u16);

impl LaneId {
    /// The lane at a position in per-lane tables.
    #[must_use]
    pub const fn from_slot(slot: u16) -> Self {
        Self(slot)
    }

    /// The lane as a position in per-lane tables.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0 as usize
    }
}

/// Neighbouring lanes that can all run the same kinds of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneGroup {
    first: LaneId,
    count: u16,
}

impl LaneGroup {
    /// The `count` lanes from `first`.
    ///
    /// # Panics
    /// If `count` is 0.
    #[must_use]
    pub const fn new(first: LaneId, count: u16) -> Self {
        assert!(count > 0, "a lane group has lanes");
        Self { first, count }
    }

    /// The first of them.
    #[must_use]
    pub const fn first(self) -> LaneId {
        self.first
    }

    /// Whether `lane` is one of them.
    #[must_use]
    pub const fn contains(self, lane: LaneId) -> bool {
        lane.0 >= self.first.0 && lane.0 - self.first.0 < self.count
    }

    fn slots(self) -> std::ops::Range<usize> {
        self.first.slot()..self.first.slot() + usize::from(self.count)
    }
}

/// Who runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The node itself, as soon as all dependencies are complete.
    Node,
    /// Any lane of a group.
    Lanes(LaneGroup),
}

/// An instruction that must be started now. Between assignments to the same
/// lane, order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the engine will not hand the instruction out again"]
pub struct Assignment {
    /// What to start.
    pub instruction: InstructionId,
    /// Where; `None` for the node itself.
    pub lane: Option<LaneId>,
}

/// What a transition of the engine asks of its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "instructions may be waiting to be started"]
pub enum Step {
    /// [`Engine::next_assignment`] has assignments.
    Issue,
    /// Nothing can start before something completes.
    Wait,
}

/// The dependency window of one node.
///
/// Laws:
/// * every submitted instruction is assigned exactly once;
/// * *direct* assignment: all its dependencies have completed; it gets the
///   least loaded lane of its group;
/// * *eager* assignment: all its incomplete dependencies have been assigned to
///   one and the same lane, which belongs to its group; it gets that lane, whose
///   order stands in for the dependencies;
/// * instructions for the node itself go first: they are short, and they are
///   what starts communication; otherwise first ready, first assigned.
///
/// Cost: O(dependencies) per instruction, without hashing; memory is that of
/// the widest window from the oldest incomplete instruction to the newest, and
/// nothing is allocated once that width has been reached.
#[derive(Debug)]
pub struct Engine {
    /// Index of the oldest instruction that is still in the window.
    base: u64,
    slots: VecDeque<Slot>,
    edges: EdgePool,
    ready_for_node: VecDeque<u64>,
    ready_for_lanes: VecDeque<u64>,
    /// Assigned and incomplete instructions per lane.
    load: Vec<u32>,
    incomplete: usize,
}

impl Engine {
    /// An engine that feeds lanes `0..lanes`.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        Self {
            base: 0,
            slots: VecDeque::new(),
            edges: EdgePool::default(),
            ready_for_node: VecDeque::new(),
            ready_for_lanes: VecDeque::new(),
            load: vec![0; lanes],
            incomplete: 0,
        }
    }

    /// Adds an instruction. Dependencies that are not in the window any more
    /// have completed.
    ///
    /// # Panics
    /// If instructions do not arrive in dense order of their ids, or if one
    /// depends on itself or on a later one.
    pub fn submit(
        &mut self,
        instruction: InstructionId,
        dependencies: &[InstructionId],
        target: Target,
    ) -> Step {
        let index = instruction.index();
        if self.slots.is_empty() {
            self.base = self.base.max(index);
        }
        assert_eq!(index, self.base + self.slots.len() as u64, "{instruction} is out of order");
        let mut slot = Slot::new(target);
        for dependency in dependencies {
            assert!(*dependency < instruction, "{instruction} depends on a later {dependency}");
            self.connect(dependency.index(), index, &mut slot);
        }
        self.slots.push_back(slot);
        self.incomplete += 1;
        self.enqueue_if_ready(index);
        self.step()
    }

    /// The next instruction to start, if any can.
    pub fn next_assignment(&mut self) -> Option<Assignment> {
        if let Some(index) = self.ready_for_node.pop_front() {
            self.slot_mut(index).state = State::Assigned;
            return Some(Assignment { instruction: InstructionId::from_index(index), lane: None });
        }
        let index = self.ready_for_lanes.pop_front()?;
        let lane = self.choose_lane(index);
        self.assign_to_lane(index, lane);
        Some(Assignment { instruction: InstructionId::from_index(index), lane: Some(lane) })
    }

    /// Retires an assigned instruction and releases what waited for it.
    ///
    /// # Panics
    /// If `instruction` is not assigned, or has completed before.
    pub fn complete(&mut self, instruction: InstructionId) -> Step {
        let index = instruction.index();
        assert!(self.is_assigned(instruction), "{instruction} completes, but is not running");
        let slot = self.slot_mut(index);
        slot.state = State::Complete;
        let (lane, mut edge) = (slot.lane, slot.take_successors());
        if let Some(lane) = lane {
            self.load[lane.slot()] -= 1;
        }
        while let Some((successor, next)) = self.edges.pop(edge) {
            self.slot_mut(successor).dependency_completed(lane);
            self.enqueue_if_ready(successor);
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::CompletionLost.is_active() {
                break;
            }
            edge = next;
        }
        self.incomplete -= 1;
        self.slide();
        self.step()
    }

    /// Whether the instruction has been assigned and has not completed.
    #[must_use]
    pub fn is_assigned(&self, instruction: InstructionId) -> bool {
        instruction
            .index()
            .checked_sub(self.base)
            .and_then(|offset| self.slots.get(usize::try_from(offset).ok()?))
            .is_some_and(|slot| slot.state == State::Assigned)
    }

    /// Instructions that were submitted and have not completed.
    #[must_use]
    pub fn incomplete(&self) -> usize {
        self.incomplete
    }

    /// Instructions from the oldest incomplete one to the newest.
    #[must_use]
    pub fn width(&self) -> usize {
        self.slots.len()
    }

    /// Every incomplete instruction that waits for another one, with that other
    /// one. O(edges): for reports.
    pub fn open_edges(&self) -> impl Iterator<Item = (InstructionId, InstructionId)> {
        (self.base..).zip(&self.slots).flat_map(move |(index, slot)| {
            let mut edge = slot.successors.first();
            std::iter::from_fn(move || {
                let (successor, next) = self.edges.get(edge)?;
                edge = next;
                Some((InstructionId::from_index(successor), InstructionId::from_index(index)))
            })
        })
    }

    fn step(&self) -> Step {
        if self.ready_for_node.is_empty() && self.ready_for_lanes.is_empty() {
            Step::Wait
        } else {
            Step::Issue
        }
    }

    /// Counts `dependency` into the new `slot`, if it is incomplete.
    fn connect(&mut self, dependency: u64, index: u64, slot: &mut Slot) {
        if dependency < self.base {
            return;
        }
        let predecessor = &mut self.slots[offset(self.base, dependency)];
        if predecessor.state == State::Complete {
            return;
        }
        self.edges.append(&mut predecessor.successors, index);
        slot.dependency_added(predecessor.lane);
    }

    fn enqueue_if_ready(&mut self, index: u64) {
        let slot = self.slot_mut(index);
        if slot.state != State::Waiting || !slot.may_start() {
            return;
        }
        slot.state = State::Ready;
        match slot.target {
            Target::Node => self.ready_for_node.push_back(index),
            Target::Lanes(_) => self.ready_for_lanes.push_back(index),
        }
    }

    /// The lane of the incomplete dependencies, or else the least loaded one.
    fn choose_lane(&mut self, index: u64) -> LaneId {
        let slot = &self.slots[offset(self.base, index)];
        let Target::Lanes(group) = slot.target else {
            unreachable!("only instructions for lanes are queued for lanes")
        };
        slot.common_lane().unwrap_or_else(|| {
            let load = &self.load;
            let least = group.slots().min_by_key(|&lane| load[lane]).expect("a group has lanes");
            LaneId(u16::try_from(least).expect("lane slots come from lane ids"))
        })
    }

    fn assign_to_lane(&mut self, index: u64, lane: LaneId) {
        self.load[lane.slot()] += 1;
        let slot = self.slot_mut(index);
        slot.state = State::Assigned;
        slot.lane = Some(lane);
        let mut edge = slot.successors.first();
        while let Some((successor, next)) = self.edges.get(edge) {
            self.slot_mut(successor).dependency_assigned(lane);
            self.enqueue_if_ready(successor);
            edge = next;
        }
    }

    fn slide(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.state == State::Complete) {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    fn slot_mut(&mut self, index: u64) -> &mut Slot {
        &mut self.slots[offset(self.base, index)]
    }
}

fn offset(base: u64, index: u64) -> usize {
    usize::try_from(index - base).expect("the window fits in memory")
}
