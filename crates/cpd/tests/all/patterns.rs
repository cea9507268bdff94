//! Table 2 of IJPP 2024, row by row, and flows that look like one of its rows and are not.

use celerity_cpd::{Collective, Ends, NodeId, PartsCache, Pattern, classify};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    AccessMode, BufferAccess, BufferId, Forward, ForwardEnd, IndexSpace, Mapper, MapperInput,
    NeighborhoodShape, Side, Split, TaskId, UserMapper, Work,
};

fn end(work: Work, mode: AccessMode, mappers: Vec<Mapper>) -> ForwardEnd {
    let buffer = BufferId::from_index(0);
    let access = |mapper| BufferAccess { buffer, mode, mapper };
    let accesses = mappers.into_iter().map(access).collect();
    ForwardEnd { task: TaskId::from_index(1), work, accesses }
}

/// A buffer of `N` by `N`, or of `N`.
const N: usize = 16;

fn line() -> IndexSpace {
    IndexSpace::new(1, Box3::from_range([N]))
}

fn square() -> IndexSpace {
    IndexSpace::new(2, Box3::from_range([N, N]))
}

fn transposed() -> Mapper {
    Mapper::per_dimension(&[Side::along(1), Side::along(0)])
}

fn user(map: fn(&MapperInput) -> Region) -> Mapper {
    Mapper::User(UserMapper::disjoint(map))
}

/// What becomes of data that `producer` writes and `consumer` reads, as a whole.
fn found(
    dims: usize,
    nodes: usize,
    producer: (Work, Vec<Mapper>),
    consumer: (Work, Vec<Mapper>),
) -> Option<Collective> {
    let buffer = if dims == 1 { Box3::from_range([N]) } else { Box3::from_range([N, N]) };
    let image = |work: Work, mappers: &[Mapper]| {
        let global = work.extent();
        let input = MapperInput { chunk: global, global, buffer };
        mappers.iter().fold(Region::empty(), |all, mapper| all.union(&mapper.map(&input)))
    };
    let region = image(producer.0, &producer.1).intersection(&image(consumer.0, &consumer.1));
    let forward = Forward {
        producer: end(producer.0, AccessMode::Write, producer.1),
        consumer: end(consumer.0, AccessMode::Read, consumer.1),
    };
    let mut cache = PartsCache::default();
    let found = classify(&forward, &region, buffer, nodes, &mut cache);
    assert_eq!(classify(&forward, &region, buffer, nodes, &mut cache), found, "from the cache");
    found
}

fn pattern(
    dims: usize,
    nodes: usize,
    producer: (Work, Vec<Mapper>),
    consumer: (Work, Vec<Mapper>),
) -> Option<Pattern> {
    found(dims, nodes, producer, consumer).map(|collective| collective.pattern())
}

#[test]
fn the_programs_of_table_3() {
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    let squares = || (Work::Device(square()), vec![Mapper::OneToOne]);
    let all = || (Work::Device(line()), vec![Mapper::All]);
    let once = || (Work::HostOnce { node: 0 }, vec![Mapper::All]);
    for nodes in 2..=N {
        assert_eq!(pattern(1, nodes, lines(), all()), Some(Pattern::AllGather));
        assert_eq!(pattern(1, nodes, lines(), once()), Some(Pattern::Gather));
        assert_eq!(pattern(1, nodes, once(), lines()), Some(Pattern::Scatter));
        assert_eq!(pattern(1, nodes, once(), all()), Some(Pattern::Broadcast));
        let transposing = (Work::Device(square()), vec![transposed()]);
        assert_eq!(pattern(2, nodes, squares(), transposing), Some(Pattern::AllToAll));
        let stencil = (Work::Device(square()), vec![Mapper::neighborhood([1, 1])]);
        assert_eq!(pattern(2, nodes, squares(), stencil), None);
    }
}

#[test]
fn on_one_node_nothing_moves() {
    let lines = (Work::Device(line()), vec![Mapper::OneToOne]);
    assert_eq!(found(1, 1, lines, (Work::Device(line()), vec![Mapper::All])), None);
}

