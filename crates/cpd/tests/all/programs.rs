//! Whole programs: which forwards are inserted, and what becomes of them.

use celerity_cpd::{Collectives, Pattern};
use celerity_regions::Box3;
use celerity_tdag::{AccessMode, BufferAccess, IndexSpace, Mapper, Side, Split, Work};

use crate::harness::{Program, forwarded, over, read, transposed, write};

use Collectives::{Always, Off, Paper};

const N: usize = 16;
const ONCE: Work = Work::HostOnce { node: 0 };
const NOTHING: [&str; 0] = [];

/// Runs the steps of a program, after each of which its two buffers change places, and asserts what
/// is found in each step, once the first ones are over.
fn assert_steps<const D: usize>(
    collectives: Collectives,
    range: [usize; D],
    steps: &[(Work, Mapper, Mapper, &str)],
) {
    for nodes in [2, 3, 4, 7, 16] {
        let mut program = Program::new(collectives, nodes);
        let mut buffers = [program.buffer(range), program.buffer(range)];
        program.run(steps[steps.len() - 1].0, vec![write(buffers[0], Mapper::OneToOne)]);
        for round in 0..3 {
            for (work, reads, writes, expected) in steps {
                let [from, to] = buffers;
                let accesses = vec![read(from, reads.clone()), write(to, writes.clone())];
                let found = program.found(*work, accesses);
                let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
                assert_eq!(found, expected, "{work:?} in round {round} on {nodes} nodes");
                buffers.reverse();
            }
        }
    }
}

#[test]
fn the_programs_of_table_3() {
    let (own, all) = (|| Mapper::OneToOne, || Mapper::All);
    let [line, square] = [over([N]), over([N, N])];
    for mode in [Paper, Always] {
        assert_steps(mode, [N], &[(line, all(), own(), "all-gather")]);
        let gather = (ONCE, all(), all(), "gather");
        assert_steps(mode, [N], &[gather.clone(), (line, own(), own(), "scatter")]);
        assert_steps(mode, [N], &[gather, (line, all(), own(), "broadcast")]);
        assert_steps(mode, [N, N], &[(square, transposed(), own(), "all-to-all")]);
    }
    let stencil = |found| (square, Mapper::neighborhood([1, 1]), own(), found);
    assert_steps(Always, [N, N], &[stencil("")]);
    assert_steps(Paper, [N, N], &[stencil("pairs")]);
    assert_steps(Off, [N], &[(line, all(), own(), "")]);
}

#[test]
fn work_on_the_node_that_has_the_data_is_no_flow() {
    for mode in [Paper, Always] {
        let mut program = Program::new(mode, 4);
        let buffer = program.buffer([N]);
        program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
        let own = vec![read(buffer, Mapper::OneToOne)];
        assert_eq!(program.found(over([N]), own.clone()), NOTHING);
        let chunks =
            IndexSpace { oversubscription: 4, ..IndexSpace::new(1, Box3::from_range([N])) };
        assert_eq!(program.found(Work::Device(chunks), own), NOTHING);
    }
}

#[test]
fn an_all_gather_after_a_gather_is_found() {
    for (mode, expected) in [(Always, vec!["all-gather"]), (Paper, vec![])] {
        let mut program = Program::new(mode, 4);
        let buffer = program.buffer([N]);
        program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
        let all = || vec![read(buffer, Mapper::All)];
        assert_eq!(program.found(ONCE, all()), ["gather"]);
        assert_eq!(program.found(ONCE, all()), NOTHING, "it is there");
        assert_eq!(program.found(over([N]), all()), expected);
        assert_eq!(program.found(Work::Fence, all()), NOTHING, "everybody has it");
        assert_eq!(program.found(Work::HostOnce { node: 2 }, all()), NOTHING);
    }
}

#[test]
fn what_fits_nothing_masks_nothing() {
    for (mode, expected) in [(Always, vec!["all-gather"]), (Paper, vec![])] {
        let mut program = Program::new(mode, 4);
        let buffer = program.buffer([N]);
        program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
        let near = vec![read(buffer, Mapper::neighborhood([1]))];
        let unfit = if mode == Always { vec![] } else { vec!["pairs"] };
        assert_eq!(program.found(over([N]), near), unfit);
        let few = vec![read(buffer, Mapper::All)];
        assert_eq!(program.found(over([3]), few), NOTHING);
        assert_eq!(program.found(over([N]), vec![read(buffer, Mapper::All)]), expected);
    }
}

