//! Pushes and await-pushes of one task, and who waits for them.

use std::collections::BTreeMap;

use celerity_regions::Region;
use celerity_tdag::BufferId;

use super::collectives::flaw;
use super::{Broken, reads_from};
use crate::command::{Command, CommandId, CommandKind, TransferId};
use celerity_cpd::NodeId;

/// What the commands of one task have sent and expect.
#[derive(Debug)]
pub(super) struct Transfers {
    local: NodeId,
    sent: BTreeMap<(BufferId, NodeId), Region>,
    awaited: BTreeMap<BufferId, CommandId>,
}

impl Transfers {
    pub(super) fn new(local: NodeId) -> Self {
        Self { local, sent: BTreeMap::new(), awaited: BTreeMap::new() }
    }

    pub(super) fn check(&mut self, command: &Command, broken: &mut Vec<Broken>) {
        match &command.kind {
            CommandKind::Push { transfer, targets } => {
                let why = [check_name(command, *transfer), check_writer(command)]
                    .into_iter()
                    .flatten()
                    .chain(self.send(*transfer, targets));
                broken.extend(why.map(|why| of(command, *transfer, why)));
            }
            CommandKind::AwaitPush { transfer, region } => {
                let why = check_name(command, *transfer)
                    .into_iter()
                    .chain(self.expect(command.id, *transfer, region));
                broken.extend(why.map(|why| of(command, *transfer, why)));
            }
            CommandKind::Execute { .. } => self.check_reader(command, broken),
            CommandKind::Collective { transfer, collective } => {
                let why = [
                    check_name(command, *transfer),
                    flaw(collective),
                    check_provider(command, &collective.provided_by(self.local)),
                ];
                broken.extend(why.into_iter().flatten().map(|why| of(command, *transfer, why)));
            }
            CommandKind::Horizon | CommandKind::Epoch(_) => {}
        }
    }

    fn send(&mut self, transfer: TransferId, targets: &[(NodeId, Region)]) -> Option<&'static str> {
        if targets.is_empty() {
            return Some("is pushed to nobody");
        }
        if !targets.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Some("has targets that do not ascend");
        }
        targets.iter().find_map(|(node, region)| {
            let sent = self.sent.entry((transfer.buffer, *node)).or_insert_with(Region::empty);
            let twice = sent.intersects(region);
            sent.union_with(region);
            if *node == self.local {
                Some("is pushed to the node itself")
            } else if region.is_empty() {
                Some("is pushed to a node that gets nothing")
            } else {
                twice.then_some("is pushed twice in part")
            }
        })
    }

    fn expect(
        &mut self,
        command: CommandId,
        transfer: TransferId,
        region: &Region,
    ) -> Option<&'static str> {
        let again = self.awaited.insert(transfer.buffer, command).is_some();
        if again {
            Some("is awaited a second time")
        } else {
            region.is_empty().then_some("is awaited, and is nothing")
        }
    }

    fn check_reader(&self, execution: &Command, broken: &mut Vec<Broken>) {
        for (&buffer, &on) in self.awaited.iter().filter(|&(_, &on)| !reads_from(execution, on)) {
            let transfer = TransferId { consumer: execution.task, buffer };
            let why = "is not waited for by the execution that reads it";
            broken.push(Broken::Transfer { command: on, transfer, why });
        }
    }
}

fn check_name(command: &Command, transfer: TransferId) -> Option<&'static str> {
    (transfer.consumer != command.task).then_some("is for another task than the command")
}

fn check_writer(push: &Command) -> Option<&'static str> {
    let writer = push.dependencies.iter().next();
    let waits_for_writer = writer.is_some_and(|writer| reads_from(push, writer.on));
    let alone = push.dependencies.len() == 1;
    (!waits_for_writer || !alone).then_some("does not wait for its writer alone")
}

fn check_provider(collective: &Command, provided: &Region) -> Option<&'static str> {
    let reads = collective.dependencies.iter().any(|edge| reads_from(collective, edge.on));
    (!reads && !provided.is_empty()).then_some("does not wait for who wrote what it provides")
}

fn of(command: &Command, transfer: TransferId, why: &'static str) -> Broken {
    Broken::Transfer { command: command.id, transfer, why }
}
