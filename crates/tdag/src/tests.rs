//! Unit tests of declaration, dataflow, horizons and epochs on small programs.

use std::sync::Arc;

use celerity_regions::{Box3, Region};

use crate::*;

/// A graph with buffers `a` and `b` of 8 × 8 elements, and what it has emitted.
struct Fixture {
    graph: TaskGraph,
    out: Vec<Arc<Task>>,
    a: BufferId,
    b: BufferId,
}

const EXTENT: [usize; 2] = [8, 8];

impl Fixture {
    fn new() -> Self {
        Self::with(TaskGraphConfig::default())
    }

    fn with(config: TaskGraphConfig) -> Self {
        let mut graph = TaskGraph::new(config);
        let out = vec![graph.start()];
        let (a, b) = (graph.create_buffer(buffer("a")).id, graph.create_buffer(buffer("b")).id);
        Self { graph, out, a, b }
    }

    fn declare(&self, work: Work, accesses: Vec<Access>) -> Result<Declared, DeclareError> {
        let location = Some(SourceLocation { file: "user.rs".into(), line: 7 });
        self.graph.declare(TaskSpec { name: "t".into(), work, accesses, location })
    }

    fn submit(&mut self, range: [usize; 2], accesses: Vec<Access>) -> TaskId {
        self.submit_over(Box3::from_range(range), accesses)
    }

    fn submit_over(&mut self, space: Box3, accesses: Vec<Access>) -> TaskId {
        let declared = self.declare(over(space), accesses).expect("a lawful task");
        self.graph.commit(declared, &mut self.out)
    }

    fn dependency(&self, of: TaskId, on: TaskId) -> Option<DependencyKind> {
        let task = self.out.iter().find(|task| task.id == of).expect("an emitted task");
        task.dependencies.kind_of(on)
    }

    fn horizons(&self) -> Vec<TaskId> {
        let is_horizon = |task: &&Arc<Task>| task.work == Work::Horizon;
        self.out.iter().filter(is_horizon).map(|task| task.id).collect()
    }
}

fn buffer(name: &str) -> NewBuffer {
    NewBuffer {
        name: Some(name.into()),
        dims: 2,
        extent: Box3::from_range(EXTENT),
        elem_size: 4,
        elem_align: 4,
        host_initialized: false,
    }
}

fn device(range: [usize; 2]) -> Work {
    over(Box3::from_range(range))
}

fn over(space: Box3) -> Work {
    Work::Device(IndexSpace::new(2, space))
}

/// Rows of a buffer.
fn rows(min: u64, max: u64) -> Box3 {
    Box3::new([min, 0, 0], [max, 8, 1])
}

fn read(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::Read, mapper)
}

fn write(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::Write, mapper)
}

#[test]
fn disjoint_writes_do_not_depend_on_each_other() {
    let mut f = Fixture::new();
    let top = f.submit([4, 8], vec![write(f.a, Mapper::OneToOne)]);
    let all = f.submit(EXTENT, vec![write(f.b, Mapper::OneToOne)]);
    assert_eq!(f.dependency(all, top), None);
    let init = f.out[0].id;
    assert_eq!(f.dependency(all, init), Some(DependencyKind::Order));
}

#[test]
fn a_reader_waits_only_for_the_writers_of_what_it_reads() {
    let mut f = Fixture::new();
    let row = |y| Mapper::fixed(Box3::from_offset_range([y, 0], [1, 8]));
    let single = [1, 1];
    let first = f.submit(single, vec![write(f.a, row(0))]);
    let second = f.submit(single, vec![write(f.a, row(1))]);
    let reader = f.submit(EXTENT, vec![read(f.a, row(1)), write(f.b, Mapper::OneToOne)]);
    assert_eq!(f.dependency(reader, second), Some(DependencyKind::True));
    assert_eq!(f.dependency(reader, first), None);
}

