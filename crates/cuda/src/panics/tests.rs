//! Panics on a GPU without a GPU.

use super::*;
use crate::driver::{FakeDriver, Gpu, Image, LaunchSize};

/// A module of which [`panicking`] knows the kernel.
pub(crate) const PANICKING: &str = "step celerity_record";

/// A GPU whose kernel `step` panics at item 5 when its first parameter is 13.
pub(crate) fn panicking() -> FakeDriver {
    let fake = FakeDriver::new(1, 1 << 20).with_variable("celerity_record", &[0]);
    fake.with_kernel("step", |launch| {
        if launch.parameter::<u64>(0) == 13 {
            let variable = pointer(launch.variables["celerity_record"]).cast::<*mut u8>();
            // SAFETY: the backend has made it point to a record, and no other
            // kernel runs.
            unsafe { record_panic(*variable) };
        }
        Ok(())
    })
}

/// # Safety
/// There is a record, and nobody else writes it.
unsafe fn record_panic(record: *mut u8) {
    let texts = [(0, "step"), (1, "lib.rs"), (2, "no fuel for {} in {index}")];
    // SAFETY: inside of a record, as the caller says.
    let put = |at: usize, bytes: &[u8]| unsafe {
        record.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    };
    // Line, column and dimensions; runs of one item and one step; the sixth of eight threads. Lists of
    // one number each.
    let words = [(1, 7_u32), (2, 9), (3, 1), (10, 0x1_0001), (21, 5), (24, 8), (25, 1), (26, 1)];
    for (word, value) in words.into_iter().chain([(27, 2)]) {
        put(4 * word, &value.to_ne_bytes());
    }
    for (nth, number) in [13_u64, 4].into_iter().enumerate() {
        put(112 + 8 * nth, &number.to_ne_bytes());
    }
    for (which, text) in texts {
        put(216 + 16 * which + 8, &text.len().to_ne_bytes());
        put(264 + 256 * which, text.as_bytes());
    }
    put(0, &2_u32.to_ne_bytes());
}

/// Two nodes of a process that share a GPU share its records: the kernel of one may be at it when that of the other
/// has ended.
#[test]
fn a_record_that_is_being_written_is_waited_for() {
    let fake: Arc<dyn Driver> = Arc::new(panicking());
    let loaded = fake.load(Gpu::from_slot(0), Image::Ptx(PANICKING)).unwrap();
    let record = GpuPanics::install(&fake, loaded).unwrap().unwrap();
    record.state().store(1, Ordering::Release);
    assert!(record.is_set());
    let said = std::thread::scope(|scope| {
        let taken = scope.spawn(|| record.take());
        std::thread::sleep(std::time::Duration::from_millis(20));
        // SAFETY: it is a record, which is claimed.
        unsafe { record_panic(pointer(record.address)) };
        taken.join().unwrap()
    });
    assert!(said.unwrap().contains("no fuel"));
    assert!(!record.is_set());
}

/// Both of two nodes may have seen it before one of them takes it: neither has a kernel without a message.
#[test]
fn a_panic_is_found_once_and_told_to_all_who_have_seen_it() {
    let fake: Arc<dyn Driver> = Arc::new(panicking());
    let gpu = Gpu::from_slot(0);
    let loaded = fake.load(gpu, Image::Ptx(PANICKING)).unwrap();
    let record = GpuPanics::install(&fake, loaded).unwrap().unwrap();
    assert!(!record.is_set());
    let function = fake.function(loaded, "step").unwrap();
    let stream = fake.create_stream(gpu).unwrap();
    let size = LaunchSize { grid: [1; 3], block: [1; 3], shared_bytes: 0 };
    // SAFETY: it takes one number and touches the record.
    unsafe { fake.launch(stream, function, size, &13_u64.to_ne_bytes()).unwrap() };
    fake.synchronize(stream).unwrap();
    assert!(record.is_set());
    assert!(record.take().unwrap().ends_with("no fuel for 13 in [4]"));
    assert!(!record.is_set());
    assert!(record.take().unwrap().ends_with("no fuel for 13 in [4]"));
}
