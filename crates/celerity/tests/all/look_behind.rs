//! A loop that looks at a value of each step some steps later: what it sees, and that devices have
//! work meanwhile. Order is made by who waits for whom, and read from a trace; no time is measured.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity::{Max, Result};

fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (1, 2), (2, 1), (3, 2)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

/// Enough for each device to have tiles.
const ITEMS: usize = 1 << 16;

/// Adds 1 to all elements, and asks for the greatest one.
fn step(queue: &Queue, values: &Buffer<u64, 1>, most: &Buffer<u64, 0>) -> Result<Fence<u64, 0>> {
    named_step(queue, values, most, "relax", || ())
}

/// The same, with a kernel of this name that calls `begins` for each item.
fn named_step(
    queue: &Queue,
    values: &Buffer<u64, 1>,
    most: &Buffer<u64, 0>,
    name: &str,
    begins: impl Fn() + Send + Sync + 'static,
) -> Result<Fence<u64, 0>> {
    let accesses = (values.read_write(one_to_one()), most.reduce(Max));
    queue.task(name).parallel_for(ITEMS, accesses, move |_, (value, most)| {
        begins();
        *value += 1;
        most.combine(*value);
    })?;
    queue.fence(most)
}

fn buffers(queue: &Queue) -> Result<(Buffer<u64, 1>, Buffer<u64, 0>)> {
    Ok((queue.buffer_from(ITEMS, vec![0; ITEMS])?, queue.buffer::<u64, 0>([]).named("most")))
}

#[test]
fn each_value_is_seen_once_in_order_and_as_late_as_asked() {
    for cluster in clusters() {
        for ahead in [0, 1, 5, 40] {
            let program = |queue: &Queue| {
                let (values, most) = buffers(queue)?;
                let mut behind = LookBehind::new(ahead);
                assert!(behind.is_empty());
                let mut seen = Vec::new();
                for step in 0..20 {
                    let found = behind.look(self::step(queue, &values, &most)?)?;
                    assert_eq!(found.is_some(), step >= ahead);
                    assert_eq!(behind.len(), ahead.min(step + 1));
                    seen.extend(found.map(|most| most[[]]));
                }
                let rest = behind.rest();
                assert_eq!(rest.len(), ahead.min(20));
                for most in rest {
                    seen.push(most?[[]]);
                }
                assert_eq!(seen, (1..=20).collect::<Vec<_>>());
                Ok(())
            };
            cluster.run(program).unwrap();
        }
    }
}

#[test]
fn several_values_of_a_step_go_together() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let (values, most) = buffers(queue)?;
            let log = queue.host_object(Vec::new());
            let mut behind = LookBehind::new(3);
            for step in 0..10_usize {
                let most = self::step(queue, &values, &most)?;
                queue.host_task("note").everywhere(log.sequential(), move |_, log| {
                    log.push(step);
                })?;
                let first = Subrange { offset: [0], range: [1] };
                let both = (most, queue.fence_object(&log)?, queue.fence_part(&values, first)?);
                if let Some((most, log, first)) = behind.look(both)? {
                    assert_eq!((most[[]], first[0]), (step as u64 - 2, step as u64 - 2));
                    assert_eq!(log, (0..=step - 3).collect::<Vec<_>>());
                }
            }
            Ok(())
        };
        cluster.run(program).unwrap();
    }
}

#[test]
fn a_run_that_fails_is_seen_when_the_program_looks() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let (values, most) = buffers(queue)?;
            let mut behind = LookBehind::new(2);
            for step in 0..1000 {
                let broken = move || assert!(step != 5, "out of numbers");
                behind.look(named_step(queue, &values, &most, "relax", broken)?)?;
            }
            Ok(())
        };
        let message = cluster.run(program).unwrap_err().to_string();
        assert!(
            message.contains("\"relax\" at") && message.contains("out of numbers"),
            "{message}"
        );
    }
}

/// Counts steps whose kernel has begun on a node.
#[derive(Default)]
struct Begun {
    known: AtomicUsize,
    steps: Mutex<usize>,
    more: Condvar,
}

impl Begun {
    fn step(&self, number: usize) {
        if self.known.fetch_max(number, SeqCst) >= number {
            return;
        }
        let mut steps = self.steps.lock().unwrap();
        if *steps < number {
            *steps = number;
            self.more.notify_all();
        }
    }

    /// Patient, so that no load matters, but not without end.
    fn wait_for(&self, number: usize) {
        let (steps, patience) = (self.steps.lock().unwrap(), Duration::from_secs(300));
        let begun = self.more.wait_timeout_while(steps, patience, |steps| *steps < number);
        assert!(!begun.unwrap().1.timed_out(), "the kernel of step {number} waits for the program");
    }
}

const AHEAD: usize = 4;
const STEPS: usize = 24;

/// The program looks at a value only when the kernels of the next steps have begun. So it ends only
/// if these do not wait for it, and the trace has each of them before the look.
#[test]
fn kernels_of_later_steps_begin_before_the_program_looks() {
    for (nodes, devices) in [(1, 1), (2, 1), (2, 2)] {
        let file = format!("celerity-look-behind-{}-{nodes}-{devices}", std::process::id());
        let path = std::env::temp_dir().join(file);
        let config = Config::default().nodes(nodes).devices(devices).trace(&path);
        let program = |queue: &Queue| {
            let (values, most) = buffers(queue)?;
            let begun = Arc::new(Begun::default());
            let mut behind = LookBehind::new(AHEAD);
            for step in 0..STEPS {
                let (name, begins) = (format!("relax {step}"), begun.clone());
                let begins = move || begins.step(step + 1);
                let fence = named_step(queue, &values, &most, &name, begins)?;
                begun.wait_for(step + 1);
                queue.host_task(format!("look {step}")).once((), |()| ())?;
                if let Some(most) = behind.look(fence)? {
                    assert_eq!(most[[]] as usize, step + 1 - AHEAD);
                }
            }
            Ok(())
        };
        config.run(program).unwrap();
        let trace = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for node in 0..nodes {
            (0..STEPS).for_each(|step| check_order(&trace, node, devices, step));
        }
    }
}

/// On a node: before the program looks at an earlier step, which it does behind the submission of
/// "look `step`", a kernel of `step` has begun.
fn check_order(trace: &str, node: usize, devices: usize, step: usize) {
    let begins = |category: &str, name: &str| -> Vec<f64> {
        let of_node = format!("\"pid\":{node},");
        let (name, category) = (format!("\"name\":\"{name}\""), format!("\"cat\":\"{category}\""));
        let is_it = |line: &&str| [&of_node, &name, &category].iter().all(|it| line.contains(*it));
        trace.lines().filter(is_it).map(begin).collect()
    };
    let kernels = begins("kernel", &format!("relax {step}"));
    let looks = begins("program", &format!("look {step}"));
    assert_eq!((kernels.len(), looks.len()), (devices, 1), "N{node}, step {step}\n{trace}");
    let first = kernels.iter().copied().fold(f64::MAX, f64::min);
    assert!(first <= looks[0], "N{node} looks in step {step} before the kernel has begun");
}

/// In µs since the run began.
fn begin(event: &str) -> f64 {
    let (_, rest) = event.split_once("\"ts\":").expect("slices have times");
    rest.split([',', '}']).next().unwrap().parse().expect("a number")
}
