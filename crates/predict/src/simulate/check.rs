//! Whether schedules are those of one cluster, and name what there is: asked before anything happens, so
//! that nothing fails later. Pure functions.

use std::collections::HashSet;

use crate::error::PredictError;
use crate::pace::Pace;
use crate::schedule::{Action, NodeSchedule, ScheduledStep};

/// The schedules are those of all nodes of one cluster.
pub(super) fn check(schedules: &[NodeSchedule], paces: &[Pace]) -> Result<(), PredictError> {
    let devices = schedules.first().map_or(0, |schedule| schedule.devices);
    for (node, schedule) in schedules.iter().enumerate() {
        let mismatch = |what| PredictError::Mismatch { path: schedule.path.clone(), what };
        if (schedule.node, schedule.nodes) != (node, schedules.len()) {
            let (found, of, all) = (schedule.node, schedule.nodes, schedules.len());
            let what = format!("this is N{found} of {of}, where N{node} of {all} is expected");
            return Err(mismatch(what));
        }
        if schedule.devices != devices {
            let found = schedule.devices;
            return Err(mismatch(format!("this node has {found} devices, and N0 has {devices}")));
        }
        if paces.get(node).is_none_or(|pace| pace.scheduling.len() != schedule.tasks.len()) {
            return Err(mismatch("the pace that came with it is that of other tasks".to_owned()));
        }
        check_targets(schedule).map_err(mismatch)?;
    }
    Ok(())
}

/// Devices, tasks and nodes that are named exist.
fn check_targets(schedule: &NodeSchedule) -> Result<(), String> {
    let tasks: HashSet<_> = schedule.tasks.iter().map(|task| task.id).collect();
    let memories = schedule.devices as u64 + 2;
    for ScheduledStep { id, action, line, .. } in &schedule.steps {
        let absent =
            |what: &str| Err(format!("I{id} in line {line} names {what} that is not there"));
        match action {
            Action::Run { device: Some(device), .. } if *device >= schedule.devices => {
                return absent("a device");
            }
            Action::Run { task, .. } if !tasks.contains(task) => return absent("a task"),
            Action::Send { to, .. } if *to >= schedule.nodes || *to == schedule.node => {
                return absent("another node");
            }
            Action::Copy { from, to, .. } if *from >= memories || *to >= memories => {
                return absent("a memory");
            }
            _ => {}
        }
    }
    Ok(())
}
