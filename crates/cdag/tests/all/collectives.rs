//! Collectives: one command on every node instead of pushes, and what nodes know of each other
//! afterwards, which shows in what they still push.

use std::sync::Arc;

use celerity_cdag::{
    Broken, Command, CommandGraph, CommandGraphConfig, CommandKind, NodeId, verify_cluster,
};
use celerity_cpd::{Collective, Ends, Members, Pattern};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferId, Dependencies, DependencyKind, Forward, ForwardEnd, IndexSpace,
    Mapper, MapperInput, NewBuffer, NewForward, Side, Task, TaskGraph, TaskGraphConfig, TaskId,
    TaskSpec, UserMapper, Work,
};

/// Elements along each dimension of the buffer.
const N: usize = 8;

/// A program over one buffer of 8 × 8 elements, and the commands of all nodes for it.
struct Cluster {
    graph: TaskGraph,
    buffer: BufferId,
    tasks: Vec<Arc<Task>>,
    nodes: Vec<CommandGraph>,
    commands: Vec<Vec<Command>>,
}

impl Cluster {
    fn new(count: usize) -> Self {
        let config = TaskGraphConfig { horizon_step: 2, ..TaskGraphConfig::default() };
        let mut graph = TaskGraph::new(config);
        let start = graph.start();
        let buffer = graph.create_buffer(NewBuffer {
            name: Some("u".into()),
            dims: 2,
            extent: Box3::from_range([N, N]),
            elem_size: 4,
            elem_align: 4,
            host_initialized: true,
        });
        let node = |slot| {
            let local = NodeId::from_index(slot as u64);
            let mut node = CommandGraph::new(CommandGraphConfig { nodes: count, local });
            node.register_buffer(&buffer);
            node
        };
        let nodes = (0..count).map(node).collect();
        let commands = vec![Vec::new(); count];
        let mut cluster = Self { graph, buffer: buffer.id, tasks: vec![], nodes, commands };
        cluster.take(vec![start]);
        cluster
    }

    fn take(&mut self, tasks: Vec<Arc<Task>>) {
        for task in tasks {
            for (node, out) in self.nodes.iter_mut().zip(&mut self.commands) {
                let mut diagnostics = Vec::new();
                node.schedule(&task, out, &mut diagnostics);
                assert!(diagnostics.is_empty(), "{diagnostics:?}");
            }
            self.tasks.push(task);
        }
    }

    fn submit(&mut self, work: Work, mode: AccessMode, mapper: Mapper) -> TaskId {
        self.submit_behind(work, mode, mapper, None)
    }

    /// Reads behind a forward of what `producer` has written of `region`.
    fn read_forwarded(
        &mut self,
        work: Work,
        mapper: Mapper,
        (producer, region): (TaskId, Region),
    ) -> TaskId {
        self.submit_behind(work, AccessMode::Read, mapper, Some((producer, region)))
    }

    fn submit_behind(
        &mut self,
        work: Work,
        mode: AccessMode,
        mapper: Mapper,
        forward: Option<(TaskId, Region)>,
    ) -> TaskId {
        let access = Access::buffer(self.buffer, mode, mapper);
        let forward = forward.map(|(producer, region)| {
            let accesses = [access.clone()];
            let accesses = Access::buffers(&accesses).cloned().collect();
            let consumer = ForwardEnd { task: TaskId::from_index(0), work, accesses };
            let wrote = self.tasks.iter().find(|task| task.id == producer).expect("it is older");
            let accesses = wrote.buffer_accesses().cloned().collect();
            let producer = ForwardEnd { task: producer, work: wrote.work, accesses };
            let forward = Forward { producer, consumer };
            NewForward {
                buffer: self.buffer,
                region,
                forward,
                name: "reader".into(),
                location: None,
            }
        });
        let spec = TaskSpec { name: "t".into(), work, accesses: vec![access], location: None };
        let mut out = Vec::new();
        let submitted =
            self.graph.submit_behind(spec, |_, _| forward.into_iter().collect(), &mut out);
        self.take(out);
        submitted.expect("a lawful task").0
    }

