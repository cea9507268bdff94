//! A task that only a user's word stands for: what generators must find fault
//! with where the word is broken. Owns the program; what is found is the
//! business of the graph crates' tests.

use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferInfo, IndexSpace, Mapper, MapperInput, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskSpec, UserMapper, Work,
};

/// A buffer of 8 elements, and the init epoch and a task over `[0..8]` that
/// writes it through `mapper`, which claims to be disjoint.
///
/// # Panics
/// If the mapper leaves an element unwritten even for the whole index space:
/// the task graph refuses that.
#[must_use]
pub fn write(mapper: fn(&MapperInput) -> Region) -> (Arc<BufferInfo>, Vec<Arc<Task>>) {
    write_of(8, mapper)
}

/// The same with another number of elements and items.
#[must_use]
pub fn write_of(
    elements: usize,
    mapper: fn(&MapperInput) -> Region,
) -> (Arc<BufferInfo>, Vec<Arc<Task>>) {
    let mapper = Mapper::User(UserMapper::disjoint(mapper));
    let all = Box3::from_range([elements]);
    task(all, all, &[(AccessMode::Write, mapper)])
}

/// A buffer of 16 elements with contents, and the init epoch and a task over `[8..16]` that
/// writes the elements of its items and reads, of the same buffer, what `mapper` says.
///
/// # Panics
/// If the mapper names any of the task's elements for the whole index space: the task graph
/// refuses that.
#[must_use]
pub fn read_beside_write(mapper: fn(&MapperInput) -> Region) -> (Arc<BufferInfo>, Vec<Arc<Task>>) {
    let read = (AccessMode::Read, Mapper::User(UserMapper::new(mapper)));
    let write = (AccessMode::Write, Mapper::OneToOne);
    task(Box3::from_range([16]), Box3::from_offset_range([8], [8]), &[read, write])
}

fn task(
    extent: Box3,
    space: Box3,
    accesses: &[(AccessMode, Mapper)],
) -> (Arc<BufferInfo>, Vec<Arc<Task>>) {
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let mut tasks = vec![graph.start()];
    let buffer = graph.create_buffer(NewBuffer {
        name: Some("b".into()),
        dims: 1,
        extent,
        elem_size: 4,
        elem_align: 4,
        host_initialized: accesses.iter().any(|(mode, _)| mode.reads()),
    });
    let accesses = accesses.iter().cloned();
    let accesses = accesses.map(|(mode, mapper)| Access::buffer(buffer.id, mode, mapper));
    let spec = TaskSpec {
        name: "t".into(),
        work: Work::Device(IndexSpace::new(1, space)),
        accesses: accesses.collect(),
        location: None,
    };
    graph.submit(spec, &mut tasks).expect("nothing is wrong with the whole index space");
    (buffer, tasks)
}
