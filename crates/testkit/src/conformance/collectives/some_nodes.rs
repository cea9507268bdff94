//! What every [`Communicator`] must do with collective operations among some of the nodes.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{CommEvent, CommunicationError, Communicator};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use super::{Field, Keeping, exchanged, patterns};
use crate::conformance::{PATIENCE, assert_silent, failure, next_event, node};

/// Sets of nodes that overlap, each of at least two, in a cluster of so many.
fn sets(nodes: usize) -> Vec<Members> {
    let every_other = (0..nodes).step_by(2).map(node);
    let ends = [0, nodes - 1].map(node);
    let sets = [
        Members::range(0, nodes - 1, nodes),
        Members::range(1, nodes, nodes),
        Members::of(every_other, nodes),
        Members::of(ends, nodes),
        Members::range(0, 2, nodes),
        Members::all(),
    ];
    let several = sets.into_iter().filter(|set| set.count(nodes) > 1 && set.are_canonical(nodes));
    several.collect()
}

pub(in crate::conformance) fn go_on_among_some<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    // The second time, networks that keep what they need for a set have it already.
    for _ in 0..2 {
        go_on(connect(), meet);
    }
}

/// One after another, and then all at once: each node comes to those that it is a member of.
fn go_on(mut end: impl Communicator, meet: &dyn Fn()) {
    let (me, nodes) = (end.node(), end.nodes());
    let sets = if nodes > 1 { sets(nodes) } else { Vec::new() };
    let mut number = 0;
    let extent = Box3::from_offset_range([3, 2], [3, 2]);
    for collective in sets.iter().flat_map(|set| patterns(extent, set, nodes)) {
        let collective = Arc::new(collective);
        if collective.members.contains(me) {
            let mut field = Field::new(Keeping::Apart, extent, &collective, me);
            // SAFETY: the field outlives the report, awaited below.
            unsafe { end.exchange(field.exchange(number, &collective, me)) };
            assert_eq!(next_event(&mut end), exchanged(number));
            field.assert_exchanged(&collective, me);
        }
        number += 1;
    }
    meet();
    let extent = Box3::from_range([9, 7]);
    // Sets take turns, so that each is overtaken by others.
    let mut all: Vec<_> = sets.iter().map(|set| patterns(extent, set, nodes)).collect();
    let turns = all.first().map_or(0, Vec::len);
    let turns = (0..turns).flat_map(|_| all.iter_mut().filter_map(Vec::pop).collect::<Vec<_>>());
    let numbered: Vec<_> = (number..).zip(turns.map(Arc::new).collect::<Vec<_>>()).collect();
    let mine: Vec<_> =
        numbered.iter().filter(|(_, one)| one.members.contains(me)).cloned().collect();
    let field = |(_, one): &(u64, Arc<Collective>)| Field::new(Keeping::Together, extent, one, me);
    let mut fields: Vec<_> = mine.iter().map(field).collect();
    for (field, (number, collective)) in fields.iter_mut().zip(&mine) {
        // SAFETY: the fields outlive the reports, awaited below.
        unsafe { end.exchange(field.exchange(*number, collective, me)) };
    }
    let mut expected: Vec<_> = mine.iter().map(|(number, _)| exchanged(*number)).collect();
    while !expected.is_empty() {
        let event = next_event(&mut end);
        let position = expected.iter().position(|one| *one == event);
        expected.remove(position.unwrap_or_else(|| panic!("{event:?} is not expected")));
    }
    for (field, (_, collective)) in fields.iter_mut().zip(&mine) {
        field.assert_exchanged(collective, me);
    }
    end.enter_barrier(TaskId::from_index(u64::MAX / 1024));
    assert_eq!(next_event(&mut end), CommEvent::BarrierReached, "others hear of nothing else");
    drop(end);
    meet();
}

/// The first two nodes come to operations with different parts, and others to none.
pub(in crate::conformance) fn among_some_are_told_apart<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let mut end = connect();
    let (me, nodes) = (end.node(), end.nodes());
    let length = if me == node(1) { 9 } else { 8 };
    let (extent, members) = (Box3::from_range([length]), Members::range(0, 2, nodes));
    let (from, to) = (Ends::One(node(0)), Ends::All);
    let collective = Arc::new(Collective { members, region: extent.into(), from, to });
    let mut field = Field::new(Keeping::Together, extent, &collective, me);
    if nodes > 1 && me.slot() < 2 {
        // SAFETY: the field is dropped after the end.
        unsafe { end.exchange(field.exchange(0, &collective, me)) };
        match next_event(&mut end) {
            CommEvent::Failed(CommunicationError::Apart { node: one, other, .. }) => {
                assert_eq!([one.min(other), one.max(other)], [0, 1].map(node));
            }
            event => panic!("{event:?}"),
        }
    }
    meet();
    end.abort(&failure(me, "apart"));
    drop(end);
    meet();
}

/// Some of some nodes have come, and one that has not stops the run. Then all is as before.
pub(in crate::conformance) fn among_some_do_not_outlive_an_abort<C: Communicator>(
    connect: &mut dyn FnMut() -> C,
    meet: &dyn Fn(),
) {
    let extent = Box3::from_range([300]);
    for come_all in [false, true] {
        let mut end = connect();
        let (me, nodes) = (end.node(), end.nodes());
        let members = Members::range(0, nodes.min(3), nodes);
        let (from, to) = (Ends::One(node(0)), Ends::All);
        let collective = Arc::new(Collective { members, region: extent.into(), from, to });
        let last = collective.members.iter(nodes).last().expect("there are some");
        let comes = collective.members.contains(me) && (come_all || me != last);
        let mut fields = [0, 1].map(|_| Field::new(Keeping::Together, extent, &collective, me));
        for (number, field) in (0..).zip(&mut fields).filter(|_| comes) {
            // SAFETY: the fields outlive the end.
            unsafe { end.exchange(field.exchange(number, &collective, me)) };
        }
        if !come_all {
            meet();
        }
        if me == last {
            end.abort(&failure(me, "over"));
        }
        loop {
            match next_event(&mut end) {
                CommEvent::Exchanged { .. } => assert!(come_all || nodes == 1, "one has not come"),
                CommEvent::Aborted(error) => break assert_eq!(error, failure(last, "over")),
                event => panic!("{event:?}"),
            }
        }
        let start = Instant::now();
        while !end.is_quiet() {
            assert_silent(&mut end);
            assert!(start.elapsed() < PATIENCE, "{me} does not become quiet");
        }
        drop(end);
        if !come_all && nodes > 1 {
            fields.iter_mut().for_each(|field| field.assert_untouched(&collective, me));
        }
        meet();
    }
    go_on(connect(), meet);
}
