//! The out-of-order engine (instruction-graph preprint, §4.1): decides which instruction may start,
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

use std::cmp::Reverse;
use std::collections::VecDeque;

use celerity_idag::InstructionId;
use smallvec::SmallVec;

mod edges;
mod exclusions;
mod independent;
mod slot;
#[cfg(test)]
mod tests;

use edges::EdgePool;
use exclusions::Exclusions;
pub use independent::{CANDIDATES, independent_set};
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

/// One of the instructions that a lane has been assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneJob {
    /// The lane that the job is assigned to.
    pub lane: LaneId,
    /// How many it was assigned before.
    pub number: u64,
}

/// An instruction that must be started now. Between assignments to the same
/// lane, order matters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the engine will not hand the instruction out again"]
pub struct Assignment {
    /// The instruction to start.
    pub instruction: InstructionId,
    /// The lane that runs it; `None` if the node itself does.
    pub lane: Option<LaneId>,
    /// What its lane has to wait for before, at most one job of each other lane.
    pub after: SmallVec<[LaneJob; 2]>,
}

/// What a transition of the engine asks of its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "instructions may be waiting to be started"]
pub enum Step {
    /// [`Engine::next_assignment`] has assignments, but for conflicts.
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
/// * *eager* assignment, where lanes cannot wait for each other: all its incomplete dependencies have
///   been assigned to one and the same lane, which belongs to its group; it gets that lane, whose
///   order stands in for the dependencies;
/// * *joined* assignment: all its incomplete dependencies have been assigned to
///   lanes that [can wait for each other](Self::with_joins), as those of its group
///   can; it gets a lane of its group whose last job is one of them, of several the one that most of
///   them are on, and of those the one that has been given nothing for longest, or else the least
///   loaded one: so it waits for nothing that it does not depend on, if there is such a lane, and work
///   that goes on step by step stays on its lane. It is told what to wait for on the others. Of two
///   joined instructions, the later may be reported first: it is over when both are;
/// * instructions for the node itself go first: they are short, and they are
///   what starts communication; otherwise first ready, first assigned;
/// * of two instructions that [conflict](Self::exclude), none is assigned while the other is and
///   has not completed. Those that conflict are assigned directly, behind all others that are
///   ready: as many at once as [`independent_set`] finds. So nobody waits for a conflict but with
///   somebody who runs, and conflicts add no deadlock to dependencies that have none.
///
/// Cost: O(dependencies) per instruction, without hashing; memory is that of
/// the widest window from the oldest incomplete instruction to the newest, and
/// nothing is allocated once that width has been reached, but for instructions
/// that wait for more than two other lanes.
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
    /// Instructions that each lane has been assigned so far.
    assigned: Vec<u64>,
    /// Lanes that can wait for each other.
    joins: Option<LaneGroup>,
    /// Conflicts, while there are any.
    exclusions: Option<Box<Exclusions>>,
    /// Those that are over, but for what follows from that.
    over: Vec<u64>,
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
            assigned: vec![0; lanes],
            joins: None,
            exclusions: None,
            over: Vec::new(),
            incomplete: 0,
        }
    }

    /// With lanes that can wait for jobs of each other, if there are any: what runs
    /// there is assigned as soon as all that it depends on has been. Every group of
    /// lanes lies inside or outside of them.
    #[must_use]
    pub fn with_joins(mut self, joins: Option<LaneGroup>) -> Self {
        self.joins = joins;
        self
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

    /// Keeps the newest instruction from running at the same time as `others`, older ones, in
    /// either order. Those that have completed do not count. To be called before the next
    /// assignment. O(others · log conflicts in the window).
    ///
    /// # Panics
    /// If `instruction` is not the newest, is for the node itself, or one of `others` is not older.
    pub fn exclude(&mut self, instruction: InstructionId, others: &[InstructionId]) -> Step {
        let index = instruction.index();
        let newest = self.base + self.slots.len() as u64;
        assert_eq!(index + 1, newest, "{instruction} is not the newest");
        let is_for_lanes = matches!(self.slot_mut(index).target, Target::Lanes(_));
        assert!(is_for_lanes, "{instruction} is for the node itself, which runs one at a time");
        for other in others {
            assert!(*other < instruction, "{instruction} conflicts with a later {other}");
            let is_open =
                other.index() >= self.base && self.slot_mut(other.index()).state != State::Complete;
            if is_open {
                self.exclusions.get_or_insert_default().add(index, other.index());
            }
        }
        self.step()
    }

    /// The oldest instruction that has not completed; if there is none, the one [behind the newest](Self::following).
    #[must_use]
    pub fn oldest(&self) -> InstructionId {
        InstructionId::from_index(self.base)
    }

    /// The instruction behind the newest.
    #[must_use]
    pub fn following(&self) -> InstructionId {
        InstructionId::from_index(self.base + self.slots.len() as u64)
    }

    /// The next instruction to start, if any can.
    pub fn next_assignment(&mut self) -> Option<Assignment> {
        if let Some(index) = self.ready_for_node.pop_front() {
            self.slot_mut(index).state = State::Assigned;
            let instruction = InstructionId::from_index(index);
            return Some(Assignment { instruction, lane: None, after: SmallVec::new() });
        }
        let index = match self.exclusions {
            None => self.ready_for_lanes.pop_front()?,
            Some(_) => self.next_without_conflict()?,
        };
        let lane = self.choose_lane(index);
        self.assign_to_lane(index, lane);
        let (instruction, after) = (InstructionId::from_index(index), self.jobs_before(index));
        Some(Assignment { instruction, lane: Some(lane), after })
    }

    /// The next instruction for a lane: one that conflicts with nobody, or else one of a set that
    /// may start together.
    #[cold]
    fn next_without_conflict(&mut self) -> Option<u64> {
        let Self { base, slots, ready_for_lanes, exclusions, .. } = self;
        let (base, exclusions) = (*base, exclusions.as_mut()?);
        while let Some(index) = ready_for_lanes.pop_front() {
            if !exclusions.concern(index) {
                return Some(index);
            }
            // It takes no lane before all of its dependencies are over: it would keep others
            // waiting for nothing.
            let slot = &mut slots[offset(base, index)];
            match slot.is_free() {
                true => exclusions.contend(index),
                false => slot.state = State::Waiting,
            }
        }
        let runs =
            |other| matches!(slots[offset(base, other)].state, State::Assigned | State::Ended);
        exclusions.choose(runs)
    }

    /// Retires an assigned instruction and releases what waited for it.
    ///
    /// # Panics
    /// If `instruction` is not assigned, or has completed before.
    pub fn complete(&mut self, instruction: InstructionId) -> Step {
        let index = instruction.index();
        assert!(self.is_assigned(instruction), "{instruction} completes, but is not running");
        let slot = self.slot_mut(index);
        slot.state = State::Ended;
        if let Some(lane) = slot.lane {
            self.load[lane.slot()] -= 1;
        }
        self.finish_if_free(index);
        while let Some(index) = self.over.pop() {
            if self.exclusions.is_some() {
                self.release_conflicts(index);
            }
            self.release_successors(index);
        }
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
        let is_empty = self.ready_for_node.is_empty() && self.ready_for_lanes.is_empty();
        let may_choose = || self.exclusions.as_ref().is_some_and(|some| some.may_choose());
        if is_empty && !may_choose() { Step::Wait } else { Step::Issue }
    }

    /// Ends what has been reported, if all dependencies are over.
    fn finish_if_free(&mut self, index: u64) {
        let slot = self.slot_mut(index);
        if slot.state == State::Ended && slot.is_free() {
            slot.state = State::Complete;
            self.over.push(index);
            self.incomplete -= 1;
        }
    }

    /// Ends the conflicts of an instruction. Who has none left may start as all others do.
    #[cold]
    fn release_conflicts(&mut self, index: u64) {
        let Some(exclusions) = &mut self.exclusions else { return };
        let mut free = SmallVec::<[u64; 8]>::new();
        exclusions.complete(index, |other| free.push(other));
        if exclusions.are_over() {
            self.exclusions = None;
        }
        free.into_iter().for_each(|other| self.enqueue_if_ready(other));
    }

    fn release_successors(&mut self, index: u64) {
        let joins = self.joins;
        let slot = self.slot_mut(index);
        let (lane, mut edge) = (slot.lane, slot.take_successors());
        while let Some((successor, next)) = self.edges.pop(edge) {
            self.slot_mut(successor).dependency_completed(lane, joins);
            self.enqueue_if_ready(successor);
            self.finish_if_free(successor);
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::CompletionLost.is_active() {
                break;
            }
            edge = next;
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
        slot.dependency_added(predecessor.lane, self.joins);
        // Others start when all is over, or on the lane that all of it is on: they are told of nobody, and nobody
        // would take their list back.
        if slot.is_joined(self.joins) {
            self.edges.append(&mut slot.predecessors, dependency);
        }
    }

    fn enqueue_if_ready(&mut self, index: u64) {
        let joins = self.joins;
        let slot = self.slot_mut(index);
        if slot.state != State::Waiting || !slot.may_start(joins) {
            return;
        }
        slot.state = State::Ready;
        match slot.target {
            Target::Node => self.ready_for_node.push_back(index),
            Target::Lanes(_) => self.ready_for_lanes.push_back(index),
        }
    }

    /// Where lanes cannot wait for each other, the one that all incomplete dependencies are on; where they
    /// can, one that ends with a dependency, the earliest such end. Or else the least loaded one of the group.
    fn choose_lane(&self, index: u64) -> LaneId {
        let slot = &self.slots[offset(self.base, index)];
        let Target::Lanes(group) = slot.target else {
            unreachable!("only instructions for lanes are queued for lanes")
        };
        let joins = slot.is_joined(self.joins);
        if let Some(lane) = slot.common_lane().filter(|&lane| !joins && group.contains(lane)) {
            return lane;
        }
        // Where lanes cannot wait for each other, nobody keeps predecessors, and this is a path of each instruction.
        let lane = match slot.predecessors.is_empty() {
            true => group.slots().min_by_key(|&lane| self.load[lane]),
            false => group.slots().min_by_key(|&lane| {
                let (before, last) = self.followed_on(lane, index);
                (Reverse(before), last, self.load[lane])
            }),
        };
        let lane = lane.expect("a group has lanes");
        LaneId(u16::try_from(lane).expect("lane slots come from lane ids"))
    }

    /// Of the dependencies that are running on a lane, how many there are, and the latest of them; nothing
    /// if the lane goes on with something else.
    fn followed_on(&self, lane: usize, index: u64) -> (usize, u64) {
        let (mut before, mut latest, mut end) = (0, 0, None);
        for (predecessor, job) in self.jobs_on(index) {
            if job.lane.slot() == lane {
                (before, latest) = (before + 1, latest.max(predecessor));
                end = end.max(Some(job.number + 1));
            }
        }
        if end == Some(self.assigned[lane]) { (before, latest) } else { (0, 0) }
    }

    fn assign_to_lane(&mut self, index: u64, lane: LaneId) {
        let joins = self.joins;
        let number = self.assigned[lane.slot()];
        self.assigned[lane.slot()] += 1;
        self.load[lane.slot()] += 1;
        let slot = self.slot_mut(index);
        slot.state = State::Assigned;
        (slot.lane, slot.number) = (Some(lane), number);
        let mut edge = slot.successors.first();
        while let Some((successor, next)) = self.edges.get(edge) {
            self.slot_mut(successor).dependency_assigned(lane, joins);
            self.enqueue_if_ready(successor);
            edge = next;
        }
    }

    /// The dependencies that are running, as far as they have been kept.
    fn jobs_on(&self, index: u64) -> impl Iterator<Item = (u64, LaneJob)> {
        let mut edge = self.slots[offset(self.base, index)].predecessors.first();
        let predecessors = std::iter::from_fn(move || {
            let (predecessor, next) = self.edges.get(edge)?;
            edge = next;
            Some(predecessor)
        });
        predecessors.filter(|&predecessor| predecessor >= self.base).filter_map(|predecessor| {
            let slot = &self.slots[offset(self.base, predecessor)];
            let lane = slot.lane.filter(|_| slot.state == State::Assigned)?;
            Some((predecessor, LaneJob { lane, number: slot.number }))
        })
    }

    /// What the lane of an instruction that has just been assigned has to wait for
    /// on other lanes: the last of its dependencies there.
    fn jobs_before(&mut self, index: u64) -> SmallVec<[LaneJob; 2]> {
        if self.slots[offset(self.base, index)].predecessors.is_empty() {
            return SmallVec::new();
        }
        let own = self.slots[offset(self.base, index)].lane;
        let mut jobs = SmallVec::<[LaneJob; 2]>::new();
        for (_, job) in self.jobs_on(index).filter(|(_, job)| Some(job.lane) != own) {
            match jobs.iter_mut().find(|known| known.lane == job.lane) {
                Some(known) => known.number = known.number.max(job.number),
                None => jobs.push(job),
            }
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::JoinForgotten.is_active() {
            jobs.clear();
        }
        let mut edge = self.slot_mut(index).take_predecessors();
        while let Some((_, next)) = self.edges.pop(edge) {
            edge = next;
        }
        jobs
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
