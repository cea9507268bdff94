//! What a device leaves behind when a kernel panics. Fixed layout.

use core::fmt;

use super::blocks::LaunchBlock;
use super::message::{Numbers, PanicMessage};
use super::place::{Edges, Place, Thread, Traversal, Traverse, visit};
use super::values::{ARE_VALUES, NUMBERS};
use super::{RUN, STACK};

/// Bytes for each text; longer ones are cut.
pub(crate) const TEXT_BYTES: usize = 256;

/// The texts of a record: who failed, where, and why.
pub(crate) const KERNEL: usize = 0;
pub(crate) const FILE: usize = 1;
pub(crate) const MESSAGE: usize = 2;

/// Where `sources` begin.
const SOURCES: usize = KINDS + 8;

/// Where the kinds of values are.
const KINDS: usize = 112 + 8 * NUMBERS;

/// States of a record. A device goes from the first to the last in order.
#[cfg(any(test, target_arch = "nvptx64"))]
pub(crate) const EMPTY: u32 = 0;
pub(crate) const CLAIMED: u32 = 1;
pub(crate) const COMPLETE: u32 = 2;

/// The first panic of a module's kernels, in memory that host and device share.
///
/// All bytes are 0 before the first launch, and are made 0 again when a panic has been read: a device
/// writes only what there is. It writes `state` last.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PanicRecord {
    pub(crate) state: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) dims: u32,
    /// The chunk's first item.
    pub(crate) offset: [u64; 3],
    /// The last eight bytes of the [`LaunchBlock`]. No items per thread in a tile, of which
    /// `offset` is the first item.
    pub(crate) shape: u64,
    /// Where runs begin and end in rows, and the size of a row, in blocks behind those of runs.
    pub(crate) edges: [u64; 3],
    pub(crate) thread: Thread,
    /// One more than the length of each list in `numbers`, or 0: the message has no numbers. [`ARE_VALUES`]: its
    /// values are of `kinds`.
    pub(crate) lists: u32,
    /// What names in the message stand for, or its values.
    pub(crate) numbers: [u64; NUMBERS],
    pub(crate) kinds: u64,
    /// Where the texts are on the device, and their lengths.
    pub(crate) sources: [Source; 3],
    pub(crate) texts: [[u8; TEXT_BYTES]; 3],
}

/// A text in the device's memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Source {
    pub(crate) address: u64,
    pub(crate) len: u64,
}

const _: () = assert!(size_of::<PanicRecord>() == PanicRecord::SIZE);

/// A panic on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePanic<'a> {
    /// The name of the kernel that panicked.
    pub kernel: &'a str,
    /// The item, or the first of those that the thread was to take.
    pub item: [u64; 3],
    /// How many dimensions of `item` count.
    pub dims: usize,
    /// Whether it may be another one as well: of the tile that begins with `item`, of the run that
    /// does, or some rows or planes further on.
    pub is_first: bool,
    /// The path of the source file that the kernel stands in.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// The column in it.
    pub column: u32,
    /// What the panic said.
    pub message: PanicMessage<'a>,
}

impl PanicRecord {
    /// Bytes of a record.
    pub const SIZE: usize = SOURCES + 3 * (16 + TEXT_BYTES);

    /// Whether a record that begins with `state` has been claimed by a thread that is not done with it.
    #[must_use]
    pub const fn is_being_written(state: u32) -> bool {
        state == CLAIMED
    }

    /// The panic in a record that was copied from shared memory, or `None` if
    /// there was none, or it is not complete yet.
    #[must_use]
    pub fn read(bytes: &[u8; Self::SIZE]) -> Option<DevicePanic<'_>> {
        let word = |at: usize| u32::from_ne_bytes(core::array::from_fn(|i| bytes[at + i]));
        if word(0) != COMPLETE {
            return None;
        }
        let three = |at: usize| core::array::from_fn(|i| word(at + 4 * i));
        let long = |at: usize| u64::from_ne_bytes(core::array::from_fn(|i| bytes[at + i]));
        let long_three = |at: usize| core::array::from_fn(|i| long(at + 8 * i));
        let dims = word(12).min(3) as usize;
        let (run, steps, stack) = (long(40) as u16, bytes[42], bytes[43].max(1));
        let some = some_launch(dims, long_three(16));
        let launch = LaunchBlock { run, steps, stack, blocks: word(44), ..some };
        let thread = Thread { block: three(72), thread: three(84), threads: three(96) };
        let (item, is_first) = first_item(dims, launch, long_three(48), &thread);
        let text = |which: usize| {
            let start = SOURCES + 3 * 16 + which * TEXT_BYTES;
            text(&bytes[start..start + TEXT_BYTES], word(SOURCES + 16 * which + 8))
        };
        Some(DevicePanic {
            kernel: text(KERNEL),
            item,
            dims,
            is_first,
            file: text(FILE),
            line: word(4),
            column: word(8),
            message: PanicMessage {
                text: text(MESSAGE),
                numbers_are: match word(108) {
                    0 => Numbers::Nothing,
                    ARE_VALUES => Numbers::Values { kinds: long(KINDS) },
                    lists => Numbers::Named { dims: lists as usize - 1 },
                },
                numbers: core::array::from_fn(|nth| long(112 + 8 * nth)),
            },
        })
    }
}

