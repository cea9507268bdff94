//! Random programs against a naive twin, which knows of every element on which node it was written,
//! and whether all have read it. Forwards must be of what their producer has written, and operations
//! must bring each node what it reads, from where it is, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_cpd::{Chunks, Collective, Collectives, NodeId};
use celerity_regions::{Box3, Coord3, Region};
use celerity_tdag::{
    AccessMode, BufferAccess, BufferId, IndexSpace, Mapper, MapperInput, NeighborhoodShape, Share,
    Side, Split, Task, TaskId, Windows, Work,
};
use proptest::prelude::*;

use crate::harness::{Entered, Program, forwarded};

/// Elements along each dimension of buffers and index spaces.
const MOST: u64 = 6;

/// What is known of one element.
#[derive(Clone, Debug)]
struct Element {
    writer: TaskId,
    /// Nothing if everybody has written it.
    owner: Option<usize>,
    /// Whether one task has read it on all nodes.
    is_everywhere: bool,
}

#[derive(Debug, Default)]
struct Twin(BTreeMap<(BufferId, Coord3), Element>);

fn elements(region: &Region) -> impl Iterator<Item = Coord3> + '_ {
    region.boxes().iter().flat_map(|part| {
        let (min, max) = part.corners();
        (min[0]..max[0]).flat_map(move |z| {
            (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |x| [z, y, x]))
        })
    })
}

/// What a node touches of a buffer in some mode.
fn touched(
    task: &Task,
    extent: Box3,
    buffer: BufferId,
    chunk: Box3,
    does: fn(AccessMode) -> bool,
) -> Region {
    let global = task.work.extent();
    let accesses = task.buffer_accesses();
    let mut all = Region::empty();
    for access in accesses.filter(|access| access.buffer == buffer && does(access.mode)) {
        all.union_with(&access.mapper.map(&MapperInput { chunk, global, buffer: extent }));
    }
    all
}

impl Twin {
    /// A task reads on every node what it needs there, and writes.
    fn run(&mut self, task: &Task, extents: &[(BufferId, Box3)], nodes: usize) {
        let chunks = Chunks::of(&task.work, nodes);
        for &buffer in extents {
            self.read_everywhere(task, buffer, chunks.len() == nodes);
        }
        for &(buffer, extent) in extents {
            for node in 0..nodes {
                let writes = touched(task, extent, buffer, chunks.get(node), AccessMode::writes);
                for at in elements(&writes) {
                    let is_alone = !matches!(task.work, Work::Combine { .. });
                    let owner = is_alone.then_some(node);
                    let element = Element { writer: task.id, owner, is_everywhere: false };
                    self.0.insert((buffer, at), element);
                }
            }
        }
    }

    /// Notes what a task that runs on all nodes reads there through constant mappers.
    fn read_everywhere(&mut self, task: &Task, (buffer, extent): (BufferId, Box3), runs: bool) {
        let is_constant = |access: &&BufferAccess| {
            let everywhere = matches!(task.work, Work::Fence) || access.mapper.is_constant();
            access.buffer == buffer && access.mode.reads() && everywhere
        };
        let global = task.work.extent();
        for access in task.buffer_accesses().filter(|access| runs && is_constant(access)) {
            let input = MapperInput { chunk: global, global, buffer: extent };
            for at in elements(&access.mapper.map(&input)) {
                if let Some(element) = self.0.get_mut(&(buffer, at)) {
                    element.is_everywhere = true;
                }
            }
        }
    }

    /// What is wrong with a forward in front of a consumer.
    fn check_forward(&self, forward: &Task, consumer: &Task, extent: Box3) -> Result<(), String> {
        let (buffer, region) = forwarded(forward);
        let ends = forward.forward.as_ref().ok_or("no ends")?;
        if ends.consumer.task != consumer.id || ends.consumer.work != consumer.work {
            return Err(format!("{forward} is not for {consumer}"));
        }
        let all = touched(consumer, extent, buffer, consumer.work.extent(), AccessMode::reads);
        if !all.contains(region) {
            return Err(format!("{consumer} does not read all of {region}"));
        }
        let written = |at| self.0.get(&(buffer, at)).map(|element| element.writer);
        match elements(region).find(|&at| written(at) != Some(ends.producer.task)) {
            Some(at) => Err(format!("{at:?} is not what {} has written", ends.producer.task)),
            None => Ok(()),
        }
    }

