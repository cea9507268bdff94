//! Collective operations in one process: who has not come is known, and said.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{
    BasePtr, CollectiveExchange, CommEvent, Communicator, CpuPool, ElementArray, MemoryPart,
    WaitsFor, Waker, local_cluster,
};
use celerity_idag::MemoryId;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};

const NODES: usize = 3;

/// A broadcast of a line from `N1`, as `node` sees it.
fn broadcast(node: usize, line: &mut [u8; 8]) -> CollectiveExchange {
    let (root, node) = (NodeId::from_index(1), NodeId::from_index(node as u64));
    let extent = Box3::from_range([line.len()]);
    let collective = Arc::new(Collective {
        members: Members::all(),
        region: extent.into(),
        from: Ends::One(root),
        to: Ends::All,
    });
    let memory = ElementArray { base: BasePtr::of_mut_slice(line), extent };
    let part = |region: Region| {
        let part = (!region.is_empty()).then_some(MemoryPart { memory, region });
        part.into_iter().collect()
    };
    let (consumer, buffer) = (TaskId::from_index(7), BufferId::from_index(0));
    CollectiveExchange {
        transfer: TransferId { consumer, buffer },
        elem_size: 1,
        at: MemoryId::HOST,
        sources: part(collective.provided_by(node).into_owned()),
        targets: part(collective.arriving_at(node)),
        collective,
    }
}

#[test]
fn who_has_not_come_is_known() {
    let pool = CpuPool::new(1).unwrap();
    let mut lines = [[0; 8], [5; 8], [0; 8]];
    let mut ends = local_cluster((0..NODES).map(|_| Arc::new(|| {}) as Waker).collect(), &pool);
    let mut come = |ends: &mut Vec<_>, node: usize| {
        let part = broadcast(node, &mut lines[node]);
        let transfer = part.transfer;
        let end: &mut celerity_executor::LocalCommunicator = &mut ends[node];
        // SAFETY: the lines outlive the ends, which were made later.
        unsafe { end.exchange(part) };
        end.absent(transfer)
    };
    let nodes = |indices: &[u64]| -> Vec<_> {
        indices.iter().map(|index| NodeId::from_index(*index)).collect()
    };
    assert_eq!(come(&mut ends, 2), nodes(&[0, 1]));
    assert_eq!(ends[2].poll(), None);
    assert_eq!(come(&mut ends, 0), nodes(&[1]));
    assert_eq!(come(&mut ends, 1), nodes(&[]));
    for end in &mut ends {
        assert!(matches!(end.poll(), Some(CommEvent::Exchanged { .. })));
        assert_eq!(end.poll(), None);
    }
    drop(ends);
    assert_eq!(lines, [[5; 8]; 3]);
}

#[test]
fn what_waits_says_for_whom() {
    let absent = [1, 4].map(NodeId::from_index).into();
    let text = |reason: WaitsFor| reason.to_string();
    assert_eq!(text(WaitsFor::Collective { absent }), "waits for N1, N4 to come to it");
    let nobody = WaitsFor::Collective { absent: Vec::new() };
    assert_eq!(text(nobody), "waits for the other nodes' parts in it");
    assert_eq!(text(WaitsFor::Turn), "waits for earlier collective operations to begin");
}
