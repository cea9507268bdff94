//! The list of cases: every layer, on programs that are the same in every run. Knows
//! nothing of how they are counted.

use std::hint::black_box;

use celerity_benches::endless::{Program, Running};
use celerity_benches::pipeline::{Build, Depth, Pipeline, Shape};
use celerity_benches::region_cases::RegionCase;
use celerity_benches::topologies::Sink;
use celerity_benches::topologies::Topology;
use celerity_regions::{Box3, Region, RegionMap};
use celerity_tdag::{Access, AccessMode, Mapper, Side, Windows};

use crate::case::Case;
use crate::{checker, engine};

/// All cases, in the order of the table.
pub(crate) fn all() -> Vec<Case> {
    let mut all = whole_programs();
    all.extend(steady_states());
    all.extend(engine::cases());
    all.extend(checker::cases());
    all.extend(regions());
    all.extend(shrinking_spaces());
    all.extend(many_boxes());
    all.extend(many_allocations());
    all
}

/// The original's topologies from the first task to the last: fresh graphs, every task, the
/// shutdown epoch, and the end of it all.
fn whole_programs() -> Vec<Case> {
    use Depth::{Commands, Instructions, Tasks};
    let indirect = |shape| Shape { direct: false, ..shape };
    let groups = [
        ("tasks", Shape::new(Tasks, 1, 1)),
        ("commands on 1 node", Shape::new(Commands, 1, 1)),
        ("commands on 4 nodes", Shape::new(Commands, 4, 1)),
        ("commands on 16 nodes", Shape::new(Commands, 16, 1)),
        ("instructions on 2 nodes", Shape::new(Instructions, 2, 1)),
        ("instructions on 1 x 16", Shape::new(Instructions, 1, 16)),
        ("instructions on 4 x 4", Shape::new(Instructions, 4, 4)),
        ("instructions on 4 x 4, no direct copies", indirect(Shape::new(Instructions, 4, 4))),
    ];
    let immediate = groups.into_iter().flat_map(|(group, shape)| {
        Topology::ALL.map(|topology| {
            Case::new(format!("{group}/{}", topology.name()), move || {
                move || build(topology, Pipeline::new(shape))
            })
        })
    });
    let shape = Shape::new(Instructions, 4, 4);
    let ahead = Topology::ALL.map(|topology| {
        Case::new(format!("lookahead on 4 x 4/{}", topology.name()), move || {
            move || build(topology, Pipeline::new(shape).looking_ahead())
        })
    });
    immediate.chain(ahead).collect()
}

fn build(topology: Topology, mut graphs: Pipeline) {
    topology.submit(&mut graphs);
    black_box(graphs.finish());
}

/// Steps before the first that is counted, with those of the warm-up, and steps counted:
/// whole multiples of what lies between two horizons, and of all that programs rotate.
const WARM_UP: u64 = 256;
const STEPS: u64 = 128;

/// Programs that have been running for long, on a node in the middle.
fn steady_states() -> Vec<Case> {
    let instructions = |nodes, devices| Shape::new(Depth::Instructions, nodes, devices);
    let shapes = [
        ("4 x 1", instructions(4, 1)),
        ("4 x 4", instructions(4, 4)),
        ("64 x 1", instructions(64, 1)),
        ("512 x 1", instructions(512, 1)),
    ];
    let programs = [
        Program::WaveSim,
        Program::Jacobi,
        Program::Chain,
        Program::Stencil,
        Program::AllGather,
        Program::Rotation { spaces: 8 },
        Program::Rotation { spaces: 64 },
    ];
    let cases = shapes.into_iter().flat_map(|(on, shape)| {
        let shape = shape.in_the_middle();
        programs.map(|program| {
            Case::new(format!("steady state on {on}/{}", program.name()), move || {
                let pipeline = Pipeline::new(shape).looking_ahead().forgetting();
                let mut running = Running::new(program, pipeline);
                running.advance(WARM_UP);
                move || running.advance(STEPS)
            })
        })
    });
    cases.collect()
}

/// The large region cases: the small ones are told by the others.
fn regions() -> Vec<Case> {
    let large = RegionCase::all()
        .into_iter()
        .filter(|case| case.function.contains("large") && case.function.ends_with("native"));
    let case = |case: RegionCase| {
        Case::new(format!("regions: {}/{}", case.group, case.function), move || {
            let case = case.clone();
            move || drop(black_box(case.compute()))
        })
    };
    large.map(case).collect()
}

