//! What is observed of a node: how long its devices starve, how long it makes no progress, and, if
//! somebody wants to know, when everything runs. Decides nothing of what the node does. Without a
//! profile or a table of kernels' times, each call for them is a branch.

use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_idag::{
    BoundAccess, DeviceId, Effects, Instruction, InstructionId, InstructionKind, MemoryId,
    MessageId,
};
use celerity_tdag::{BufferId, BufferInfo};

use super::situation::Situation;
use super::timing::KernelTimer;
use crate::arbiter::PostReceive;
use crate::config::CheckLevel;
use crate::engine::LaneId;
use crate::error::RunError;
use crate::polling::GRACE;
use crate::profile::{Label, NodeProfile};
use crate::starvation::{Lag, Starvation, StarvationMeter};
use crate::time::{Span, Time};
use crate::warning::{Lingering, Warning, WarningSink};
use crate::watchdog::Watchdog;

/// Who looks at a node, and whom they tell.
pub(super) struct Monitor {
    starvation: StarvationMeter,
    watchdog: Option<Watchdog>,
    /// Whether all of the schedule is checked before it runs: then devices wait for that, as they are to.
    is_proved: bool,
    /// Of a run that has failed.
    end: Option<Box<End>>,
    warnings: WarningSink,
    profile: Option<Box<NodeProfile>>,
    kernel_timer: Option<Box<KernelTimer>>,
}

/// What is known of the end of a run that has failed.
struct End {
    error: RunError,
    since: Time,
    /// What was on lanes, in ascending order.
    jobs: Vec<(InstructionId, String)>,
    dog: Watchdog,
}

/// What a round of polling has done, as the watchdog sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Whether anything has happened.
    pub(super) busy: bool,
    /// Whether it has found something that must have woken the node.
    pub(super) found: bool,
    /// Whether there is something that has to happen.
    pub(super) waits: bool,
}

impl Monitor {
    /// Of a node with so many devices.
    pub(super) fn new(devices: usize) -> Self {
        Self {
            starvation: StarvationMeter::new(devices),
            watchdog: None,
            is_proved: false,
            end: None,
            warnings: WarningSink::default(),
            profile: None,
            kernel_timer: None,
        }
    }

    /// Says how much of the schedule is checked before it runs.
    pub(super) fn set_check(&mut self, check: CheckLevel) {
        self.is_proved = check == CheckLevel::Full;
    }

    /// Tells `warnings` what there is to be warned of, instead of standard error.
    pub(super) fn tell(&mut self, warnings: WarningSink) {
        self.warnings = warnings;
    }

    /// Warns when nothing has happened for `period`; never, if that is 0.
    pub(super) fn set_watchdog(&mut self, period: Duration) {
        self.watchdog = (!period.is_zero()).then(|| Watchdog::new(period));
    }

    /// Records everything that is executed.
    pub(super) fn record(&mut self, profile: NodeProfile) {
        self.profile = Some(Box::new(profile));
    }

    /// Adds the time of each kernel that completes to a table.
    pub(super) fn time_kernels(&mut self, timer: KernelTimer) {
        self.kernel_timer = Some(Box::new(timer));
    }

    /// When the node wants to be polled even if nothing happens: while it `waits` for
    /// something, or `lingers` after a failure.
    pub(super) fn deadline(&self, waits: bool, lingers: impl FnOnce() -> bool) -> Option<Time> {
        let running = self.watchdog.filter(|_| waits).map(|watchdog| watchdog.deadline());
        let ending = || self.end.as_ref().filter(|_| lingers()).map(|end| end.dog.deadline());
        running.or_else(ending)
    }

    /// Who polls could not from then until then.
    pub(super) fn excuse(&mut self, from: Time, until: Time) {
        self.watchdog.iter_mut().for_each(|watchdog| watchdog.excuse(from, until));
    }

    /// How long the node's devices have starved so far.
    pub(super) fn starvation(&self) -> Starvation {
        self.starvation.total()
    }

    /// Takes notice of how far scheduling lags behind, before a round does anything about it.
    pub(super) fn look(&mut self, now: Time, lag: Option<Lag>) {
        self.starvation.look(now, lag);
    }

    /// A round ends on a node that runs.
    pub(super) fn round_ends(&mut self, round: Round, situation: Situation<'_>) {
        let Round { busy, found, waits } = round;
        let (now, node) = (situation.now, situation.peers.local());
        let Some(watchdog) = &mut self.watchdog else { return };
        if found && let Some(lasting) = watchdog.overslept(now) {
            self.warnings.warn(&Warning::Overslept { node, lasting });
        }
        if busy || !waits {
            watchdog.calm(now, waits);
        } else if let Some(lasting) = watchdog.complain(now) {
            self.warnings.warn(&Warning::Stalled(situation.stall(lasting)));
        }
    }

