//! What a device leaves behind when a kernel panics. Fixed layout.

use core::fmt;

/// Bytes for each text; longer ones are cut.
pub(crate) const TEXT_BYTES: usize = 256;

/// The texts of a record: who failed, where, and why.
pub(crate) const KERNEL: usize = 0;
pub(crate) const FILE: usize = 1;
pub(crate) const MESSAGE: usize = 2;

/// States of a record. A device goes from the first to the last in order.
#[cfg(any(test, target_arch = "nvptx64"))]
pub(crate) const EMPTY: u32 = 0;
#[cfg(target_arch = "nvptx64")]
pub(crate) const CLAIMED: u32 = 1;
pub(crate) const COMPLETE: u32 = 2;

/// The first panic of a module's kernels, in memory that host and device share.
///
/// All bytes are 0 before the first launch. The device writes `state` last.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Record {
    pub(crate) state: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) dims: u32,
    /// The chunk's first item.
    pub(crate) offset: [u64; 3],
    /// The thread's position, and items per thread along x; 0 in a tile, of which `offset` is the
    /// first item.
    pub(crate) position: [u32; 3],
    pub(crate) step: u32,
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

const _: () = assert!(size_of::<Record>() == Record::SIZE);

/// A panic on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// The item, or the first of the run that the thread was to take.
    pub item: [u64; 3],
    /// How many dimensions of `item` count.
    pub dims: usize,
    /// Whether it is any item of the tile that begins with `item`.
    pub is_tile: bool,
    /// The source file.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// The column in it.
    pub column: u32,
    /// What the panic said.
    pub message: &'a str,
}

impl Record {
    /// Bytes of a record.
    pub const SIZE: usize = 56 + 3 * (16 + TEXT_BYTES);

    /// The panic in a record that was copied from shared memory, or `None` if
    /// there was none, or it is not complete yet.
    #[must_use]
    pub fn read(bytes: &[u8; Self::SIZE]) -> Option<Failure<'_>> {
        let word = |at: usize| u32::from_ne_bytes(core::array::from_fn(|i| bytes[at + i]));
        if word(0) != COMPLETE {
            return None;
        }
        let dims = word(12).min(3) as usize;
        let is_tile = word(52) == 0;
        let text = |which: usize| {
            let start = 104 + which * TEXT_BYTES;
            text(&bytes[start..start + TEXT_BYTES], word(56 + 16 * which + 8))
        };
        Some(Failure {
            kernel: text(KERNEL),
            item: core::array::from_fn(|dim| {
                let at = 16 + 8 * dim;
                let first = u64::from_ne_bytes(core::array::from_fn(|i| bytes[at + i]));
                // The fastest dimension lies along x.
                let axis = (dims.max(dim + 1) - 1 - dim).min(2);
                let step = if axis == 0 { word(52) } else { 1 };
                // In tiles, no item is known by its thread.
                let position = if is_tile { 0 } else { word(40 + 4 * axis) };
                let along = u64::from(position) * u64::from(step);
                if dim < dims { first + along } else { 0 }
            }),
            dims,
            is_tile,
            file: text(FILE),
            line: word(4),
            column: word(8),
            message: text(MESSAGE),
        })
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, item, dims, is_tile, file, line, column, message } = self;
        let (item, of_tile) = (&item[..*dims], if *is_tile { " or one behind it" } else { "" });
        write!(f, "kernel `{kernel}`, item {item:?}{of_tile}, at {file}:{line}:{column}: {message}")
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

    use super::*;

    fn record() -> [u8; Record::SIZE] {
        let mut bytes = [0; Record::SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(Record, state), &COMPLETE.to_ne_bytes());
        put(offset_of!(Record, line), &7_u32.to_ne_bytes());
        put(offset_of!(Record, column), &9_u32.to_ne_bytes());
        put(offset_of!(Record, dims), &2_u32.to_ne_bytes());
        put(offset_of!(Record, offset), &3_u64.to_ne_bytes());
        put(offset_of!(Record, offset) + 8, &4_u64.to_ne_bytes());
        put(offset_of!(Record, position), &5_u32.to_ne_bytes());
        put(offset_of!(Record, position) + 4, &6_u32.to_ne_bytes());
        put(offset_of!(Record, step), &4_u32.to_ne_bytes());
        // The last is cut within a character of two bytes.
        for (which, (text, len)) in
            [("wave", 4_u64), ("lib.rs", 6), ("oh no\u{e9}", 6)].into_iter().enumerate()
        {
            let source = offset_of!(Record, sources) + which * size_of::<Source>();
            put(source + offset_of!(Source, len), &len.to_ne_bytes());
            put(offset_of!(Record, texts) + which * TEXT_BYTES, text.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_complete_record_names_everything() {
        let failure = record();
        let failure = Record::read(&failure).unwrap();
        assert_eq!((failure.kernel, failure.file, failure.line), ("wave", "lib.rs", 7));
        assert_eq!(failure.item[..failure.dims], [3 + 6, 4 + 4 * 5]);
    }

    #[test]
    fn in_a_tile_its_first_item_is_named() {
        let mut failure = record();
        failure[offset_of!(Record, step)..][..4].copy_from_slice(&[0; 4]);
        let failure = Record::read(&failure).unwrap();
        assert_eq!(failure.item[..failure.dims], [3, 4]);
        let text = std::format!("{failure}");
        assert!(text.contains("`wave`, item [3, 4] or one behind it, at lib.rs"), "{text}");
    }

    #[test]
    fn text_that_was_cut_within_a_character_ends_before_it() {
        assert_eq!(Record::read(&record()).unwrap().message, "oh no");
    }

    #[test]
    fn an_incomplete_record_is_no_failure() {
        let mut bytes = record();
        bytes[0] = EMPTY as u8;
        assert_eq!(Record::read(&bytes), None);
    }
}
