//! What can happen to a node, and what the others must be told.

use std::error::Error as _;
use std::fs;
use std::process::{Command, ExitCode, id};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use celerity::{CommunicationError, Config, Error, RunError, prelude::*};

use crate::program::{MIDDLE, STEPS, steps, twin};

/// More steps than anybody waits for.
const ENDLESS: usize = usize::MAX;

/// How survivors of [`killed`] and processes that were [`interrupted`] exit.
pub(crate) const ENDED: u8 = 3;

/// The last node is killed. The others print that, and how long it has taken them.
pub(crate) fn killed() -> ExitCode {
    survive();
    ExitCode::from(ENDED)
}

/// As [`killed`]; returns which node has survived.
pub(crate) fn survive() -> usize {
    let (node, error, took) = fail(|queue| {
        steps(queue, ENDLESS, |queue, step| {
            if step == MIDDLE && is_last(queue) {
                signal("KILL", id());
                // It is on its way.
                thread::sleep(Duration::MAX);
            }
            Ok(())
        })
    });
    let RunError::Communication { error, .. } = &error else { panic!("N{node}: {error}") };
    let CommunicationError::Died { node: dead, .. } = **error else { panic!("N{node}: {error}") };
    println!("N{node}: {dead} has died (told {took:.1?} after the start)");
    node
}

/// What Ctrl-C does: the launcher gets SIGINT, and makes of it what it wants. All nodes
/// must end, and say why.
pub(crate) fn interrupted() -> ExitCode {
    let (node, error, _) = fail(|queue| {
        steps(queue, ENDLESS, |queue, step| {
            if step == MIDDLE && queue.is_root() {
                signal("INT", launcher());
            }
            Ok(())
        })
    });
    let RunError::Interrupted { .. } = error else { panic!("N{node}: {error}") };
    println!("N{node}: {error}");
    ExitCode::from(ENDED)
}

/// The last node submits something else. All name both tasks, and where they are.
pub(crate) fn diverging() {
    let (node, error, _) = fail(|queue| {
        steps(queue, ENDLESS, |queue, step| {
            if step == MIDDLE {
                let data = queue.buffer::<u64, 1>(64);
                let (name, items) = if is_last(queue) { ("detour", 32) } else { ("route", 64) };
                queue.task(name).parallel_for(items, data.write(one_to_one()), zero)?;
            }
            Ok(())
        })
    });
    let RunError::Diverged { task, other_task, .. } = &error else { panic!("N{node}: {error}") };
    for name in ["detour", "route"] {
        let named = |task: &String| {
            task.contains(&format!("\"{name}\"")) && task.contains("tests/processes/faults.rs:")
        };
        assert!(named(task) || named(other_task), "N{node}: {error}");
    }
    println!("N{node}: {error}");
    if node == 0 {
        crate::passed();
    }
}

/// The last node creates a buffer from something else. Nodes that are told at all are told which.
pub(crate) fn other_contents() {
    let (node, error, _) = fail(|queue| {
        steps(queue, ENDLESS, |queue, step| {
            if step == MIDDLE {
                let odd = u64::from(is_last(queue));
                let table = queue.buffer_from(64, vec![odd; 64])?.named("table");
                queue.task("use").parallel_for(64, table.read_write(one_to_one()), |_, _| {})?;
            }
            Ok(())
        })
    });
    let RunError::ContentsDiffer { buffer, node: one, other } = &error else {
        panic!("N{node}: {error}")
    };
    assert_eq!(buffer, "\"table\"");
    assert_ne!(one, other, "N{node}: {error}");
    println!("N{node}: {error}");
    if node == 0 {
        crate::passed();
    }
}