#[test]
fn overwriting_waits_for_readers_who_wait_for_the_writer() {
    let mut f = Fixture::new();
    let writer = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let reader = f.submit(EXTENT, vec![read(f.a, Mapper::All), write(f.b, Mapper::OneToOne)]);
    let again = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    assert_eq!(f.dependency(again, reader), Some(DependencyKind::Anti));
    assert_eq!(f.dependency(again, writer), None, "the reader waits for it");
}

#[test]
fn overwriting_waits_for_the_writers_of_what_nobody_reads() {
    let mut f = Fixture::new();
    let row = |y| Mapper::fixed(Box3::from_offset_range([y, 0], [1, 8]));
    let single = [1, 1];
    let writers = [0, 1].map(|y| f.submit(single, vec![write(f.a, row(y))]));
    let reader = f.submit(single, vec![read(f.a, row(0)), write(f.b, Mapper::All)]);
    let two = Mapper::fixed(Box3::from_range([2, 8]));
    let again = f.submit(single, vec![write(f.a, two.clone())]);
    assert_eq!(f.dependency(again, writers[0]), None);
    assert_eq!(f.dependency(again, writers[1]), Some(DependencyKind::Output));
    assert_eq!(f.dependency(again, reader), Some(DependencyKind::Anti));
    // What has been overwritten since is nobody's reason any more.
    let last = f.submit(single, vec![write(f.a, two)]);
    assert_eq!(f.dependency(last, again), Some(DependencyKind::Output));
}

#[test]
fn who_reads_and_overwrites_waits_for_what_it_reads() {
    let mut f = Fixture::new();
    let writer = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let reader = f.submit(EXTENT, vec![read(f.a, Mapper::All), write(f.b, Mapper::OneToOne)]);
    let both = Access::buffer(f.a, AccessMode::ReadWrite, Mapper::OneToOne);
    let again = f.submit(EXTENT, vec![both]);
    assert_eq!(f.dependency(again, writer), Some(DependencyKind::True), "the flow of data");
    assert_eq!(f.dependency(again, reader), Some(DependencyKind::Anti));
}

#[test]
fn a_reader_from_before_the_point_does_not_stand_in_for_it() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    // A chain of tasks until the first horizon is the point, with a reader after that horizon.
    let chain = |f: &mut Fixture| f.submit(EXTENT, vec![write(f.b, Mapper::OneToOne)]);
    while f.horizons().is_empty() {
        chain(&mut f);
    }
    let reader = f.submit([1, 1], vec![read(f.a, Mapper::fixed(Box3::from_range([1, 1])))]);
    while f.horizons().len() < 2 {
        chain(&mut f);
    }
    let point = f.horizons()[0];
    assert_eq!(f.dependency(reader, point), None, "it was there before the point was");
    let again = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    assert_eq!(f.dependency(again, reader), Some(DependencyKind::Anti));
    assert_eq!(f.dependency(again, point), Some(DependencyKind::Output));
}

#[test]
fn producers_name_who_wrote_what_is_read() {
    let mut f = Fixture::new();
    let writer = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let declared = f
        .declare(device([1, 8]), vec![read(f.a, Mapper::neighborhood([1, 0]))])
        .expect("a lawful task");
    let rows = Region::from(Box3::from_range([2, 8]));
    assert_eq!(f.graph.producers(&declared), [(writer, f.a, rows)]);
}

#[test]
fn a_chain_gets_a_horizon_every_four_tasks() {
    let mut f = Fixture::new();
    for _ in 0..16 {
        f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    }
    let horizons: Vec<u64> = f.horizons().iter().map(|id| id.index()).collect();
    assert_eq!(horizons, [5, 10, 15, 20]);
}

