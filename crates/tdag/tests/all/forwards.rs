//! Forwards in a task graph: writers that change nothing, each right before its consumer.

use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, Broken, BufferAccess, BufferId, DependencyKind, Forward, ForwardEnd,
    IndexSpace, Mapper, NewBuffer, NewForward, SourceLocation, StreamHash, Task, TaskGraph,
    TaskGraphConfig, TaskId, TaskSpec, UninitializedRead, Work, verify,
};

const N: usize = 8;

const CONFIG: TaskGraphConfig = TaskGraphConfig {
    horizon_step: 3,
    horizon_max_parallelism: 64,
    uninitialized_read: UninitializedRead::Warn,
};

struct Fixture {
    graph: TaskGraph,
    tasks: Vec<Arc<Task>>,
    buffer: BufferId,
}

impl Fixture {
    fn new() -> Self {
        let mut graph = TaskGraph::new(CONFIG);
        let tasks = vec![graph.start()];
        let new = NewBuffer {
            name: Some("u".into()),
            dims: 1,
            extent: Box3::from_range([N]),
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        };
        let buffer = graph.create_buffer(new).id;
        Self { graph, tasks, buffer }
    }

    fn access(&self, mode: AccessMode, mapper: Mapper) -> BufferAccess {
        BufferAccess { buffer: self.buffer, mode, mapper }
    }

    /// A task over so many items, behind forwards of these regions from task `T1`.
    fn submit(&mut self, items: usize, access: BufferAccess, forwards: &[Region]) -> TaskId {
        let work = Work::Device(IndexSpace::new(1, Box3::from_range([items])));
        let spec = TaskSpec {
            name: "t".into(),
            work,
            accesses: vec![access.clone().into()],
            location: Some(SourceLocation { file: "user.rs".into(), line: 7 }),
        };
        let new = |region: &Region| {
            let task = TaskId::from_index(1);
            let written = self.access(AccessMode::Write, Mapper::OneToOne);
            let producer = ForwardEnd { task, work, accesses: [written].into() };
            let consumer = ForwardEnd { task, work, accesses: [access.clone()].into() };
            let (buffer, location) = (self.buffer, spec.location.clone());
            let forward = Forward { producer, consumer };
            NewForward { buffer, region: region.clone(), forward, name: "reader".into(), location }
        };
        let new: Vec<NewForward> = forwards.iter().map(new).collect();
        let found = self.graph.submit_behind(spec, |_, _| new, &mut self.tasks);
        found.expect("a lawful task").0
    }

    /// Writes everything, and reads it behind two forwards.
    fn forwarded() -> (Self, TaskId) {
        let mut f = Self::new();
        f.submit(N, f.access(AccessMode::Write, Mapper::OneToOne), &[]);
        let halves = [0, 4].map(|at| Region::from(Box3::from_offset_range([at], [4])));
        let consumer = f.submit(N, f.access(AccessMode::Read, Mapper::All), &halves);
        (f, consumer)
    }
}

fn task(index: u64) -> TaskId {
    TaskId::from_index(index)
}

#[test]
fn a_forward_is_the_writer_that_its_consumer_waits_for() {
    let (f, consumer) = Fixture::forwarded();
    assert_eq!(consumer, task(4));
    for forward in &f.tasks[2..4] {
        assert_eq!((forward.work, &*forward.name), (Work::Forward, "reader"));
        assert_eq!(forward.dependencies.kind_of(task(1)), Some(DependencyKind::True));
        assert_eq!(forward.forward.as_ref().map(|one| one.consumer.task), Some(consumer));
        assert_eq!(forward.to_string(), format!("{} \"reader\" at user.rs:7", forward.id));
    }
    let edges: Vec<TaskId> = f.tasks[4].dependencies.iter().map(|edge| edge.on).collect();
    assert_eq!(edges, [task(2), task(3)]);
    assert_eq!(verify(&f.tasks, &CONFIG), Ok(()));
}

#[test]
fn a_horizon_that_is_due_comes_after_the_consumer() {
    let mut f = Fixture::new();
    f.submit(N, f.access(AccessMode::Write, Mapper::OneToOne), &[]);
    f.submit(N, f.access(AccessMode::ReadWrite, Mapper::OneToOne), &[]);
    let all = Region::from(Box3::from_range([N]));
    // The forward makes the chain three tasks long.
    f.submit(N, f.access(AccessMode::Read, Mapper::All), &[all]);
    let works: Vec<bool> = f.tasks[3..].iter().map(|task| task.work == Work::Horizon).collect();
    assert_eq!(works, [false, false, true]);
    assert_eq!(verify(&f.tasks, &CONFIG), Ok(()));
}

