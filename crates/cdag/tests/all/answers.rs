//! What command graphs make of what users' mappers say: each is asked once per chunk, and graphs
//! of different nodes can tell whether they have been told the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, IndexSpace, Mapper, MapperInput, NewBuffer, TaskGraph, TaskGraphConfig,
    TaskSpec, UserMapper, Work,
};

const NODES: usize = 3;

fn extent() -> Box3 {
    Box3::from_range([8 * NODES])
}

/// What node `local` sums up of a program whose second task reads what the first one writes, or
/// nobody, through `mapper`.
fn answers(local: u64, is_written: bool, mapper: &Mapper) -> u64 {
    let mut tasks = TaskGraph::new(TaskGraphConfig::default());
    let config = CommandGraphConfig { nodes: NODES, local: NodeId::from_index(local) };
    let mut commands = CommandGraph::new(config);
    let mut created = vec![tasks.start()];
    let buffer = tasks.create_buffer(NewBuffer {
        name: None,
        dims: 1,
        extent: extent(),
        elem_size: 4,
        elem_align: 4,
        host_initialized: true,
    });
    commands.register_buffer(&buffer);
    let mut submit = |mode, mapper: Mapper| {
        let accesses = vec![Access::buffer(buffer.id, mode, mapper)];
        let work = Work::Device(IndexSpace::new(1, extent()));
        let spec = TaskSpec { name: "step".into(), work, accesses, location: None };
        tasks.submit(spec, &mut created).expect("the program is valid");
    };
    if is_written {
        submit(AccessMode::Write, Mapper::OneToOne);
    }
    submit(AccessMode::Read, mapper.clone());
    let (mut out, mut diagnostics) = (vec![], vec![]);
    created.iter().for_each(|task| commands.schedule(task, &mut out, &mut diagnostics));
    commands.answers()
}

/// Reads from each chunk to the end, and counts how often it is asked for a chunk's image.
fn to_the_end(asked: &Arc<AtomicU64>, end: u64) -> Mapper {
    let asked = asked.clone();
    Mapper::User(UserMapper::new(move |input: &MapperInput| {
        asked.fetch_add(u64::from(input.chunk != input.global), Ordering::Relaxed);
        Region::from(Box3::new(input.chunk.min(), [end, 1, 1]))
    }))
}

#[test]
fn a_mapper_is_asked_once_per_chunk_and_not_for_others_if_nobody_sends_anything() {
    for local in 0..NODES as u64 {
        for (is_written, times) in [(true, NODES as u64), (false, 1)] {
            let asked = Arc::<AtomicU64>::default();
            let mapper = to_the_end(&asked, extent().max()[0]);
            answers(local, is_written, &mapper);
            assert_eq!(asked.load(Ordering::Relaxed), times, "on N{local}, {is_written}");
        }
    }
}

#[test]
fn all_nodes_sum_up_the_same_unless_they_are_told_something_else() {
    let asked = Arc::<AtomicU64>::default();
    let end = extent().max()[0];
    let of = |local, end| answers(local, true, &to_the_end(&asked, end));
    let sums: Vec<_> = (0..NODES as u64).map(|local| of(local, end)).collect();
    assert!(sums.iter().all(|&sum| sum == sums[0]), "{sums:?}");
    assert_ne!(of(1, end - 1), sums[0]);
    assert_eq!(answers(1, true, &Mapper::All), answers(2, true, &Mapper::OneToOne));
}
