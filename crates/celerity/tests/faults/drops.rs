//! What a program has captured, or panicked with, panics when it is dropped: on whichever thread
//! that is, the run ends with an error of the task, or goes on if nothing is lost.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use celerity::prelude::*;
use celerity::{Error, RunError};

use crate::{assert_next_run_works, assert_says, clusters, errors_of, run_error};

/// Panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("broken");
    }
}

/// More than one thread may have, so that a list of them is dropped.
const MANY: usize = 20;

#[track_caller]
fn assert_task_panicked(error: &Error, parts: &[&str]) {
    assert!(matches!(run_error(error), RunError::TaskPanicked { .. }), "{error}");
    assert_says(&error.to_string(), parts);
}

#[test]
fn what_a_kernel_has_captured() {
    for error in errors_of(|queue| {
        for _ in 0..MANY {
            let fragile = Fragile;
            queue.task("keeper").parallel_for(64, (), move |_, ()| _ = &fragile)?;
        }
        queue.barrier()
    }) {
        let parts = ["\"keeper\" at ", "drops.rs:", "dropping what it owned: broken"];
        assert_task_panicked(&error, &parts);
    }
}

#[test]
fn what_a_short_kernel_has_captured() {
    // After some runs it is known to be short, and runs where it is submitted.
    for error in errors_of(|queue| {
        let keeper = |fragile: Option<Fragile>| {
            queue.task("keeper").parallel_for(1, (), move |_, ()| _ = &fragile)
        };
        for _ in 0..50 {
            keeper(None)?;
            queue.barrier()?;
        }
        keeper(Some(Fragile))?;
        queue.barrier()
    }) {
        assert_task_panicked(&error, &["\"keeper\" at ", "dropping what it owned: broken"]);
    }
}

#[test]
fn what_a_host_task_has_captured() {
    for error in errors_of(|queue| {
        let fragile = Fragile;
        queue.host_task("keeper").once((), move |()| _ = &fragile)?;
        queue.barrier()
    }) {
        // On node 0 when it has run, on others without.
        assert_task_panicked(&error, &["\"keeper\" at ", "panicked on N", "broken"]);
    }
}

#[test]
fn what_tasks_have_captured_that_never_run() {
    for cluster in clusters() {
        let ready = Arc::<AtomicUsize>::default();
        let outcome = cluster.run(|queue| {
            let (a, nodes, submitted) = (queue.buffer::<u32, 1>(64), queue.nodes(), ready.clone());
            queue.task("first").parallel_for(64, a.write(one_to_one()), move |_, _| {
                // Later, whoever submits would be told, and drop what it has captured itself.
                while submitted.load(Ordering::Relaxed) < nodes {
                    std::thread::sleep(Duration::from_millis(1));
                }
                panic!("no")
            })?;
            for _ in 0..MANY {
                // Nodes that do not run a host task drop it at once.
                let (one, other) = (Fragile, queue.is_root().then(|| Fragile));
                let accesses = a.read_write(one_to_one());
                queue.task("kernel").parallel_for(64, accesses, move |_, _| _ = &one)?;
                queue.host_task("host").once(a.read(all()), move |_| _ = &other)?;
            }
            ready.fetch_add(1, Ordering::Relaxed);
            queue.barrier()
        });
        assert_task_panicked(&outcome.unwrap_err(), &["\"first\" at ", "no"]);
        assert_next_run_works(&cluster);
    }
}

#[test]
fn what_a_task_panics_with() {
    for items in [1, 64, 64_000] {
        for error in errors_of(|queue| {
            queue.task("odd").parallel_for(items, (), |_, ()| panic_any(Fragile))?;
            queue.barrier()
        }) {
            assert_task_panicked(&error, &["\"odd\" at ", "item [", "a panic without a message"]);
        }
    }
    for error in errors_of(|queue| {
        queue.host_task("odd").once((), |()| panic_any(Fragile))?;
        queue.barrier()
    }) {
        assert_task_panicked(&error, &["\"odd\" at ", "a panic without a message"]);
    }
}

