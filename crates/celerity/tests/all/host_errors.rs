//! Host tasks that return errors: `?` in them, what the run then ends with on every node, and
//! that nothing else changes.

use std::error::Error as _;
use std::io;
use std::num::ParseIntError;
use std::sync::Mutex;

use celerity::prelude::*;
use celerity::{Error, Result, RunError};

/// Clusters of one node, of several devices, and of several nodes.
fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (1, 3), (3, 1), (3, 2)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

/// The task of a run that has failed with a host task, and the run's error.
#[track_caller]
fn failed_task<R>(outcome: Result<R>) -> (String, Box<RunError>) {
    match outcome {
        Err(Error::Run(error)) => match &*error {
            RunError::TaskFailed { task, node, .. } => {
                assert_eq!(node.to_string(), "N0", "host tasks run there");
                (task.clone(), error)
            }
            other => panic!("not the error of a host task: {other}"),
        },
        Err(other) => panic!("not the run's error: {other}"),
        Ok(_) => panic!("the run should have failed"),
    }
}

fn save(values: &[u64]) -> io::Result<usize> {
    match values.len() {
        0 => Ok(0),
        _ => Err(io::Error::other("the disk is full")),
    }
}

#[test]
fn an_error_ends_the_run_everywhere_and_is_its_source() {
    for cluster in clusters() {
        let seen = Mutex::new(Vec::new());
        let outcome = cluster.run(|queue| {
            let values = queue.buffer::<u64, 1>(100).named("values");
            queue.task("fill").parallel_for(100, values.write(one_to_one()), |_, v| *v = 1)?;
            queue.host_task("save").once(values.read_write(all()), |values| {
                let saved = save(&values)?;
                assert_eq!(saved, 100, "not reached");
                Ok(())
            })?;
            // Needs what the task would have written.
            let told = queue.fence(&values)?.wait().map(drop);
            seen.lock().unwrap().push((queue.node(), told.unwrap_err().to_string()));
            queue.barrier()
        });
        let (task, error) = failed_task(outcome);
        assert!(task.contains(" \"save\" at ") && task.contains("host_errors.rs:"), "{task}");
        let expected = format!("task {task} failed on N0: the disk is full");
        assert_eq!(error.to_string(), expected);
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.expect("what the task has returned").kind(), io::ErrorKind::Other);
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        let everywhere = (0..seen.len()).map(|node| (node, expected.clone()));
        assert_eq!(seen, everywhere.collect::<Vec<_>>());
    }
}

#[test]
fn a_run_after_one_that_failed_is_undisturbed() {
    for cluster in clusters() {
        let fail = |queue: &Queue| queue.host_task("fail").once((), |()| Err("no".into()));
        failed_task(cluster.run(fail));
        let sum = cluster.run(|queue| {
            let values = queue.buffer_from(10, (0..10).collect::<Vec<u64>>())?;
            Ok(queue.fence(&values)?.wait()?.as_slice().iter().sum::<u64>())
        });
        assert_eq!(sum.unwrap(), 45);
    }
}

#[test]
fn what_waits_for_a_task_that_failed_never_runs() {
    for cluster in clusters() {
        let later = Mutex::new(0);
        let later = std::sync::Arc::new(later);
        let outcome = cluster.run(|queue| {
            let values = queue.buffer_from(8, vec![0_u64; 8])?;
            queue.host_task("first").once(values.write(all()), |_| Err("no".into()))?;
            let later = later.clone();
            queue.host_task("second").once(values.read(all()), move |_| {
                *later.lock().unwrap() += 1;
            })?;
            Ok(())
        });
        assert!(failed_task(outcome).0.contains("\"first\""));
        assert_eq!(*later.lock().unwrap(), 0);
    }
}

