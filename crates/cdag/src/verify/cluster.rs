//! What the commands of all nodes promise together.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{Point, Task, TaskId, Work};

use super::{Broken, collectives, point_of, verify};
use crate::command::{Command, CommandKind, TransferId};
use celerity_cpd::NodeId;

/// Checks the contract of the commands of a whole cluster, all that the graphs
/// of its nodes have made for `tasks`; node `n` has made `nodes[n]`.
///
/// **Each node** keeps the contract that [`verify`] states.
///
/// **Meetings.** What all nodes together push to a node for a transfer is what
/// that node awaits.
///
/// **Collectives.** All nodes have the same: each of them exchanges the same parts of the same
/// buffers with the same nodes, in the same order.
///
/// **Assignment.** The chunks of a kernel or a fold are disjoint, and together they are its
/// index space. A host task that runs once is executed by the node that it
/// names, modulo their number, a fence and what combines by every node, and
/// every node has each horizon and epoch. A forward is executed by nobody.
///
/// As [`verify`] for each node, plus O(commands · log commands).
///
/// # Errors
/// All promises that are broken: node by node, then of meetings, of collectives, then task by
/// task.
pub fn verify_cluster(tasks: &[Arc<Task>], nodes: &[Vec<Command>]) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    for (slot, commands) in nodes.iter().enumerate() {
        let local = NodeId::from_index(slot as u64);
        broken.extend(verify(commands, local).err().unwrap_or_default());
    }
    check_meetings(nodes, &mut broken);
    collectives::check(nodes, &mut broken);
    let served = Served::by(nodes);
    for task in tasks {
        if let Some(why) = served.check(task, nodes.len()) {
            broken.push(Broken::Assignment { task: task.id, why });
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

/// What is pushed and awaited, by transfer and receiver.
type Meetings = BTreeMap<(TransferId, NodeId), [Region; 2]>;

fn check_meetings(nodes: &[Vec<Command>], broken: &mut Vec<Broken>) {
    let mut meetings = Meetings::new();
    for (slot, commands) in nodes.iter().enumerate() {
        let node = NodeId::from_index(slot as u64);
        commands.iter().for_each(|command| note(&mut meetings, node, &command.kind));
    }
    for ((transfer, receiver), [pushed, awaited]) in meetings {
        if pushed != awaited {
            let [pushed, awaited] = [pushed, awaited].map(|region| region.to_string());
            broken.push(Broken::Meeting { transfer, receiver, pushed, awaited });
        }
    }
}

fn note(meetings: &mut Meetings, node: NodeId, kind: &CommandKind) {
    let mut meeting = |transfer, receiver, side: usize, region: &Region| {
        let sides = meetings.entry((transfer, receiver));
        sides.or_insert_with(|| [(); 2].map(|()| Region::empty()))[side].union_with(region);
    };
    match kind {
        CommandKind::Push { transfer, targets } => {
            targets.iter().for_each(|(target, region)| meeting(*transfer, *target, 0, region));
        }
        CommandKind::AwaitPush { transfer, region } => meeting(*transfer, node, 1, region),
        CommandKind::Collective { .. }
        | CommandKind::Execute { .. }
        | CommandKind::Horizon
        | CommandKind::Epoch(_) => {}
    }
}

/// Who executes what, and how many nodes have a horizon or epoch.
#[derive(Default)]
struct Served {
    chunks: BTreeMap<TaskId, Vec<(usize, Box3)>>,
    points: BTreeMap<TaskId, usize>,
}

impl Served {
    fn by(nodes: &[Vec<Command>]) -> Self {
        let mut served = Self::default();
        for (node, commands) in nodes.iter().enumerate() {
            for command in commands {
                match command.kind {
                    CommandKind::Execute { chunk } => {
                        served.chunks.entry(command.task).or_default().push((node, chunk));
                    }
                    ref kind if point_of(kind) != Point::None => {
                        *served.points.entry(command.task).or_default() += 1;
                    }
                    _ => {}
                }
            }
        }
        served
    }

    fn check(&self, task: &Task, nodes: usize) -> Option<&'static str> {
        let chunks = self.chunks.get(&task.id).map_or(&[][..], Vec::as_slice);
        let kept = match task.work {
            Work::Device(space) | Work::HostSplit { space, .. } => partition(chunks, space.extent),
            Work::HostOnce { node } => {
                matches!(chunks, [(at, _)] if *at as u64 == node % nodes as u64)
            }
            Work::Fence | Work::Combine { .. } => chunks.iter().map(|&(node, _)| node).eq(0..nodes),
            Work::Forward => chunks.is_empty(),
            Work::Horizon | Work::Epoch(_) => self.points.get(&task.id) == Some(&nodes),
        };
        let why = match task.work {
            Work::Device(_) | Work::HostSplit { .. } => {
                "its chunks are not a partition of its index space"
            }
            Work::HostOnce { .. } => "it is not executed by the node that it names, alone",
            Work::Fence | Work::Combine { .. } => "it is not executed by every node",
            Work::Forward => "it is executed, and there is nothing to execute",
            Work::Horizon | Work::Epoch(_) => "not every node has it",
        };
        (!kept).then_some(why)
    }
}

fn partition(chunks: &[(usize, Box3)], space: Box3) -> bool {
    let volume: u64 = chunks.iter().map(|(_, chunk)| chunk.volume()).sum();
    let all = Region::from_boxes(chunks.iter().map(|&(_, chunk)| chunk));
    volume == space.volume() && all == space.into()
}