    /// What is wrong with an operation in front of a consumer. Whether it moves anything that some
    /// task has not read on all nodes already.
    fn check_collective(
        &self,
        collective: &Collective,
        (buffer, extent): (BufferId, Box3),
        consumer: &Task,
        nodes: usize,
    ) -> Result<bool, String> {
        let chunks = Chunks::of(&consumer.work, nodes);
        let mut brings = false;
        for node in 0..nodes {
            let id = NodeId::from_index(node as u64);
            let reads = touched(consumer, extent, buffer, chunks.get(node), AccessMode::reads);
            let (needed, part) = (
                reads.intersection(&collective.region),
                collective.to.part(id, &collective.members, &collective.region),
            );
            // The root of a broadcast among some nodes need not read.
            let is_root = needed.is_empty() && *collective.provided_by(id) == collective.region;
            if *part != needed && !is_root {
                return Err(format!("{id} gets {part}, and needs {needed}"));
            }
            let has_or_gets = !collective.provided_by(id).is_empty() || !needed.is_empty();
            let stays_out = !collective.members.contains(id);
            if stays_out == has_or_gets && (stays_out || !collective.members.are_all()) {
                return Err(format!("{id} is no member, or one for nothing"));
            }
            for at in elements(&collective.region) {
                let element = &self.0[&(buffer, at)];
                let provides = collective.provided_by(id).contains_point(at);
                if provides != (element.owner == Some(node)) {
                    return Err(format!("{at:?} of {:?} and {id}: {provides}", element.owner));
                }
                brings |= !element.is_everywhere;
            }
        }
        Ok(brings)
    }
}

fn any_box() -> impl Strategy<Value = Box3> {
    let side = || (0..MOST, 1..=MOST);
    (1_u8..=3, [side(), side(), side()]).prop_map(|(dims, sides)| {
        let mut extent = [(0, 1); 3];
        for (dim, (min, size)) in sides.into_iter().enumerate().take(usize::from(dims)) {
            extent[dim] = (min.min(MOST - 1), (min + size).min(MOST).max(min + 1));
        }
        Box3::new(extent.map(|(min, _)| min), extent.map(|(_, max)| max))
    })
}

fn any_space() -> impl Strategy<Value = IndexSpace> {
    let split = prop_oneof![
        3 => Just(Split::OneDimensional),
        1 => Just(Split::Tiled),
        2 => (0_u8..3).prop_map(Split::Along),
    ];
    let extent = prop_oneof![
        3 => (1..=3_usize).prop_map(whole),
        2 => any_box(),
    ];
    (extent, split, prop_oneof![4 => Just(1), 1 => 2_u64..4], 1..3_u32).prop_map(
        |(extent, split, granularity, oversubscription)| {
            let space = IndexSpace::new(extent.effective_dims().max(1) as u8, extent);
            IndexSpace { split, granularity: [granularity; 3], oversubscription, ..space }
        },
    )
}

/// All of so many dimensions.
fn whole(dims: usize) -> Box3 {
    Box3::new([0; 3], std::array::from_fn(|dim| if dim < dims { MOST } else { 1 }))
}

fn any_work() -> impl Strategy<Value = Work> {
    prop_oneof![
        6 => any_space().prop_map(Work::Device),
        1 => any_space().prop_map(|space| Work::HostSplit { space, group: None }),
        2 => (0_u64..5).prop_map(|node| Work::HostOnce { node }),
        1 => Just(Work::Fence),
        1 => Just(Work::Combine { operator: 0 }),
    ]
}

fn any_side() -> impl Strategy<Value = Side> {
    prop_oneof![
        Just(Side::All),
        (0_u8..3).prop_map(Side::along),
        (0_u8..3, 1_u64..3, 1_u64..3).prop_map(|(from, stride, width)| {
            Side::Windows(Windows { from, stride, first: 0, width, clamped: true })
        }),
        (0_u8..3).prop_map(|from| Side::Share(Share { from, granularity: 1 })),
    ]
}

