//! When a node computes on the thread that polls it, where that thread has the process's only
//! core. Reads no clock: time is an argument, and bounds only how long computing is put off.

use std::time::Duration;

use crate::polling::{LONGEST_LAG, ROUNDS_TO_LEAVE, TIME_TO_LEAVE};
use crate::time::Time;

/// A node's computing between its rounds.
#[derive(Debug, Default)]
pub(super) struct Computing {
    /// Rounds in a row in which nothing has happened.
    idle_rounds: u32,
    /// When something has happened last.
    last_busy: Time,
    /// Since when the node computes, if the last round has ended with that.
    since: Option<Time>,
    /// How long it did the last time.
    took: Duration,
}

impl Computing {
    /// A round begins.
    pub(super) fn round_begins(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.took = now.since(since);
        }
    }

    /// A round ends, in which something has happened or not.
    pub(super) fn round_ends(&mut self, now: Time, busy: bool) {
        if busy {
            self.last_busy = now;
        }
        self.idle_rounds = if busy { 0 } else { self.idle_rounds.saturating_add(1) };
    }

    /// Whether the node may compute now, when it has nothing else to do. Peers that wait for data
    /// get it first, since some networks move it only while both sides look; unless the network
    /// `can_do_without`, or they have had [rounds](ROUNDS_TO_LEAVE) or [time](TIME_TO_LEAVE) enough to take it. Without that
    /// end, two nodes could wait for each other: one to send before it computes, the other to
    /// get what is computed before it receives.
    pub(super) fn may_begin(&self, now: Time, can_do_without: bool) -> bool {
        can_do_without
            || self.idle_rounds >= ROUNDS_TO_LEAVE
            || now.since(self.last_busy) > TIME_TO_LEAVE
    }

    /// The node computes from then on, until its next round begins.
    pub(super) fn begins(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// How much later than usual peers may be that have as much to compute as this node had.
    pub(super) fn lag(&self) -> Duration {
        self.took.min(LONGEST_LAG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::START + Duration::from_micros(micros)
    }

    #[test]
    fn what_is_to_leave_goes_first_for_so_many_rounds() {
        let mut computing = Computing::default();
        for _ in 0..2 {
            computing.round_ends(at(1), true);
            assert!(computing.may_begin(at(1), true), "nothing is to leave");
            for _ in 0..ROUNDS_TO_LEAVE {
                assert!(!computing.may_begin(at(1), false));
                computing.round_ends(at(1), false);
            }
            assert!(computing.may_begin(at(1), false));
        }
        computing.round_ends(at(2), true);
        assert!(!computing.may_begin(at(2) + TIME_TO_LEAVE, false));
        assert!(computing.may_begin(at(3) + TIME_TO_LEAVE, false), "rounds may take long");
    }

    #[test]
    fn peers_may_lag_by_as_much_as_the_last_computing_took() {
        let mut computing = Computing::default();
        computing.round_begins(at(3));
        assert_eq!(computing.lag(), Duration::ZERO);
        computing.begins(at(3));
        computing.round_begins(at(40));
        computing.round_begins(at(90));
        assert_eq!(computing.lag(), Duration::from_micros(37), "rounds without it count not");
        computing.begins(at(90));
        computing.round_begins(at(90) + 2 * LONGEST_LAG);
        assert_eq!(computing.lag(), LONGEST_LAG);
    }
}
