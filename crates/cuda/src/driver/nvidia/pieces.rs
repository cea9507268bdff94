//! Many small pieces at once. Each copy costs the host a microsecond and the GPU another; the threads of a GPU, which reach pinned
//! memory of the host and that of linked GPUs, move hundreds in one launch.
#![allow(unsafe_code)]

use cudarc::driver::sys;

use super::code;
use super::{DriverError, Image, LaunchSize, Transfer};

/// From so many pieces on, a launch takes less time than a copy for each: 10 µs on an H200, where 4 copies take 11 and 16 take 33.
const FEWEST: usize = 8;

/// Bytes that a piece has at most, on average: copy engines are faster with larger ones, and leave the GPU to others.
const LARGEST: u64 = 4 << 10;

/// Bytes from which on a single piece is not for one warp.
const LARGEST_SINGLE: u64 = 1 << 20;

/// So many pieces fit into the parameters of a launch, of which there are 4 KiB.
const MOST: usize = 339;

/// Threads of a block: of several warps, each of which moves a piece.
const THREADS: usize = 256;

/// Pieces that one launch moves: distances from two addresses, and lengths, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Batch {
    from: u64,
    to: u64,
    pieces: Vec<[u32; 3]>,
}

/// Whether threads move these sooner than copies would. There is at least one, then.
pub(super) fn are_worth_a_launch(transfers: &[Transfer]) -> bool {
    if transfers.len() < FEWEST {
        return false;
    }
    let rows = |transfer: &Transfer| transfer.rows * transfer.planes;
    let pieces: u64 = transfers.iter().map(rows).sum();
    let bytes: u64 = transfers.iter().map(|transfer| transfer.row * rows(transfer)).sum();
    // A copy engine takes the rows of a box in one go.
    let are_boxes = pieces / 8 > transfers.len() as u64;
    let fit = transfers.iter().all(|transfer| transfer.row <= LARGEST_SINGLE);
    !are_boxes && fit && bytes / pieces.max(1) <= LARGEST
}

/// The kernel. The context of its GPU is current.
pub(super) fn load() -> Result<sys::CUfunction, DriverError> {
    let module = code::load(Image::Ptx(include_str!("pieces.ptx")))?;
    code::function(module, "move_pieces")
}

/// Moves all rows of all transfers.
///
/// # Safety
/// As for [`Driver::copy_all`](crate::driver::Driver::copy_all); the threads of the stream's GPU, whose `mover` was loaded there,
/// can touch both sides.
pub(super) unsafe fn move_all(
    stream: sys::CUstream,
    mover: sys::CUfunction,
    transfers: &[Transfer],
) -> Result<(), DriverError> {
    batches(transfers).try_for_each(|batch| {
        let count = u32::try_from(batch.pieces.len()).expect("at most as many as fit");
        let blocks = batch.pieces.len().div_ceil(THREADS / 32);
        let blocks = u32::try_from(blocks).expect("not more than pieces");
        let size =
            LaunchSize { grid: [blocks, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0 };
        // SAFETY: the parameters are what the kernel expects, and the rest is the caller's promise.
        unsafe { code::launch(stream, mover, size, &parameters(&batch, count)) }
    })
}

/// What the kernel is given: two addresses, a number, and a table of a fixed size.
fn parameters(batch: &Batch, count: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + 12 * MOST);
    bytes.extend(batch.from.to_ne_bytes());
    bytes.extend(batch.to.to_ne_bytes());
    bytes.extend(count.to_ne_bytes());
    bytes.extend(batch.pieces.iter().flatten().flat_map(|number| number.to_ne_bytes()));
    bytes.resize(20 + 12 * MOST, 0);
    bytes
}

/// The rows of transfers, as many at a time as a launch can move.
fn batches(transfers: &[Transfer]) -> impl Iterator<Item = Batch> {
    let mut rows = transfers.iter().flat_map(rows_of).peekable();
    std::iter::from_fn(move || {
        let &(from, to, _) = rows.peek()?;
        let mut pieces = Vec::new();
        while pieces.len() < MOST
            && let Some(piece) = rows.peek().and_then(|row| relative(*row, from, to))
        {
            pieces.push(piece);
            rows.next();
        }
        Some(Batch { from, to, pieces })
    })
}