/// A launch from `offset` on, of whose size nothing is known.
fn some_launch(dims: usize, offset: [u64; 3]) -> LaunchBlock {
    // Sizes along y and z are numbers of 32 bits.
    let range =
        core::array::from_fn(|dim| if dim + 1 == dims { u64::MAX } else { u32::MAX.into() });
    LaunchBlock::one_by_one(offset, range)
}

/// The first item that a thread takes, and whether it takes others.
fn first_item(
    dims: usize,
    mut launch: LaunchBlock,
    [left, behind, row]: [u64; 3],
    thread: &Thread,
) -> ([u64; 3], bool) {
    // In tiles, no item is known by its thread.
    if launch.run == 0 {
        return (launch.offset, true);
    }
    if launch.run > 1 && thread.block[0] >= launch.blocks {
        let fastest = dims.saturating_sub(1);
        (launch.inner_min[fastest], launch.inner_max[fastest]) = (left, behind);
        launch.range[fastest] = row;
    }
    match dims {
        0 => (launch.offset, false),
        1 => first_of::<1>(&launch, thread),
        2 => first_of::<2>(&launch, thread),
        _ => first_of::<3>(&launch, thread),
    }
}

/// A kernel that takes runs of so many items, in stacks of so many, if its launch does.
struct InRuns<const RUN: usize, const STACK: usize>;

impl<const RUN: usize, const STACK: usize> Traverse for InRuns<RUN, STACK> {
    const TRAVERSAL: Traversal =
        Traversal { run: RUN, by_item: false, edges: Edges::Apart, stack: STACK, is_joined: true };
}

fn first_of<const K: usize>(launch: &LaunchBlock, thread: &Thread) -> ([u64; 3], bool) {
    let (mut first, mut taken) = (None, 0);
    let take = |place: Place<K>| {
        first.get_or_insert(place.start);
        taken += place.len;
    };
    match (launch.run, launch.stack) {
        (2, 1) => visit::<K, InRuns<2, 1>>(launch, thread, take),
        (2, _) => visit::<K, InRuns<2, STACK>>(launch, thread, take),
        (_, 1) => visit::<K, InRuns<RUN, 1>>(launch, thread, take),
        (_, _) => visit::<K, InRuns<RUN, STACK>>(launch, thread, take),
    }
    let first: [usize; K] = first.unwrap_or([0; K]);
    (core::array::from_fn(|dim| first.get(dim).map_or(0, |&index| index as u64)), taken > 1)
}

impl fmt::Display for DevicePanic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, item, dims, is_first, file, line, column, message } = self;
        let (item, others) = (&item[..*dims], if *is_first { " or one behind it" } else { "" });
        write!(f, "kernel `{kernel}`, item {item:?}{others}, at {file}:{line}:{column}: {message}")
    }
}