/// Errors of several types become one, with nothing said of it.
#[test]
fn any_error_can_be_passed_on() {
    let fail_by = |which: usize| {
        failed_task(Config::default().run(move |queue| {
            queue.host_task("read").once((), move |()| {
                match which {
                    0 => drop("seven".parse::<u32>()?),
                    1 => drop(String::from_utf8(vec![0xff])?),
                    2 => Err("in words")?,
                    3 => Err(format!("in {} words", 3))?,
                    _ => Err(Error::user("of the program"))?,
                }
                Ok(())
            })?;
            Ok(())
        }))
        .1
    };
    let texts: Vec<_> = (0..5).map(|which| fail_by(which).to_string()).collect();
    for (text, end) in texts.iter().zip([
        "failed on N0: invalid digit found in string",
        "failed on N0: invalid utf-8 sequence of 1 bytes from index 0",
        "failed on N0: in words",
        "failed on N0: in 3 words",
        "failed on N0: of the program",
    ]) {
        assert!(text.ends_with(end), "{text}");
    }
    assert!(fail_by(0).source().unwrap().is::<ParseIntError>());
}

#[test]
fn the_debug_of_an_error_is_what_people_read() {
    let (task, error) = failed_task(Config::default().run(|queue| {
        queue.host_task("load").once((), |()| Err(Outer(Inner).into()))?;
        Ok(())
    }));
    let expected = format!("task {task} failed on N0: cannot load the bodies\ncaused by: no star");
    assert_eq!(format!("{error:?}"), expected);
    assert_eq!(format!("{:?}", Error::from(*error)), expected);
}

#[derive(Debug)]
struct Outer(Inner);

#[derive(Debug)]
struct Inner;

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot load the bodies")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl std::fmt::Display for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no star")
    }
}

impl std::error::Error for Inner {}

/// What compiles without a word of its result.
#[test]
fn functions_that_return_nothing_go_on_working() {
    for cluster in clusters() {
        let outcome = cluster.run(|queue| {
            let values = queue.buffer_from(4, vec![1_u64; 4])?;
            queue.host_task("unit").once(values.read(all()), |_| ())?;
            queue.host_task("block").once((), |()| {})?;
            queue.host_task("write").once(values.write(all()), |mut values| values[2] = 5)?;
            queue.host_task("ok").once((), |()| Ok(()))?;
            if queue.nodes() == 0 {
                queue.host_task("never").once((), |()| unreachable!())?;
            }
            Ok(queue.fence(&values)?.wait()?.into_vec())
        });
        // The task writes all, but sets one: the others are unspecified.
        assert_eq!(outcome.unwrap()[2], 5);
    }
}

/// An error that says that it is its own cause.
#[derive(Debug)]
struct Endless;

impl std::fmt::Display for Endless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it never ends")
    }
}

impl std::error::Error for Endless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&Endless)
    }
}

#[test]
fn an_error_that_is_its_own_cause_is_told() {
    for nodes in [1, 2] {
        let error = Config::default().nodes(nodes).run(|queue| {
            let fail = |()| -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
                Err(Box::new(Endless))
            };
            queue.host_task("fails").once((), fail)?;
            queue.barrier()
        });
        let error = error.unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(text.contains("fails") && text.contains("it never ends"), "{text}");
        }
    }
}

/// What members of a group exchange is over when the run is.
#[test]
fn a_communicator_that_is_kept_says_that_the_run_is_over() {
    for nodes in [1, 2, 3] {
        let kept = std::sync::Mutex::new(None);
        Config::default()
            .nodes(nodes)
            .run(|queue| {
                let (sender, receiver) = std::sync::mpsc::channel();
                queue.host_task("group").collective("members", (), move |part, ()| {
                    sender.send(part).unwrap();
                    Ok(())
                })?;
                queue.barrier()?;
                *kept.lock().unwrap() = receiver.recv().ok();
                celerity::Result::Ok(())
            })
            .unwrap();
        let part = kept.into_inner().unwrap().unwrap();
        let outcome = part.communicator().barrier().map_err(|error| error.to_string());
        assert!(nodes == 1 || outcome.is_err(), "{outcome:?}");
    }
}
