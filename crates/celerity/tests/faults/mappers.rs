//! Range mappers that do more than to compute a part of a buffer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{Buffer, CustomMapper, DeclareError, Error, Result, RunError};

use crate::{assert_next_run_works, assert_says, cluster, clusters, errors_of, run_error};

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
fn a_mapper_that_panics_while_it_is_submitted_is_named_and_leaves_the_queue_usable() {
    for cluster in clusters() {
        let sum = cluster.run(|queue| {
            let busy = doing(|nth| assert!(nth > 0, "not yet"));
            let error = read_through(queue, busy.clone()).expect_err("it panics");
            let Error::Declare(refused) = &error else { panic!("{error:?}") };
            assert!(matches!(**refused, DeclareError::UnlawfulMapper { .. }), "{error:?}");
            let parts = ["\"read\" at ", "mappers.rs:", "mapper busy panics", "[0..64]: not yet"];
            assert_says(&error.to_string(), &parts);
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

/// How a task goes through a mapper of the program's own.
#[derive(Clone, Copy, Debug)]
enum Way {
    Reads,
    Writes,
    Updates,
}

const WAYS: [Way; 3] = [Way::Reads, Way::Writes, Way::Updates];

/// Steps in which all nodes exchange elements, through what `map` makes of each step.
#[allow(unsafe_code)]
fn steps_through<M: Fn(Chunk<1>, [usize; 1]) -> Subrange<1> + Send + Sync + 'static>(
    queue: &Queue,
    way: Way,
    map: impl Fn(usize) -> M,
) -> Result<Vec<u32>> {
    let (a, b) = (queue.buffer_from(64, vec![0_u32; 64])?, queue.buffer_from(64, vec![0_u32; 64])?);
    for step in 0..6 {
        let every = (b.write(one_to_one()), a.read(all()));
        queue.task("look").parallel_for(64, every, |item, (b, a)| *b = a[item[0]])?;
        let (task, map) = (queue.task("step"), map(step));
        match way {
            Way::Reads => {
                let accesses = (a.write(one_to_one()), b.read(mapper("fickle", map)));
                task.parallel_for(64, accesses, |item, (a, _)| *a = item[0] as u32)?;
            }
            Way::Writes => {
                // SAFETY: it lies, and views are confined all the same, which is the point.
                let map = unsafe { disjoint_mapper("fickle", map) };
                task.parallel_for(64, a.read_write(map), |_, _| ())?;
            }
            Way::Updates => {
                task.parallel_for(64, a.update(mapper("fickle", map)), |_, _| ())?;
            }
        }
    }
    Ok(queue.fence(&a)?.wait()?.into_vec())
}

/// Nodes of several devices and of one; what they are told differs by node.
const SEVERAL: [(usize, usize); 5] = [(2, 1), (2, 3), (3, 1), (3, 2), (4, 1)];

#[test]
fn nodes_that_are_told_different_things_end_with_an_error() {
    for way in WAYS {
        for case in SEVERAL {
            let outcome = cluster(case).check(celerity::CheckLevel::Off).run(|queue| {
                let (node, nodes) = (queue.node(), queue.nodes());
                steps_through(queue, way, |step| {
                    // All is well until the fourth step. Then each node mixes up the chunks in
                    // its own way: disjoint, together the whole, and nowhere the same.
                    move |chunk: Chunk<1>, _: [usize; 1]| {
                        let turn = if step < 3 || chunk.range == [64] { 0 } else { node };
                        let size = 64 / nodes;
                        let offset = [(chunk.offset[0] + turn * size) % 64];
                        let fits = offset[0] + chunk.range[0] <= 64;
                        Subrange { offset: if fits { offset } else { [0] }, range: chunk.range }
                    }
                })
            });
            let error = outcome.expect_err("nobody agrees");
            // Whoever finds first that what it was told cannot be says so.
            match run_error(&error) {
                RunError::MapperDiffers { task, node, other } => {
                    assert!(task.contains("\"step\" at ") && node != other, "{error}");
                }
                RunError::Schedule { error, .. } => {
                    assert_says(&error.to_string(), &["\"step\" at "]);
                }
                other => panic!("{way:?} on {case:?}: {other}"),
            }
            assert_next_run_works(&cluster(case));
        }
    }
}

#[test]
fn mappers_whose_answers_change_hang_nobody() {
    for way in WAYS {
        for case in SEVERAL {
            for seed in 0..8_usize {
                let outcome = cluster(case).check(celerity::CheckLevel::Off).run(|queue| {
                    let node = queue.node();
                    steps_through(queue, way, |step| {
                        let asked = AtomicUsize::new(seed * 31 + step * 7 + node);
                        move |chunk: Chunk<1>, _: [usize; 1]| {
                            let nth = asked.fetch_add(1, Ordering::Relaxed);
                            let less = (nth * nth + seed) % 3 * usize::from(chunk.range != [64]);
                            let range = [chunk.range[0].saturating_sub(less)];
                            Subrange { offset: chunk.offset, range }
                        }
                    })
                });
                // By chance, nobody may have noticed.
                if let Err(error) = outcome {
                    let at_fault = ["\"step\" at ", "a range mapper", "do all nodes run the same"];
                    let text = error.to_string();
                    assert!(at_fault.iter().any(|part| text.contains(part)), "{text}");
                }
                assert_next_run_works(&cluster(case));
            }
        }
    }
}

#[test]
fn mappers_that_tell_all_nodes_the_same_are_believed() {
    for way in WAYS {
        for case in SEVERAL {
            let values = cluster(case).run(|queue| {
                steps_through(queue, way, |_| {
                    |chunk: Chunk<1>, _: [usize; 1]| Subrange {
                        offset: chunk.offset,
                        range: chunk.range,
                    }
                })
            });
            let last = |way| if matches!(way, Way::Reads) { 63 } else { 0 };
            assert_eq!(values.unwrap()[63], last(way), "{way:?} on {case:?}");
        }
    }
}