fn any_mapper() -> impl Strategy<Value = Mapper> {
    let shape =
        prop_oneof![Just(NeighborhoodShape::BoundingBox), Just(NeighborhoodShape::AlongAxes)];
    prop_oneof![
        5 => Just(Mapper::OneToOne),
        4 => Just(Mapper::All),
        1 => (any_box(), any_box()).prop_map(|boxes| {
            Mapper::fixed(Region::from_boxes(<[Box3; 2]>::from(boxes)))
        }),
        1 => (0_u8..3).prop_map(|dim| Mapper::Slice { dim }),
        1 => ([0_usize..2, 0..2, 0..2], shape)
            .prop_map(|(border, shape)| Mapper::neighborhood_shaped(border, shape)),
        2 => Just(Mapper::per_dimension(&[Side::along(1), Side::along(0)])),
        2 => proptest::collection::vec(any_side(), 1..=3)
            .prop_map(|sides| Mapper::per_dimension(&sides)),
    ]
}

fn any_task() -> impl Strategy<Value = (Work, Vec<(bool, AccessMode, Mapper)>)> {
    let mode = prop_oneof![
        4 => Just(AccessMode::Read),
        3 => Just(AccessMode::Write),
        1 => Just(AccessMode::ReadWrite),
        1 => Just(AccessMode::Update),
    ];
    let access = (any::<bool>(), mode, any_mapper());
    (any_work(), proptest::collection::vec(access, 1..=3))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn forwards_and_operations_are_what_element_by_element_is_needed(
        nodes in 2_usize..=5,
        dims in 1_usize..=3,
        is_paper in any::<bool>(),
        tasks in proptest::collection::vec(any_task(), 1..16),
    ) {
        let mode = if is_paper { Collectives::Paper } else { Collectives::Always };
        let mut program = Program::new(mode, nodes);
        let extent = whole(dims);
        let buffers = [0, 1].map(|_| (program.buffer_of(extent, dims as u8), extent));
        let mut twin = Twin::default();
        for (work, accesses) in tasks {
            let accesses = accesses.into_iter().map(|(second, mode, mapper)| {
                BufferAccess { buffer: buffers[usize::from(second)].0, mode, mapper }
            });
            // What is against the rules does not enter the graph.
            let Ok(Entered { forwards, task }) = program.try_run(work, accesses.collect()) else {
                continue;
            };
            for forward in &forwards {
                let verdict = twin.check_forward(forward, &task, extent);
                prop_assert_eq!(verdict, Ok(()));
                let Some(found) = program.classify(forward) else { continue };
                let buffer = (forwarded(forward).0, extent);
                let brings = twin.check_collective(&found, buffer, &task, nodes);
                prop_assert!(brings.is_ok(), "{:?} of {}", brings, found.pattern());
                prop_assert!(is_paper || brings == Ok(true), "{:?} moves nothing", found);
            }
            twin.run(&task, &buffers, nodes);
        }
        let config = celerity_tdag::TaskGraphConfig::default();
        prop_assert_eq!(celerity_tdag::verify(&program.tasks, &config), Ok(()));
    }
}

/// How often random programs come to each operation: a test that never sees one proves nothing.
#[test]
fn random_programs_come_to_every_operation() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::new();
    for _ in 0..400 {
        let tasks = proptest::collection::vec(any_task(), 1..16);
        let tasks = tasks.new_tree(&mut runner).expect("a program").current();
        let mut program = Program::new(Collectives::Always, 3);
        let buffer = program.buffer_of(whole(2), 2);
        for (work, accesses) in tasks {
            let accesses =
                accesses.into_iter().map(|(_, mode, mapper)| BufferAccess { buffer, mode, mapper });
            let Ok(entered) = program.try_run(work, accesses.collect()) else { continue };
            for forward in &entered.forwards {
                let found: Option<Arc<Collective>> = program.classify(forward).map(Arc::new);
                *seen.entry(found.map(|one| one.pattern())).or_insert(0_u32) += 1;
            }
        }
    }
    assert_eq!(seen.len(), 6, "five operations, and forwards that are none: {seen:?}");
}