    /// The collective of the last task that has one, which every member has, and nobody else.
    fn collective(&self) -> Arc<Collective> {
        let of_node = |commands: &Vec<Command>| {
            let mut all = commands.iter().rev();
            all.find_map(|command| match &command.kind {
                CommandKind::Collective { collective, .. } => {
                    Some((command.task, collective.clone()))
                }
                _ => None,
            })
        };
        let found: Vec<_> = self.commands.iter().map(of_node).collect();
        let last = found.iter().flatten().max_by_key(|(task, _)| *task);
        let (task, last) = last.expect("there is one").clone();
        for (slot, of_node) in found.iter().enumerate() {
            let of_task = of_node.iter().find(|(other, _)| *other == task).map(|(_, one)| one);
            let takes_part = last.members.contains(NodeId::from_index(slot as u64));
            assert_eq!(of_task, takes_part.then_some(&last), "N{slot}");
        }
        last
    }

    /// What is pushed for a task, as (from, to, elements).
    fn pushed(&self, task: TaskId) -> Vec<(usize, u64, u64)> {
        let mut pushed = Vec::new();
        for (from, commands) in self.commands.iter().enumerate() {
            for command in commands.iter().filter(|command| command.task == task) {
                if let CommandKind::Push { targets, .. } = &command.kind {
                    let to = targets.iter().map(|(to, region)| (to.index(), region.volume()));
                    pushed.extend(to.map(|(to, elements)| (from, to, elements)));
                }
            }
        }
        pushed
    }

    fn check(&self) {
        assert_eq!(verify_cluster(&self.tasks, &self.commands), Ok(()));
    }
}

/// A kernel over so many rows of 8 elements.
fn rows(count: usize) -> Work {
    Work::Device(IndexSpace::new(2, Box3::from_range([count, N])))
}

fn all() -> Region {
    Box3::from_range([N, N]).into()
}

fn transposed() -> Mapper {
    Mapper::per_dimension(&[Side::along(1), Side::along(0)])
}

const ROOT: Work = Work::HostOnce { node: 0 };

#[test]
fn an_all_gather_is_one_command_on_every_node_and_leaves_nothing_to_push() {
    let mut cluster = Cluster::new(4);
    for _ in 0..3 {
        let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
        let consumer = cluster.read_forwarded(rows(N), Mapper::All, (producer, all()));
        assert_eq!(cluster.collective().pattern(), Pattern::AllGather);
        let later = cluster.submit(ROOT, AccessMode::Read, Mapper::All);
        assert_eq!([consumer, later].map(|task| cluster.pushed(task)), [vec![], vec![]]);
    }
    cluster.check();
}

#[test]
fn what_one_node_has_written_is_broadcast() {
    let mut cluster = Cluster::new(3);
    let producer = cluster.submit(ROOT, AccessMode::Write, Mapper::All);
    cluster.read_forwarded(rows(N), Mapper::All, (producer, all()));
    assert_eq!(cluster.collective().pattern(), Pattern::Broadcast);
    let later = cluster.submit(rows(N), AccessMode::Read, Mapper::neighborhood([1, 0]));
    assert_eq!(cluster.pushed(later), []);
    cluster.check();
}

#[test]
fn owners_know_that_the_root_of_a_gather_has_their_parts() {
    let mut cluster = Cluster::new(4);
    let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
    let consumer = cluster.read_forwarded(ROOT, Mapper::All, (producer, all()));
    assert_eq!(cluster.collective().pattern(), Pattern::Gather);
    assert_eq!(cluster.pushed(consumer), []);
    let everybody = cluster.submit(Work::Fence, AccessMode::Read, Mapper::All);
    let pushed = cluster.pushed(everybody);
    assert_eq!(pushed.len(), 9, "each of four to the others but the root: {pushed:?}");
    assert!(pushed.iter().all(|&(_, to, elements)| to != 0 && elements == 16), "{pushed:?}");
    cluster.check();
}

