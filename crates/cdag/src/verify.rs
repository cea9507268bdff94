//! The contract of the command graph, and a check of it. Owns what one node's
//! stream of commands promises by itself, and what the streams of all nodes
//! promise together: whether data is where it is read is known only to who
//! evaluates mappers, too.

mod cluster;
mod collectives;
mod transfers;

use celerity_tdag::{BrokenEdge, DependencyKind, Lineage, Point, TaskId};

use crate::command::{Command, CommandId, CommandKind, TransferId};
use celerity_cpd::NodeId;

pub use cluster::verify_cluster;
#[cfg(feature = "serde")]
pub(crate) use collectives::flaw;
use transfers::Transfers;

/// A promise that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Of ids and edges.
    #[error(transparent)]
    Edge(#[from] BrokenEdge<CommandId>),
    /// A conflict that the command cannot have.
    #[error("{later} conflicts with {with}, {why}")]
    Conflict {
        /// The id of the younger of the two commands.
        later: CommandId,
        /// The id of the older one.
        with: CommandId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A command that its task has no use for.
    #[error("{command} serves {task}, {why}")]
    Service {
        /// The id of the command.
        command: CommandId,
        /// The task that it serves.
        task: TaskId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A push or an await-push that the other side would misunderstand.
    #[error("{command}: {transfer} {why}")]
    Transfer {
        /// The push or await-push.
        command: CommandId,
        /// The transfer that it names.
        transfer: TransferId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// What is pushed to a node for a transfer is not what it awaits.
    #[error("{transfer}: {pushed} is pushed to {receiver}, which awaits {awaited}")]
    Meeting {
        /// The id of the transfer that both sides name.
        transfer: TransferId,
        /// The node that receives.
        receiver: NodeId,
        /// What all nodes push to it, as text.
        pushed: String,
        /// What it awaits, as text.
        awaited: String,
    },
    /// Nodes do not agree about a collective.
    #[error("{task}: {node} {why}")]
    Collective {
        /// The forward task that it is made of.
        task: TaskId,
        /// A node that differs from the first one that has it.
        node: NodeId,
        /// The rule that is broken, in words.
        why: &'static str,
    },
    /// The chunks of a task are not its index space.
    #[error("{task}: {why}")]
    Assignment {
        /// The id of the task.
        task: TaskId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
}

/// Checks the contract of the commands of node `local`, all that its graph has
/// made since the program's start, in that order.
///
/// **Edges.** As [`Lineage`] says.
///
/// **Conflicts.** As [`Conflicts::broken`](celerity_tdag::Conflicts::broken) says, and between
/// executions only.
///
/// **Service.** Commands come in the order of their tasks. A horizon, an epoch or a collective
/// is the only command of its task. A node executes one chunk of a task at most,
/// which is not empty, and nothing of the task comes after it.
///
/// **Transfers.** Pushes and await-pushes serve the consumer that their transfer
/// names. A push waits for one command, the one that wrote what it sends, because
/// it reads that; its targets ascend, this node is not among them, and none gets
/// nothing, or an element of a transfer twice. Of each transfer there is one
/// await-push at most, not empty, and the execution of its task reads what it
/// brings: it waits for it.
///
/// **Collectives** serve the forward that their transfer names. They move something, each element
/// of which one node provides, and bring nothing else. A node that provides something waits for who
/// wrote it.
///
/// See [`verify_cluster`] for what the commands of all nodes promise together.
///
/// O(commands · (edges² + targets · pushes of the same task)).
///
/// # Errors
/// All promises that are broken, in the order of the commands.
pub fn verify(commands: &[Command], local: NodeId) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    let mut lineage = Lineage::default();
    for command in commands {
        let on = command.dependencies.iter().map(|edge| edge.on);
        let edges = lineage.check(command.id, on, point_of(&command.kind));
        broken.extend(edges.into_iter().map(Broken::Edge));
        check_conflicts(command, commands, lineage.point(), &mut broken);
    }
    for pair in commands.windows(2).filter(|pair| pair[1].task < pair[0].task) {
        broken.push(service(&pair[1], "which is older than that of the command before it"));
    }
    for of_task in commands.chunk_by(|a, b| a.task == b.task) {
        check_service(of_task, &mut broken);
        let mut transfers = Transfers::new(local);
        of_task.iter().for_each(|command| transfers.check(command, &mut broken));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

fn point_of(kind: &CommandKind) -> Point {
    match kind {
        CommandKind::Horizon => Point::Horizon,
        CommandKind::Epoch(_) => Point::Epoch,
        CommandKind::Execute { .. }
        | CommandKind::Push { .. }
        | CommandKind::AwaitPush { .. }
        | CommandKind::Collective { .. } => Point::None,
    }
}

fn check_conflicts(command: &Command, all: &[Command], point: CommandId, broken: &mut Vec<Broken>) {
    let later = command.id;
    let executes = |one: &Command| matches!(one.kind, CommandKind::Execute { .. });
    let is_idle = |id: CommandId| {
        let other = usize::try_from(id.index()).ok().and_then(|slot| all.get(slot));
        !executes(command) || other.is_some_and(|other| !executes(other))
    };
    let shape = command.conflicts.broken(later, point, &command.dependencies);
    let idle = command.conflicts.as_slice().iter().find(|with| is_idle(**with));
    let idle = idle.map(|&with| (with, "and one of them executes nothing"));
    let found = shape.or(idle);
    broken.extend(found.map(|(with, why)| Broken::Conflict { later, with, why }));
}

/// Looks at all commands of one task.
fn check_service(of_task: &[Command], broken: &mut Vec<Broken>) {
    for (position, command) in of_task.iter().enumerate() {
        let is_last = position + 1 == of_task.len();
        let why = match &command.kind {
            CommandKind::Execute { chunk } if chunk.is_empty() => "of which it executes nothing",
            CommandKind::Execute { .. } if !is_last => "and is not the last to do so",
            CommandKind::Horizon | CommandKind::Epoch(_) | CommandKind::Collective { .. }
                if of_task.len() > 1 =>
            {
                "and is not the only one"
            }
            _ => continue,
        };
        broken.push(service(command, why));
    }
}

fn service(command: &Command, why: &'static str) -> Broken {
    Broken::Service { command: command.id, task: command.task, why }
}

/// Whether `command` waits for `on` because it reads what that writes.
fn reads_from(command: &Command, on: CommandId) -> bool {
    command.dependencies.kind_of(on) == Some(DependencyKind::True)
}