#[test]
fn fences_and_combinations_are_on_all_nodes() {
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    let half = || vec![Mapper::fixed(Box3::from_range([N / 2 + 1]))];
    for work in [Work::Fence, Work::Combine { operator: 0 }] {
        assert_eq!(pattern(1, 4, lines(), (work, half())), Some(Pattern::AllGather));
        assert_eq!(pattern(1, 4, (work, half()), (Work::Fence, half())), None);
    }
    let once = (Work::HostOnce { node: 7 }, half());
    let broadcast = found(1, 4, once, (Work::Fence, half())).expect("a broadcast");
    assert_eq!(broadcast.from, Ends::One(NodeId::from_index(3)));
}

#[test]
fn producers_on_some_nodes_provide_empty_parts() {
    let few = IndexSpace { granularity: [8, 1, 1], ..line() };
    let gathered = found(
        1,
        4,
        (Work::Device(few), vec![Mapper::OneToOne]),
        (Work::Device(line()), vec![Mapper::All]),
    );
    let Ends::Each(parts) = gathered.expect("an all-gather").from else { panic!("in parts") };
    assert_eq!(parts.iter().map(Region::volume).collect::<Vec<_>>(), [8, 8, 0, 0]);
}

#[test]
fn what_only_some_nodes_read_as_a_whole_is_sent_to_them() {
    let few = IndexSpace { granularity: [8, 1, 1], ..line() };
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    assert_eq!(pattern(1, 4, lines(), (Work::Device(few), vec![Mapper::All])), None);
    assert_eq!(
        pattern(1, 2, lines(), (Work::Device(few), vec![Mapper::All])),
        Some(Pattern::AllGather)
    );
}

/// What becomes of it, and among whom.
fn among(
    dims: usize,
    nodes: usize,
    producer: (Work, Vec<Mapper>),
    consumer: (Work, Vec<Mapper>),
) -> Option<(Pattern, String)> {
    let found = found(dims, nodes, producer, consumer)?;
    Some((found.pattern(), found.members.to_string()))
}

#[test]
fn those_that_have_or_get_something_take_part_and_no_others() {
    let over = |items| Work::Device(IndexSpace::new(1, Box3::from_range([items])));
    let lines = |items| (over(items), vec![Mapper::OneToOne]);
    let reads = |items, part| (over(items), vec![Mapper::fixed(Box3::from_range([part]))]);
    let once = |node| (Work::HostOnce { node }, vec![Mapper::All]);
    let is = |pattern, members: &str| Some((pattern, members.to_owned()));
    // Three nodes have written, four read.
    assert_eq!(among(1, 6, lines(3), reads(4, 3)), is(Pattern::AllGather, "N0 to N3"));
    // Of what six nodes have written, two read what the first two have.
    assert_eq!(among(1, 6, lines(6), reads(2, 2)), is(Pattern::AllGather, "N0 and N1"));
    assert_eq!(
        among(1, 6, lines(6), reads(2, 3)),
        None,
        "a third node has some, and needs nothing"
    );
    assert_eq!(among(1, 6, lines(3), once(1)), is(Pattern::Gather, "N0 to N2"));
    assert_eq!(among(1, 6, lines(3), once(5)), is(Pattern::Gather, "N0, N1, N2 and N5"));
    assert_eq!(among(1, 6, once(0), reads(3, 2)), is(Pattern::Broadcast, "N0 to N2"));
    assert_eq!(among(1, 6, once(4), reads(3, 2)), is(Pattern::Broadcast, "N0, N1, N2 and N4"));
    assert_eq!(among(1, 6, once(4), lines(2)), is(Pattern::Scatter, "N0, N1 and N4"));
    assert_eq!(among(1, 6, once(4), lines(6)), is(Pattern::Scatter, "all nodes"));
    assert_eq!(among(1, 6, once(4), reads(1, 4)), None, "one node sends to one");
    assert_eq!(among(1, 2, lines(2), reads(2, 2)), is(Pattern::AllGather, "all nodes"));
    let square = |items| Work::Device(IndexSpace::new(2, Box3::from_range([items, items])));
    let trades =
        |items| ((square(items), vec![Mapper::OneToOne]), (square(items), vec![transposed()]));
    let (producer, consumer) = trades(3);
    assert_eq!(among(2, 6, producer, consumer), is(Pattern::AllToAll, "N0 to N2"));
}