#[test]
fn who_scatters_knows_which_node_has_which_part() {
    let mut cluster = Cluster::new(4);
    let producer = cluster.submit(ROOT, AccessMode::Write, Mapper::All);
    let consumer = cluster.read_forwarded(rows(N), Mapper::OneToOne, (producer, all()));
    assert_eq!(cluster.collective().pattern(), Pattern::Scatter);
    let again = cluster.submit(rows(N), AccessMode::Read, Mapper::OneToOne);
    assert_eq!([consumer, again].map(|task| cluster.pushed(task)), [vec![], vec![]]);
    let halos = cluster.submit(rows(N), AccessMode::Read, Mapper::neighborhood([1, 0]));
    assert_eq!(cluster.pushed(halos), [(0, 1, 16), (0, 2, 16), (0, 3, 8)], "their halos alone");
    let everything = cluster.submit(Work::Fence, AccessMode::Read, Mapper::All);
    assert_eq!(cluster.pushed(everything), [(0, 1, 32), (0, 2, 32), (0, 3, 40)]);
    cluster.check();
}

#[test]
fn what_is_spread_and_written_again_is_owned_as_before() {
    let mut cluster = Cluster::new(2);
    let producer = cluster.submit(ROOT, AccessMode::Write, Mapper::All);
    cluster.read_forwarded(rows(N), Mapper::OneToOne, (producer, all()));
    let top = Region::from(Box3::from_range([2, N]));
    cluster.submit(ROOT, AccessMode::Write, Mapper::fixed(top));
    let task = cluster.submit(Work::HostOnce { node: 1 }, AccessMode::Read, Mapper::All);
    let rows_of_two_writers = [(0, 1, 16), (0, 1, 16)];
    assert_eq!(cluster.pushed(task), rows_of_two_writers, "it has had the other four");
    cluster.check();
}

#[test]
fn a_transposition_is_one_exchange_of_all_with_all() {
    let mut cluster = Cluster::new(4);
    for _ in 0..2 {
        let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
        let consumer = cluster.read_forwarded(rows(N), transposed(), (producer, all()));
        assert_eq!(cluster.collective().pattern(), Pattern::AllToAll);
        let again = cluster.submit(rows(N), AccessMode::Read, transposed());
        assert_eq!([consumer, again].map(|task| cluster.pushed(task)), [vec![], vec![]]);
        let everything = cluster.submit(ROOT, AccessMode::Read, Mapper::All);
        assert_eq!(cluster.pushed(everything), [(1, 0, 12), (2, 0, 12), (3, 0, 12)]);
    }
    cluster.check();
}

#[test]
fn nodes_without_a_part_take_part() {
    let mut cluster = Cluster::new(12);
    let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
    cluster.read_forwarded(Work::Fence, Mapper::All, (producer, all()));
    let collective = cluster.collective();
    assert_eq!(collective.pattern(), Pattern::AllGather);
    assert!(collective.provided_by(NodeId::from_index(11)).is_empty());
    let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
    cluster.read_forwarded(Work::HostOnce { node: 11 }, Mapper::All, (producer, all()));
    let gather = cluster.collective();
    assert_eq!(gather.to, Ends::One(NodeId::from_index(11)));
    assert_eq!(gather.members.to_string(), "N0, N1, N2, N3, N4, N5, N6, N7 and N11");
    cluster.check();
}

