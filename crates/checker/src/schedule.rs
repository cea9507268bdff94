//! All nodes' whole graphs at once, for tests and for recorded schedules.

use std::sync::Arc;

use celerity_cdag::{Command, NodeId};
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};

use crate::cluster::ClusterChecker;
use crate::finding::Finding;
use crate::node::{NodeChecker, NodeCheckerConfig};

/// One call of a [`NodeChecker`], as data.
#[derive(Clone, Debug)]
pub enum CheckerCall<'a> {
    /// See [`NodeChecker::create_buffer`].
    Create(&'a Arc<BufferInfo>, Option<AllocationId>),
    /// See [`NodeChecker::drop_buffer`].
    Drop(BufferId, &'a [Instruction]),
    /// See [`NodeChecker::task`].
    Task(&'a Arc<Task>, &'a [Command], &'a [Instruction], &'a [Pilot]),
}

/// Checks the whole graphs of all nodes, each node's events in order.
/// `config.local` is ignored, `config.nodes` must be the number of nodes.
///
/// # Errors
/// The first broken rule: first of each node by itself, then between nodes.
///
/// # Panics
/// If there are more nodes than `config.nodes`.
pub fn check_schedule<'a, Events>(
    config: NodeCheckerConfig,
    nodes: impl IntoIterator<Item = Events>,
) -> Result<(), Box<Finding>>
where
    Events: IntoIterator<Item = CheckerCall<'a>>,
{
    let mut cluster = ClusterChecker::new(config.nodes);
    for (slot, events) in nodes.into_iter().enumerate() {
        let local = NodeId::from_index(slot as u64);
        let mut node = NodeChecker::new(NodeCheckerConfig { local, ..config });
        for event in events {
            match event {
                CheckerCall::Create(info, user_data) => node.create_buffer(info, user_data),
                CheckerCall::Drop(buffer, frees) => node.drop_buffer(buffer, frees)?,
                CheckerCall::Task(task, commands, instructions, pilots) => {
                    node.task(task, commands, instructions, pilots)?;
                }
            }
        }
        cluster.add(local, node.finish()?)?;
    }
    cluster.finish()
}