/// A host task returns an error, after a step in which all have had their part. Every node ends
/// with it, and where the task has run, it is the very error that it has returned.
pub(crate) fn failing() {
    let (node, error, _) = fail(|queue| {
        let values = queue.buffer::<u64, 1>(queue.nodes()).named("values");
        queue.task("fill").parallel_for(queue.nodes(), values.write(one_to_one()), zero)?;
        queue.host_task("save").once(values.read(all()), |values| {
            assert!(values.iter().all(|&value| value == 0));
            Err(std::io::Error::other("the disk is full"))?;
            Ok(())
        })?;
        queue.barrier()
    });
    let RunError::TaskFailed { task, node: at, .. } = &error else { panic!("N{node}: {error}") };
    assert!(task.starts_with("T2 \"save\" at ") && task.contains("faults.rs:"), "N{node}: {error}");
    assert_eq!(at.to_string(), "N0");
    let cause = error.source().expect("what the task has returned");
    assert_eq!(cause.to_string(), "the disk is full");
    assert_eq!(cause.is::<std::io::Error>(), node == 0, "N{node}: {error}");
    println!("N{node}: {error:?}");
}

/// The last node's kernel takes far longer than the watchdog has patience. Nothing is
/// wrong with the result.
pub(crate) fn stuck() {
    let config = config().watchdog(Duration::from_secs(1));
    let outcome = config.run(|queue| {
        let slow = queue.buffer::<u64, 1>(queue.nodes()).named("slow");
        let seen = queue.buffer::<u64, 1>(queue.nodes()).named("seen");
        let values = steps(queue, STEPS, |queue, step| match step {
            MIDDLE => wait_for_last(queue, &slow, &seen),
            _ => Ok(()),
        })?;
        Ok((queue.node(), values))
    });
    let (node, values) = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(values, twin(values.len(), STEPS));
    if node == 0 {
        crate::passed();
    }
}

/// Announces what it sends before it is there: the others know whom they wait for.
fn wait_for_last(
    queue: &Queue,
    slow: &Buffer<u64, 1>,
    seen: &Buffer<u64, 1>,
) -> celerity::Result<()> {
    let nodes = queue.nodes();
    queue.task("sleep").parallel_for(nodes, slow.write(one_to_one()), move |item, slow| {
        if item.id() == [nodes - 1] {
            thread::sleep(Duration::from_secs(3));
        }
        *slow = 1;
    })?;
    let accesses = (seen.write(one_to_one()), slow.read(all()));
    queue.task("see").parallel_for(nodes, accesses, |item, (seen, slow)| {
        *seen = slow[item.id()];
    })?;
    queue.flush();
    Ok(())
}

fn zero(_: celerity::Item<1>, value: &mut u64) {
    *value = 0;
}

pub(crate) fn config() -> Config {
    Config::from_env().unwrap_or_else(|error| panic!("{error}"))
}

/// This process's node, what it was told, and when.
fn fail<R: Send>(
    program: impl Fn(&Queue) -> celerity::Result<R> + Sync,
) -> (usize, RunError, Duration) {
    fail_with(&config(), program)
}

pub(crate) fn fail_with<R: Send>(
    config: &Config,
    program: impl Fn(&Queue) -> celerity::Result<R> + Sync,
) -> (usize, RunError, Duration) {
    let (node, start) = (OnceLock::new(), Instant::now());
    let outcome = config.run(|queue| {
        node.get_or_init(|| queue.node());
        program(queue)
    });
    let node = *node.get().expect("the program has begun");
    match outcome {
        Err(Error::Run(error)) => (node, *error, start.elapsed()),
        Err(error) => panic!("N{node}: {error}"),
        Ok(_) => panic!("N{node} succeeds"),
    }
}

pub(crate) fn is_last(queue: &Queue) -> bool {
    queue.node() + 1 == queue.nodes()
}

pub(crate) fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    // It may get the signal itself, as one of this process's group.
    assert!(status.is_ok(), "there is no `kill`");
}

/// The nearest process above this one that is called `mpirun` or `mpiexec`.
fn launcher() -> u32 {
    let mut process = id();
    while process > 1 {
        // `1234 (name) S 1233 ...`; a name may hold anything, also brackets.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("Linux");
        let (head, tail) = stat.rsplit_once(") ").expect("a name in brackets");
        let name = head.split_once('(').map_or("", |(_, name)| name);
        if name.starts_with("mpirun") || name.starts_with("mpiexec") {
            return process;
        }
        let parent = tail.split(' ').nth(1).and_then(|word| word.parse().ok());
        process = parent.expect("a parent");
    }
    panic!("no launcher has started this");
}
