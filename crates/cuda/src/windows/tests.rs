//! Windows between two nodes of one process, on a driver without GPUs.

use celerity_executor::BasePtr;
use celerity_idag::{DeviceId, MemoryId};
use celerity_regions::Box3;

use super::*;
use crate::address::pointer;
use crate::driver::FakeDriver;
use crate::memory::{GpuMemory, PagePool};

const CONFIG: WindowConfig = WindowConfig { slots: 2, slot_bytes: 1 << 16, least: 1 };

struct Node {
    windows: CudaWindows,
    memory: GpuMemory,
}

fn node(driver: &Arc<dyn Driver>, slot: u16) -> Node {
    let gpu = Gpu::from_slot(slot);
    let pages = Arc::new(PagePool::new(driver));
    let memory = GpuMemory::new(driver, gpu, None, pages, Vec::new()).unwrap();
    let gpus = [(gpu, 1 << 20, memory.fence().clone())];
    let windows = CudaWindows::new(driver, CONFIG, gpus).unwrap();
    Node { windows, memory }
}

fn pair() -> (Arc<dyn Driver>, Node, Node) {
    let driver: Arc<dyn Driver> = Arc::new(FakeDriver::new(2, 1 << 24));
    let (mut one, mut two) = (node(&driver, 0), node(&driver, 1));
    one.windows.open(NodeId::from_index(1), &two.windows.card()).unwrap();
    two.windows.open(NodeId::from_index(0), &one.windows.card()).unwrap();
    (driver, one, two)
}

#[test]
fn windows_without_room_for_a_piece_are_refused() {
    let driver: Arc<dyn Driver> = Arc::new(FakeDriver::new(1, 1 << 24));
    for (slots, slot_bytes) in [(0, 1 << 16), (1025, 1 << 16), (2, (1 << 16) - 1), (2, u64::MAX)] {
        let config = WindowConfig { slots, slot_bytes, least: 1 };
        let error = CudaWindows::new(&driver, config, []).err().expect("it is refused");
        let text = format!("asks for {slots} slots of {slot_bytes} bytes");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

fn wait(windows: &mut CudaWindows) -> Copied {
    loop {
        match windows.poll() {
            Some(copied) => return copied,
            None => std::thread::yield_now(),
        }
    }
}

fn on_device(address: u64, extent: Box3) -> MemoryArray {
    let at = MemoryId::of_device(DeviceId::from_index(0));
    MemoryArray {
        at,
        array: ElementArray { base: BasePtr::of_raw(pointer(address)).unwrap(), extent },
    }
}

#[test]
fn a_column_gets_from_one_gpu_to_another() {
    let (driver, mut one, mut two) = pair();
    let (extent, column) = (Box3::from_range([8, 8]), Box3::from_offset_range([0, 3], [8, 2]));
    let (source, target) = (one.memory.alloc(64, 1).unwrap(), two.memory.alloc(64, 1).unwrap());
    let bytes: Vec<u8> = (0..64).collect();
    let from = (AddressSpace::Host, bytes.as_ptr().expose_provenance() as u64);
    let to = (AddressSpace::Gpu(Gpu::from_slot(0)), source);
    let stream = one.windows.devices[0].fills.stream;
    // SAFETY: the bytes outlive the wait; the allocation is zeroed before the fence.
    unsafe {
        driver.wait(stream, one.memory.ready().unwrap().unwrap().1).unwrap();
        driver.copy(stream, &Transfer::flat(from, to, 64)).unwrap();
    }
    let copy = |id| WireCopy { id: CopyId(id), elements: column, elem_size: 1 };
    let slot = Slot { window: 0, number: 1 };
    // SAFETY: both allocations outlive the copies, which are awaited one by one.
    unsafe { one.windows.pack(copy(1), on_device(source, extent), slot) };
    assert_eq!(wait(&mut one.windows), Copied { id: CopyId(1), outcome: Ok(()) });
    let peer = NodeId::from_index(0);
    // SAFETY: as above.
    unsafe { two.windows.unpack(copy(2), peer, slot, on_device(target, extent)) };
    assert_eq!(wait(&mut two.windows), Copied { id: CopyId(2), outcome: Ok(()) });
    let mut found = vec![9_u8; 64];
    let on_host = BasePtr::of_mut_slice(&mut found);
    let on_host = MemoryArray { at: MemoryId::HOST, array: ElementArray { base: on_host, extent } };
    // SAFETY: as above.
    unsafe { two.windows.unpack(copy(3), peer, slot, on_host) };
    assert_eq!(wait(&mut two.windows).outcome, Ok(()));
    for (index, byte) in (0_u8..).zip(&found) {
        let expected = if (3..5).contains(&(index % 8)) { index } else { 9 };
        assert_eq!(*byte, expected, "{index}");
    }
}

#[test]
fn windows_of_nobody_and_slots_that_are_not_there_are_refused() {
    let (driver, mut one, two) = pair();
    let mut bytes = two.windows.card();
    bytes[0] ^= 1;
    let why = one.windows.open(NodeId::from_index(2), &bytes).unwrap_err();
    assert!(why.contains("something else"), "{why}");
    bytes[8] ^= 1;
    let why = one.windows.open(NodeId::from_index(2), &bytes).unwrap_err();
    assert!(why.contains("no memory of this host"), "{why}");
    assert!(one.windows.open(NodeId::from_index(2), &[1, 2]).is_err());
    let target = one.memory.alloc(64, 1).unwrap();
    let extent = Box3::from_range([64]);
    let copy = WireCopy { id: CopyId(0), elements: extent, elem_size: 1 };
    let slot = Slot { window: 0, number: CONFIG.slots };
    // SAFETY: the allocation outlives the copy, which does not begin.
    unsafe { one.windows.unpack(copy, NodeId::from_index(1), slot, on_device(target, extent)) };
    assert!(wait(&mut one.windows).outcome.is_err());
    drop(driver);
}

#[test]
fn where_processes_do_not_share_memory_there_are_no_windows() {
    let driver: Arc<dyn Driver> = Arc::new(FakeDriver::new(1, 1 << 24).without_sharing());
    let gpu = Gpu::from_slot(0);
    let pages = Arc::new(PagePool::new(&driver));
    let memory = GpuMemory::new(&driver, gpu, None, pages, Vec::new()).unwrap();
    let gpus = [(gpu, 1 << 20, memory.fence().clone())];
    let error = CudaWindows::new(&driver, CONFIG, gpus).map(drop).unwrap_err();
    assert!(error.to_string().contains("do not share"), "{error}");
    assert_eq!(driver.trim(gpu).unwrap(), 1 << 24, "nothing is left behind");
}