    /// The run has failed: notes what is under way, before that is forgotten.
    pub(super) fn stops(&mut self, error: &RunError, situation: Situation<'_>) {
        let Some(watchdog) = self.watchdog else { return };
        let mut dog = Watchdog::new(watchdog.period().min(GRACE));
        dog.calm(situation.now, true);
        let (error, since, jobs) = (error.clone(), situation.now, situation.jobs());
        self.end = Some(Box::new(End { error, since, jobs, dog }));
    }

    /// A round ends on a node that has stopped and is not over: says what for, if it is time to.
    /// `others` are what it waits for outside of itself.
    pub(super) fn lingers(&mut self, situation: Situation<'_>, others: Option<&str>) {
        let Some(end) = &mut self.end else { return };
        if end.dog.complain(situation.now).is_none() {
            return;
        }
        let (error, lasting) = (Box::new(end.error.clone()), situation.now.since(end.since));
        let mut waits_for = situation.lingers_for(&end.jobs);
        waits_for.extend(others.map(str::to_owned));
        let lingering = Lingering { node: situation.peers.local(), error, lasting, waits_for };
        self.warnings.warn(&Warning::Lingering(lingering));
    }

    /// The run has ended well.
    pub(super) fn finishes(&self, node: NodeId, now: Time) {
        let (starvation, run) = (self.starvation(), now.since(Time::START));
        if starvation.matters(run) && !self.is_proved {
            self.warnings.warn(&Warning::Starved { node, starvation, run });
        }
    }

    /// A buffer has become known.
    pub(super) fn buffer(&mut self, info: &BufferInfo) {
        if let Some(timer) = &mut self.kernel_timer {
            timer.buffer(info);
        }
    }

    /// Nothing touches a buffer any more.
    pub(super) fn forget_buffer(&mut self, buffer: BufferId) {
        if let Some(timer) = &mut self.kernel_timer {
            timer.forget_buffer(buffer);
        }
    }

    /// An instruction has become known.
    pub(super) fn admitted(&mut self, instruction: &Instruction) {
        if let Some(profile) = &mut self.profile {
            profile.admitted(instruction.id, &instruction.dependencies);
        }
    }

    /// A device has got an instruction.
    pub(super) fn known(&mut self, device: DeviceId) {
        self.starvation.known(device);
    }

    /// An instruction starts, on something of this name.
    pub(super) fn issued(
        &mut self,
        instruction: InstructionId,
        lane: Option<LaneId>,
        kind: &InstructionKind,
        subject: impl FnOnce(&Effects<'_>) -> Arc<str>,
    ) {
        let Some(profile) = &mut self.profile else { return };
        let effects = kind.effects();
        let label = Label::new(&effects, subject(&effects));
        profile.issued(instruction, lane, &effects, label);
    }

    /// A kernel starts.
    pub(super) fn launched(&mut self, instruction: InstructionId, accesses: &[BoundAccess]) {
        if let Some(timer) = &mut self.kernel_timer {
            timer.launched(instruction, accesses);
        }
    }

    /// A job has run.
    pub(super) fn ran(&mut self, instruction: InstructionId, span: Option<Span>) {
        if let (Some(profile), Some(span)) = (&mut self.profile, span) {
            profile.timed(instruction, span);
        }
    }

    /// A kernel of this name has run.
    pub(super) fn kernel_ran(
        &mut self,
        instruction: InstructionId,
        name: impl FnOnce() -> Arc<str>,
        span: Option<Span>,
    ) {
        if let Some(timer) = &mut self.kernel_timer {
            timer.completed(instruction, &name(), span);
        }
    }

    /// An instruction has completed, or failed.
    pub(super) fn retired(&mut self, instruction: InstructionId, device: Option<DeviceId>) {
        if let Some(device) = device {
            self.starvation.completed(device);
        }
        if let Some(profile) = &mut self.profile {
            profile.retired(instruction);
        }
    }

    /// A payload is waited for, of a buffer of this name.
    pub(super) fn posted(&mut self, post: &PostReceive, buffer: impl FnOnce() -> Arc<str>) {
        if let Some(profile) = &mut self.profile {
            profile.posted(post, buffer());
        }
    }

    /// A payload has arrived.
    pub(super) fn arrived(&mut self, from: NodeId, message: MessageId) {
        if let Some(profile) = &mut self.profile {
            profile.arrived(from, message);
        }
    }

    /// A memory holds so much more.
    pub(super) fn allocated(&mut self, memory: MemoryId, bytes: u64) {
        if let Some(profile) = &mut self.profile {
            profile.allocated(memory, bytes);
        }
    }

    /// A memory holds so much less.
    pub(super) fn freed(&mut self, memory: MemoryId, bytes: u64) {
        if let Some(profile) = &mut self.profile {
            profile.freed(memory, bytes);
        }
    }

    /// A round ends with so many instructions open, and tasks held back.
    pub(super) fn polled(&mut self, incomplete: usize, held_back: u64) {
        if let Some(profile) = &mut self.profile {
            profile.polled(incomplete, held_back);
        }
    }
}