#[test]
fn what_some_nodes_have_got_is_not_forwarded_to_these_again() {
    let mut program = Program::new(Always, 6);
    let buffer = program.buffer([N]);
    let first = |items: usize| vec![read(buffer, Mapper::fixed(Box3::from_range([items])))];
    program.run(ONCE, vec![write(buffer, Mapper::All)]);
    assert_eq!(program.found(over([4]), first(8)), ["broadcast"]);
    assert_eq!(program.found(over([3]), first(8)), NOTHING, "they are among the four");
    assert_eq!(program.found(Work::HostOnce { node: 3 }, first(8)), NOTHING);
    assert_eq!(program.found(over([4]), vec![read(buffer, Mapper::OneToOne)]), NOTHING);
    assert_eq!(program.found(over([5]), first(8)), ["broadcast"], "a fifth lacks it");
    assert_eq!(program.found(over([N]), first(8)), ["broadcast"], "and a sixth");
    assert_eq!(program.found(over([4]), first(8)), NOTHING);
}

#[test]
fn few_rows_are_exchanged_among_the_nodes_that_have_them() {
    let mut program = Program::new(Always, 6);
    let buffer = program.buffer([N]);
    program.run(over([3]), vec![write(buffer, Mapper::OneToOne)]);
    let first = || vec![read(buffer, Mapper::fixed(Box3::from_range([3])))];
    let entered = program.run(over([4]), first());
    let found = program.classify(&entered.forwards[0]).expect("an all-gather");
    assert_eq!((found.pattern(), &*found.members.to_string()), (Pattern::AllGather, "N0 to N3"));
    // Who has written all of it is more than who reads it: nothing is even tried.
    program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
    assert_eq!(program.found(over([2]), vec![read(buffer, Mapper::All)]), NOTHING);
}

#[test]
fn what_is_written_anew_is_forwarded_anew_and_only_that() {
    for mode in [Paper, Always] {
        let mut program = Program::new(mode, 4);
        let buffer = program.buffer([N]);
        let all = || vec![read(buffer, Mapper::All)];
        program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
        assert_eq!(program.found(over([N]), all()), ["all-gather"]);
        let upper = IndexSpace::new(1, Box3::from_offset_range([8], [8]));
        program.run(Work::Device(upper), vec![write(buffer, Mapper::OneToOne)]);
        let forwards = program.run(over([N]), all()).forwards;
        let [forward] = &forwards[..] else { panic!("one forward") };
        assert_eq!(*forwarded(forward).1, Box3::from_offset_range([8], [8]).into());
    }
}

#[test]
fn initial_parts_and_what_everybody_computes_is_not_forwarded() {
    for mode in [Paper, Always] {
        let mut program = Program::new(mode, 4);
        let buffer = program.buffer([N]);
        program.run(over([N / 2]), vec![write(buffer, Mapper::OneToOne)]);
        let half = Box3::from_range([N / 2]);
        let forwards = program.run(Work::Fence, vec![read(buffer, Mapper::All)]).forwards;
        assert_eq!(
            forwards.iter().map(|one| forwarded(one).1.clone()).collect::<Vec<_>>(),
            [half.into()]
        );
        program.run(Work::Combine { operator: 0 }, vec![write(buffer, Mapper::All)]);
        assert_eq!(program.found(Work::Fence, vec![read(buffer, Mapper::All)]), NOTHING);
    }
}

#[test]
fn flows_that_look_collective_and_are_not() {
    let line = over([N]);
    let coarse = |granularity| {
        let space = IndexSpace::new(1, Box3::from_range([N]));
        Work::Device(IndexSpace { granularity: [granularity, 1, 1], ..space })
    };
    let windows = |stride, width| {
        let windows = celerity_tdag::Windows { from: 0, stride, first: 0, width, clamped: true };
        Mapper::per_dimension(&[Side::Windows(windows)])
    };
    for (consumer, mapper) in [
        // Parts overlap.
        (line, windows(1, 2)),
        // Fewer, larger parts.
        (over([N / 2]), windows(2, 2)),
        // The same items, cut elsewhere.
        (coarse(3), Mapper::OneToOne),
        // Only some nodes read all of it.
        (coarse(8), Mapper::All),
        // One node has read it, and no other writes.
        (ONCE, Mapper::fixed(Box3::from_range([2]))),
    ] {
        let mut program = Program::new(Always, 4);
        let buffer = program.buffer([N]);
        program.run(line, vec![write(buffer, Mapper::OneToOne)]);
        let found = program.found(consumer, vec![read(buffer, mapper.clone())]);
        assert!(found.iter().all(|one| one == "pairs"), "{consumer:?} {mapper}: {found:?}");
    }
}