#[test]
fn many_independent_tasks_get_a_horizon() {
    let config = TaskGraphConfig { horizon_max_parallelism: 8, ..Default::default() };
    let mut f = Fixture::with(config);
    for y in 0..8 {
        let row = Mapper::fixed(Box3::from_offset_range([y, 0], [1, 8]));
        f.submit([1, 1], vec![write(f.a, row)]);
    }
    let [horizon] = f.horizons()[..] else { panic!("one horizon") };
    assert_eq!(f.out.last().map(|task| task.dependencies.len()), Some(8));
    assert_eq!(horizon.index(), 9);
}

#[test]
fn an_applied_horizon_stands_in_for_older_tasks() {
    let config = TaskGraphConfig { horizon_step: 2, ..Default::default() };
    let mut f = Fixture::with(config);
    let old = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    while f.horizons().len() < 2 {
        f.submit(EXTENT, vec![write(f.b, Mapper::OneToOne)]);
    }
    let reader = f.submit([1, 1], vec![read(f.a, Mapper::All)]);
    assert_eq!(f.dependency(reader, old), None);
    assert_eq!(f.dependency(reader, f.horizons()[0]), Some(DependencyKind::True));
}

#[test]
fn all_later_tasks_wait_for_an_epoch() {
    let mut f = Fixture::new();
    let before = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let epoch = f.graph.epoch(EpochAction::Barrier, &mut f.out);
    let after = f.submit(EXTENT, vec![write(f.b, Mapper::OneToOne)]);
    assert_eq!(f.dependency(epoch, before), Some(DependencyKind::Order));
    assert_eq!(f.dependency(after, epoch), Some(DependencyKind::Order));
}

#[test]
fn reading_what_nothing_wrote_is_refused_with_names_and_box() {
    let f = Fixture::new();
    let error = f.declare(device(EXTENT), vec![read(f.a, Mapper::OneToOne)]).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("T1 \"t\" at user.rs:7 reads {[0..8, 0..8]} of buffer \"a\""));
    assert!(message.ends_with("or set CELERITY_UNINITIALIZED_READ=warn to read zeroes"));
}

#[test]
fn reading_what_nothing_wrote_can_be_a_warning() {
    let config =
        TaskGraphConfig { uninitialized_read: UninitializedRead::Warn, ..Default::default() };
    let f = Fixture::with(config);
    let declared = f.declare(device(EXTENT), vec![read(f.a, Mapper::OneToOne)]);
    let declared = declared.expect("tolerated");
    let [warning] = declared.warnings() else { panic!("one warning") };
    let message = warning.to_string();
    assert!(message.contains("; it reads zeroes: ") && !message.contains("CELERITY"), "{message}");
}