/// The text in the first `len` of `bytes`, up to where it was cut.
fn text(bytes: &[u8], len: u32) -> &str {
    let bytes = &bytes[..(len as usize).min(bytes.len())];
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(cut) => core::str::from_utf8(&bytes[..cut.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;
    use std::string::ToString;
    use std::vec;

    use super::*;

    fn record() -> [u8; PanicRecord::SIZE] {
        let mut bytes = [0; PanicRecord::SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(PanicRecord, state), &COMPLETE.to_ne_bytes());
        put(offset_of!(PanicRecord, line), &7_u32.to_ne_bytes());
        put(offset_of!(PanicRecord, column), &9_u32.to_ne_bytes());
        put(offset_of!(PanicRecord, dims), &2_u32.to_ne_bytes());
        put(offset_of!(PanicRecord, offset), &3_u64.to_ne_bytes());
        put(offset_of!(PanicRecord, offset) + 8, &4_u64.to_ne_bytes());
        // Runs of four, two steps, five blocks of runs. Rows begin with one item in no run.
        put(offset_of!(PanicRecord, shape), &(4_u64 | 2 << 16 | 1 << 24 | 5 << 32).to_ne_bytes());
        for (nth, edge) in [4_u64, 40, 41].into_iter().enumerate() {
            put(offset_of!(PanicRecord, edges) + 8 * nth, &edge.to_ne_bytes());
        }
        for (nth, size) in [1_u32, 3, 0, 1, 1, 0, 2, 2, 1].into_iter().enumerate() {
            put(offset_of!(PanicRecord, thread) + 4 * nth, &size.to_ne_bytes());
        }
        // The last is cut within a character of two bytes.
        for (which, (text, len)) in
            [("wave", 4_u64), ("lib.rs", 6), ("oh no\u{e9}", 6)].into_iter().enumerate()
        {
            let source = offset_of!(PanicRecord, sources) + which * size_of::<Source>();
            put(source + offset_of!(Source, len), &len.to_ne_bytes());
            put(offset_of!(PanicRecord, texts) + which * TEXT_BYTES, text.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_complete_record_names_everything() {
        let failure = record();
        let failure = PanicRecord::read(&failure).unwrap();
        assert_eq!((failure.kernel, failure.file, failure.line), ("wave", "lib.rs", 7));
        assert_eq!(failure.item[..failure.dims], [3 + 3 * 4 + 1, 4 + 4 * 3]);
        assert!(failure.is_first);
    }

    #[test]
    fn of_a_stack_the_lowest_item_is_named() {
        let mut bytes = record();
        // Four steps, which are one stack; then eight, which are two.
        for (steps, first) in [(4, 3 + 4 * 6 + 4), (8, 3 + 8 * 6 + 4)] {
            bytes[offset_of!(PanicRecord, shape) + 2..][..2].copy_from_slice(&[steps, STACK as u8]);
            let failure = PanicRecord::read(&bytes).unwrap();
            assert_eq!(failure.item[..failure.dims], [first, 4 + 4 * 3]);
            assert!(failure.is_first);
        }
    }

    #[test]
    fn an_item_in_no_run_is_named_itself() {
        let mut bytes = record();
        bytes[offset_of!(PanicRecord, thread)] = 6;
        // The fourth thread of the second block there: of five in a row, the third of the second.
        let failure = PanicRecord::read(&bytes).unwrap();
        assert_eq!(failure.item[..failure.dims], [3 + 3 * 4 + 1, 4 + 2]);
        // One of two steps.
        assert!(failure.is_first);
        bytes[offset_of!(PanicRecord, shape) + 2] = 1;
        let failure = PanicRecord::read(&bytes).unwrap();
        assert_eq!(failure.item[..failure.dims], [3 + 3 * 2 + 1, 4 + 2]);
        assert!(!failure.is_first);
    }

    #[test]
    fn a_kernel_that_takes_items_one_by_one_names_the_one() {
        let mut bytes = record();
        bytes[offset_of!(PanicRecord, shape)..][..8]
            .copy_from_slice(&(1_u64 | 1 << 16).to_ne_bytes());
        let failure = PanicRecord::read(&bytes).unwrap();
        assert_eq!(
            (failure.item[..failure.dims].to_vec(), failure.is_first),
            (vec![3 + 7, 4 + 3], false)
        );
    }

    #[test]
    fn in_a_tile_its_first_item_is_named() {
        let mut failure = record();
        failure[offset_of!(PanicRecord, shape)..][..2].copy_from_slice(&[0; 2]);
        let failure = PanicRecord::read(&failure).unwrap();
        assert_eq!(failure.item[..failure.dims], [3, 4]);
        let text = std::format!("{failure}");
        assert!(text.contains("`wave`, item [3, 4] or one behind it, at lib.rs"), "{text}");
    }

    #[test]
    fn text_that_was_cut_within_a_character_ends_before_it() {
        let record = record();
        let message = PanicRecord::read(&record).unwrap().message;
        assert_eq!(message.to_string(), "oh no");
    }

    #[test]
    fn numbers_stand_where_the_message_names_them() {
        let mut bytes = record();
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let text = "index {index} of {index}";
        put(offset_of!(PanicRecord, texts) + MESSAGE * TEXT_BYTES, text.as_bytes());
        let source = offset_of!(PanicRecord, sources) + MESSAGE * size_of::<Source>();
        put(source + offset_of!(Source, len), &(text.len() as u64).to_ne_bytes());
        put(offset_of!(PanicRecord, lists), &3_u32.to_ne_bytes());
        for (nth, number) in [7_u64, 8, 0, 5, 6].into_iter().enumerate() {
            put(offset_of!(PanicRecord, numbers) + 8 * nth, &number.to_ne_bytes());
        }
        let text = PanicRecord::read(&bytes).unwrap().to_string();
        assert!(text.ends_with("at lib.rs:7:9: index [7, 8] of [5, 6]"), "{text}");
        // What a kernel says by itself may have braces.
        bytes[offset_of!(PanicRecord, lists)] = 0;
        let text = PanicRecord::read(&bytes).unwrap().to_string();
        assert!(text.ends_with("index {index} of {index}"), "{text}");
    }

    #[test]
    fn an_incomplete_record_is_no_failure() {
        let mut bytes = record();
        bytes[0] = EMPTY as u8;
        assert_eq!(PanicRecord::read(&bytes), None);
    }
}
