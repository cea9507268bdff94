//! Whether a node gets on: what it warns of, and when it wants to be asked.

use std::time::Duration;

use super::starvation::{Lag, Starvation};
use super::watchdog::Watchdog;
use super::{Executor, Phase, Scheduling};
use crate::time::Time;
use crate::warning::{Warning, WarningSink};

impl Executor {
    /// Tells `warnings` what there is to be warned of, instead of standard error.
    #[must_use]
    pub fn with_warnings(mut self, warnings: WarningSink) -> Self {
        self.warnings = warnings;
        self
    }

    /// Warns when nothing has happened for `period` though something is to be done,
    /// and then at doubling intervals. The driver has to poll at the
    /// [deadline](Self::deadline). Does nothing if `period` is 0.
    #[must_use]
    pub fn with_watchdog(mut self, period: Duration) -> Self {
        self.watchdog = (!period.is_zero()).then(|| Watchdog::new(period));
        self
    }

    /// When the node wants to be polled even if nothing happens, if ever.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let running = self.watchdog.filter(|_| self.waits()).map(|watchdog| watchdog.deadline());
        running.or_else(|| self.end_deadline())
    }

    /// Its driver could not look at it from then until then, as another node on the same thread,
    /// or the other half of this one, took so long.
    pub(crate) fn excuse(&mut self, from: Time, until: Time) {
        self.watchdog.iter_mut().for_each(|watchdog| watchdog.excuse(from, until));
    }

    /// How long the node's devices have starved so far.
    #[must_use]
    pub fn starvation(&self) -> Starvation {
        self.starvation.total()
    }

    /// Whether there is something that has to happen.
    fn waits(&self) -> bool {
        self.phase == Phase::Running && !(self.engine.incomplete() == 0 && self.tasks.is_empty())
    }

    /// Takes notice of what a round did: whether anything, and whether it found
    /// something that must have woken the node.
    pub(super) fn watch(&mut self, busy: bool, found: bool) {
        if self.phase == Phase::Stopped {
            return self.watch_end();
        }
        let (waits, node) = (self.waits(), self.id());
        let Some(watchdog) = &mut self.watchdog else { return };
        if found && let Some(lasting) = watchdog.overslept(self.now) {
            self.warnings.warn(&Warning::Overslept { node, lasting });
        }
        if busy || !waits {
            watchdog.calm(self.now, waits);
        } else if let Some(lasting) = watchdog.complain(self.now) {
            self.warnings.warn(&Warning::Stalled(self.stall(lasting)));
        }
    }

    /// Why submitted tasks have no instructions yet, if there are such tasks.
    pub(super) fn lag(&self) -> Option<Lag> {
        let Scheduling { begun, done, released } = self.scheduling;
        if self.progress.tasks().max(begun) > done {
            return Some(Lag::Unscheduled);
        }
        (done > released).then_some(Lag::HeldBack)
    }

    pub(super) fn warn_of_starvation(&self) {
        let (starvation, run) = (self.starvation(), self.now.since(Time::START));
        if starvation.matters(run) {
            self.warnings.warn(&Warning::Starved { node: self.id(), starvation, run });
        }
    }
}
