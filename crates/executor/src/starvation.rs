//! How long devices had nothing to do because scheduling lagged. Adds up times that
//! it is given; decides nothing.

use std::time::Duration;

use celerity_idag::DeviceId;

use crate::time::Time;

/// How long a node's devices have starved: averaged over those that have had work
/// before.
///
/// A device starves while
/// * no instruction for its lanes is known that has not completed: nothing runs
///   there, nothing is queued, and nothing is going to be once a message has
///   arrived or another device is done, and
/// * the program has submitted tasks whose instructions are not known yet.
///
/// So a device that waits for data, or for a program that submits nothing, does
/// not starve. Before its first instruction none does. The resolution is that of
/// the polls of the node: some microseconds while it is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starvation {
    /// Time in which tasks waited to be scheduled: the scheduler is the bottleneck.
    pub unscheduled: Duration,
    /// Time in which all submitted tasks had been scheduled, but some were held back
    /// by the lookahead.
    pub held_back: Duration,
}

impl Starvation {
    /// How long devices starved, for both reasons together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.unscheduled + self.held_back
    }

    /// Whether it is worth a warning: more than a tenth of the run, and of 100 ms.
    pub(crate) fn matters(&self, run: Duration) -> bool {
        self.total() > (run / 10).max(Duration::from_millis(100))
    }
}

/// Why submitted tasks have no instructions yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lag {
    Unscheduled,
    HeldBack,
}

/// Measures the starvation of a node. Every operation is O(1).
#[derive(Debug)]
pub(crate) struct StarvationMeter {
    /// By device: its instructions that have not completed; `None` before the first.
    known: Vec<Option<u32>>,
    /// Devices that have had an instruction, and of these, those without one now.
    met: u32,
    idle: u32,
    /// What holds since the last look.
    since: Time,
    state: Option<(Lag, Share)>,
    total: Starvation,
}

/// So many of so many devices.
type Share = (u32, u32);

impl StarvationMeter {
    pub(crate) fn new(devices: usize) -> Self {
        Self {
            known: vec![None; devices],
            met: 0,
            idle: 0,
            since: Time::START,
            state: None,
            total: Starvation::default(),
        }
    }

    /// An instruction for a device has become known.
    pub(crate) fn known(&mut self, device: DeviceId) {
        match &mut self.known[slot(device)] {
            Some(0) => {
                self.idle -= 1;
                self.known[slot(device)] = Some(1);
            }
            Some(count) => *count += 1,
            first @ None => {
                *first = Some(1);
                self.met += 1;
            }
        }
    }

    /// An instruction for a device has completed.
    pub(crate) fn completed(&mut self, device: DeviceId) {
        let Some(count) = &mut self.known[slot(device)] else {
            unreachable!("{device} completes what it never had")
        };
        *count -= 1;
        self.idle += u32::from(*count == 0);
    }

    /// Adds the time since the last look, and takes notice of how things are at
    /// `now`.
    pub(crate) fn look(&mut self, now: Time, lag: Option<Lag>) {
        if let Some((lag, (idle, met))) = self.state {
            let lost = now.since(self.since) * idle / met;
            match lag {
                Lag::Unscheduled => self.total.unscheduled += lost,
                Lag::HeldBack => self.total.held_back += lost,
            }
        }
        self.since = now;
        self.state = lag.filter(|_| self.idle > 0).map(|lag| (lag, (self.idle, self.met)));
    }

    pub(crate) fn total(&self) -> Starvation {
        self.total
    }
}

fn slot(device: DeviceId) -> usize {
    usize::try_from(device.index()).expect("device counts are small")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::START + Duration::from_millis(millis)
    }

    fn starvation(unscheduled: u64, held_back: u64) -> Starvation {
        let [unscheduled, held_back] = [unscheduled, held_back].map(Duration::from_millis);
        Starvation { unscheduled, held_back }
    }

    #[test]
    fn only_lag_beside_an_idle_device_counts() {
        let mut meter = StarvationMeter::new(2);
        let device = DeviceId::from_index(1);
        meter.look(at(0), Some(Lag::Unscheduled));
        meter.look(at(10), Some(Lag::Unscheduled));
        assert_eq!(meter.total(), starvation(0, 0), "no device has had work");
        meter.known(device);
        meter.look(at(20), Some(Lag::Unscheduled));
        meter.completed(device);
        meter.look(at(50), None);
        assert_eq!(meter.total(), starvation(0, 0), "it was busy, then nothing lagged");
        meter.look(at(60), Some(Lag::Unscheduled));
        meter.look(at(65), Some(Lag::HeldBack));
        meter.known(device);
        meter.look(at(67), Some(Lag::HeldBack));
        meter.look(at(99), None);
        assert_eq!(meter.total(), starvation(5, 2));
    }

    #[test]
    fn one_idle_device_of_two_counts_half() {
        let mut meter = StarvationMeter::new(2);
        let [one, two] = [0, 1].map(DeviceId::from_index);
        meter.known(one);
        meter.known(two);
        meter.known(two);
        meter.completed(one);
        meter.completed(two);
        meter.look(at(0), Some(Lag::Unscheduled));
        meter.look(at(10), None);
        assert_eq!(meter.total(), starvation(5, 0));
    }

    #[test]
    fn a_tenth_of_a_long_run_matters() {
        let run = Duration::from_secs(10);
        assert!(!starvation(900, 100).matters(run));
        assert!(starvation(900, 101).matters(run));
        assert!(!starvation(90, 0).matters(Duration::from_millis(95)), "too short to care");
    }
}