/// What a declaration of such work with such accesses is refused with.
fn refusal(work: Work, accesses: impl Fn(&Fixture) -> Vec<Access>) -> String {
    let f = Fixture::new();
    let accesses = accesses(&f);
    let error = f.declare(work, accesses).expect_err("no lawful task").to_string();
    let rest = error.strip_prefix("T1 \"t\" at user.rs:7 ");
    rest.unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn what_is_no_index_space_is_refused() {
    let space = IndexSpace::new(2, Box3::from_range(EXTENT));
    let granularity = [1, 0, 1];
    for (space, why) in [
        (IndexSpace { dims: 4, ..space }, "has 4 dimensions and the extent [0..8, 0..8]"),
        (IndexSpace { dims: 1, ..space }, "has 1 dimension and the extent [0..8, 0..8]"),
        (IndexSpace { granularity, ..space }, "has granularity [1, 0, 1]; it is at least 1"),
        (IndexSpace { split: Split::Along(3), ..space }, "is split along dimension 3; dimensions"),
        (IndexSpace { oversubscription: 0, ..space }, "has no chunks per device"),
    ] {
        for work in [Work::Device(space), Work::HostSplit { space, group: None }] {
            let error = refusal(work, |_| Vec::new());
            assert!(error.starts_with(&format!("has an index space that {why}")), "{error}");
        }
    }
}

#[test]
fn what_the_graph_makes_itself_is_not_declared() {
    let shutdown = Work::Epoch(EpochAction::Shutdown);
    for (work, kind) in
        [(Work::Horizon, "a horizon"), (shutdown, "an epoch"), (Work::Forward, "a forward")]
    {
        let error = refusal(work, |f| vec![write(f.a, Mapper::All)]);
        assert!(error.starts_with(&format!("is {kind}, which nobody declares")), "{error}");
    }
}

#[test]
fn a_fence_only_reads() {
    let error = refusal(Work::Fence, |f| vec![write(f.a, Mapper::All)]);
    let text =
        "is a fence, which every node takes for itself, and writes through all of B0; a fence";
    assert!(error.starts_with(text), "{error}");
}

#[test]
fn a_slice_along_what_a_buffer_does_not_have_is_refused() {
    for dim in [2, 3, 200] {
        let error = refusal(device(EXTENT), |f| vec![read(f.a, Mapper::Slice { dim })]);
        let text =
            format!("which runs along dimension {dim} of the buffer, but that has 2 dimensions");
        assert!(error.contains(&text), "{error}");
    }
}

#[test]
fn leaving_the_buffer_is_refused() {
    let f = Fixture::new();
    let too_wide = device([8, 9]);
    for mapper in [Mapper::OneToOne, Mapper::neighborhood([1, 1])] {
        let result = f.declare(too_wide, vec![write(f.a, mapper)]);
        assert!(matches!(result, Err(DeclareError::OutOfBounds { .. })));
    }
    let outside = Mapper::fixed(Box3::from_offset_range([0, 8], [1, 1]));
    let result = f.declare(device([1, 1]), vec![write(f.a, outside)]);
    let error = result.expect_err("it is outside");
    assert!(matches!(error, DeclareError::OutOfBounds { .. }));
    assert!(error.to_string().ends_with("name a part that the buffer has"), "{error}");
}

/// However many they are, and however far beyond.
#[test]
fn windows_that_leave_the_buffer_are_refused() {
    for (items, stride) in [(1 << 44, 2), (1 << 20, 1 << 45), (9, u64::MAX), (2, 1 << 63)] {
        let f = Fixture::new();
        let windows = Windows { stride, ..Windows::along(0) };
        let mapper = Mapper::per_dimension(&[Side::Windows(windows), Side::All]);
        let result = f.declare(device([items, 1]), vec![read(f.a, mapper)]);
        let error = result.expect_err("they end far away").to_string();
        assert!(error.contains("but the buffer is ") && error.len() < 500, "{error}");
    }
}

#[test]
fn an_index_that_has_wrapped_around_is_told_from_one_that_is_too_large() {
    let shifted = |by: u64| {
        let map = move |input: &MapperInput| {
            let (min, max) = (input.chunk.min(), input.chunk.max());
            let first = min[0].wrapping_sub(by);
            Box3::new([first, min[1], 0], [first.saturating_add(1), max[1], 1]).into()
        };
        refusal(device([1, 8]), |f| vec![read(f.a, Mapper::User(UserMapper::new(map)))])
    };
    assert!(shifted(2).ends_with("let the index space begin later"), "{}", shifted(2));
    let far = shifted(0_u64.wrapping_sub(9));
    assert!(far.ends_with("shrink the index space or correct the range mapper"), "{far}");
}

#[test]
fn a_border_that_leaves_the_buffer_is_clamped() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    f.submit(EXTENT, vec![read(f.a, Mapper::neighborhood([3, 3]))]);
}

