//! A node whose run has failed, and which has not ended: what it waits for. Knows what was under
//! way when the run failed; what of that still is, the backend tells.

use std::time::Duration;

use celerity_idag::InstructionId;

use super::open::{Open, Stage};
use super::waiting::{OnLane, Running};
use super::watchdog::{GRACE, Watchdog};
use super::{Executor, Phase};
use crate::error::RunError;
use crate::time::Time;
use crate::warning::{Lingering, Warning};

/// What is known of the run's end.
pub(super) struct End {
    error: RunError,
    since: Time,
    /// What was on lanes, in ascending order.
    jobs: Vec<(InstructionId, String)>,
    dog: Watchdog,
}

impl Executor {
    /// Notes that the run has failed, before what it has begun is forgotten.
    pub(super) fn linger(&mut self, error: &RunError) {
        let Some(watchdog) = self.watchdog else { return };
        let job = |(instruction, open): (InstructionId, &Open)| match &open.stage {
            Stage::Issued(what, Some(_)) => Some((instruction, self.describe(what))),
            _ => None,
        };
        let jobs = self.open.iter().filter_map(job).collect();
        let mut dog = Watchdog::new(watchdog.period().min(GRACE));
        dog.calm(self.now, true);
        self.end = Some(Box::new(End { error: error.clone(), since: self.now, jobs, dog }));
    }

    /// Says what the end of a failed run waits for, if it is time to.
    pub(super) fn watch_end(&mut self) {
        let (now, over) = (self.now, self.is_done());
        let Some(end) = &mut self.end else { return };
        if over || end.dog.complain(now).is_none() {
            return;
        }
        let (error, lasting) = (Box::new(end.error.clone()), now.since(end.since));
        let lingering =
            Lingering { node: self.id(), error, lasting, waits_for: self.lingers_for() };
        self.warnings.warn(&Warning::Lingering(lingering));
    }

    /// When the node wants to be polled to say what the end of a failed run waits for.
    pub(super) fn end_deadline(&self) -> Option<Time> {
        let end = self.end.as_ref().filter(|_| self.phase == Phase::Stopped && !self.is_done())?;
        Some(end.dog.deadline())
    }

    fn lingers_for(&self) -> Vec<String> {
        let mut all = Vec::new();
        for lane in self.lanes.lanes() {
            let Some(begun) = self.backend.begun(lane) else { continue };
            let known = self.end.as_ref().and_then(|end| {
                let at = end.jobs.binary_search_by_key(&begun.instruction, |(job, _)| *job).ok()?;
                Some(end.jobs[at].1.clone())
            });
            let what = known.unwrap_or_else(|| begun.instruction.to_string());
            let since = begun.since.map(|since| self.now.since(since));
            let running =
                Running { lasting: since.unwrap_or(Duration::ZERO), thread: begun.thread };
            let name = self.lanes.name(lane);
            let lane = OnLane { lane, name, running: Some(running) };
            all.push(format!("{what}, which {lane}"));
        }
        if all.is_empty() && !self.backend.is_quiet() {
            all.push("what runs on its devices".to_owned());
        }
        if !self.communicator.is_quiet() {
            all.push("other nodes, which may still use its memory".to_owned());
        }
        match (self.closed, self.progress.has_program_ended()) {
            (true, _) => {}
            (false, true) => all.push("its scheduler".to_owned()),
            (false, false) => all.push("its program, which has not returned".to_owned()),
        }
        all
    }
}
