//! Serialisation of commands, and what makes their data valid.
//!
//! Owns the invariants of the data at rest: a value that breaks one is an error of deserialisation.
//! Refuses to know any format.

use std::collections::BTreeSet;

use celerity_regions::Region;
use celerity_tdag::__serde_checked;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::command::{Command, CommandId, CommandKind};
use crate::verify::flaw;
use celerity_cpd::NodeId;

__serde_checked!(Command, check_command);
__serde_checked!(CommandKind, check_kind);

fn check_command(command: &Command) -> Result<(), String> {
    let id = command.id;
    let start = CommandId::from_index(0);
    if let Some((with, why)) = command.conflicts.broken(id, start, &command.dependencies) {
        return Err(format!("{id} conflicts with {with}, {why}"));
    }
    match command.dependencies.iter().find(|dependency| dependency.on >= id) {
        Some(dependency) => Err(format!("{id} waits for {}, which is not older", dependency.on)),
        None => Ok(()),
    }
}

fn check_kind(kind: &CommandKind) -> Result<(), String> {
    match kind {
        CommandKind::Execute { chunk } if chunk.is_empty() => {
            Err("an execution has no items".to_owned())
        }
        CommandKind::Push { transfer, targets } => {
            check_targets(targets).map_err(|what| format!("a push of {transfer} {what}"))
        }
        CommandKind::AwaitPush { transfer, region } if region.is_empty() => {
            Err(format!("an await-push of {transfer} expects nothing"))
        }
        CommandKind::Collective { transfer, collective } => match flaw(collective) {
            Some(what) => Err(format!("the collective {transfer} {what}")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_targets(targets: &[(NodeId, Region)]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (node, region) in targets {
        if region.is_empty() {
            return Err(format!("sends {node} nothing"));
        }
        if !seen.insert(node) {
            return Err(format!("names {node} twice"));
        }
    }
    match targets.is_empty() {
        true => Err("has no target".to_owned()),
        false => Ok(()),
    }
}

/// Serialises a list as one.
pub(crate) fn list<S: Serializer>(
    targets: &[(NodeId, Region)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    targets.serialize(serializer)
}

/// By way of a `Vec`, which does not believe what a list says of its length before it has come.
pub(crate) fn targets<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SmallVec<[(NodeId, Region); 2]>, D::Error> {
    Vec::deserialize(deserializer).map(SmallVec::from_vec)
}
