//! Oversubscription where chunks would be too small to be worth a launch each: a device's share is
//! cut into fewer, into one in the end.

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, InstructionKind, Schedule};
use celerity_regions::Box3;
use celerity_tdag::{IndexSpace, Split, TaskGraph, TaskGraphConfig, TaskSpec, Work};

/// The chunks of a kernel over `extent` that asks for four chunks per device, by device and in
/// order, if none may have less than `least` items.
fn chunks(extent: Box3, split: Split, devices: usize, least: u64) -> Vec<(u64, Box3)> {
    let space = IndexSpace { split, oversubscription: 4, ..IndexSpace::new(3, extent) };
    let (name, work, accesses) = ("step".into(), Work::Device(space), Vec::new());
    let mut tasks = Vec::new();
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    tasks.push(graph.start());
    graph.submit(TaskSpec { name, work, accesses, location: None }, &mut tasks).unwrap();

    let local = NodeId::from_index(0);
    let mut commands = CommandGraph::new(CommandGraphConfig { nodes: 1, local });
    let graph = InstructionGraph::new(InstructionGraphConfig { devices });
    let mut graph = graph.with_least_chunk(least);
    let mut schedule = Schedule::default();
    for task in &tasks {
        let mut batch = Vec::new();
        commands.schedule(task, &mut batch, &mut Vec::new());
        for command in &batch {
            graph.schedule(command, task, &mut schedule, &mut Vec::new());
        }
    }
    let kernels = schedule.instructions.iter().filter_map(|one| match &one.kind {
        InstructionKind::Kernel { device, chunk, .. } => Some((device.index(), *chunk)),
        _ => None,
    });
    kernels.collect()
}

#[test]
fn a_share_is_cut_into_as_many_chunks_as_have_enough_items() {
    let shapes = [
        (Box3::from_range([96]), Split::OneDimensional),
        (Box3::from_range([96, 1]), Split::Tiled),
        (Box3::from_range([1, 1, 96]), Split::Along(2)),
        (Box3::from_range([48, 2]), Split::OneDimensional),
    ];
    for (extent, split) in shapes {
        for devices in [1, 2, 3] {
            let share = 96 / devices as u64;
            for (least, expected) in
                [(0, 4), (1, 4), (share / 4, 4), (share / 3, 3), (share / 2, 2), (share, 1)]
            {
                let found = chunks(extent, split, devices, least);
                let context = format!("{extent} {split:?} on {devices} of at least {least}");
                for device in 0..devices as u64 {
                    let of_device: Vec<_> = found.iter().filter(|one| one.0 == device).collect();
                    assert_eq!(of_device.len(), expected, "{context}");
                    let items: u64 = of_device.iter().map(|one| one.1.volume()).sum();
                    assert_eq!(items, share, "{context}");
                }
            }
        }
    }
}

#[test]
fn less_than_one_chunk_is_one() {
    for least in [97, u64::MAX] {
        let extent = Box3::from_range([96]);
        assert_eq!(chunks(extent, Split::OneDimensional, 1, least), [(0, extent)]);
    }
}
