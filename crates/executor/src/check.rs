//! The schedule checker beside a run: an observer per node, and what holds
//! between the nodes of this process.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use celerity_cdag::{Command, NodeId};
use celerity_checker::{ClusterChecker, Depth, Finding, NodeChecker, NodeCheckerConfig};
use celerity_idag::{AllocationId, DeviceMemory, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};

use crate::config::ClusterConfig;
use crate::observe::Observer;
use crate::sync::lock;

/// How much of every schedule is checked before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckLevel {
    /// Nothing.
    Off,
    /// What is cheap: shape, lifetimes, placements and bindings, at about half
    /// the cost of scheduling.
    Cheap,
    /// Everything: also that every read sees what sequential execution would
    /// give it, and that nothing races, at about the cost of scheduling again.
    Full,
}

impl Default for CheckLevel {
    /// [`Cheap`](Self::Cheap) in debug builds.
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Cheap } else { Self::Off }
    }
}

/// One node's checker.
pub(crate) struct ScheduleCheck {
    node: NodeChecker,
    local: NodeId,
    /// Shared with the other nodes; none if there are none.
    cluster: Option<Arc<Mutex<ClusterChecker>>>,
}

impl ScheduleCheck {
    /// The checkers of the nodes of this process; none if nothing is to be
    /// checked. What holds between nodes is checked if all are here.
    pub(crate) fn of_all(
        config: &ClusterConfig,
        device_memory: DeviceMemory,
        local: Range<usize>,
    ) -> Vec<Self> {
        let depth = match config.check {
            CheckLevel::Off => return Vec::new(),
            CheckLevel::Cheap => Depth::Cheap,
            CheckLevel::Full => Depth::Full,
        };
        let ClusterConfig { nodes, devices, .. } = *config;
        let all_here = nodes > 1 && local.len() == nodes;
        let shared = all_here.then(|| Arc::new(Mutex::new(ClusterChecker::new(nodes))));
        let of_node = |index: usize| {
            let local = NodeId::from_index(index as u64);
            // Queues may change the lookahead.
            let eager_allocation = true;
            let config =
                NodeCheckerConfig { nodes, local, devices, device_memory, depth, eager_allocation };
            Self { node: NodeChecker::new(config), local, cluster: shared.clone() }
        };
        local.map(of_node).collect()
    }

    fn compare(&mut self) -> Result<(), String> {
        let outline = self.node.take_outline();
        match &self.cluster {
            Some(cluster) => judge(lock(cluster).add(self.local, outline)),
            None => Ok(()),
        }
    }
}

/// Waste is no reason to stop a user's program: its results are right.
fn judge(checked: Result<(), Box<Finding>>) -> Result<(), String> {
    match checked {
        Err(finding) if !finding.is_waste() => Err(finding.to_string()),
        _ => Ok(()),
    }
}

impl Observer for ScheduleCheck {
    fn buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>) {
        self.node.create_buffer(info, user_data);
    }

    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), String> {
        judge(self.node.task(task, commands, instructions, pilots))?;
        self.compare()
    }

    fn buffer_end(&mut self, buffer: BufferId, frees: &[Instruction]) -> Result<(), String> {
        judge(self.node.drop_buffer(buffer, frees))
    }
}