/// Who wrote what of a matrix that is factorised: each task writes a square, or of nodes that share it a part of
/// one, smaller by a row and a column than that before it. Every fourth one a horizon is applied.
fn shrinking_spaces() -> Vec<Case> {
    let case = |nodes: u64| {
        Case::new(format!("region map: shrinking spaces/of {nodes} parts"), move || {
            move || {
                let square = |step| Box3::new([step, step, 0], [FACTORISED, FACTORISED, 1]);
                let mut map = RegionMap::new(square(0), 0);
                for step in 0..FACTORISED {
                    let rows = (FACTORISED - step).div_ceil(nodes);
                    for node in 0..nodes {
                        let (first, end) = (step + node * rows, step + (node + 1) * rows);
                        let part = Box3::new([first, step, 0], [end, FACTORISED, 1]);
                        map.update_box(&part, step * nodes + node);
                    }
                    if step % 4 == 0 {
                        let horizon = (step.saturating_sub(4)) * nodes;
                        map.compact(|writer| *writer.max(&horizon));
                    }
                }
                black_box(map.len());
            }
        })
    };
    [1, 4].map(case).into()
}

/// Rows of the matrix.
const FACTORISED: u64 = 400;

/// Regions of many boxes over maps of many entries: every second element of a line, first of its upper and then of its lower
/// half; and what lies below the diagonal of a matrix that was [factorised](shrinking_spaces), cut by rows where the map is
/// cut by columns.
fn many_boxes() -> Vec<Case> {
    let sliced = Case::new("region map: many boxes/every second element".to_owned(), || {
        let half = |from: u64| {
            let single = |at: u64| Box3::new([at, 0, 0], [at + 1, 1, 1]);
            Region::from_boxes((from..from + 4000).step_by(2).map(single))
        };
        let (upper, lower) = (half(4000), half(0));
        move || {
            let mut map = RegionMap::new(Box3::new([0; 3], [8000, 1, 1]), 0);
            map.update(&upper, 1);
            map.update(&lower, 2);
            black_box(map.len());
        }
    });
    let triangle = Case::new("region map: many boxes/below a diagonal".to_owned(), || {
        let mut map = RegionMap::new(Box3::new([0; 3], [FACTORISED, FACTORISED, 1]), 0);
        for step in 0..FACTORISED {
            let square = Box3::new([step, step, 0], [FACTORISED, FACTORISED, 1]);
            map.update_box(&square, step);
        }
        let row = |y: u64| Box3::new([y, 0, 0], [y + 1, y, 1]);
        let below = Region::from_boxes((1..FACTORISED).map(row));
        move || {
            let mut map = map.clone();
            map.modify(&below, |step| step + FACTORISED);
            map.update(&below, 0);
            black_box(map.len());
        }
    });
    vec![sliced, triangle]
}

/// A buffer in patches, each of which a task writes and another updates, so that on two devices no two of what they touch lie in
/// one piece: as many allocations in each memory as there are patches.
fn many_allocations() -> Vec<Case> {
    let patches = |pipeline: &mut Pipeline| {
        let plane = pipeline.buffer(2, Box3::from_range([PATCHES * SIDE; 2]), false);
        for mode in [AccessMode::Write, AccessMode::ReadWrite] {
            for (y, x) in (0..PATCHES).flat_map(|y| (0..PATCHES).map(move |x| (y, x))) {
                let along = |from: u8, nth: usize| {
                    let first = (nth * SIDE) as i64;
                    Side::Windows(Windows { first, ..Windows::along(from) })
                };
                let mapper = Mapper::per_dimension(&[along(0, y), along(1, x)]);
                let access = Access::buffer(plane, mode, mapper);
                pipeline.task(2, Box3::from_range([SIDE; 2]), vec![access]);
            }
        }
    };
    let shape = |nodes| Shape::new(Depth::Instructions, nodes, 2);
    let case = |name: &str, shape: Shape, looks_ahead: bool| {
        Case::new(format!("many allocations: {name}"), move || {
            move || {
                let pipeline = Pipeline::new(shape).forgetting();
                let mut pipeline = if looks_ahead { pipeline.looking_ahead() } else { pipeline };
                patches(&mut pipeline);
                black_box(pipeline.finish());
            }
        })
    };
    vec![
        case("patches on 1 x 2", shape(1), false),
        case("patches on 1 x 2, lookahead", shape(1), true),
        case("patches on 2 x 2, lookahead", shape(2), true),
    ]
}

/// Patches along each side of the plane, and elements along each side of a patch.
const PATCHES: usize = 32;
const SIDE: usize = 10;
