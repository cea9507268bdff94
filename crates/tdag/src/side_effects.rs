//! Side effects on host objects (IJPP 2022, §4.2–4.4): who may touch an object that lives on a
//! host, after whom, and beside whom not. Owns Algorithm 1 for any layer's nodes; refuses to know
//! what is in an object, and what the nodes do.
//!
//! ```
//! use celerity_tdag::{
//!     Conflicts, Dependencies, DependencyKind, ObjectAccess, ObjectId, SideEffectOrder,
//!     SideEffects, TaskId,
//! };
//! use SideEffectOrder::{Exclusive, Sequential};
//!
//! let [epoch, open, left, right, close] = [0, 1, 2, 3, 4].map(TaskId::from_index);
//! let mut effects = SideEffects::default();
//! let mut edges_of = |task, order| {
//!     let access = ObjectAccess { object: ObjectId::from_index(0), order };
//!     let mut dependencies = Dependencies::default();
//!     let conflicts = effects.add(task, epoch, [&access], &mut dependencies);
//!     (dependencies, conflicts)
//! };
//! let (after, _) = edges_of(open, Sequential);
//! assert_eq!(after.kind_of(epoch), Some(DependencyKind::True));
//! let _ = edges_of(left, Exclusive);
//! let (after, beside) = edges_of(right, Exclusive);
//! assert_eq!((after.len(), after.kind_of(open)), (1, Some(DependencyKind::True)));
//! assert_eq!(beside.as_slice(), [left], "in any order, but never at once");
//! let (after, _) = edges_of(close, Sequential);
//! assert_eq!(after.iter().map(|edge| edge.on).collect::<Vec<_>>(), [left, right]);
//! ```

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "mutants")]
use celerity_mutants::Mutant;
use smallvec::SmallVec;

use crate::conflicts::Conflicts;
use crate::dependency::{Dependencies, DependencyKind};
use crate::id::{GraphId, ObjectId};

/// How a side effect is ordered against others on the same object (IJPP 2022, §4.3). Of two, the
/// stricter one decides: sequential before exclusive before relaxed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SideEffectOrder {
    /// In the order of submission, and never at the same time as another.
    #[default]
    Sequential,
    /// In any order between two sequential ones, and never at the same time as another. In a task
    /// of a collective group it becomes [`Sequential`](Self::Sequential): all nodes have to choose
    /// the same order.
    Exclusive,
    /// In any order between two sequential ones, and at the same time as other relaxed ones.
    Relaxed,
}

impl SideEffectOrder {
    /// Whether effects in these orders that a sequential one does not separate must not meet.
    #[must_use]
    pub fn conflicts_with(self, other: Self) -> bool {
        self != Self::Relaxed || other != Self::Relaxed
    }
}

impl fmt::Display for SideEffectOrder {
    /// `sequential`, `exclusive` or `relaxed`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "sequential",
            Self::Exclusive => "exclusive",
            Self::Relaxed => "relaxed",
        })
    }
}

/// An access to a host object: a side effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ObjectAccess {
    /// The id of the host object.
    pub object: ObjectId,
    /// How it is ordered against other side effects on that object.
    pub order: SideEffectOrder,
}

impl fmt::Display for ObjectAccess {
    /// What a task does, in messages: `a sequential side effect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let article = if self.order == SideEffectOrder::Exclusive { "an" } else { "a" };
        write!(f, "{article} {} side effect", self.order)
    }
}

/// The side effects that the next node of a graph may meet: Algorithm 1 (IJPP 2022, §4.3). The
/// task graph has one, and each node's command graph one of its own.
///
/// Laws: of two nodes with effects on one object, the later one depends on the earlier one,
/// directly or not, if one of the effects is sequential; it conflicts with the earlier one or
/// depends on it if one is exclusive; otherwise nothing relates them.
///
/// One departure from the paper: nodes before the synchronisation point are forgotten, and the
/// point stands in for them. An object of which nothing is remembered is synchronised with the
/// point, so that there is nothing to create or to drop. Memory is O(effects since the point).
#[derive(Clone, Debug)]
pub struct SideEffects<I>(BTreeMap<ObjectId, State<I>>);

