//! What is recorded of a command graph survives, and what could not be in one is refused.
#![cfg(feature = "serde")]

use std::sync::Arc;

use celerity_cdag::{Command, CommandId, CommandKind, NodeId, TransferId};
use celerity_codec::{RecordingKind, decode, encode};
use celerity_cpd::{Collective, Ends, Members};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, Conflicts, Dependencies, DependencyKind, EpochAction, TaskId};

const KIND: RecordingKind = RecordingKind::CommandGraph;

fn transfer() -> TransferId {
    TransferId { consumer: TaskId::from_index(2), buffer: BufferId::from_index(1) }
}

fn region() -> Region {
    Region::from_boxes([Box3::from_range([2]), Box3::from_offset_range([5], [3])])
}

fn push(targets: &[(u64, Region)]) -> CommandKind {
    let targets = targets.iter().map(|(node, part)| (NodeId::from_index(*node), part.clone()));
    CommandKind::Push { transfer: transfer(), targets: targets.collect() }
}

/// Everybody's parts of `region` to `to`.
fn collective(parts: &[Region], to: Ends) -> CommandKind {
    let from = Ends::Each(parts.into());
    let collective = Arc::new(Collective { members: Members::all(), region: region(), from, to });
    CommandKind::Collective { transfer: transfer(), collective }
}

/// The parts of two nodes.
fn parts() -> [Region; 2] {
    [Box3::from_range([2]), Box3::from_offset_range([5], [3])].map(Region::from)
}

fn command(kind: CommandKind) -> Command {
    let mut dependencies = Dependencies::default();
    dependencies.add(CommandId::from_index(3), DependencyKind::Output);
    Command {
        id: CommandId::from_index(4),
        task: TaskId::from_index(2),
        kind,
        dependencies,
        conflicts: Conflicts::default(),
    }
}

fn error_of(command: &Command) -> String {
    let bytes = encode(KIND, command).unwrap();
    decode::<Command>(KIND, &bytes).unwrap_err().to_string()
}

#[test]
fn every_kind_of_command_survives() {
    for kind in [
        CommandKind::Execute { chunk: Box3::from_range([4, 4]) },
        push(&[(0, region()), (1, region()), (7, region())]),
        CommandKind::AwaitPush { transfer: transfer(), region: region() },
        collective(&parts(), Ends::All),
        collective(&parts(), Ends::One(NodeId::from_index(1))),
        collective(&parts(), Ends::Each(Arc::from(parts()))),
        CommandKind::Horizon,
        CommandKind::Epoch(EpochAction::Barrier),
    ] {
        let command = command(kind);
        let decoded: Command = decode(KIND, &encode(KIND, &command).unwrap()).unwrap();
        assert_eq!(decoded.kind, command.kind);
        assert_eq!(format!("{decoded:?}"), format!("{command:?}"));
    }
}

#[test]
fn commands_that_cannot_be_are_refused() {
    let refused = |kind, words: &str| {
        let error = error_of(&command(kind));
        assert!(error.contains(words), "{error}");
    };
    refused(CommandKind::Execute { chunk: Box3::EMPTY }, "no items");
    refused(push(&[]), "a push of T2.B1 has no target");
    refused(push(&[(1, Region::empty())]), "sends N1 nothing");
    refused(push(&[(1, region()), (1, region())]), "names N1 twice");
    refused(CommandKind::AwaitPush { transfer: transfer(), region: Region::empty() }, "nothing");
    let [low, high] = parts();
    refused(
        collective(std::slice::from_ref(&low), Ends::All),
        "T2.B1 is provided by several nodes, or by none",
    );
    let twice = [region(), high.clone()];
    refused(collective(&twice, Ends::All), "T2.B1 is provided by several nodes, or by none");
    let outside = Ends::Each(Arc::from([low.clone(), Box3::from_range([9]).into()]));
    refused(collective(&[low.clone(), high.clone()], outside), "brings what it does not move");
    let from_all =
        Collective { members: Members::all(), region: region(), from: Ends::All, to: Ends::All };
    let nothing = Collective {
        members: Members::all(),
        region: Region::empty(),
        from: Ends::Each(Arc::from([])),
        to: Ends::All,
    };
    for (which, words) in [(from_all, "what every node has"), (nothing, "moves nothing")] {
        let collective = Arc::new(which);
        refused(CommandKind::Collective { transfer: transfer(), collective }, words);
    }
    let early = Command { id: CommandId::from_index(3), ..command(CommandKind::Horizon) };
    let error = error_of(&early);
    assert!(error.contains("C3 waits for C3, which is not older"), "{error}");
}
