//! Memory that is put behind reserved addresses while what is there is in use.
#![allow(unsafe_code)]

use celerity_executor::{Backend, ElementArray};
use celerity_idag::MemoryId;
use celerity_regions::Box3;

use crate::node::{Allocation, Node, device_memory};
use crate::{Outcome, Suite, expect_equal};

/// Rows of 64 KiB, 2 GiB of them: far more than is provided.
const ROW: usize = 16 << 10;
const ROWS: usize = 32 << 10;

fn rows(first: usize, count: usize) -> Box3 {
    Box3::from_offset_range([first, 0], [count, ROW])
}

fn contents(rows: Box3, salt: u32) -> Vec<u32> {
    let first = u32::try_from(rows.min()[0]).expect("few rows");
    (0..rows.volume() as u32).map(|i| (first * 77).wrapping_add(i) ^ salt).collect()
}

/// A reservation on one GPU, some rows of which are there.
fn reserve(node: &mut Node, memory: MemoryId) -> Result<Allocation, String> {
    let extent = rows(0, ROWS);
    let base = node.backend.reserve(memory, extent.volume() * 4, 4);
    let base = base.map_err(|error| error.to_string())?;
    Ok(Allocation { memory, array: ElementArray { base, extent } })
}

fn provide(node: &mut Node, to: Allocation, part: Box3) -> Outcome {
    let row = 4 * ROW as u64;
    let bytes = part.min()[0] * row..part.max()[0] * row;
    // SAFETY: the rows are some of those that were reserved.
    let provided = unsafe { node.backend.provide(to.memory, to.array.base, bytes) };
    provided.map_err(|error| error.to_string())
}

fn write(node: &mut Node, to: Allocation, part: Box3, salt: u32) -> Outcome {
    let host = node.upload(MemoryId::HOST, part, &contents(part, salt))?;
    node.copy(host, to, part, 4)?;
    node.free(host);
    Ok(())
}

fn read(node: &mut Node, from: Allocation, part: Box3) -> Result<Vec<u32>, String> {
    let host = node.alloc(MemoryId::HOST, part, 4)?;
    node.copy(from, host, part, 4)?;
    let found = node.download(host);
    node.free(host);
    found
}

/// Rows come one after the other; those that are there stay as they are, and new
/// ones are zeroed, also the second time.
pub(crate) fn in_place(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    for salt in [1, 2] {
        let field = reserve(&mut node, device_memory(0))?;
        for first in (0..300).step_by(50) {
            provide(&mut node, field, rows(first, 50))?;
            let new = read(&mut node, field, rows(first, 50))?;
            expect_equal(&new, &vec![0; 50 * ROW]).map_err(|what| format!("new rows: {what}"))?;
            write(&mut node, field, rows(first, 50), salt)?;
            provide(&mut node, field, rows(0, first + 50))?;
        }
        // Far away, and in both at once.
        provide(&mut node, field, rows(ROWS - 3, 3))?;
        write(&mut node, field, rows(ROWS - 3, 3), salt)?;
        for part in [rows(250, 50), rows(ROWS - 3, 3), rows(0, 7)] {
            let found = read(&mut node, field, part)?;
            let whole_run = |row: u64| contents(rows((row / 50 * 50) as usize, 50), salt);
            let expected: Vec<u32> = match part.min()[0] {
                0 => whole_run(0)[..7 * ROW].to_vec(),
                250 => whole_run(250),
                _ => contents(part, salt),
            };
            expect_equal(&found, &expected).map_err(|what| format!("{part}: {what}"))?;
        }
        node.free(field);
    }
    Ok(())
}

/// Between two GPUs, where there are two: they reach what grows, too.
pub(crate) fn between_devices(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 2)?;
    let fields = [reserve(&mut node, device_memory(0))?, reserve(&mut node, device_memory(1))?];
    let part = rows(100, 40);
    provide(&mut node, fields[0], part)?;
    write(&mut node, fields[0], part, 3)?;
    provide(&mut node, fields[1], rows(90, 60))?;
    node.copy(fields[0], fields[1], part, 4)?;
    expect_equal(&read(&mut node, fields[1], part)?, &contents(part, 3))?;
    // A column, back to another place: rows with gaps.
    provide(&mut node, fields[0], rows(500, 40))?;
    let column = Box3::from_offset_range([100, 5], [40, 9]);
    write(&mut node, fields[0], part, 4)?;
    node.copy(fields[1], fields[0], column, 4)?;
    let mut expected = contents(part, 4);
    for row in 0..40 {
        let own = row * ROW + 5..row * ROW + 14;
        expected[own.clone()].copy_from_slice(&contents(part, 3)[own]);
    }
    expect_equal(&read(&mut node, fields[0], part)?, &expected)?;
    fields.into_iter().for_each(|field| node.free(field));
    Ok(())
}