#[test]
fn parts_are_those_of_members_in_their_order() {
    let rows = Work::Device(IndexSpace::new(1, Box3::from_range([2])));
    let scatter = found(
        1,
        6,
        (Work::HostOnce { node: 4 }, vec![Mapper::All]),
        (rows, vec![Mapper::OneToOne]),
    );
    let scatter = scatter.expect("a scatter");
    let Ends::Each(parts) = &scatter.to else { panic!("in parts") };
    assert_eq!(parts.iter().map(Region::volume).collect::<Vec<_>>(), [1, 1, 0]);
    let [n0, n1, n3, n4] = [0, 1, 3, 4].map(NodeId::from_index);
    assert_eq!(scatter.between(n4, n1), Box3::from_offset_range([1], [1]).into());
    assert_eq!(scatter.arriving_at(n0), Box3::from_range([1]).into());
    assert!(scatter.arriving_at(n3).is_empty() && scatter.provided_by(n3).is_empty());
}

#[test]
fn operations_of_one_shape_among_some_share_their_parts() {
    let region = Region::from(Box3::from_range([3]));
    let mut cache = PartsCache::default();
    let mut parts_of = |root| {
        let space = IndexSpace::new(1, Box3::from_range([3]));
        let producer = end(Work::Device(space), AccessMode::Write, vec![Mapper::OneToOne]);
        let consumer = end(Work::HostOnce { node: root }, AccessMode::Read, vec![Mapper::All]);
        let forward = Forward { producer, consumer };
        let buffer = Box3::from_range([N]);
        let found = classify(&forward, &region, buffer, 6, &mut cache).expect("a gather");
        let Ends::Each(parts) = found.from else { panic!("in parts") };
        parts
    };
    let (two, five) = (parts_of(2), parts_of(5));
    assert_eq!([two.len(), five.len()], [3, 4]);
    assert!(std::sync::Arc::ptr_eq(&two, &parts_of(2)));
    assert!(std::sync::Arc::ptr_eq(&five, &parts_of(5)));
}

#[test]
fn one_node_that_has_produced_what_is_read_broadcasts_or_scatters_it() {
    let first = || vec![Mapper::fixed(Box3::from_range([2]))];
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    assert_eq!(pattern(1, 4, lines(), (Work::Fence, first())), Some(Pattern::Broadcast));
    assert_eq!(pattern(1, 4, lines(), (Work::HostOnce { node: 0 }, first())), None);
    assert_eq!(pattern(1, 4, lines(), (Work::HostOnce { node: 1 }, first())), None);
}

#[test]
fn nothing_moves_where_geometry_and_mappers_are_the_same() {
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    let more = IndexSpace { oversubscription: 4, ..line() };
    assert_eq!(pattern(1, 4, lines(), lines()), None);
    assert_eq!(pattern(1, 4, lines(), (Work::Device(more), vec![Mapper::OneToOne])), None);
    let host = Work::HostSplit { space: line(), group: None };
    assert_eq!(pattern(1, 4, lines(), (host, vec![Mapper::OneToOne])), None);
}

#[test]
fn geometries_that_differ_fit_nothing() {
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    let coarse = IndexSpace { granularity: [3, 1, 1], ..line() };
    assert_eq!(pattern(1, 4, lines(), (Work::Device(coarse), vec![Mapper::OneToOne])), None);
    let tiled = IndexSpace { split: Split::Tiled, ..square() };
    let squares = || (Work::Device(square()), vec![Mapper::OneToOne]);
    assert_eq!(pattern(2, 4, squares(), (Work::Device(tiled), vec![Mapper::OneToOne])), None);
}

#[test]
fn tiles_that_are_transposed_move_between_pairs() {
    let tiled = Work::Device(IndexSpace { split: Split::Tiled, ..square() });
    let transposing = (tiled, vec![transposed()]);
    assert_eq!(pattern(2, 4, (tiled, vec![Mapper::OneToOne]), transposing), None);
}