#[test]
fn a_writer_excludes_other_accesses_to_its_elements() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let (row, above) = (rows(3, 4), Mapper::fixed(rows(0, 4)));
    let same = Mapper::User(UserMapper::disjoint(|input: &MapperInput| input.chunk.into()));
    for (accesses, first, second) in [
        (
            [write(f.a, Mapper::OneToOne), read(f.a, Mapper::All)],
            "writes through one_to_one",
            "all",
        ),
        ([read(f.a, above.clone()), write(f.a, Mapper::OneToOne)], "reads through fixed", "writes"),
        (
            [write(f.a, Mapper::OneToOne), write(f.a, same)],
            "writes through one_to_one",
            "user mapper",
        ),
    ] {
        let result = f.declare(over(row), accesses.into());
        let message = result.unwrap_err().to_string();
        assert!(message.contains(first) && message.contains(second), "{message}");
        assert!(message.contains("[3..4, 0..8]"), "{message}");
    }
}

#[test]
fn a_task_may_read_and_write_separate_parts_of_a_buffer() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let row_below = Mapper::User(UserMapper::new(|input: &MapperInput| {
        let (min, max) = (input.chunk.min(), input.chunk.max());
        Box3::new([min[0] + 1, min[1], 0], [max[0] + 1, max[1], 1]).into()
    }));
    let both = f.submit_over(
        rows(3, 4),
        vec![
            read(f.a, Mapper::fixed(rows(0, 3))),
            write(f.a, Mapper::OneToOne),
            read(f.a, row_below),
        ],
    );
    for (part, kind) in [
        (rows(3, 4), DependencyKind::Output),
        (rows(0, 1), DependencyKind::Anti),
        (rows(4, 5), DependencyKind::Anti),
    ] {
        let later = f.submit_over(part, vec![write(f.a, Mapper::OneToOne)]);
        assert_eq!(f.dependency(later, both), Some(kind), "{part}");
    }
    let elsewhere = f.submit_over(rows(6, 7), vec![write(f.a, Mapper::OneToOne)]);
    assert_eq!(f.dependency(elsewhere, both), None);
}

#[test]
fn split_tasks_write_through_disjoint_mappers_only() {
    let f = Fixture::new();
    let result = f.declare(device(EXTENT), vec![write(f.a, Mapper::All)]);
    assert!(matches!(result, Err(DeclareError::OverlappingWrites { .. })));
    assert!(f.declare(Work::HostOnce { node: 0 }, vec![write(f.a, Mapper::All)]).is_ok());
    let rows = vec![write(f.a, Mapper::Slice { dim: 1 })];
    assert!(f.declare(device([8, 1]), rows.clone()).is_ok());
    assert!(f.declare(device([8, 2]), rows).is_err());
}

fn update(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::Update, mapper)
}