/// What is remembered of one object.
#[derive(Clone, Debug)]
struct State<I> {
    /// The last node with a sequential effect, or what stands in for it.
    last: I,
    /// The nodes with other effects since.
    active: SmallVec<[(I, SideEffectOrder); 4]>,
    /// Whether each of these depends on `last`.
    active_wait: bool,
}

impl<I> Default for SideEffects<I> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<I: GraphId> SideEffects<I> {
    /// Adds the next node, which has the given effects, no two on one object. What it depends on
    /// is added to `dependencies`; returned is what it conflicts with and does not depend on.
    /// `point` is the synchronisation point. O(effects · remembered effects on each object).
    pub fn add<'a>(
        &mut self,
        node: I,
        point: I,
        effects: impl IntoIterator<Item = &'a ObjectAccess>,
        dependencies: &mut Dependencies<I>,
    ) -> Conflicts<I> {
        let mut meets = SmallVec::<[I; 8]>::new();
        for &ObjectAccess { object, order } in effects {
            let state = self.0.entry(object).or_insert_with(|| State::new(point));
            state.settle(point);
            state.add(node, order, dependencies, &mut meets);
        }
        Conflicts::of(meets.into_iter().filter(|&on| dependencies.kind_of(on).is_none()))
    }

    /// Forgets objects that no node since `point` has affected. O(remembered effects).
    #[inline]
    pub fn forget_before(&mut self, point: I) {
        if !self.0.is_empty() {
            self.0.retain(|_, state| state.is_recent(point));
        }
    }

    /// How many effects are remembered: what a test of flat memory looks at.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.values().map(|state| 1 + state.active.len()).sum()
    }
}

impl<I: GraphId> State<I> {
    fn new(point: I) -> Self {
        Self { last: point, active: SmallVec::new(), active_wait: true }
    }

    fn is_recent(&self, point: I) -> bool {
        self.last >= point || self.active.iter().any(|&(node, _)| node >= point)
    }

    /// Lets the synchronisation point stand in for what is older. Others may not wait for the point
    /// itself.
    fn settle(&mut self, point: I) {
        if self.last < point {
            self.active.retain(|&mut (node, _)| node >= point);
            (self.last, self.active_wait) = (point, false);
        }
    }

    fn add(
        &mut self,
        node: I,
        order: SideEffectOrder,
        dependencies: &mut Dependencies<I>,
        meets: &mut SmallVec<[I; 8]>,
    ) {
        #[cfg(feature = "mutants")]
        let order = mistaken(order);
        let is_sequential = order == SideEffectOrder::Sequential;
        if !is_sequential || self.active.is_empty() || !self.active_wait {
            dependencies.add(self.last, DependencyKind::True);
        }
        if is_sequential {
            let active = self.active.drain(..);
            #[cfg(feature = "mutants")]
            let active = active.skip(usize::from(Mutant::SequentialMissesActive.is_active()));
            active.for_each(|(earlier, _)| dependencies.add(earlier, DependencyKind::True));
            (self.last, self.active_wait) = (node, true);
        } else {
            let conflicting = |one: &&(I, _)| order.conflicts_with(one.1);
            #[cfg(feature = "mutants")]
            let conflicting = |one: &&(I, _)| conflicting(one) && !lets_meet(order, one.1);
            meets.extend(self.active.iter().filter(conflicting).map(|&(earlier, _)| earlier));
            self.active.push((node, order));
        }
    }
}

/// What a deliberate bug takes the order of a side effect for.
#[cfg(feature = "mutants")]
fn mistaken(order: SideEffectOrder) -> SideEffectOrder {
    let is_sequential = order == SideEffectOrder::Sequential;
    match is_sequential && Mutant::SequentialTakenForExclusive.is_active() {
        true => SideEffectOrder::Exclusive,
        false => order,
    }
}

/// Whether a deliberate bug lets two effects meet that must not.
#[cfg(feature = "mutants")]
fn lets_meet(one: SideEffectOrder, other: SideEffectOrder) -> bool {
    let is_relaxed = |order| order == SideEffectOrder::Relaxed;
    Mutant::ExclusiveMeetsRelaxed.is_active() && (is_relaxed(one) || is_relaxed(other))
}
