//! The schedule checker beside a run: an observer per node, and what holds
//! between the nodes of this process.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use celerity_cdag::{Command, NodeId};
use celerity_checker::{ClusterChecker, Depth, Finding, NodeChecker, NodeCheckerConfig, Violation};
use celerity_idag::{AllocationId, DeviceMemory, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};

use crate::config::{CheckLevel, ClusterConfig};
use crate::observe::Observer;
use crate::sync::lock;

/// What of devices' memories the network reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkReach {
    /// Payloads between pairs of nodes, of some nodes at least.
    pub(crate) payloads: bool,
    /// Collective operations.
    pub(crate) collectives: bool,
}

/// One node's checker.
pub(crate) struct ScheduleCheck {
    node: NodeChecker,
    local: NodeId,
    cluster: Cluster,
}

/// What holds between nodes, shared by all; nothing once they have been found to run different
/// programs. Then their task streams, which know names and source lines, end the run.
type Cluster = Arc<Mutex<Option<ClusterChecker>>>;

impl ScheduleCheck {
    /// The checkers of the nodes of this process; none if nothing is to be
    /// checked. What holds between nodes is checked if all are here.
    pub(crate) fn of_all(
        config: &ClusterConfig,
        (device_memory, wires): (DeviceMemory, NetworkReach),
        local: Range<usize>,
    ) -> Vec<Self> {
        let depth = match config.check {
            CheckLevel::Off => return Vec::new(),
            CheckLevel::Cheap => Depth::Cheap,
            CheckLevel::Full => Depth::Full,
        };
        let ClusterConfig { nodes, devices, .. } = *config;
        let all_here = nodes > 1 && local.len() == nodes;
        let shared = Arc::new(Mutex::new(all_here.then(|| ClusterChecker::new(nodes))));
        let of_node = |index: usize| {
            let local = NodeId::from_index(index as u64);
            // Queues may change the lookahead.
            let eager_allocation = true;
            let config = NodeCheckerConfig {
                nodes,
                local,
                devices,
                device_memory,
                device_wires: wires.payloads,
                device_collectives: wires.collectives,
                depth,
                eager_allocation,
            };
            Self { node: NodeChecker::new(config), local, cluster: shared.clone() }
        };
        local.map(of_node).collect()
    }

    fn compare(&mut self) -> Result<(), String> {
        let outline = self.node.take_outline();
        let mut cluster = lock(&self.cluster);
        let Some(checker) = cluster.as_mut() else { return Ok(()) };
        match checker.add(self.local, outline) {
            Err(finding) if matches!(finding.violation, Violation::Disagreement { .. }) => {
                *cluster = None;
                Ok(())
            }
            checked => judge(checked),
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
