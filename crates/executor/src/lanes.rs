//! Which lanes a node has, and which instruction may go on which. A pure table:
//! backends create these lanes, the engine fills them.

use celerity_idag::{DeviceId, LaneKind, MemoryId};
use celerity_tdag::CollectiveGroup;

use crate::engine::{LaneGroup, LaneId, Target};

/// The lanes of one node.
///
/// | work | lanes | why |
/// | --- | --- | --- |
/// | kernels | two per device | a kernel that does not fill the machine does not hold up an independent one; chains stay on one lane |
/// | copies from or to a device | one per device, the source's if both ends are devices | a copy never waits behind a kernel that it does not depend on |
/// | host tasks | four | one that waits for a file or a fence does not hold up three others |
/// | collective groups | one each, 128 | functions of a group wait for those of the same group on other nodes: they have to be able to start whatever else blocks |
/// | fences, and what reductions combine on the host | two | they copy and compute: a host task may wait for them, they wait for no host task's lane |
/// | copies within the host | one | as for devices |
///
/// Everything else (allocation, transfers, synchronisation) is done by the
/// node itself.
///
/// Host tasks, of collective groups or not, are the only work that [may block](Self::may_block). While four
/// outside of groups are on their way, a later one queues up behind one of them, so a host task
/// must not wait for one that is submitted after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLayout {
    devices: u16,
}

const KERNEL_LANES: u16 = 2;
const DEVICE_LANES: u16 = KERNEL_LANES + 1;
const HOST_TASK_LANES: u16 = 4;
const FENCE_LANES: u16 = 2;
/// Their threads start when they are needed; without, a lane costs nothing.
const GROUP_LANES: u16 = CollectiveGroup::MOST as u16;
/// Behind the devices' lanes, in this order: host tasks, fences, copies, collective groups.
const COPY_LANE: u16 = HOST_TASK_LANES + FENCE_LANES;
const HOST_LANES: u16 = COPY_LANE + 1 + GROUP_LANES;

impl LaneLayout {
    /// The lanes of a node with so many devices.
    ///
    /// # Panics
    /// If there are more than 10,000 devices.
    #[must_use]
    pub fn new(devices: usize) -> Self {
        assert!(devices <= 10_000, "{devices} devices on one node");
        Self { devices: u16::try_from(devices).expect("checked above") }
    }

    /// Number of lanes in all.
    #[must_use]
    pub fn count(self) -> usize {
        usize::from(self.host_lane(HOST_LANES))
    }

    /// All of them, in order of their slots.
    pub fn lanes(self) -> impl Iterator<Item = LaneId> {
        (0..self.host_lane(HOST_LANES)).map(LaneId::from_slot)
    }

    /// Whether jobs of the lane may block for as long as they like, for
    /// anything but jobs behind them on their lane.
    #[must_use]
    pub fn may_block(self, lane: LaneId) -> bool {
        let groups = group(self.host_lane(COPY_LANE + 1), GROUP_LANES);
        self.host_tasks().contains(lane) || groups.contains(lane)
    }

    /// What a lane is for, as in `D1 kernels 2` or `host copies`.
    ///
    /// # Panics
    /// If there is no such lane.
    #[must_use]
    pub fn name(self, lane: LaneId) -> String {
        let slot = u16::try_from(lane.slot()).expect("lanes have small slots");
        assert!(lane.slot() < self.count(), "there is no {lane:?}");
        if let Some(device) = self.device(lane) {
            return match slot % DEVICE_LANES {
                KERNEL_LANES => format!("{device} copies"),
                lane => format!("{device} kernels {}", lane + 1),
            };
        }
        match slot - self.host_lane(0) {
            lane if lane < HOST_TASK_LANES => format!("host tasks {}", lane + 1),
            lane if lane < COPY_LANE => format!("fences {}", lane - HOST_TASK_LANES + 1),
            COPY_LANE => "host copies".to_owned(),
            lane => format!("collective group {}", lane - COPY_LANE - 1),
        }
    }

    /// The device that a lane belongs to; `None` for those of the host.
    #[must_use]
    pub fn device(self, lane: LaneId) -> Option<DeviceId> {
        let slot = u16::try_from(lane.slot()).expect("lanes have small slots");
        let device = slot / DEVICE_LANES;
        (device < self.devices).then(|| DeviceId::from_index(u64::from(device)))
    }

    /// The device whose lanes may run an instruction; `None` if it is for the host or
    /// for the node.
    #[must_use]
    pub fn device_of(self, target: Target) -> Option<DeviceId> {
        match target {
            Target::Lanes(group) => self.device(group.first()),
            Target::Node => None,
        }
    }

    /// The lanes of all devices, if there are any.
    #[must_use]
    pub fn of_devices(self) -> Option<LaneGroup> {
        (self.devices > 0).then(|| group(0, self.devices * DEVICE_LANES))
    }