#[test]
fn those_outside_have_no_command_and_get_what_they_read_from_who_owns_it() {
    let mut cluster = Cluster::new(6);
    for _ in 0..3 {
        let producer = cluster.submit(rows(3), AccessMode::Write, Mapper::OneToOne);
        let read = Region::from(Box3::from_range([3, N]));
        let few = Mapper::fixed(read.clone());
        let consumer = cluster.read_forwarded(rows(4), few.clone(), (producer, read));
        let gathered = cluster.collective();
        assert_eq!(gathered.pattern(), Pattern::AllGather);
        assert_eq!(gathered.members, Members::range(0, 4, 6));
        assert!(matches!(&gathered.from, Ends::Each(parts) if parts.len() == 4));
        assert_eq!(cluster.pushed(consumer), []);
        // Members have it, and none of them gets it again.
        let again = cluster.submit(rows(4), AccessMode::Read, few.clone());
        assert_eq!(cluster.pushed(again), []);
        let everybody = cluster.submit(Work::Fence, AccessMode::Read, few);
        let pushed = cluster.pushed(everybody);
        assert_eq!(pushed.len(), 6, "each of three rows to two nodes: {pushed:?}");
        assert!(pushed.iter().all(|&(_, to, elements)| to >= 4 && elements == 8), "{pushed:?}");
    }
    cluster.check();
}

/// The second set is one too many, on all nodes alike; the first one is not new, and all nodes are no set.
#[test]
fn more_sets_than_there_may_be_exchange_in_pairs() {
    let mut cluster = Cluster::new(6);
    cluster.nodes.iter_mut().for_each(|node| node.limit_member_sets(1));
    for (readers, pushes) in [(2, 0), (3, 6), (2, 0), (6, 0), (3, 6)] {
        let producer = cluster.submit(rows(readers), AccessMode::Write, Mapper::OneToOne);
        let region = Region::from(Box3::from_range([readers, N]));
        let read = Mapper::fixed(region.clone());
        let consumer = cluster.read_forwarded(rows(readers), read, (producer, region));
        assert_eq!(cluster.pushed(consumer).len(), pushes, "{readers} readers");
        if pushes == 0 {
            assert_eq!(cluster.collective().members, Members::range(0, readers, 6));
        }
    }
    cluster.check();
}

#[test]
fn one_node_that_is_no_reader_broadcasts_to_some() {
    let mut cluster = Cluster::new(6);
    let last = Work::HostOnce { node: 5 };
    let producer = cluster.submit(last, AccessMode::Write, Mapper::All);
    let consumer = cluster.read_forwarded(rows(2), Mapper::All, (producer, all()));
    let broadcast = cluster.collective();
    assert_eq!(
        (broadcast.pattern(), &*broadcast.members.to_string()),
        (Pattern::Broadcast, "N0, N1 and N5")
    );
    assert_eq!(cluster.pushed(consumer), []);
    let wider = cluster.submit(rows(4), AccessMode::Read, Mapper::All);
    assert_eq!(cluster.pushed(wider), [(5, 2, 64), (5, 3, 64)]);
    cluster.check();
}

#[test]
fn parts_of_some_nodes_are_scattered_and_traded_among_these() {
    let mut cluster = Cluster::new(6);
    let producer = cluster.submit(Work::HostOnce { node: 4 }, AccessMode::Write, Mapper::All);
    let top = || Region::from(Box3::from_range([3, N]));
    let consumer = cluster.read_forwarded(rows(3), Mapper::OneToOne, (producer, top()));
    let scatter = cluster.collective();
    assert_eq!(
        (scatter.pattern(), &*scatter.members.to_string()),
        (Pattern::Scatter, "N0, N1, N2 and N4")
    );
    assert_eq!(cluster.pushed(consumer), []);
    let halos = cluster.submit(rows(3), AccessMode::Read, Mapper::neighborhood([1, 0]));
    let expected = [(4, 0, 8), (4, 1, 16), (4, 2, 16)];
    assert_eq!(cluster.pushed(halos), expected, "their halos alone");
    let square = || Work::Device(IndexSpace::new(2, Box3::from_range([3, 3])));
    let producer = cluster.submit(square(), AccessMode::Write, Mapper::OneToOne);
    let region = Region::from(Box3::from_range([3, 3]));
    let consumer = cluster.read_forwarded(square(), transposed(), (producer, region));
    let traded = cluster.collective();
    assert_eq!((traded.pattern(), &*traded.members.to_string()), (Pattern::AllToAll, "N0 to N2"));
    assert_eq!(cluster.pushed(consumer), []);
    cluster.check();
}

