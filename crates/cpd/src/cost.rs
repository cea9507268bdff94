//! What moving elements costs in one collective operation, and between pairs of nodes: the model
//! after Hockney (*The communication challenge for MPP*, Parallel Computing 20, 1994) by which
//! [`Collectives::Auto`](crate::Collectives::Auto) decides. Whole numbers only, and neither a clock
//! nor a network, so that nodes with the same constants decide alike.

mod fit;
mod text;

use crate::pattern::Pattern;

pub use fit::{Sample, TooFewMeasures};
pub use text::NotCosts;

/// The constants of a machine. What something takes is a [`CostLine`]: a part that is always there, one
/// for each message or round, and one for each byte.
///
/// [`Default`] is the committed table `cost/table.txt`. Other machines' are read from text
/// ([`FromStr`](std::str::FromStr)), written as text ([`Display`](std::fmt::Display)), and found from what
/// has been measured ([`fitted_to`](Self::fitted_to)).
///
/// ```
/// use celerity_cpd::{Costs, Movement, Pattern};
/// let costs = Costs::default();
/// let gathered = |nodes| Movement {
///     pattern: Pattern::AllGather, nodes, from: nodes, to: nodes, bytes: 4096,
/// };
/// // 255 messages of each node cost more than one operation, whatever that is.
/// assert!(costs.estimate(&gathered(256)).is_collective());
/// assert_eq!(costs.to_string().parse(), Ok(costs));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// Of messages between pairs of nodes: one for each that the busiest node sends or receives.
    pub messages: CostLine,
    /// Of collective operations, by [pattern](Pattern), in the order of [`Pattern::ALL`].
    pub collectives: [CostLine; 5],
}

/// What something takes that consists of so many steps, and moves so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CostLine {
    /// Nanoseconds, however much there is: latency, and what the runtime does once.
    pub once: u64,
    /// Nanoseconds for each step: a message with its push and await-push, or a round of an operation.
    pub step: u64,
    /// Picoseconds for each byte: 1000 are 1 GB/s.
    pub byte: u64,
}

/// Elements that are on some nodes and are needed on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Movement {
    /// Which operation it may be.
    pub pattern: Pattern,
    /// Nodes that take part in an operation: all of the cluster, or some.
    pub nodes: usize,
    /// Nodes that have a part of the elements, or all; at least one.
    pub from: usize,
    /// Nodes that need a part of the elements, or all; at least one.
    pub to: usize,
    /// Bytes of all elements, each counted once.
    pub bytes: u64,
}

/// What one movement takes either way, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// In one operation of all who take part.
    pub collective: u64,
    /// In messages between pairs of nodes.
    pub pairs: u64,
}

impl Default for Costs {
    fn default() -> Self {
        include_str!("cost/table.txt").parse().expect("the committed table is well-formed")
    }
}

impl Costs {
    /// Those of large data in the memories of devices, where a network carries out collective operations
    /// between these: the committed table `cost/devices.txt`.
    ///
    /// # Panics
    /// Never: a test reads the table.
    #[must_use]
    pub fn of_devices() -> Self {
        include_str!("cost/devices.txt").parse().expect("the committed table is well-formed")
    }

    /// What a movement takes. O(1).
    #[must_use]
    pub fn estimate(&self, movement: &Movement) -> Estimate {
        let (steps, bytes) = movement.of_collective();
        let collective = self.of(movement.pattern).at(steps, bytes);
        let (messages, bytes) = movement.of_pairs();
        Estimate { collective, pairs: self.messages.at(messages, bytes) }
    }

    /// All constants, to be sent to other nodes.
    #[must_use]
    pub fn to_words(&self) -> [u64; 18] {
        let [a, b, c, d, e] = self.collectives;
        let lines = [self.messages, a, b, c, d, e];
        std::array::from_fn(|at| {
            let CostLine { once, step, byte } = lines[at / 3];
            [once, step, byte][at % 3]
        })
    }

    /// The constants from [words](Self::to_words).
    #[must_use]
    pub fn from_words(words: [u64; 18]) -> Self {
        let line = |at: usize| CostLine {
            once: words[3 * at],
            step: words[3 * at + 1],
            byte: words[3 * at + 2],
        };
        Self { messages: line(0), collectives: [1, 2, 3, 4, 5].map(line) }
    }

    fn of(&self, pattern: Pattern) -> &CostLine {
        &self.collectives[pattern.position()]
    }
}

