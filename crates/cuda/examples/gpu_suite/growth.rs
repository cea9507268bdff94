//! Memory that is put behind reserved addresses while what is there is in use.
#![allow(unsafe_code)]

use std::time::Instant;

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

/// Provides rows in steps of so many; new ones are zeroed, and then written.
fn grow(node: &mut Node, to: Allocation, end: usize, step: usize, salt: u32) -> Outcome {
    for first in (0..end).step_by(step) {
        let part = rows(first, step);
        provide(node, to, part)?;
        let zeroes = vec![0; step * ROW];
        expect_equal(&read(node, to, part)?, &zeroes).map_err(|what| format!("{part}: {what}"))?;
        write(node, to, part, salt)?;
    }
    Ok(())
}

/// Whether the rows hold what [`grow`] has written there.
fn expect_grown(node: &mut Node, from: Allocation, end: usize, step: usize, salt: u32) -> Outcome {
    (0..end).step_by(step).try_for_each(|first| {
        let part = rows(first, step);
        let found = read(node, from, part)?;
        expect_equal(&found, &contents(part, salt)).map_err(|what| format!("{part}: {what}"))
    })
}

/// What an allocation has left is behind others, in other steps and beside each other:
/// each has its own, and keeps it.
pub(crate) fn from_what_was_left(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let large = reserve(&mut node, device_memory(0))?;
    grow(&mut node, large, 512, 64, 1)?;
    node.free(large);
    let fields = [(384, 96), (320, 32)];
    let mut live = Vec::new();
    for (salt, (end, step)) in (2..).zip(fields) {
        let field = reserve(&mut node, device_memory(0))?;
        grow(&mut node, field, end, step, salt)?;
        live.push((field, end, step, salt));
    }
    let (first, end, step, salt) = live.remove(0);
    expect_grown(&mut node, first, end, step, salt)?;
    node.free(first);
    let third = reserve(&mut node, device_memory(0))?;
    grow(&mut node, third, 448, 448, 4)?;
    live.push((third, 448, 448, 4));
    for (field, end, step, salt) in live {
        expect_grown(&mut node, field, end, step, salt)?;
        node.free(field);
    }
    Ok(())
}

/// Growing to 1 GiB in so many steps, once and again; the zeroing included.
pub(crate) fn timing(suite: &Suite) -> Outcome {
    const END: usize = 16 << 10;
    for steps in [1, 16, 512] {
        let mut node = Node::default(&suite.gpus, 1)?;
        let mut times = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            let field = reserve(&mut node, device_memory(0))?;
            for step in 0..steps {
                provide(&mut node, field, rows(step * END / steps, END / steps))?;
            }
            let provided = start.elapsed();
            // Behind the zeroing.
            read(&mut node, field, rows(END - 1, 1))?;
            let read = start.elapsed();
            node.free(field);
            let all = [provided, read, start.elapsed()];
            times.push(all.map(|time| format!("{:.2}", time.as_secs_f64() * 1e3)).join(", "));
        }
        println!("  1 GiB in {steps} steps: provided, read, freed after {} ms", times.join("; "));
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