#[test]
fn halos_that_are_there_already_are_waited_for_and_replaced() {
    let mut cluster = Cluster::new(2);
    let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
    let stencil = cluster.submit(rows(N), AccessMode::Read, Mapper::neighborhood([1, 0]));
    assert_eq!(cluster.pushed(stencil), [(0, 1, 8), (1, 0, 8)]);
    let consumer = cluster.read_forwarded(rows(N), Mapper::All, (producer, all()));
    assert_eq!(cluster.pushed(consumer), []);
    let of_stencil = |command: &&Command| command.task == stencil;
    for commands in &cluster.commands {
        let is_collective = |one: &&Command| matches!(one.kind, CommandKind::Collective { .. });
        let collective = commands.iter().find(is_collective).expect("every node has it");
        let reader = commands.iter().rfind(of_stencil).expect("every node runs it");
        let kind = collective.dependencies.kind_of(reader.id);
        assert_eq!(kind, Some(DependencyKind::Anti), "it overwrites the halo");
    }
    cluster.check();
}

#[test]
fn what_fits_nothing_and_what_one_node_does_is_no_command() {
    let stencil = Mapper::neighborhood([1, 0]);
    for (count, mapper) in [(3, stencil), (1, Mapper::All)] {
        let mut cluster = Cluster::new(count);
        let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
        let consumer = cluster.read_forwarded(rows(N), mapper, (producer, all()));
        let of_forward = |command: &Command| command.task.index() == consumer.index() - 1;
        assert!(!cluster.commands.concat().iter().any(of_forward));
        assert_eq!(cluster.pushed(consumer).is_empty(), count == 1);
        cluster.check();
    }
}

#[test]
fn what_users_mappers_make_of_a_collective_is_summed_up() {
    let answers = |wide: u64| {
        let mut cluster = Cluster::new(2);
        // All rows, cut after as many as the mapper chooses, whatever the chunk.
        let cut = move |input: &MapperInput| {
            let end = |at: u64| if at == 4 { wide } else { at };
            let (min, max) = input.chunk.corners();
            Region::from(Box3::new([end(min[0]), 0, 0], [end(max[0]), N as u64, 1]))
        };
        let mapper = Mapper::User(UserMapper::disjoint(cut));
        let producer = cluster.submit(rows(N), AccessMode::Write, mapper);
        cluster.read_forwarded(rows(N), Mapper::All, (producer, all()));
        cluster.check();
        let sums: Vec<u64> = cluster.nodes.iter().map(CommandGraph::answers).collect();
        assert_eq!(sums[0], sums[1]);
        (sums[0], cluster.collective())
    };
    let (three, four) = (answers(3), answers(4));
    assert_ne!(three.0, four.0);
    assert_ne!(three.1, four.1);
}

/// What is wrong with an all-gather on three nodes after `change`, which gets the place of the
/// collective among the commands of `N1`.
fn broken(change: impl FnOnce(&mut Vec<Command>, usize)) -> Vec<String> {
    let mut cluster = Cluster::new(3);
    let producer = cluster.submit(rows(N), AccessMode::Write, Mapper::OneToOne);
    cluster.read_forwarded(rows(N), Mapper::All, (producer, all()));
    cluster.check();
    let commands = &mut cluster.commands[1];
    let is_collective = |one: &Command| matches!(one.kind, CommandKind::Collective { .. });
    let place = commands.iter().position(is_collective).expect("it has one");
    change(commands, place);
    let found = verify_cluster(&cluster.tasks, &cluster.commands).expect_err("it is broken");
    found.iter().map(Broken::to_string).collect()
}