#[test]
fn items_of_a_chunk_may_update_an_element_together_and_chunks_may_not() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let whole =
        IndexSpace { granularity: [8, 8, 1], ..IndexSpace::new(2, Box3::from_range(EXTENT)) };
    let halves = IndexSpace { granularity: [4, 8, 1], ..whole };
    let all = vec![update(f.a, Mapper::All)];
    assert!(f.declare(Work::Device(whole), all.clone()).is_ok());
    assert!(f.declare(Work::HostOnce { node: 0 }, all.clone()).is_ok());
    let error = f.declare(Work::Device(halves), all).unwrap_err();
    assert!(matches!(error, DeclareError::UpdatesMeet { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("\"t\" at user.rs:7 updates buffer \"a\" through all"), "{text}");
    let rows = vec![update(f.a, Mapper::Slice { dim: 1 })];
    assert!(f.declare(device(EXTENT), rows.clone()).is_ok());
    let across =
        IndexSpace { split: Split::Along(1), ..IndexSpace::new(2, Box3::from_range(EXTENT)) };
    assert!(f.declare(Work::Device(across), rows).is_err());
    let near = vec![update(f.a, Mapper::neighborhood([1, 0]))];
    assert!(f.declare(device(EXTENT), near).is_err());
}

/// The first column, which is no row of a line.
#[test]
fn parts_are_told_in_all_dimensions_of_their_buffer() {
    let f = Fixture::new();
    let column = || Mapper::fixed(Box3::from_range([EXTENT[0], 1]));
    let says = |accesses: Vec<Access>, part: &str| {
        let error = f.declare(device([1, 1]), accesses).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let part = format!("{{[0..{}, 0..1]}} of buffer \"a\"", EXTENT[0]);
    says(vec![read(f.a, column())], &part);
    let part = format!("of buffer \"a\", {{[0..{}, 0..1]}}", EXTENT[0]);
    says(vec![write(f.a, column()), write(f.a, Mapper::All)], &part);
    let outside = Mapper::fixed(Box3::from_range([EXTENT[0] + 1, 1]));
    says(vec![write(f.a, outside.clone())], &format!("{{[0..{}, 0..1]}} of", EXTENT[0] + 1));
    says(vec![write(f.a, outside)], &format!("through fixed({{[0..{}, 0..1]}})", EXTENT[0] + 1));
}

#[test]
fn an_update_waits_for_writers_and_readers_and_is_waited_for() {
    let mut f = Fixture::new();
    let rows = || Mapper::Slice { dim: 1 };
    let unwritten = f.declare(device(EXTENT), vec![update(f.a, rows())]);
    assert!(matches!(unwritten, Err(DeclareError::UninitializedRead { .. })));
    let writer = f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let reader = f.submit(EXTENT, vec![read(f.a, Mapper::All), write(f.b, Mapper::OneToOne)]);
    let updater = f.submit(EXTENT, vec![update(f.a, rows())]);
    let later = f.submit(EXTENT, vec![read(f.a, Mapper::OneToOne)]);
    assert_eq!(f.dependency(updater, writer), Some(DependencyKind::True));
    assert_eq!(f.dependency(updater, reader), Some(DependencyKind::Anti));
    assert_eq!(f.dependency(later, updater), Some(DependencyKind::True));
    let beside = f.declare(device(EXTENT), vec![update(f.a, rows()), read(f.a, Mapper::All)]);
    let text = beside.unwrap_err().to_string();
    assert!(text.contains("updates through slice(1) and reads through all"), "{text}");
}

#[test]
fn an_update_shares_no_entry_with_a_write_of_other_elements() {
    let mut f = Fixture::new();
    f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
    let both = vec![
        Access::buffer(f.a, AccessMode::ReadWrite, Mapper::OneToOne),
        update(f.a, Mapper::fixed(rows(4, 8))),
    ];
    let space = IndexSpace { granularity: [4, 8, 1], ..IndexSpace::new(2, rows(0, 4)) };
    let declared = f.declare(Work::Device(space), both).expect("elements of their own");
    let touched: Vec<_> = declared.touched().iter().map(|one| (one.mode, &one.region)).collect();
    let (items, together) = (rows(0, 4).into(), rows(4, 8).into());
    assert_eq!(touched, [(AccessMode::ReadWrite, &items), (AccessMode::Update, &together)]);
}

#[test]
fn the_stream_tells_updates_from_other_writes() {
    let hash = |mode| {
        let mut f = Fixture::new();
        f.submit(EXTENT, vec![write(f.a, Mapper::OneToOne)]);
        f.submit(EXTENT, vec![Access::buffer(f.a, mode, Mapper::OneToOne)]);
        let mut hash = StreamHash::default();
        f.out.iter().for_each(|task| hash.task(task));
        hash.value()
    };
    assert_ne!(hash(AccessMode::Update), hash(AccessMode::ReadWrite));
}

#[test]
fn a_slice_is_kept_apart_where_no_cut_goes_through_it() {
    let space = |split, granularity| IndexSpace {
        split,
        granularity,
        ..IndexSpace::new(2, Box3::from_range([8, 6]))
    };
    let apart = |dim, split, granularity| {
        Mapper::Slice { dim }.keeps_chunks_apart(&space(split, granularity))
    };
    assert!(apart(1, Split::OneDimensional, [1; 3]));
    assert!(!apart(0, Split::OneDimensional, [1; 3]));
    assert!(!apart(1, Split::Tiled, [1; 3]) && apart(1, Split::Tiled, [1, 6, 1]));
    assert!(apart(0, Split::Along(1), [1; 3]) && !apart(1, Split::Along(1), [1; 3]));
    // What is the same for all takes a single chunk.
    let all = |granularity| Mapper::All.keeps_chunks_apart(&space(Split::Tiled, granularity));
    assert!(!all([8, 1, 1]) && !all([7, 6, 1]) && all([8, 6, 1]));
}

#[test]
fn dimensions_must_match_for_built_in_mappers() {
    let f = Fixture::new();
    let line = Work::Device(IndexSpace::new(1, Box3::from_range([8])));
    let result = f.declare(line, vec![write(f.a, Mapper::OneToOne)]);
    assert!(matches!(result, Err(DeclareError::DimensionMismatch { .. })));
}

#[test]
fn a_dropped_buffer_is_unknown() {
    let mut f = Fixture::new();
    f.graph.drop_buffer(f.a);
    let result = f.declare(device(EXTENT), vec![write(f.a, Mapper::OneToOne)]);
    assert!(matches!(result, Err(DeclareError::UnknownBuffer { .. })));
}

#[test]
fn an_empty_index_space_touches_nothing() {
    let mut f = Fixture::new();
    let id = f.submit([0, 8], vec![read(f.a, Mapper::All), write(f.b, Mapper::OneToOne)]);
    assert_eq!(f.dependency(id, f.out[0].id), Some(DependencyKind::Order));
}

/// A host task of 4 items, in the group of that number if there is one.
fn on_host(group: Option<usize>) -> Work {
    let space = IndexSpace::new(1, Box3::from_range([4]));
    Work::HostSplit { space, group: group.map(|number| CollectiveGroup::new(number, "g")) }
}

#[test]
fn tasks_of_a_group_wait_for_the_one_before_and_no_other() {
    let mut f = Fixture::new();
    let mut submit = |group| {
        let declared = f.declare(on_host(group), Vec::new()).expect("a lawful task");
        f.graph.commit(declared, &mut f.out)
    };
    let [first, other, alone, second, third] =
        [Some(0), Some(1), None, Some(0), Some(0)].map(&mut submit);
    let order = Some(DependencyKind::Order);
    assert_eq!(f.dependency(second, first), order);
    assert_eq!(f.dependency(third, second), order);
    assert_eq!(f.dependency(third, first), None);
    for task in [first, other, alone] {
        assert_eq!(f.dependency(task, TaskId::from_index(0)), order, "the init epoch");
    }
    let config = TaskGraphConfig::default();
    assert_eq!(verify(&f.out, &config), Ok(()));
    let unordered = f.out.iter_mut().find(|task| task.id == second).expect("it was emitted");
    let dependencies = &mut Arc::make_mut(unordered).dependencies;
    *dependencies = Dependencies::default();
    dependencies.add(TaskId::from_index(0), DependencyKind::Order);
    let broken = verify(&f.out, &config).expect_err("the edge is gone");
    assert!(broken[0].to_string().contains("the one before it in its group"), "{broken:?}");
}

#[test]
fn an_epoch_stands_in_for_the_one_before_in_a_group() {
    let mut f = Fixture::new();
    let declared = f.declare(on_host(Some(0)), Vec::new()).expect("a lawful task");
    let _ = f.graph.commit(declared, &mut f.out);
    let epoch = f.graph.epoch(EpochAction::Barrier, &mut f.out);
    let declared = f.declare(on_host(Some(0)), Vec::new()).expect("a lawful task");
    let later = f.graph.commit(declared, &mut f.out);
    assert_eq!(f.dependency(later, epoch), Some(DependencyKind::Order));
    assert_eq!(verify(&f.out, &TaskGraphConfig::default()), Ok(()));
}

#[test]
fn parts_of_a_host_task_write_apart() {
    let f = Fixture::new();
    let error = f.declare(on_host(None), vec![write(f.a, Mapper::All)]).unwrap_err();
    assert!(matches!(error, DeclareError::OverlappingWrites { .. }), "{error}");
    let error = f.declare(on_host(None), vec![write(f.a, Mapper::OneToOne)]).unwrap_err();
    assert!(matches!(error, DeclareError::DimensionMismatch { task_dims: 1, .. }), "{error}");
}

#[test]
fn tasks_of_other_names_have_other_hashes() {
    let hash_of = |names: &[&str], work: &Work| {
        let f = Fixture::new();
        let mut hash = StreamHash::default();
        for &name in names {
            let (name, work) = (name.into(), *work);
            hash.task(&Task { name, work, ..(*f.out[0]).clone() });
        }
        hash.value()
    };
    let others: [&[&str]; 5] = [
        &["double", "add"],
        &["add", "double "],
        &["add", "double\0"],
        &["adddouble", ""],
        &["add", "a name that takes several words"],
    ];
    let names = ["add", "double"];
    let space = || IndexSpace::new(1, Box3::from_range([4]));
    let works = [Work::Device(space()), Work::HostOnce { node: 0 }];
    for work in works {
        assert_eq!(hash_of(&names, &work), hash_of(&names, &work));
        for other in others {
            assert_ne!(hash_of(&names, &work), hash_of(other, &work), "{other:?}");
        }
    }
    // Those that the runtime adds are named after buffers, which may be named as a node likes.
    assert_eq!(hash_of(&names, &Work::Fence), hash_of(others[0], &Work::Fence));
}

#[test]
fn everything_that_decides_about_a_host_task_is_in_the_hash() {
    let hash_of = |work: Work| {
        let f = Fixture::new();
        let task = Task { work, ..(*f.out[0]).clone() };
        let mut hash = StreamHash::default();
        hash.task(&task);
        hash.value()
    };
    let split = |items: usize, group| Work::HostSplit {
        space: IndexSpace::new(1, Box3::from_range([items])),
        group,
    };
    let group = |number, name| Some(CollectiveGroup::new(number, name));
    let all = [
        Work::HostOnce { node: 0 },
        Work::HostOnce { node: 1 },
        Work::Device(IndexSpace::new(1, Box3::from_range([4]))),
        split(4, None),
        split(5, None),
        split(4, group(0, "files")),
        split(4, group(0, "plots")),
        split(4, group(1, "files")),
    ];
    for (nth, one) in all.iter().enumerate() {
        for other in &all[..nth] {
            assert_ne!(hash_of(*one), hash_of(*other), "{one:?} and {other:?}");
        }
    }
}

#[test]
#[should_panic(expected = "a task graph is started before its first task")]
fn a_task_without_a_start_is_told_so() {
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let spec =
        TaskSpec { work: device([4, 4]), accesses: vec![], name: "step".into(), location: None };
    let _ = graph.submit(spec, &mut Vec::new());
}

#[test]
fn buffers_that_cannot_be_are_told_why() {
    let sound = buffer("a");
    for (new, expected) in [
        (NewBuffer { dims: 7, ..sound.clone() }, "B0 has 7 dimensions"),
        (NewBuffer { dims: 1, ..sound.clone() }, "B0 has 1 dimensions and the extent"),
        (NewBuffer { extent: rows(1, 3), ..sound.clone() }, "does not begin at the origin"),
        (NewBuffer { elem_size: 0, ..sound.clone() }, "elements of 0 bytes"),
        (NewBuffer { elem_align: 3, ..sound }, "aligned to 3"),
    ] {
        let create = || TaskGraph::new(TaskGraphConfig::default()).create_buffer(new);
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(create)).unwrap_err();
        let message = payload.downcast_ref::<String>().expect("a text");
        assert!(message.contains(expected), "{message}");
    }
}
