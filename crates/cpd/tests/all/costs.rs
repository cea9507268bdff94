//! What is weighed, and what comes of it: messages of 10 µs each against operations of 30 µs, and of
//! bytes that cost the same.

use celerity_cpd::{
    Collectives, CostLine, Costs, Discovery, Estimate, Members, Movement, Pattern, Weighed,
};
use celerity_regions::Box3;
use celerity_tdag::{Mapper, Work};

use crate::harness::{Program, over, read, transposed, write};

const ONCE: Work = Work::HostOnce { node: 0 };
const COSTS: Costs = Costs {
    messages: CostLine { once: 0, step: 10_000, byte: 1000 },
    collectives: [CostLine { once: 30_000, step: 0, byte: 1000 }; 5],
};

fn program(collectives: Collectives, costs: Costs, nodes: usize) -> Program {
    Program::with(Discovery::new(collectives, nodes).with_costs(costs).telling(), nodes)
}

/// Tasks that write and read a buffer of so many elements on each side, by what they may be.
fn flows(side: usize) -> [(Pattern, [(Work, Mapper); 2]); 5] {
    let (own, all, square) = (|| Mapper::OneToOne, || Mapper::All, over([side, side]));
    [
        (Pattern::Gather, [(square, own()), (ONCE, all())]),
        (Pattern::AllGather, [(square, own()), (square, all())]),
        (Pattern::Broadcast, [(ONCE, all()), (square, all())]),
        (Pattern::Scatter, [(ONCE, all()), (square, own())]),
        (Pattern::AllToAll, [(square, own()), (square, transposed())]),
    ]
}

#[test]
fn operations_begin_where_messages_are_dearer() {
    for (pattern, [(writer, writes), (reader, reads)]) in flows(16) {
        for (collectives, costs, least) in [
            (Collectives::Auto, COSTS, 4),
            (Collectives::Auto, Costs { collectives: [CostLine::default(); 5], ..COSTS }, 2),
            (Collectives::Auto, Costs { messages: CostLine::default(), ..COSTS }, usize::MAX),
            (Collectives::Always, COSTS, 2),
            (Collectives::Paper, COSTS, 2),
        ] {
            for nodes in [1, 2, 3, 4, 16] {
                let mut program = program(collectives, costs, nodes);
                let buffer = program.buffer([16, 16]);
                program.run(writer, vec![write(buffer, writes.clone())]);
                let found = program.found(reader, vec![read(buffer, reads.clone())]);
                let expected = if nodes >= least { vec![pattern.to_string()] } else { vec![] };
                assert_eq!(found, expected, "{pattern}, {collectives} on {nodes} nodes");
            }
        }
    }
}

#[test]
fn bytes_are_those_of_the_elements_that_move() {
    // Of a broadcast, messages carry everything as often as there are others.
    for (elements, expected) in [(1000, vec![]), (10_000, vec!["broadcast"])] {
        let mut program = program(Collectives::Auto, COSTS, 3);
        let buffer = program.buffer([20_000]);
        let part = || Mapper::fixed(Box3::from_range([elements]));
        program.run(ONCE, vec![write(buffer, Mapper::All)]);
        assert_eq!(program.found(over([64]), vec![read(buffer, part())]), expected);
    }
}

#[test]
fn what_has_been_weighed_is_told_once() {
    let mut program = program(Collectives::Auto, COSTS, 2);
    let buffer = program.buffer([100]);
    let producer = program.run(over([100]), vec![write(buffer, Mapper::OneToOne)]).task.id;
    assert_eq!(program.discovery.take_weighed(producer).count(), 0);
    let consumer = program.run(over([100]), vec![read(buffer, Mapper::All)]).task.id;
    let movement = Movement { pattern: Pattern::AllGather, nodes: 2, from: 2, to: 2, bytes: 400 };
    let estimate = Estimate { collective: 30_200, pairs: 10_200 };
    let members = Members::all();
    let expected = Weighed { producer, consumer, buffer, movement, members, estimate };
    let weighed: Vec<_> = program.discovery.take_weighed(consumer).collect();
    assert_eq!(weighed, [expected]);
    let text = "between pairs of nodes: 10.2 µs, 30.2 µs in one all-gather";
    assert_eq!(weighed[0].to_string(), text);
    let chosen =
        Weighed { estimate: Estimate { collective: 5000, pairs: 6340 }, ..weighed[0].clone() };
    let text = "in one all-gather: 5.0 µs, 6.3 µs between pairs of nodes";
    assert_eq!(chosen.to_string(), text);
    let some = Weighed { members: Members::range(0, 3, 5), ..chosen };
    let text = "in one all-gather among N0 to N2: 5.0 µs, 6.3 µs between pairs of nodes";
    assert_eq!(some.to_string(), text);
    program.run(over([100]), vec![read(buffer, Mapper::All)]);
    assert_eq!(program.discovery.take_weighed(consumer).count(), 0, "all nodes have it");
}

#[test]
fn what_has_moved_in_messages_hides_nothing() {
    let mut program = program(Collectives::Auto, COSTS, 5);
    let buffer = program.buffer([100]);
    program.run(ONCE, vec![write(buffer, Mapper::All)]);
    // Two of the nodes get their parts in messages; then all need it.
    assert_eq!(program.found(over([2]), vec![read(buffer, Mapper::OneToOne)]), [""; 0]);
    assert_eq!(program.found(over([100]), vec![read(buffer, Mapper::All)]), ["broadcast"]);
}
