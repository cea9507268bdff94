//! Sends, pilots and receives of all nodes: who announces, sends and expects
//! what.

use std::collections::{BTreeMap, BTreeSet};

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{Instruction, InstructionKind, MessageId};
use celerity_regions::{Box3, Region};

use super::Cluster;
use crate::element;
use crate::model::parcels::Parcels;
use crate::trace::InstructionTrace;
use crate::violation::Violation;

/// Checks that pilots announce exactly the sends, that what is sent is what is
/// received, and that every message fits into one receive.
pub(super) fn check(cluster: &Cluster<'_>) -> Result<(), Violation> {
    check_pilots(cluster)?;
    check_collectives(cluster)?;
    let (mut sent, mut expected) = (Parcels::default(), Parcels::default());
    for trace in cluster.nodes {
        for instruction in &trace.instructions {
            match &instruction.kind {
                InstructionKind::Send { to, transfer, region, .. } => {
                    let slots = slots(cluster, *transfer, region);
                    sent.add(*transfer, *to, &slots, "sent")?;
                    for part in region.boxes() {
                        check_fits(cluster, *transfer, *to, part)?;
                    }
                }
                InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
                    let slots = slots(cluster, inbound.transfer, &inbound.region);
                    expected.add(inbound.transfer, trace.node, &slots, "expected")?;
                }
                _ => {}
            }
        }
    }
    sent.check_equal(&expected)
}

fn slots(cluster: &Cluster<'_>, transfer: TransferId, region: &Region) -> BTreeSet<usize> {
    element::slots(&cluster.truth.buffer(transfer.buffer).extent, region)
}

/// Of all collectives, each node takes part in those that it is a member of, in one order, and numbers
/// them by itself.
fn check_collectives(cluster: &Cluster<'_>) -> Result<(), Violation> {
    let parts = |trace: &InstructionTrace| -> Vec<_> {
        let instructions = trace.instructions.iter();
        let part = |instruction: &Instruction| match &instruction.kind {
            InstructionKind::Collective(part) => {
                Some((part.number, part.transfer, part.collective.clone()))
            }
            _ => None,
        };
        instructions.filter_map(part).collect()
    };
    let all: BTreeMap<TransferId, _> = cluster
        .nodes
        .iter()
        .flat_map(|trace| parts(trace).into_iter().map(|(_, transfer, one)| (transfer, one)))
        .collect();
    for trace in cluster.nodes {
        let found = parts(trace);
        let numbered = (0..).zip(&found).all(|(due, (number, ..))| *number == due);
        let expected = all.iter().filter(|(_, one)| one.members.contains(trace.node));
        let is_expected = found.iter().map(|(_, transfer, one)| (transfer, one)).eq(expected);
        if !numbered || !is_expected {
            let node = trace.node.to_string();
            let what =
                "takes part in other collectives than it is a member of, or in another order";
            return Err(Violation::Malformed { node, what: what.to_owned() });
        }
    }
    Ok(())
}

/// One pilot for each send, saying the same.
fn check_pilots(cluster: &Cluster<'_>) -> Result<(), Violation> {
    for trace in cluster.nodes {
        let mut announced: BTreeMap<MessageId, (NodeId, TransferId, &Region, bool)> =
            BTreeMap::new();
        for pilot in &trace.pilots {
            let content = (pilot.to, pilot.transfer, &pilot.region, pilot.from_device);
            if announced.insert(pilot.message, content).is_some() {
                let what = format!("{} of {} is announced twice", pilot.message, trace.node);
                return Err(Violation::Mismatched { transfer: pilot.transfer, to: pilot.to, what });
            }
        }
        for instruction in &trace.instructions {
            let InstructionKind::Send { to, message, transfer, source, region, .. } =
                &instruction.kind
            else {
                continue;
            };
            let content = (*to, *transfer, region, source.memory.device().is_some());
            if announced.remove(message) != Some(content) {
                let what = format!("{message} of {} is not what was announced", trace.node);
                return Err(Violation::Mismatched { transfer: *transfer, to: *to, what });
            }
        }
        if let Some((message, (to, transfer, ..))) = announced.into_iter().next() {
            let what = format!("{message} of {} is announced and never sent", trace.node);
            return Err(Violation::Mismatched { transfer, to, what });
        }
    }
    Ok(())
}

/// Each box of a message must lie inside one receive, or the receiver cannot place it.
fn check_fits(
    cluster: &Cluster<'_>,
    transfer: TransferId,
    to: NodeId,
    elements: &Box3,
) -> Result<(), Violation> {
    let mut receives = cluster.nodes[to.slot()].instructions.iter().filter_map(|instruction| {
        match &instruction.kind {
            InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound)
                if inbound.transfer == transfer =>
            {
                Some(&inbound.region)
            }
            _ => None,
        }
    });
    let message = slots(cluster, transfer, &Region::from(*elements));
    match receives.any(|region| message.is_subset(&slots(cluster, transfer, region))) {
        true => Ok(()),
        false => {
            let what = format!("no single receive takes all of {elements}");
            Err(Violation::Mismatched { transfer, to, what })
        }
    }
}