#[test]
fn another_cut_through_the_same_mapper_is_a_transposition() {
    let columns = Work::Device(IndexSpace { split: Split::Along(1), ..square() });
    let squares = (Work::Device(square()), vec![Mapper::OneToOne]);
    let moved = found(2, 4, squares, (columns, vec![Mapper::OneToOne])).expect("an all-to-all");
    let [n0, n3] = [0, 3].map(NodeId::from_index);
    assert_eq!(moved.between(n0, n3), Box3::from_offset_range([0, 12], [4, 4]).into());
    assert_eq!(moved.arriving_at(n3).volume(), 4 * 12);
}

#[test]
fn a_transposition_is_of_all_that_both_access() {
    let squares = || (Work::Device(square()), vec![Mapper::OneToOne]);
    let inner = IndexSpace::new(2, Box3::from_offset_range([1, 1], [N - 2, N - 2]));
    let masked = (Work::Device(inner), vec![Mapper::OneToOne]);
    let transposing = || (Work::Device(square()), vec![transposed()]);
    assert_eq!(pattern(2, 4, masked, transposing()), None);
    let twice = vec![transposed(), Mapper::fixed(Box3::from_range([1, 1]))];
    assert_eq!(pattern(2, 4, squares(), (Work::Device(square()), twice)), None);
}

#[test]
fn neighbourhoods_are_for_pairs_of_nodes() {
    let once = || (Work::HostOnce { node: 0 }, vec![Mapper::All]);
    let around = Mapper::periodic([1], NeighborhoodShape::BoundingBox, [true]);
    for mapper in [Mapper::neighborhood([1]), around] {
        assert_eq!(pattern(1, 4, once(), (Work::Device(line()), vec![mapper])), None);
    }
}

#[test]
fn one_constant_access_among_others_is_enough() {
    let lines = || (Work::Device(line()), vec![Mapper::OneToOne]);
    let both = vec![Mapper::neighborhood([1]), Mapper::All];
    assert_eq!(pattern(1, 4, lines(), (Work::Device(line()), both)), Some(Pattern::AllGather));
}

#[test]
fn users_who_keep_their_promises_take_part() {
    let own = |input: &MapperInput| Region::from(input.chunk);
    let lines = || (Work::Device(line()), vec![user(own)]);
    let all = (Work::Device(line()), vec![Mapper::All]);
    assert_eq!(pattern(1, 4, lines(), all), Some(Pattern::AllGather));
    let once = (Work::HostOnce { node: 2 }, vec![Mapper::All]);
    assert_eq!(pattern(1, 4, once, lines()), Some(Pattern::Scatter));
}

#[test]
fn users_who_lie_make_no_operation() {
    let everything = |input: &MapperInput| Region::from(input.buffer);
    let first = |input: &MapperInput| match input.chunk.min()[0] {
        0 => Region::from(input.chunk),
        _ => Region::empty(),
    };
    let beyond = |input: &MapperInput| {
        let (min, max) = input.chunk.corners();
        Region::from(Box3::new(min, [max[0] + 100, 9, 9]))
    };
    let all = || (Work::Device(line()), vec![Mapper::All]);
    for lie in [user(everything), user(first), user(beyond)] {
        let space = Work::Device(line());
        assert_eq!(pattern(1, 4, (space, vec![lie.clone()]), all()), None);
        let once = (Work::HostOnce { node: 2 }, vec![Mapper::All]);
        assert_eq!(pattern(1, 4, once, (space, vec![lie])), None);
    }
}

#[test]
fn operations_of_one_shape_share_their_parts() {
    let region = Region::from(Box3::from_range([N]));
    let mut cache = PartsCache::default();
    let mut parts_of = |task| {
        let mut producer = end(Work::Device(line()), AccessMode::Write, vec![Mapper::OneToOne]);
        producer.task = TaskId::from_index(task);
        let consumer = end(Work::Fence, AccessMode::Read, vec![Mapper::All]);
        let forward = Forward { producer, consumer };
        let buffer = Box3::from_range([N]);
        let found = classify(&forward, &region, buffer, 4, &mut cache).expect("an all-gather");
        let Ends::Each(parts) = found.from else { panic!("in parts") };
        parts
    };
    assert!(std::sync::Arc::ptr_eq(&parts_of(1), &parts_of(9)));
}