#[test]
fn a_task_with_several_producers_gets_a_forward_of_each() {
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([N]);
    for at in [0, 8] {
        let half = IndexSpace::new(1, Box3::from_offset_range([at], [8]));
        program.run(Work::Device(half), vec![write(buffer, Mapper::OneToOne)]);
    }
    let found = program.found(over([N]), vec![read(buffer, Mapper::All)]);
    assert_eq!(found, ["all-gather", "all-gather"]);
}

#[test]
fn a_task_with_several_accesses_writes_all_parts() {
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([2 * N]);
    let shifted = |first| {
        let windows =
            celerity_tdag::Windows { from: 0, stride: 1, first, width: 1, clamped: false };
        Mapper::per_dimension(&[Side::Windows(windows)])
    };
    let both = vec![write(buffer, shifted(0)), write(buffer, shifted(N as i64))];
    program.run(over([N]), both);
    let entered = program.run(over([N]), vec![read(buffer, Mapper::All)]);
    let found = program.classify(&entered.forwards[0]).expect("an all-gather");
    assert_eq!(found.pattern(), Pattern::AllGather);
    let n1 = celerity_cpd::NodeId::from_index(1);
    let parts = [4, 20].map(|at| Box3::from_offset_range([at], [4]));
    assert_eq!(*found.provided_by(n1), celerity_regions::Region::from_boxes(parts));
}

#[test]
fn what_all_read_is_forwarded_without_what_neighbours_read() {
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([N]);
    program.run(over([N]), vec![write(buffer, Mapper::OneToOne)]);
    let table = Box3::from_range([4]);
    let accesses =
        vec![read(buffer, Mapper::neighborhood([1])), read(buffer, Mapper::fixed(table))];
    let forwards = program.run(over([N]), accesses).forwards;
    let [forward] = &forwards[..] else { panic!("one forward") };
    assert_eq!(*forwarded(forward).1, table.into());
}

#[test]
fn updates_produce_and_consume() {
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([N]);
    let update = |mapper| BufferAccess { buffer, mode: AccessMode::Update, mapper };
    program.run(ONCE, vec![write(buffer, Mapper::All)]);
    assert_eq!(program.found(over([N]), vec![update(Mapper::OneToOne)]), ["scatter"]);
    assert_eq!(program.found(over([N]), vec![read(buffer, Mapper::All)]), ["all-gather"]);
}

#[test]
fn tiles_are_gathered_and_not_transposed() {
    let space = IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range([N, N])) };
    let tiled = Work::Device(space);
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([N, N]);
    program.run(tiled, vec![write(buffer, Mapper::OneToOne)]);
    assert_eq!(program.found(tiled, vec![read(buffer, transposed())]), NOTHING);
    assert_eq!(program.found(ONCE, vec![read(buffer, Mapper::All)]), ["gather"]);
    assert_eq!(program.found(tiled, vec![read(buffer, Mapper::All)]), ["all-gather"]);
}

#[test]
fn mappers_that_own_something_are_not_kept() {
    use celerity_tdag::{MapperInput, UserMapper};
    let owned = std::sync::Arc::new(());
    let mapper = |owned: &std::sync::Arc<()>| {
        let owned = owned.clone();
        Mapper::User(UserMapper::disjoint(move |input: &MapperInput| {
            let _ = &owned;
            input.chunk.into()
        }))
    };
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([N]);
    program.run(over([N]), vec![write(buffer, mapper(&owned))]);
    assert_eq!(program.found(over([N]), vec![read(buffer, Mapper::All)]), NOTHING);
    program.run(ONCE, vec![write(buffer, Mapper::All)]);
    assert_eq!(program.found(over([N]), vec![read(buffer, mapper(&owned))]), NOTHING);
    program.tasks.clear();
    assert_eq!(std::sync::Arc::strong_count(&owned), 1);
}

#[test]
fn what_is_known_is_bounded_and_goes_with_its_buffer() {
    use celerity_tdag::{MapperInput, UserMapper};
    let mut program = Program::new(Always, 4);
    let buffer = program.buffer([64]);
    for element in 0..64 {
        let one = Mapper::fixed(Box3::from_offset_range([element], [1]));
        program.run(ONCE, vec![write(buffer, one)]);
    }
    let forwards = program.run(over([N]), vec![read(buffer, Mapper::All)]).forwards;
    assert_eq!(forwards.len(), 16, "what the latest have written");
    // A task is kept while something is left of what it wrote.
    let kept = program.run(over([64]), vec![write(buffer, Mapper::OneToOne)]).task;
    program.tasks.clear();
    assert_eq!(std::sync::Arc::strong_count(&kept), 2);
    program.drop_buffer(buffer);
    assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    let plain = UserMapper::new(|input: &MapperInput| input.chunk.into());
    assert!(!plain.is_owner());
}
