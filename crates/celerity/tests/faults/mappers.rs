//! Range mappers that do more than to compute a part of a buffer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{Buffer, CustomMapper, Error, Result, RunError};

use crate::{assert_next_run_works, assert_says, clusters, errors_of, run_error};

/// One that does something each time it is asked, and maps one to one.
fn doing(act: impl Fn(usize) + Send + Sync + 'static) -> CustomMapper<1, 1> {
    let asked = AtomicUsize::new(0);
    mapper("busy", move |chunk: Chunk<1>, _: [usize; 1]| {
        act(asked.fetch_add(1, Ordering::Relaxed));
        Subrange { offset: chunk.offset, range: chunk.range }
    })
}

/// Reads through `busy`, and returns what is in the buffer.
fn read_through(queue: &Queue, busy: CustomMapper<1, 1>) -> Result<u32> {
    let (a, b) = (queue.buffer_from(64, vec![2_u32; 64])?, queue.buffer::<u32, 1>(64));
    let accesses = (b.write(one_to_one()), a.read(busy));
    queue.task("read").parallel_for(64, accesses, |item, (b, a)| *b = a[item[0]])?;
    Ok(queue.fence(&b)?.wait()?.as_slice().iter().sum())
}

#[test]
fn the_last_handle_of_a_buffer_may_go_in_a_mapper() {
    // Where it is submitted, and where it is scheduled.
    for when in 0..2 {
        for cluster in clusters() {
            let sum = cluster.run(|queue| {
                let last = Mutex::new(Some(queue.buffer_from(8, vec![1_u8; 8])?));
                let drops = move |nth| {
                    if nth == when {
                        drop(last.lock().unwrap().take());
                    }
                };
                read_through(queue, doing(drops))
            });
            assert_eq!(sum.unwrap(), 128);
            assert_next_run_works(&cluster);
        }
    }
}

#[test]
fn a_buffer_that_its_own_mapper_drops_is_named() {
    // The access holds a handle until the task is submitted; the mapper holds the other one.
    for cluster in clusters() {
        let sum = cluster.run(|queue| {
            let kept = Arc::new(Mutex::new(None::<Buffer<u32, 1>>));
            let (a, b) = (queue.buffer_from(64, vec![2_u32; 64])?, queue.buffer::<u32, 1>(64));
            *kept.lock().unwrap() = Some(a.clone());
            let busy = doing(move |_| drop(kept.lock().unwrap().take()));
            let accesses = (b.write(one_to_one()), a.read(busy));
            drop(a);
            queue.task("read").parallel_for(64, accesses, |item, (b, a)| *b = a[item[0]])?;
            Ok(queue.fence(&b)?.wait()?.as_slice().iter().sum::<u32>())
        });
        match sum {
            Ok(sum) => assert_eq!(sum, 128),
            Err(error) => assert_says(&error.to_string(), &["\"read\" at ", "does not exist"]),
        }
        assert_next_run_works(&cluster);
    }
}

#[test]
fn a_mapper_cannot_wait_for_a_fence() {
    // Where it is submitted, the program is told; where it is scheduled, the run ends.
    for when in 0..2 {
        for error in errors_of(|queue| {
            let first = queue.buffer_from(8, vec![1_u8; 8])?;
            let fence = Mutex::new(Some(queue.fence(&first)?));
            let (tell, told) = std::sync::mpsc::channel();
            let busy = doing(move |nth| {
                if nth == when {
                    let fence = fence.lock().unwrap().take().expect("there is one");
                    let error = fence.wait().expect_err("a mapper waits");
                    drop(tell.send(error.to_string()));
                    assert_eq!(when, 0, "{error}");
                }
            });
            read_through(queue, busy)?;
            Err::<(), _>(Error::user(told.recv().expect("it was asked")))
        }) {
            if when > 0 {
                assert!(matches!(run_error(&error), RunError::Schedule { .. }), "{error}");
                assert_says(&error.to_string(), &["a range mapper of task T", "\"read\" at "]);
            }
            assert_says(&error.to_string(), &["a range mapper cannot wait for a fence", "compute"]);
        }
    }
}

#[test]
fn a_mapper_cannot_start_a_run() {
    for when in 0..2 {
        for error in errors_of(|queue| {
            let (tell, told) = std::sync::mpsc::channel();
            let busy = doing(move |nth| {
                if nth == when {
                    let error = Config::default().run(|_| Ok(())).expect_err("a mapper runs");
                    drop(tell.send(error.to_string()));
                }
            });
            assert_eq!(read_through(queue, busy)?, 128);
            Err::<(), _>(Error::user(told.recv().expect("it was asked")))
        }) {
            assert_says(&error.to_string(), &["cannot start the cluster: a range mapper"]);
        }
    }
}

#[test]
fn a_mapper_that_panics_while_it_is_submitted_leaves_the_queue_usable() {
    for cluster in clusters() {
        let sum = cluster.run(|queue| {
            let busy = doing(|nth| assert!(nth > 0, "not yet"));
            let asked = std::panic::AssertUnwindSafe(|| read_through(queue, busy.clone()));
            let panic = std::panic::catch_unwind(asked).expect_err("it panics");
            assert_eq!(panic.downcast_ref(), Some(&"not yet"));
            queue.barrier()?;
            read_through(queue, busy)
        });
        assert_eq!(sum.unwrap(), 128);
        assert_next_run_works(&cluster);
    }
}

#[test]
fn a_host_task_may_still_wait_for_a_fence() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    for cluster in clusters() {
        let outcome = cluster.run(|queue| {
            let fence = Mutex::new(Some(queue.fence(&queue.buffer_from(1, vec![1_u8])?)?));
            queue.host_task("waits").once((), move |()| {
                let snapshot = fence.lock().unwrap().take().expect("there is one").wait();
                SAID.lock().unwrap().push(format!("{:?}", snapshot.map(|one| one.into_vec())));
            })?;
            queue.barrier()
        });
        outcome.unwrap();
    }
    let said = SAID.lock().unwrap();
    assert!(!said.is_empty() && said.iter().all(|one| one == "Ok([1])"), "{said:?}");
}
