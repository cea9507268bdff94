//! What is recorded of a task graph survives, and what could not be in one is refused.
#![cfg(feature = "serde")]

use std::fmt::Debug;

use celerity_codec::{DecodeError, RecordingKind, decode, encode};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferId, BufferInfo, CollectiveGroup, Conflicts, Dependencies,
    DependencyKind, IndexSpace, Mapper, NeighborhoodShape, SourceLocation, Split, Task, TaskId,
    UserMapper, Work,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const KIND: RecordingKind = RecordingKind::TaskGraph;

fn assert_survives<T: Serialize + DeserializeOwned + Debug>(value: &T) {
    let decoded: T = decode(KIND, &encode(KIND, value).unwrap()).unwrap();
    assert_eq!(format!("{decoded:?}"), format!("{value:?}"));
}

/// Asserts that a value that should not be is refused with these words.
fn assert_refused<T: Serialize + DeserializeOwned + Debug>(value: &T, words: &str) {
    let error = decode::<T>(KIND, &encode(KIND, value).unwrap()).unwrap_err();
    assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

fn buffer() -> BufferInfo {
    BufferInfo {
        id: BufferId::from_index(4),
        name: "pressure".into(),
        dims: 2,
        extent: Box3::from_range([8, 8]),
        elem_size: 12,
        elem_align: 4,
        host_initialized: true,
    }
}

fn space() -> IndexSpace {
    IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range([8, 8])) }
}

fn access(buffer: u64, mode: AccessMode, mapper: Mapper) -> Access {
    Access::buffer(BufferId::from_index(buffer), mode, mapper)
}

fn task() -> Task {
    let corners = [Box3::from_range([1, 1]), Box3::from_offset_range([7, 7], [1, 1])];
    let along = NeighborhoodShape::AlongAxes;
    let mut dependencies = Dependencies::default();
    dependencies.add(TaskId::from_index(3), DependencyKind::True);
    dependencies.add(TaskId::from_index(5), DependencyKind::Anti);
    Task {
        id: TaskId::from_index(9),
        name: "step".into(),
        work: Work::Device(space()),
        accesses: [
            access(0, AccessMode::ReadWrite, Mapper::OneToOne),
            access(1, AccessMode::Read, Mapper::fixed(Region::from_boxes(corners))),
            access(1, AccessMode::Read, Mapper::neighborhood_shaped([1, 2], along)),
            access(2, AccessMode::Read, Mapper::Slice { dim: 1 }),
            access(3, AccessMode::Read, Mapper::All),
            access(4, AccessMode::Update, Mapper::Slice { dim: 0 }),
        ]
        .into(),
        dependencies,
        conflicts: Conflicts::default(),
        location: Some(SourceLocation { file: "src/main.rs".into(), line: 40 }),
        forward: None,
    }
}

#[test]
fn tasks_and_buffers_survive() {
    assert_survives(&buffer());
    assert_survives(&task());
    let collective = |number| Work::HostSplit {
        space: space(),
        group: Some(CollectiveGroup::new(number, "files")),
    };
    let split = Work::HostSplit { space: space(), group: None };
    let once = Work::HostOnce { node: 3 };
    for work in [once, split, collective(0), collective(127), Work::Fence, Work::Horizon] {
        assert_survives(&Task { work, location: None, ..task() });
    }
}

#[test]
fn buffers_that_cannot_be_are_refused() {
    assert_refused(&BufferInfo { dims: 4, ..buffer() }, "B4 has 4 dimensions");
    assert_refused(&BufferInfo { dims: 1, ..buffer() }, "B4 has 1 dimensions");
    let extent = Box3::from_offset_range([1, 0], [4, 4]);
    assert_refused(&BufferInfo { extent, ..buffer() }, "does not begin at the origin");
    assert_refused(&BufferInfo { elem_size: 0, ..buffer() }, "elements of 0 bytes");
    for elem_align in [0, 3, 12] {
        assert_refused(&BufferInfo { elem_align, ..buffer() }, "aligned to");
    }
}

#[test]
fn index_spaces_that_cannot_be_are_refused() {
    assert_refused(&IndexSpace { dims: 9, ..space() }, "9 dimensions");
    assert_refused(&IndexSpace { dims: 1, ..space() }, "1 dimension and the extent");
    assert_refused(&IndexSpace { granularity: [1, 0, 1], ..space() }, "granularity [1, 0, 1]");
    assert_refused(&IndexSpace { oversubscription: 0, ..space() }, "no chunks per device");
    assert_refused(&IndexSpace { split: Split::Along(3), ..space() }, "along dimension 3");
}

#[test]
fn tasks_that_cannot_be_are_refused() {
    let id = TaskId::from_index(5);
    assert_refused(&Task { id, ..task() }, "T5 waits for T5, which is not older");
    let empty = IndexSpace::new(1, Box3::EMPTY);
    assert_refused(&Task { work: Work::Device(empty), ..task() }, "T9 has no items");
    let work = Work::HostSplit { space: empty, group: None };
    assert_refused(&Task { work, ..task() }, "T9 has no items");
    let twice = [AccessMode::Read, AccessMode::Write].map(|mode| access(0, mode, Mapper::OneToOne));
    assert_refused(&Task { accesses: twice.clone().into(), ..task() }, "T9 writes B0");
    let [read, write] = twice;
    assert_refused(&Task { accesses: [write, read].into(), ..task() }, "T9 writes B0");
    assert_refused(&Mapper::Slice { dim: 3 }, "along dimension 3");
}

#[test]
fn groups_that_cannot_be_are_refused() {
    // What is recorded is one more than its number.
    let group_of =
        |ordinal: u16| decode::<CollectiveGroup>(KIND, &encode(KIND, &(ordinal, 7_u32)).unwrap());
    assert_eq!(group_of(1).unwrap().to_string(), "G0");
    assert_eq!(group_of(128).unwrap().to_string(), "G127");
    assert!(group_of(129).unwrap_err().to_string().contains("no collective group 128"));
    assert!(group_of(0).is_err(), "it would stand for no group");
}

#[test]
fn two_edges_to_one_task_are_refused() {
    let edge = (TaskId::from_index(2), DependencyKind::True);
    let bytes = encode(KIND, &vec![edge, edge]).unwrap();
    let error = decode::<Dependencies<TaskId>>(KIND, &bytes).unwrap_err();
    assert!(error.to_string().contains("two edges lead to T2"), "{error}");
    assert!(decode::<Dependencies<TaskId>>(KIND, &encode(KIND, &vec![edge]).unwrap()).is_ok());
}

#[test]
fn user_mappers_refuse_to_be_recorded() {
    let mapper = UserMapper::new(|input: &celerity_tdag::MapperInput| input.chunk.into());
    let error = encode(KIND, &access(0, AccessMode::Read, Mapper::User(mapper))).unwrap_err();
    assert!(error.to_string().contains("user mappers cannot be recorded"), "{error}");
    // Nor is there a number that stands for one: five mappers can be recorded.
    for variant in 5u32..8 {
        assert!(decode::<Mapper>(KIND, &encode(KIND, &variant).unwrap()).is_err());
    }
}
