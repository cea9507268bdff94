//! What the engine knows of one instruction in its window.

use super::edges::{EdgeList, EdgeRef};
use super::{LaneGroup, LaneId, Target};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not all dependencies allow it to start.
    Waiting,
    /// Queued for assignment.
    Ready,
    /// Handed out.
    Assigned,
    /// Reported as over, before all dependencies have been: it ran behind them.
    Ended,
    /// Over.
    Complete,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) target: Target,
    /// The lane it was assigned to, ...
    pub(super) lane: Option<LaneId>,
    /// ... and how many instructions were before it.
    pub(super) number: u64,
    pub(super) successors: EdgeList,
    /// Dependencies, if it is for lanes that can wait for each other.
    pub(super) predecessors: EdgeList,
    /// Incomplete dependencies.
    unfinished: u32,
    /// Of these, how many have been assigned to lanes, and the sums of those
    /// lanes' numbers and of their squares.
    on_lanes: u32,
    lane_sum: u64,
    lane_squares: u64,
    /// How many are on lanes that can wait for each other.
    joinable: u32,
}

impl Slot {
    pub(super) fn new(target: Target) -> Self {
        Self {
            state: State::Waiting,
            target,
            lane: None,
            number: 0,
            successors: EdgeList::default(),
            predecessors: EdgeList::default(),
            unfinished: 0,
            on_lanes: 0,
            lane_sum: 0,
            lane_squares: 0,
            joinable: 0,
        }
    }

    pub(super) fn dependency_added(&mut self, lane: Option<LaneId>, joins: Option<LaneGroup>) {
        self.unfinished += 1;
        if let Some(lane) = lane {
            self.dependency_assigned(lane, joins);
        }
    }

    pub(super) fn dependency_assigned(&mut self, lane: LaneId, joins: Option<LaneGroup>) {
        let number = u64::from(lane.0);
        self.on_lanes += 1;
        self.joinable += u32::from(joins.is_some_and(|joins| joins.contains(lane)));
        self.lane_sum += number;
        self.lane_squares += number * number;
    }

    pub(super) fn dependency_completed(&mut self, lane: Option<LaneId>, joins: Option<LaneGroup>) {
        self.unfinished -= 1;
        if let Some(lane) = lane {
            let number = u64::from(lane.0);
            self.on_lanes -= 1;
            self.joinable -= u32::from(joins.is_some_and(|joins| joins.contains(lane)));
            self.lane_sum -= number;
            self.lane_squares -= number * number;
        }
    }

    /// Whether it can be assigned: directly, eagerly, or joined to other lanes.
    pub(super) fn may_start(&self, joins: Option<LaneGroup>) -> bool {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::StartsBeforeLast.is_active() && self.target == Target::Node {
            return self.unfinished <= 1;
        }
        let Target::Lanes(group) = self.target else { return self.unfinished == 0 };
        self.unfinished == 0
            || self.common_lane().is_some_and(|lane| group.contains(lane))
            || self.joinable == self.unfinished && self.is_joined(joins)
    }

    /// Whether it is for lanes that can wait for others.
    pub(super) fn is_joined(&self, joins: Option<LaneGroup>) -> bool {
        let Target::Lanes(group) = self.target else { return false };
        joins.is_some_and(|joins| joins.contains(group.first()))
    }

    /// Whether all dependencies are over.
    pub(super) fn is_free(&self) -> bool {
        self.unfinished == 0
    }

    /// The lane that all incomplete dependencies are on, if there are any and
    /// they are on one. No list of lanes is kept: n·Σl² = (Σl)² holds exactly
    /// if all n numbers l are equal (Cauchy–Schwarz), which makes this O(1).
    pub(super) fn common_lane(&self) -> Option<LaneId> {
        let count = u64::from(self.on_lanes);
        let all_equal = count * self.lane_squares == self.lane_sum * self.lane_sum;
        #[cfg(feature = "mutants")]
        let all_equal = celerity_mutants::Mutant::EagerOnAnyLane.alter(all_equal, |_| true);
        if count == 0 || self.on_lanes != self.unfinished || !all_equal {
            return None;
        }
        Some(LaneId(u16::try_from(self.lane_sum / count).expect("a mean of lane numbers is one")))
    }

    /// Empties the list of predecessors and returns its first edge.
    pub(super) fn take_predecessors(&mut self) -> EdgeRef {
        std::mem::take(&mut self.predecessors).first()
    }

    /// Empties the list of successors and returns its first edge.
    pub(super) fn take_successors(&mut self) -> EdgeRef {
        std::mem::take(&mut self.successors).first()
    }
}
