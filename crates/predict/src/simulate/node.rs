//! What is known of a node while time goes on: which instructions wait, what its program does next, and
//! what has come for it. Brings nothing about.

use std::collections::HashMap;

use super::inbox::Inbox;
use super::plan::Plan;
use crate::pace::Pace;
use crate::schedule::{Action, NodeSchedule, ScheduledStep, TransferKey};

/// A node's state.
pub(super) struct Node<'a> {
    pub(super) schedule: &'a NodeSchedule,
    pub(super) pace: &'a Pace,
    pub(super) plan: Plan,
    /// By instruction: how many it waits for, and its release.
    pub(super) waiting: Vec<u32>,
    pub(super) complete: Vec<bool>,
    pub(super) left: usize,
    /// What the program does next.
    pub(super) act: usize,
    /// Tasks that have been submitted.
    pub(super) submitted: usize,
    /// Deliveries that have completed without a gap, and the instruction up to which the program waits.
    pub(super) delivered: usize,
    pub(super) parked: Option<u32>,
    pub(super) inboxes: HashMap<TransferKey, Inbox>,
}

impl<'a> Node<'a> {
    pub(super) fn new(schedule: &'a NodeSchedule, pace: &'a Pace, plan: Plan) -> Self {
        let steps = schedule.steps.len();
        let waiting =
            |step: &ScheduledStep| u32::try_from(step.after.len() + 1).expect("as positions");
        Self {
            schedule,
            pace,
            plan,
            waiting: schedule.steps.iter().map(waiting).collect(),
            complete: vec![false; steps],
            left: steps,
            act: 0,
            submitted: 0,
            delivered: 0,
            parked: None,
            inboxes: HashMap::new(),
        }
    }

    /// Whether all that is delivered to the program before an instruction has completed.
    pub(super) fn has_delivered(&mut self, bound: u32) -> bool {
        let delivering = &self.plan.delivering;
        while let Some(step) = delivering.get(self.delivered)
            && self.complete[*step as usize]
        {
            self.delivered += 1;
        }
        delivering.get(self.delivered).is_none_or(|step| *step >= bound)
    }

    /// The first instruction that has not completed, and what it waits for.
    pub(super) fn stuck(&self) -> Option<String> {
        let position = self.complete.iter().position(|complete| !complete)?;
        let step = &self.schedule.steps[position];
        let (node, id) = (self.schedule.node, step.id);
        let before = step.after.iter().find(|before| !self.complete[**before as usize]);
        let what = match (&step.action, before) {
            (_, Some(before)) => format!("I{}", self.schedule.steps[*before as usize].id),
            (Action::Receive { transfer, .. }, None) => {
                let inbox = self.inboxes.get(transfer);
                let missing = inbox.and_then(|inbox| inbox.missing(u32::try_from(position).ok()?));
                let TransferKey { task, buffer } = transfer;
                let missing =
                    missing.map_or("elements".to_owned(), |some| format!("{some} elements"));
                format!("{missing} of B{buffer} for T{task}, which no node sends")
            }
            (Action::Send { to, transfer, .. }, None) => {
                format!("N{to} to receive B{} for T{}", transfer.buffer, transfer.task)
            }
            (Action::Collective { .. } | Action::Epoch { .. }, None) => "other nodes".to_owned(),
            _ => "its task, which the program has not submitted".to_owned(),
        };
        Some(format!("N{node} I{id} in line {} waits for {what}", step.line))
    }
}
