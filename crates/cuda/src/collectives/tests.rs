//! Operations between two nodes of one process, on a driver without GPUs.

use celerity_cdag::TransferId;
use celerity_cpd::{Collective, Ends, Members};
use celerity_executor::{BasePtr, ElementArray, MemoryPart};
use celerity_idag::{DeviceId, MemoryId};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, TaskId};

use super::*;
use crate::address::pointer;
use crate::driver::{AddressSpace, FakeDriver, Transfer};
use crate::memory::{GpuMemory, PagePool};

struct Node {
    collectives: CudaCollectives,
    memory: GpuMemory,
}

/// Two nodes that have joined.
fn pair() -> (Arc<dyn Driver>, [Node; 2]) {
    let fake = FakeDriver::new(2, 1 << 24);
    let nccl: Arc<dyn Nccl> = Arc::new(fake.nccl());
    let driver: Arc<dyn Driver> = Arc::new(fake);
    let mut nodes = [0, 1].map(|slot| {
        let (gpu, pages) = (Gpu::from_slot(slot), Arc::new(PagePool::new(&driver)));
        let memory = GpuMemory::new(&driver, gpu, None, pages, Vec::new()).unwrap();
        let of_gpu = (gpu, 1 << 20, memory.fence().clone());
        let terms = CollectiveTerms::default();
        let collectives = CudaCollectives::new(&driver, nccl.clone(), terms, of_gpu).unwrap();
        Node { collectives, memory }
    });
    let card = nodes[0].collectives.invite().unwrap();
    for (node, index) in nodes.iter_mut().zip(0..) {
        node.collectives.join(&card, NodeId::from_index(index), 2).unwrap();
    }
    for node in &mut nodes {
        let joined = (0..10).find_map(|_| node.collectives.joined());
        assert_eq!(joined, Some(Ok(())));
    }
    (driver, nodes)
}

fn wait(node: &mut Node) -> Copied {
    loop {
        match node.collectives.poll() {
            Some(copied) => return copied,
            None => std::thread::yield_now(),
        }
    }
}

/// A node's part in a gather of two columns of bytes each, which lies at an address.
fn gathered(node: u64, address: u64) -> CollectiveExchange {
    let extent = Box3::from_range([4, 4]);
    let column = |at: usize| Region::from(Box3::from_offset_range([0, at], [4, 2]));
    let from = Ends::Each(Arc::from([column(0), column(2)]));
    let collective =
        Collective { members: Members::all(), region: extent.into(), from, to: Ends::All };
    let node = NodeId::from_index(node);
    let memory = ElementArray { base: BasePtr::of_raw(pointer(address)).unwrap(), extent };
    let part = |region| Box::from([MemoryPart { memory, region }]);
    let (consumer, buffer) = (TaskId::from_index(1), BufferId::from_index(0));
    CollectiveExchange {
        transfer: TransferId { consumer, buffer },
        elem_size: 1,
        at: MemoryId::of_device(DeviceId::from_index(0)),
        sources: part(collective.provided_by(node).into_owned()),
        targets: part(collective.arriving_at(node)),
        collective: Arc::new(collective),
    }
}

/// Copies 16 bytes between a GPU and the host, and waits.
fn copy(driver: &dyn Driver, node: &Node, slot: u16, address: u64, bytes: &mut [u8; 16], to: bool) {
    let there = (AddressSpace::Gpu(Gpu::from_slot(slot)), address);
    let here = (AddressSpace::Host, bytes.as_mut_ptr().expose_provenance() as u64);
    let (source, target) = if to { (here, there) } else { (there, here) };
    let stream = node.collectives.side.stream;
    // SAFETY: both outlive the wait.
    unsafe {
        driver.wait(stream, node.memory.ready().unwrap().unwrap().1).unwrap();
        driver.copy(stream, &Transfer::flat(source, target, 16)).unwrap();
    }
    driver.synchronize(stream).unwrap();
}

#[test]
fn columns_are_gathered_by_way_of_dense_memory() {
    let (driver, mut nodes) = pair();
    let places = nodes.each_mut().map(|node| node.memory.alloc(16, 1).unwrap());
    let mut bytes = [[1_u8; 16], [2_u8; 16]];
    for slot in [0, 1] {
        let place = places[usize::from(slot)];
        copy(&*driver, &nodes[usize::from(slot)], slot, place, &mut bytes[usize::from(slot)], true);
    }
    for (index, node) in (0..).zip(&mut nodes) {
        let exchange = gathered(index, places[index as usize]);
        // SAFETY: the memory outlives the operation, which is awaited.
        unsafe { node.collectives.begin(CopyId(index), &exchange) };
    }
    for (index, node) in (0..).zip(&mut nodes) {
        assert_eq!(wait(node), Copied { id: CopyId(index), outcome: Ok(()) });
    }
    for slot in [0, 1] {
        let mut found = [0; 16];
        let place = places[usize::from(slot)];
        copy(&*driver, &nodes[usize::from(slot)], slot, place, &mut found, false);
        assert_eq!(found, [[1, 1, 2, 2]; 4].concat()[..], "on GPU {slot}");
    }
}

#[test]
fn who_waits_for_nobody_any_more_is_told_that_all_have_failed() {
    let (_driver, mut nodes) = pair();
    let [waiting, absent] = &mut nodes;
    let place = waiting.memory.alloc(16, 1).unwrap();
    for id in [0, 1] {
        // SAFETY: the memory outlives the operations, which are awaited.
        unsafe { waiting.collectives.begin(CopyId(id), &gathered(0, place)) };
    }
    for _ in 0..100 {
        assert_eq!(waiting.collectives.poll(), None, "the other node does not come");
    }
    waiting.collectives.abort();
    let mut ended = [wait(waiting), wait(waiting)].map(|copied| {
        let why = copied.outcome.unwrap_err();
        assert_eq!(why, "the run was aborted");
        copied.id.0
    });
    ended.sort_unstable();
    assert_eq!(ended, [0, 1]);
    assert_eq!(waiting.collectives.poll(), None);
    // Nothing begins any more.
    // SAFETY: as above.
    unsafe { waiting.collectives.begin(CopyId(2), &gathered(0, place)) };
    assert!(wait(waiting).outcome.is_err());
    absent.collectives.abort();
}
