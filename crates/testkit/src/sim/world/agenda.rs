//! What is going to happen, in order of simulated time. Knows nothing of what
//! an event is.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use celerity_executor::Time;

/// Events to come. Those of the same time happen in the order in which they were
/// added, so that a run depends on nothing but its seed.
#[derive(Debug)]
pub(in crate::sim) struct Agenda<E> {
    heap: BinaryHeap<Appointment<E>>,
    added: u64,
}

#[derive(Debug)]
struct Appointment<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<E> Agenda<E> {
    /// Adds an event. O(log n).
    pub(in crate::sim) fn add(&mut self, at: Time, event: E) {
        self.heap.push(Appointment { at, number: self.added, event });
        self.added += 1;
    }

    /// Takes the earliest event. O(log n).
    pub(in crate::sim) fn next(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Appointment { at, event, .. }| (at, event))
    }
}

impl<E> Ord for Appointment<E> {
    /// The earliest is the greatest, as the heap hands out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Appointment<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Appointment<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Appointment<E> {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_of_addition() {
        let mut agenda = Agenda::default();
        for (nanos, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            agenda.add(Time::START + Duration::from_nanos(nanos), event);
        }
        let events = std::iter::from_fn(|| agenda.next()).map(|(_, event)| event);
        assert_eq!(events.collect::<String>(), "abcd");
    }
}