    /// Number of devices.
    #[must_use]
    pub fn devices(self) -> usize {
        usize::from(self.devices)
    }

    /// Who runs the copies of fences and what combines partial results, which are host tasks to the
    /// graph.
    #[must_use]
    pub fn fences(self) -> Target {
        Target::Lanes(group(self.host_lane(HOST_TASK_LANES), FENCE_LANES))
    }

    /// Who runs the functions of a collective group, which are host tasks to the graph.
    #[must_use]
    pub fn collective(self, members: CollectiveGroup) -> Target {
        Target::Lanes(group(self.host_lane(COPY_LANE + 1 + members.number()), 1))
    }

    /// Who runs an instruction that needs such a lane; for that of a fence or
    /// collective group, see [`fences`](Self::fences) and [`collective`](Self::collective).
    #[must_use]
    pub fn target(self, lane: LaneKind) -> Target {
        match lane {
            LaneKind::Kernel(device) => Target::Lanes(group(device_lane(device, 0), KERNEL_LANES)),
            LaneKind::Copy { source, target } => {
                Target::Lanes(group(self.copy_lane(source, target), 1))
            }
            LaneKind::HostTask => Target::Lanes(self.host_tasks()),
            LaneKind::Node => Target::Node,
        }
    }

    fn copy_lane(self, source: MemoryId, target: MemoryId) -> u16 {
        match source.device().or(target.device()) {
            Some(device) => device_lane(device, KERNEL_LANES),
            None => self.host_lane(COPY_LANE),
        }
    }

    fn host_tasks(self) -> LaneGroup {
        group(self.host_lane(0), HOST_TASK_LANES)
    }

    fn host_lane(self, lane: u16) -> u16 {
        self.devices * DEVICE_LANES + lane
    }
}

fn device_lane(device: DeviceId, lane: u16) -> u16 {
    u16::try_from(device.index()).expect("device counts are small") * DEVICE_LANES + lane
}

fn group(first: u16, count: u16) -> LaneGroup {
    LaneGroup::new(LaneId::from_slot(first), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(source: MemoryId, target: MemoryId) -> LaneKind {
        LaneKind::Copy { source, target }
    }

    #[test]
    fn lanes_have_names_of_their_own() {
        let layout = LaneLayout::new(2);
        let names: Vec<_> = layout.lanes().map(|lane| layout.name(lane)).collect();
        assert_eq!(names[..4], ["D0 kernels 1", "D0 kernels 2", "D0 copies", "D1 kernels 1"]);
        assert_eq!(names[6..8], ["host tasks 1", "host tasks 2"]);
        assert_eq!(names[10..13], ["fences 1", "fences 2", "host copies"]);
        assert_eq!((names[13].as_str(), names.len()), ("collective group 0", 13 + 128));
        let devices: Vec<_> = layout.lanes().map(|lane| layout.device(lane)).collect();
        let of_two = [0, 0, 0, 1, 1, 1].map(|device| Some(DeviceId::from_index(device)));
        assert_eq!(
            (&devices[..6], &devices[6..]),
            (&of_two[..], &[None; 7 + CollectiveGroup::MOST][..])
        );
    }

    #[test]
    fn kinds_of_work_do_not_share_lanes() {
        let layout = LaneLayout::new(2);
        let device = DeviceId::from_index;
        let memory = |index| MemoryId::of_device(device(index));
        let kinds = [
            LaneKind::Kernel(device(0)),
            copy(memory(0), MemoryId::HOST),
            LaneKind::Kernel(device(1)),
            copy(MemoryId::USER, memory(1)),
            LaneKind::HostTask,
            copy(MemoryId::USER, MemoryId::HOST),
        ];
        let collective = (0..CollectiveGroup::MOST).map(|number| CollectiveGroup::new(number, "g"));
        let collective = collective.map(|group| layout.collective(group));
        let targets = kinds.map(|kind| layout.target(kind)).into_iter().chain([layout.fences()]);
        let groups: Vec<_> = targets
            .chain(collective)
            .map(|target| match target {
                Target::Lanes(group) => group,
                Target::Node => panic!("all of this has lanes"),
            })
            .collect();
        for lane in layout.lanes() {
            let position =
                groups.iter().position(|group| group.contains(lane)).expect("it is used");
            assert_eq!(groups.iter().filter(|group| group.contains(lane)).count(), 1, "{lane:?}");
            assert_eq!(layout.may_block(lane), position == 4 || position > 6, "{lane:?}");
        }
        assert_eq!(
            layout.target(copy(memory(1), memory(0))),
            layout.target(copy(memory(1), MemoryId::HOST)),
            "between devices, the source's lane counts"
        );
        assert_eq!(layout.target(LaneKind::Node), Target::Node);
    }
}