#[test]
fn what_nothing_has_written_is_left_out() {
    let mut f = Fixture::new();
    f.submit(N / 2, f.access(AccessMode::Write, Mapper::OneToOne), &[]);
    let [all, upper] = [0, 4].map(|at| Region::from(Box3::new([at, 0, 0], [8, 1, 1])));
    let consumer = f.submit(N, f.access(AccessMode::Read, Mapper::All), &[all, upper]);
    assert_eq!(consumer, task(3), "one forward is left");
    let half = Mapper::fixed(Box3::from_range([N / 2]));
    assert_eq!(f.tasks[2].buffer_accesses().map(|one| &one.mapper).next(), Some(&half));
    assert_eq!(verify(&f.tasks, &CONFIG), Ok(()));
}

#[test]
fn readers_before_a_forward_are_waited_for_by_who_overwrites() {
    let mut f = Fixture::new();
    f.submit(N, f.access(AccessMode::Write, Mapper::OneToOne), &[]);
    let reader = f.submit(N, f.access(AccessMode::Read, Mapper::OneToOne), &[]);
    let all = Region::from(Box3::from_range([N]));
    f.submit(N, f.access(AccessMode::Read, Mapper::All), &[all]);
    let forward = f.tasks.iter().find(|task| task.work == Work::Forward).expect("one forward");
    assert_eq!(forward.dependencies.kind_of(reader), Some(DependencyKind::Anti));
}

#[test]
fn forwards_that_cannot_be_are_found() {
    let spoiled = |nth: usize, spoil: fn(&mut Task)| {
        let (mut f, _) = Fixture::forwarded();
        spoil(Arc::make_mut(&mut f.tasks[nth]));
        let found = verify(&f.tasks, &CONFIG).expect_err("something has been broken");
        assert!(found.iter().any(|one| matches!(one, Broken::Forward { .. })), "{found:?}");
    };
    spoiled(2, |forward| forward.forward = None);
    spoiled(2, |forward| forward.accesses = Box::default());
    spoiled(2, |forward| change(forward, |ends| ends.consumer.task = task(5)));
    spoiled(2, |forward| change(forward, |ends| ends.producer.task = task(2)));
    spoiled(2, |forward| change(forward, |ends| ends.producer.accesses = Box::default()));
    spoiled(2, |forward| {
        let Some(Access::Buffer(access)) = forward.accesses.first_mut() else { panic!("one") };
        access.mode = AccessMode::Read;
    });
    let forward = Fixture::forwarded().0.tasks[2].forward.clone();
    let (mut f, _) = Fixture::forwarded();
    Arc::make_mut(&mut f.tasks[4]).forward = forward;
    let found = verify(&f.tasks, &CONFIG).expect_err("a consumer is no forward");
    assert!(matches!(found[..], [Broken::Forward { .. }]), "{found:?}");
}

fn change(task: &mut Task, change: impl FnOnce(&mut Forward)) {
    change(Arc::make_mut(task.forward.as_mut().expect("it is a forward")));
}

#[test]
fn the_hash_tells_the_ends_of_forwards_apart() {
    let hash_of = |task: &Task| {
        let mut hash = StreamHash::default();
        hash.task(task);
        hash.value()
    };
    let (f, _) = Fixture::forwarded();
    let same = (*f.tasks[2]).clone();
    let mut other = same.clone();
    change(&mut other, |ends| ends.producer.task = task(0));
    assert_eq!(hash_of(&same), hash_of(&f.tasks[2]));
    assert_ne!(hash_of(&same), hash_of(&other));
}

#[cfg(feature = "serde")]
#[test]
fn forwards_are_recorded_and_those_that_cannot_be_are_refused() {
    use celerity_codec::{RecordingKind, decode, encode};
    let recorded = |task: &Task| {
        decode::<Task>(
            RecordingKind::TaskGraph,
            &encode(RecordingKind::TaskGraph, task).expect("encoded"),
        )
    };
    let (f, _) = Fixture::forwarded();
    let survived = recorded(&f.tasks[2]).expect("it is lawful");
    assert_eq!(format!("{survived:?}"), format!("{:?}", f.tasks[2]));
    let mut broken = (*f.tasks[2]).clone();
    broken.forward = None;
    let error = recorded(&broken).expect_err("a forward has ends").to_string();
    assert!(error.contains("T2 is a forward or has one, and does not say between whom"), "{error}");
    let mut broken = (*f.tasks[4]).clone();
    broken.forward.clone_from(&f.tasks[2].forward);
    assert!(recorded(&broken).is_err());
}
