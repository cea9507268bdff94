//! What goes on for long: many runs one after the other, and a node that is slower than the
//! one that sends to it. Neither may need more and more memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use celerity::{Config, prelude::*};

use crate::program::{calm, steps, twin};
use crate::starts::place;

/// By how much memory in use may differ from time to time, in kB.
const TOLERANCE: u64 = 2 << 10;

/// Memory in use, in kB.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).expect("a number of kB")
}

/// Fails if memory in use has grown since there was so much of it.
fn assert_flat(before: u64, what: &str) {
    let after = memory();
    let rank = place().0;
    println!("N{rank}: {before} kB, and {after} kB after {what}");
    assert!(after <= before + TOLERANCE, "N{rank} needs more and more memory");
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// Each run leaves as much memory as it has found.
pub(crate) fn many_runs() {
    let config = Config::from_env().unwrap_or_else(|error| panic!("{error}"));
    let (mut before, runs) = (0, number("PROCESSES_RUNS", 600));
    for run in 0..runs {
        if run == runs / 4 {
            before = memory();
        }
        let values = config.run(|queue| steps(queue, 2, calm));
        let values = values.unwrap_or_else(|error| panic!("run {run}: {error}"));
        assert_eq!(values, twin(values.len(), 2));
    }
    assert_flat(before, &format!("{} more runs", runs - runs / 4));
    if place().0 == 0 {
        crate::passed();
    }
}

/// Horizons that may be outstanding.
const RUN_AHEAD: usize = 4;

/// Steps between two horizons, at most: each is two tasks, one of which waits for the other.
const INTERVAL: u64 = 2;

/// Steps before anybody looks: by then, all is allocated.
const WARM: u64 = 500;

/// In each step `N0` changes a row of 64 bytes that all nodes read. It needs nothing from
/// them, and the last one takes half a millisecond for what it does with it.
pub(crate) fn slow_node() {
    let (steps, watch) = (number("PROCESSES_STEPS", 6000), Arc::new(Watch::open()));
    let config = Config::from_env().unwrap_or_else(|error| panic!("{error}"));
    let outcome = config.run_ahead(RUN_AHEAD).run(|queue| {
        let nodes = queue.nodes();
        let row = queue.buffer_from(8 * nodes, vec![0_u64; 8 * nodes])?.named("row");
        let sums = queue.buffer_from(nodes, vec![0_u64; nodes])?.named("sums");
        for step in 1..=steps {
            let (fast, slow) = (watch.clone(), watch.clone());
            let change = move |item: Item<1>, value: &mut u64| {
                *value = step;
                if item.id() == [0] {
                    fast.has_come_to(step);
                }
            };
            queue.task("change").parallel_for(8 * nodes, row.read_write(one_to_one()), change)?;
            let accesses =
                (sums.read_write(one_to_one()), row.read(fixed(Subrange::new([0], [8]))));
            queue.task("see").parallel_for(nodes, accesses, move |item, (sum, row)| {
                *sum += (0..8).map(|at| row[[at]]).sum::<u64>();
                if item.id() == [nodes - 1] {
                    slow.look(step);
                }
            })?;
        }
        Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
    });
    let sums = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sums, vec![8 * steps * (steps + 1) / 2; sums.len()]);
    watch.judge(steps);
    if place().0 == 0 {
        crate::passed();
    }
}

/// What the nodes of [`slow_node`] note: each its memory, `N0` in a file how far it is, and the
/// slow node how far `N0` is ahead.
struct Watch {
    log: File,
    before: AtomicU64,
    most: AtomicU64,
}

impl Watch {
    /// All nodes have one host, and `PROCESSES_LOG` is theirs.
    fn open() -> Self {
        let path = std::env::var_os("PROCESSES_LOG").expect("PROCESSES_LOG");
        let log = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let log = log.expect("a file that can be read and written");
        Self { log, before: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Whoever reads of this step gets what this has written, or later.
    fn has_come_to(&self, step: u64) {
        self.log.write_all_at(&step.to_le_bytes(), 0).expect("a file that can be written");
        self.note_memory(step);
    }

    /// The slow node does something with the row of a step.
    fn look(&self, step: u64) {
        thread::sleep(Duration::from_micros(500));
        let mut there = [0; 8];
        self.log.read_exact_at(&mut there, 0).expect("it has been written");
        if step > WARM {
            self.most.fetch_max(u64::from_le_bytes(there) - step, Ordering::Relaxed);
        }
        self.note_memory(step);
    }

    fn note_memory(&self, step: u64) {
        if step == WARM {
            self.before.store(memory(), Ordering::Relaxed);
        }
    }

    fn judge(&self, steps: u64) {
        let (rank, size) = place();
        if rank == 0 || rank + 1 == size {
            assert_flat(self.before.load(Ordering::Relaxed), &format!("{steps} steps"));
        }
        if rank + 1 == size {
            let most = self.most.load(Ordering::Relaxed);
            println!("N0 has been {most} steps ahead of N{rank} at most");
            // As many horizons as may be outstanding, and as it may be ahead of peers, and the
            // intervals at either end.
            let bound = (2 * RUN_AHEAD as u64 + 2) * INTERVAL;
            assert!(most <= bound, "N0 has been {most} steps ahead, and {bound} are allowed");
        }
    }
}
