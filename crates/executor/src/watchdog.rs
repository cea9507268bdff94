//! When a node that makes no progress has to say so: after a while, and then at
//! doubling intervals. Reads no clock and wakes nobody: it says when it wants to
//! be asked.

use std::time::Duration;

use crate::time::Time;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog {
    period: Duration,
    /// Since when nothing has happened.
    since: Time,
    /// How long nothing may happen before the next report.
    patience: Duration,
    /// Whether there has been something to wait for since the last look.
    armed: bool,
    /// Whether who looks could not at the deadline.
    excused: bool,
}

impl Watchdog {
    /// One that reports after `period`, which is not 0.
    pub(crate) fn new(period: Duration) -> Self {
        debug_assert!(!period.is_zero(), "it would report at every look");
        Self { period, since: Time::START, patience: period, armed: false, excused: false }
    }

    /// How long nothing may happen at first.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// Something has happened, or there is nothing to wait for; and there is
    /// something from now on, or not.
    pub(crate) fn calm(&mut self, now: Time, armed: bool) {
        (self.since, self.patience, self.armed) = (now, self.period, armed);
        self.excused = false;
    }

    /// Who looks was busy elsewhere from then until then.
    pub(crate) fn excuse(&mut self, from: Time, until: Time) {
        self.excused |= (from..until).contains(&self.deadline());
    }

    /// Something has happened: how long nothing had, if it is found by the look at
    /// the deadline, or later.
    pub(crate) fn overslept(&self, now: Time) -> Option<Duration> {
        let overslept = self.armed && !self.excused && now >= self.deadline();
        overslept.then(|| now.since(self.since))
    }

    /// When it wants to be asked.
    pub(crate) fn deadline(&self) -> Time {
        self.since + self.patience
    }

    /// Nothing has happened: for how long, if it is time to say so.
    pub(crate) fn complain(&mut self, now: Time) -> Option<Duration> {
        let still = now.since(self.since);
        if still < self.patience {
            return None;
        }
        while self.patience <= still && self.patience < Duration::MAX {
            self.patience = self.patience.saturating_mul(2);
        }
        Some(still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    #[test]
    fn it_complains_at_doubling_intervals_until_something_happens() {
        let mut dog = Watchdog::new(Duration::from_secs(30));
        dog.calm(at(10), true);
        let complaints: Vec<_> = (10..400).filter(|&t| dog.complain(at(t)).is_some()).collect();
        assert_eq!(complaints, [40, 70, 130, 250]);
        assert_eq!(dog.deadline(), at(490));
        dog.calm(at(400), true);
        assert_eq!(dog.deadline(), at(430));
    }

    #[test]
    fn what_is_found_at_the_deadline_was_overslept_if_it_was_waited_for() {
        let mut dog = Watchdog::new(Duration::from_secs(30));
        dog.calm(at(10), true);
        assert_eq!(dog.overslept(at(39)), None);
        assert_eq!(dog.overslept(at(40)), Some(Duration::from_secs(30)));
        dog.calm(at(40), false);
        assert_eq!(dog.overslept(at(99)), None);
    }

    #[test]
    fn who_was_busy_elsewhere_at_the_deadline_has_not_overslept() {
        let mut dog = Watchdog::new(Duration::from_secs(30));
        dog.calm(at(10), true);
        dog.excuse(at(11), at(39));
        assert_eq!(dog.overslept(at(50)), Some(Duration::from_secs(40)));
        dog.excuse(at(39), at(50));
        assert_eq!(dog.overslept(at(50)), None);
        dog.calm(at(50), true);
        assert_eq!(dog.overslept(at(80)), Some(Duration::from_secs(30)));
    }

    #[test]
    fn one_without_end_of_patience_never_complains() {
        let mut dog = Watchdog::new(Duration::MAX);
        dog.calm(at(10), true);
        assert_eq!((dog.complain(at(1 << 40)), dog.overslept(at(1 << 40))), (None, None));
        let mut dog = Watchdog::new(Duration::MAX / 2);
        assert!(dog.complain(Time::START + Duration::MAX).is_some());
        assert_eq!(dog.deadline(), Time::START + Duration::MAX);
    }

    #[test]
    fn one_that_was_not_asked_for_long_complains_once() {
        let mut dog = Watchdog::new(Duration::from_secs(1));
        assert_eq!(dog.complain(at(100)), Some(Duration::from_secs(100)));
        assert_eq!(dog.complain(at(100)), None);
        assert_eq!(dog.deadline(), at(128));
    }
}
