//! What a program can ask of the runtime about its own schedule: checks,
//! graphs, lookahead. None of it changes results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity::prelude::*;
use celerity::{CheckLevel, Lookahead, Result};

/// Each step reads one more row of a table.
fn growing(queue: &Queue) -> Result<Vec<u64>> {
    let table = queue.buffer_from([12, 8], (0..96).collect::<Vec<u64>>())?.named("table");
    let sums = queue.buffer_from([8], vec![0_u64; 8])?.named("sums");
    for rows in 1..=12 {
        let accesses =
            (sums.read_write(one_to_one()), table.read(fixed(Subrange::new([0, 0], [rows, 8]))));
        queue.task("sum").parallel_for([8], accesses, move |item, (sum, table)| {
            *sum += (0..rows).map(|row| table[[row, item.id()[0]]]).sum::<u64>();
        })?;
        if rows == 6 {
            queue.flush();
            queue.set_lookahead(Lookahead::Infinite);
        }
    }
    Ok(queue.fence(&sums)?.wait()?.into_vec())
}

#[test]
fn lookahead_and_checks_change_no_result() {
    let column = |column: u64| (1..=12).flat_map(|rows| 0..rows).map(move |row| row * 8 + column);
    let expected: Vec<u64> = (0..8).map(|x| column(x).sum()).collect();
    for lookahead in [Lookahead::None, Lookahead::Auto, Lookahead::Infinite] {
        for check in [CheckLevel::Off, CheckLevel::Cheap, CheckLevel::Full] {
            for (nodes, devices) in [(1, 1), (3, 2)] {
                let config = Config::default().nodes(nodes).devices(devices);
                let found = config.lookahead(lookahead).check(check).run(growing);
                assert_eq!(found.unwrap(), expected, "{lookahead:?}, {check:?}");
            }
        }
    }
}

#[test]
fn a_trace_names_tasks_buffers_and_memories_and_changes_no_result() {
    let path = std::env::temp_dir().join(format!("celerity-trace-{}.json", std::process::id()));
    let config = Config::default().nodes(2).devices(2);
    let traced = config.clone().trace(&path).run(growing).unwrap();
    assert_eq!(traced, config.run(growing).unwrap());
    let trace = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for name in ["sum", "copy table", "fence on sums", "M1 (host)", "barriers"] {
        assert!(trace.contains(&format!("\"name\":\"{name}\"")), "{name} is not in the trace");
    }
}

/// A long program that never waits must not pile up behind the lookahead.
#[test]
fn a_program_without_a_fence_is_not_held_back_for_ever() {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let run = Config::default().lookahead(Lookahead::Infinite).run(move |queue| {
        let numbers = queue.buffer_from([4], vec![0_u32; 4])?;
        for _ in 0..6_000 {
            let count = count.clone();
            queue.task("count").parallel_for([4], numbers.read_write(one_to_one()), {
                move |item, number| {
                    *number += 1;
                    if item.linear_id() == 0 {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        }
        Ok(count.load(Ordering::Relaxed))
    });
    assert!(run.unwrap() > 0, "something has run before the program has ended");
    assert_eq!(done.load(Ordering::Relaxed), 6_000);
}