impl CostLine {
    /// Nanoseconds for so many steps with so many bytes in all.
    #[must_use]
    pub fn at(&self, steps: u64, bytes: u64) -> u64 {
        let of_bytes = u128::from(self.byte) * u128::from(bytes) / 1000;
        let of_steps = u128::from(self.step) * u128::from(steps);
        let all = of_bytes.saturating_add(of_steps).saturating_add(self.once.into());
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

impl Movement {
    /// The rounds of an operation, and the bytes that the busiest node sends or receives in it. Trees
    /// have as many rounds as the number of nodes has bits; in an all-to-all each node has something of
    /// its own for each.
    pub(crate) fn of_collective(&self) -> (u64, u64) {
        let others = self.nodes.saturating_sub(1) as u64;
        let tree = u64::from(self.nodes.max(1).next_power_of_two().ilog2());
        match self.pattern {
            Pattern::AllGather | Pattern::Gather => (tree, self.left_over(self.from as u64)),
            Pattern::Broadcast => (tree, self.bytes),
            Pattern::Scatter => (tree, self.left_over(self.to as u64)),
            Pattern::AllToAll => (others, self.left_over(self.to as u64) / self.from.max(1) as u64),
        }
    }

    /// The messages between pairs of nodes that the busiest node sends or receives, and their bytes.
    pub(crate) fn of_pairs(&self) -> (u64, u64) {
        let (from, to) = (self.from.max(1) as u64, self.to.max(1) as u64);
        let of_all = |parts: u64| (parts - 1, self.left_over(parts));
        // One more, if the root has no part itself: not worth a difference.
        let received = of_all(from);
        match self.pattern {
            Pattern::Gather => received,
            Pattern::Scatter => of_all(to),
            Pattern::Broadcast => (to - 1, self.bytes.saturating_mul(to - 1)),
            Pattern::AllGather => {
                let sent = (to - 1, (self.bytes / from).saturating_mul(to - 1));
                (sent.0.max(received.0), sent.1.max(received.1))
            }
            Pattern::AllToAll => {
                let (messages, bytes) = of_all(to);
                (messages.max(from - 1), bytes / from)
            }
        }
    }

    /// Bytes of all parts but one.
    fn left_over(&self, parts: u64) -> u64 {
        self.bytes - self.bytes / parts.max(1)
    }
}

impl Estimate {
    /// Whether the operation is no more expensive.
    #[must_use]
    pub fn is_collective(&self) -> bool {
        self.collective <= self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: CostLine = CostLine { once: 10_000, step: 1000, byte: 1000 };
    const COSTS: Costs = Costs { messages: UNIT, collectives: [UNIT; 5] };

    fn movement(pattern: Pattern, nodes: usize) -> Movement {
        let one = |end: bool| if end { 1 } else { nodes };
        let from = one(matches!(pattern, Pattern::Broadcast | Pattern::Scatter));
        let to = one(pattern == Pattern::Gather);
        Movement { pattern, nodes, from, to, bytes: 4000 }
    }

    #[test]
    fn messages_grow_with_the_nodes_and_rounds_with_their_logarithm() {
        for (pattern, of_two, of_four) in [
            (Pattern::Gather, [(1, 2000), (1, 2000)], [(2, 3000), (3, 3000)]),
            (Pattern::AllGather, [(1, 2000), (1, 2000)], [(2, 3000), (3, 3000)]),
            (Pattern::Broadcast, [(1, 4000), (1, 4000)], [(2, 4000), (3, 12_000)]),
            (Pattern::Scatter, [(1, 2000), (1, 2000)], [(2, 3000), (3, 3000)]),
            (Pattern::AllToAll, [(1, 1000), (1, 1000)], [(3, 750), (3, 750)]),
        ] {
            for (nodes, expected) in [(2, of_two), (4, of_four)] {
                let movement = movement(pattern, nodes);
                let found = [movement.of_collective(), movement.of_pairs()];
                assert_eq!(found, expected, "{pattern} on {nodes} nodes");
            }
        }
    }

    #[test]
    fn an_operation_is_chosen_if_it_costs_no_more() {
        let estimate = COSTS.estimate(&movement(Pattern::Broadcast, 4));
        assert_eq!(estimate, Estimate { collective: 16_000, pairs: 25_000 });
        assert!(estimate.is_collective());
        assert!(COSTS.estimate(&movement(Pattern::AllGather, 2)).is_collective(), "the same");
        let dear = Costs { collectives: [CostLine { once: 10_001, ..UNIT }; 5], ..COSTS };
        assert!(!dear.estimate(&movement(Pattern::AllGather, 2)).is_collective());
    }

    #[test]
    fn operations_of_devices_are_worth_it_for_large_data() {
        let costs = Costs::of_devices();
        let gathered = |bytes| {
            let all_gather = movement(Pattern::AllGather, 2);
            costs.estimate(&Movement { bytes, ..all_gather }).is_collective()
        };
        assert_eq!([1 << 16, 1 << 20, 1 << 30].map(gathered), [false, true, true]);
    }

    #[test]
    fn constants_come_out_of_words_as_they_went_in() {
        let words = std::array::from_fn(|at| 7 * at as u64);
        assert_eq!(Costs::from_words(words).to_words(), words);
        let costs = Costs::default();
        assert_eq!(Costs::from_words(costs.to_words()), costs);
    }

    #[test]
    fn few_parts_on_many_nodes_take_few_messages() {
        let of_three = Movement { from: 3, ..movement(Pattern::Gather, 1024) };
        assert_eq!((of_three.of_pairs().0, of_three.of_collective().0), (2, 10));
    }

    #[test]
    fn nothing_overflows() {
        for pattern in Pattern::ALL {
            let (nodes, bytes) = (usize::MAX, u64::MAX);
            let most = Movement { pattern, nodes: 1 << 20, from: nodes, to: nodes, bytes };
            let line = CostLine { once: u64::MAX, step: u64::MAX, byte: u64::MAX };
            let costs = Costs { messages: line, collectives: [line; 5] };
            let expected = Estimate { collective: u64::MAX, pairs: u64::MAX };
            assert_eq!(costs.estimate(&most), expected);
            let least = Movement { pattern, nodes: 0, from: 0, to: 0, bytes: 0 };
            assert!(COSTS.estimate(&least).is_collective());
        }
    }

    #[test]
    fn by_the_committed_table_operations_scale() {
        let costs = Costs::default();
        for (pattern, bytes) in
            Pattern::ALL.into_iter().flat_map(|one| [0, 1 << 10, 1 << 20].map(|bytes| (one, bytes)))
        {
            let of = Movement { bytes, ..movement(pattern, 256) };
            assert!(costs.estimate(&of).is_collective(), "{of:?}: {:?}", costs.estimate(&of));
        }
    }
}