fn change(command: &mut Command, change: impl FnOnce(&mut Collective)) {
    let CommandKind::Collective { collective, .. } = &mut command.kind else { unreachable!() };
    change(Arc::make_mut(collective));
}

#[test]
fn all_nodes_have_the_same_collectives() {
    let missing = broken(|commands, at| commands[at].kind = CommandKind::Horizon);
    let says = |found: &[String], what: &str| found.iter().any(|one| one.contains(what));
    assert!(says(&missing, "T2: N1 has no collective, and others have"), "{missing:?}");
    let other = broken(|commands, at| {
        change(&mut commands[at], |one| one.to = Ends::One(NodeId::from_index(2)));
    });
    assert_eq!(other, ["T2: N1 has another collective than other nodes"]);
    let shifted = broken(|commands, at| {
        change(&mut commands[at], |one| {
            let Ends::Each(parts) = &one.from else { unreachable!("it is an all-gather") };
            let mut parts = parts.to_vec();
            parts.rotate_left(1);
            one.from = Ends::Each(parts.into());
        });
    });
    assert_eq!(shifted, ["T2: N1 has another collective than other nodes"]);
}

#[test]
fn members_alone_have_a_collective_among_some() {
    let broken = |node: usize, change: &dyn Fn(&mut Collective)| -> Vec<String> {
        let mut cluster = Cluster::new(4);
        let producer = cluster.submit(rows(2), AccessMode::Write, Mapper::OneToOne);
        let few = Region::from(Box3::from_range([2, N]));
        cluster.read_forwarded(rows(2), Mapper::fixed(few.clone()), (producer, few));
        cluster.check();
        let is_collective = |one: &&mut Command| matches!(one.kind, CommandKind::Collective { .. });
        for command in cluster.commands.iter_mut().flatten().filter(is_collective) {
            self::change(command, change);
        }
        if node < 4 {
            let of_first = cluster.commands[0].iter().find(|one| one.task.index() == 2);
            let of_first = of_first.expect("N0 takes part").clone();
            cluster.commands[node].push(of_first);
        }
        let found = verify_cluster(&cluster.tasks, &cluster.commands).expect_err("it is broken");
        found.iter().map(Broken::to_string).collect()
    };
    let says = |found: &[String], what: &str| found.iter().any(|one| one.contains(what));
    let outside = broken(3, &|_| {});
    assert!(says(&outside, "T2: N3 has a collective that it takes no part in"), "{outside:?}");
    let wider = broken(9, &|one| {
        one.members = Members::range(0, 3, 4);
        let Ends::Each(parts) = &one.from else { unreachable!("it is an all-gather") };
        let parts = [parts[0].clone(), parts[1].clone(), Region::empty()];
        one.from = Ends::Each(Arc::from(parts));
    });
    assert!(says(&wider, "T2: N2 has no collective, and others have"), "{wider:?}");
    let short = broken(9, &|one| one.members = Members::range(0, 3, 4));
    assert!(
        says(&short, "is among other nodes than those that have and get its parts"),
        "{short:?}"
    );
}

#[test]
fn a_collective_is_one_and_waits_for_who_wrote_what_it_provides() {
    let twice = broken(|commands, at| {
        change(&mut commands[at], |one| one.region = Box3::from_range([N, 2]).into());
    });
    assert!(twice[0].ends_with("is provided by several nodes, or by none, in part"), "{twice:?}");
    let early = broken(|commands, at| {
        let first = commands[0].id;
        commands[at].dependencies = Dependencies::default();
        commands[at].dependencies.add(first, DependencyKind::Order);
    });
    assert!(early[0].ends_with("does not wait for who wrote what it provides"), "{early:?}");
    let named = broken(|commands, at| {
        let CommandKind::Collective { transfer, .. } = &mut commands[at].kind else {
            unreachable!()
        };
        transfer.consumer = TaskId::from_index(9);
    });
    assert!(named[0].ends_with("is for another task than the command"), "{named:?}");
}