/// A mapper that keeps something, which counts how often it is asked.
fn keeping<T: Send + Sync + 'static>(
    kept: T,
    ask: impl Fn(usize) + Send + Sync + 'static,
) -> celerity::CustomMapper<1, 1> {
    let asked = AtomicUsize::new(0);
    mapper("keeping", move |chunk: Chunk<1>, _: [usize; 1]| {
        let _ = &kept;
        ask(asked.fetch_add(1, Ordering::Relaxed));
        Subrange { offset: chunk.offset, range: chunk.range }
    })
}

#[test]
fn what_a_mapper_has_captured_is_missed_by_nobody() {
    for cluster in clusters() {
        let sum = cluster.run(|queue| {
            let (a, b) = (queue.buffer_from(64, vec![2_u32; 64])?, queue.buffer::<u32, 1>(64));
            for _ in 0..MANY {
                let accesses = (b.write(one_to_one()), a.read(keeping(Fragile, |_| ())));
                queue.task("read").parallel_for(64, accesses, |item, (b, a)| *b = a[item[0]])?;
            }
            Ok(queue.fence(&b)?.wait()?.as_slice().iter().sum::<u32>())
        });
        assert_eq!(sum.unwrap(), 128);
        assert_next_run_works(&cluster);
    }
}

#[test]
fn what_a_mapper_panics_with() {
    for error in errors_of(|queue| {
        let a = queue.buffer_from(64, vec![2_u32; 64])?;
        // The program itself asks once.
        let later = keeping((), |nth| {
            if nth > 0 {
                panic_any(Fragile)
            }
        });
        queue.task("read").parallel_for(64, a.read(later), |_, _| ())?;
        queue.barrier()
    }) {
        assert!(matches!(run_error(&error), RunError::Schedule { .. }), "{error}");
        assert_says(&error.to_string(), &["\"read\" at ", "panicked: a panic without a message"]);
    }
}

#[test]
fn on_the_thread_of_the_program() {
    for cluster in clusters() {
        let refused = || {
            cluster.run(|queue| {
                let (a, fragile) = (queue.buffer::<u32, 1>(8), Fragile);
                // Nothing has written it, so the task is refused, and dropped here.
                queue.task("early").parallel_for(8, a.read(all()), move |_, _| _ = &fragile)
            })
        };
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(refused));
        assert_eq!(panic.err().and_then(|text| text.downcast_ref().copied()), Some("broken"));
        assert_next_run_works(&cluster);
    }
}

/// Somebody who is woken by a fence, and does not like it.
struct Grumpy;

impl Wake for Grumpy {
    fn wake(self: Arc<Self>) {
        panic!("do not wake me");
    }
}

#[test]
fn whoever_a_fence_wakes() {
    for cluster in clusters() {
        let seen = cluster.run(|queue| {
            let a = queue.buffer_from(8, vec![3_u32; 8])?;
            let mut fence = Box::pin(queue.fence(&a)?);
            let waker = Waker::from(Arc::new(Grumpy));
            loop {
                match fence.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(snapshot) => return Ok(snapshot?.into_vec()),
                    Poll::Pending => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(seen.unwrap(), [3; 8]);
        // And if there is nothing to wake it for.
        let failed = cluster.run(|queue| {
            let a = queue.buffer::<u32, 1>(8);
            queue.task("bad").parallel_for(8, a.write(one_to_one()), |_, _| {
                std::thread::sleep(Duration::from_millis(20));
                panic!("bad")
            })?;
            let mut fence = Box::pin(queue.fence(&a)?);
            let waker = Waker::from(Arc::new(Grumpy));
            assert!(fence.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            queue.barrier()
        });
        assert_says(&failed.unwrap_err().to_string(), &["\"bad\" at "]);
        assert_next_run_works(&cluster);
    }
}

/// An error that cannot be printed.
#[derive(Debug)]
struct Speechless;

impl std::fmt::Display for Speechless {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Speechless {}

#[test]
fn an_error_whose_text_panics() {
    for cluster in clusters() {
        let others = std::sync::Mutex::new(Vec::new());
        let outcome = cluster.run(|queue| {
            if queue.is_root() {
                return Err::<(), _>(Error::user(Speechless));
            }
            let error = queue.barrier().expect_err("node 0 has failed");
            others.lock().unwrap().push(error.to_string());
            Err(error)
        });
        assert!(matches!(outcome, Err(Error::User(_))), "as it was returned");
        for error in others.into_inner().unwrap() {
            assert_says(&error, &["N0", "its error's text panics: no words"]);
        }
    }
}