/// A row as distances from two addresses, if it lies behind both and not too far.
fn relative((from, to, bytes): (u64, u64, u64), first: u64, second: u64) -> Option<[u32; 3]> {
    let narrow = |distance: Option<u64>| distance.and_then(|distance| u32::try_from(distance).ok());
    Some([
        narrow(from.checked_sub(first))?,
        narrow(to.checked_sub(second))?,
        u32::try_from(bytes).expect("one row of a small piece"),
    ])
}

/// From where to where each row of a transfer goes, and its bytes.
fn rows_of(transfer: &Transfer) -> impl Iterator<Item = (u64, u64, u64)> {
    let Transfer { source, target, row: bytes, rows, planes } = *transfer;
    let positions = (0..planes).flat_map(move |plane| (0..rows).map(move |row| (plane, row)));
    positions.map(move |(plane, row)| (source.row(plane, row), target.row(plane, row), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{AddressSpace, TransferEnd};

    fn flat(from: u64, to: u64, bytes: u64) -> Transfer {
        Transfer::flat((AddressSpace::Host, from), (AddressSpace::Host, to), bytes)
    }

    fn rows_of_all(batches: &[Batch]) -> Vec<(u64, u64, u64)> {
        let rows = batches.iter().flat_map(|batch| {
            let row = |&[from, to, bytes]: &[u32; 3]| {
                (batch.from + u64::from(from), batch.to + u64::from(to), u64::from(bytes))
            };
            batch.pieces.iter().map(row)
        });
        rows.collect()
    }

    #[test]
    fn a_launch_moves_as_many_pieces_as_its_parameters_name() {
        let transfers: Vec<_> =
            (0..700).map(|nth| flat(100 + 8 * nth, 7000 + 64 * nth, 4)).collect();
        let batches: Vec<_> = batches(&transfers).collect();
        assert_eq!(
            batches.iter().map(|batch| batch.pieces.len()).collect::<Vec<_>>(),
            [339, 339, 22]
        );
        let expected: Vec<_> = (0..700).map(|nth| (100 + 8 * nth, 7000 + 64 * nth, 4)).collect();
        assert_eq!(rows_of_all(&batches), expected);
        let parameters = parameters(&batches[2], 22);
        assert!(parameters.len() == 4088 && parameters[16..20] == 22_u32.to_ne_bytes());
        assert_eq!(parameters[32..44], [8_u32, 64, 4].map(u32::to_ne_bytes).concat());
    }

    #[test]
    fn what_lies_before_or_far_behind_begins_another_launch() {
        let far = u64::from(u32::MAX);
        let transfers =
            [flat(50, 50, 1), flat(50 + far, 51, 1), flat(51 + far, 52, 1), flat(9, 9, 1)];
        let batches: Vec<_> = batches(&transfers).collect();
        assert_eq!(batches.iter().map(|batch| batch.pieces.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(rows_of_all(&batches)[2], (51 + far, 52, 1));
    }

    #[test]
    fn rows_of_boxes_are_pieces() {
        let side = |address, pitch, rows_per_plane| TransferEnd {
            place: AddressSpace::Host,
            address,
            pitch,
            rows_per_plane,
        };
        let transfer = Transfer {
            source: side(1000, 100, 7),
            target: side(0, 10, 2),
            row: 10,
            rows: 2,
            planes: 2,
        };
        let rows: Vec<_> = rows_of(&transfer).collect();
        assert_eq!(rows, [(1000, 0, 10), (1100, 10, 10), (1700, 20, 10), (1800, 30, 10)]);
    }

    #[test]
    fn few_or_large_pieces_are_copied() {
        let many = |count: u64, bytes| {
            (0..count).map(|nth| flat(nth * bytes, nth * bytes, bytes)).collect::<Vec<_>>()
        };
        assert!(are_worth_a_launch(&many(8, 4)) && are_worth_a_launch(&many(500, 4096)));
        assert!(!are_worth_a_launch(&many(7, 4)) && !are_worth_a_launch(&many(500, 4097)));
        assert!(!are_worth_a_launch(&[]));
        let mut uneven = many(2000, 4);
        uneven.push(flat(0, 0, LARGEST_SINGLE + 1));
        assert!(!are_worth_a_launch(&uneven));
        let columns = |rows| Transfer { rows, ..flat(0, 0, 4) };
        assert!(are_worth_a_launch(&[columns(8); 8]) && !are_worth_a_launch(&[columns(9); 8]));
    }
}
