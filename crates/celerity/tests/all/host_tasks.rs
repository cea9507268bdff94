//! Host tasks of every form, on clusters of several nodes in one process: who runs them, on what,
//! in which order, and that nobody waits for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::prelude::*;
use celerity::{CollectiveError, Error, RunError};

/// Nodes and devices of each.
const CLUSTERS: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 1), (3, 2), (4, 1)];

fn cluster((nodes, devices): (usize, usize)) -> Config {
    Config::default().nodes(nodes).devices(devices)
}

/// What tasks note, in any order.
#[derive(Clone, Default)]
struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T: Ord + Clone> Notes<T> {
    fn add(&self, note: T) {
        self.0.lock().unwrap().push(note);
    }

    fn sorted(&self) -> Vec<T> {
        let mut notes = self.0.lock().unwrap().clone();
        notes.sort();
        notes
    }
}

#[test]
fn a_task_runs_once_on_the_node_that_it_names_and_its_writes_reach_all() {
    for shape in CLUSTERS {
        for named in 0..shape.0 {
            let ran = Notes::default();
            let seen = cluster(shape).run(|queue| {
                let data = queue.buffer_from([4, 2], vec![1_u32; 8])?;
                queue.task("double").parallel_for(
                    [4, 2],
                    data.read_write(one_to_one()),
                    |_, x| {
                        *x *= 2;
                    },
                )?;
                let (node, ran) = (queue.node(), ran.clone());
                let task = queue.host_task("add").on_node(named);
                task.once(data.read_write(all()), move |mut data| {
                    ran.add(node);
                    data.as_mut_slice().iter_mut().for_each(|x| *x += 10);
                })?;
                queue.task("triple").parallel_for(
                    [4, 2],
                    data.read_write(one_to_one()),
                    |_, x| {
                        *x *= 3;
                    },
                )?;
                Ok(queue.fence(&data)?.wait()?.as_slice().to_vec())
            });
            assert_eq!(seen.unwrap(), [36; 8], "{shape:?}");
            assert_eq!(ran.sorted(), [named], "{shape:?}");
        }
    }
}

#[test]
fn every_node_runs_a_task_that_runs_everywhere() {
    for shape in CLUSTERS {
        let ran = Notes::default();
        let own = cluster(shape).run(|queue| {
            let nodes = queue.nodes();
            let values = queue.buffer_from(3, vec![5_u64, 6, 7])?;
            let own = queue.buffer::<u64, 1>(nodes);
            let (node, ran) = (queue.node(), ran.clone());
            let accesses = (values.read(all()), own.write(one_to_one()));
            queue.host_task("own").everywhere(accesses, move |partition, (values, mut own)| {
                assert_eq!((partition.node(), partition.nodes()), (node, nodes));
                assert_eq!(partition.subrange(), Subrange { offset: [node], range: [1] });
                assert_eq!(partition.global(), Subrange { offset: [0], range: [nodes] });
                ran.add(node);
                own[node] = values.as_slice().iter().sum::<u64>() * 10 + node as u64;
            })?;
            Ok(queue.fence(&own)?.wait()?.as_slice().to_vec())
        });
        let expected: Vec<u64> = (0..shape.0 as u64).map(|node| 180 + node).collect();
        assert_eq!(own.unwrap(), expected, "{shape:?}");
        assert_eq!(ran.sorted(), (0..shape.0).collect::<Vec<_>>(), "{shape:?}");
    }
}

/// Offset and range.
type Part = (Vec<usize>, Vec<usize>);

/// The parts of a distributed task over `range`, and what it leaves in a buffer of that range.
fn distributed<const K: usize>(
    shape: (usize, usize),
    range: [usize; K],
    oversubscription: usize,
) -> (Vec<Part>, Vec<usize>) {
    let parts = Notes::default();
    let left = cluster(shape).run(|queue| {
        let data = queue.buffer_from(range, vec![3_usize; range.iter().product()])?;
        let noted = parts.clone();
        let task = queue.host_task("mark").distributed(range);
        let task = task.hint(Hint::Oversubscribe(oversubscription));
        task.submit(data.read_write(one_to_one()), move |partition, mut data| {
            assert_eq!(partition.global().range, range);
            let Subrange { offset, range } = partition.subrange();
            noted.add((offset.to_vec(), range.to_vec()));
            let count: usize = range.iter().product();
            for nth in 0..count {
                let (mut index, mut rest) = (offset, nth);
                for dim in (0..K).rev() {
                    index[dim] += rest % range[dim];
                    rest /= range[dim];
                }
                data[index] += index.iter().fold(0, |all, i| 10 * all + i);
            }
        })?;
        Ok(queue.fence(&data)?.wait()?.as_slice().to_vec())
    });
    (parts.sorted(), left.unwrap())
}

fn check_distributed<const K: usize>(range: [usize; K]) {
    let items: usize = range.iter().product();
    for shape in CLUSTERS {
        for oversubscription in [1, 3] {
            let (parts, left) = distributed(shape, range, oversubscription);
            let case = format!("{range:?} on {shape:?}, {oversubscription} per node: {parts:?}");
            let covered: usize =
                parts.iter().map(|(_, range)| range.iter().product::<usize>()).sum();
            assert_eq!(covered, items, "{case}");
            assert!(parts.len() <= shape.0 * oversubscription, "{case}");
            assert_eq!(parts.len() > 1, shape.0 * oversubscription > 1 && range[0] > 1, "{case}");
            for (nth, &value) in left.iter().enumerate() {
                let (mut index, mut rest) = ([0; K], nth);
                for dim in (0..K).rev() {
                    index[dim] = rest % range[dim];
                    rest /= range[dim];
                }
                assert_eq!(value, 3 + index.iter().fold(0, |all, i| 10 * all + i), "{case}");
            }
        }
    }
}

#[test]
fn parts_of_a_distributed_task_are_its_index_space() {
    check_distributed([1]);
    check_distributed([2]);
    check_distributed([9]);
    check_distributed([7, 3]);
    check_distributed([5, 2, 3]);
}

#[test]
fn a_distributed_task_reads_neighbours_and_begins_where_it_is_told() {
    for shape in CLUSTERS {
        let sums = cluster(shape).run(|queue| {
            let line = queue.buffer_from(10, (0..10).collect::<Vec<i32>>())?;
            let sums = queue.buffer_from(10, vec![0_i32; 10])?;
            let task = queue.host_task("sum").distributed(6).offset([2]).granularity([2]);
            let accesses = (line.read(neighborhood([1])), sums.write(one_to_one()));
            task.submit(accesses, |partition, (line, mut sums)| {
                let Subrange { offset: [first], range: [count] } = partition.subrange();
                assert!(first % 2 == 0 && count % 2 == 0, "{partition} cuts a granule");
                for i in first..first + count {
                    sums[i] = line[i - 1] + line[i] + line[i + 1];
                }
            })?;
            Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(sums.unwrap(), [0, 0, 6, 9, 12, 15, 18, 21, 0, 0], "{shape:?}");
    }
}

#[test]
fn an_empty_distributed_task_is_none() {
    cluster((2, 1))
        .run(|queue| {
            queue
                .host_task("nothing")
                .distributed([0, 4])
                .submit((), |_, ()| panic!("never called"))?;
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_node_that_does_not_meet_the_others_names_the_task() {
    for nodes in [2, 3] {
        let error = cluster((nodes, 1)).run(|queue| {
            queue.host_task("talk").collective("group", (), |partition, ()| {
                if partition.node() != 1 {
                    partition.communicator().barrier()?;
                }
                Ok(())
            })?;
            queue.barrier()
        });
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("task T1 \"talk\" at "), "{error}");
    }
}

#[test]
fn tasks_of_a_group_run_one_after_another_and_groups_run_side_by_side() {
    for shape in CLUSTERS {
        let order = Arc::new(Mutex::new(Vec::new()));
        let now = Arc::new(AtomicUsize::new(0));
        cluster(shape)
            .run(|queue| {
                for step in 0..6 {
                    let (order, now, node) = (order.clone(), now.clone(), queue.node());
                    queue.host_task("step").collective("steps", (), move |partition, ()| {
                        assert_eq!(partition.group(), "steps");
                        now.fetch_add(1, Ordering::SeqCst);
                        partition.communicator().barrier()?;
                        // Nobody is in the next task of the group before all have been here.
                        assert_eq!(now.load(Ordering::SeqCst), (step + 1) * partition.nodes());
                        order.lock().unwrap().push((step, node));
                        partition.communicator().barrier()?;
                        Ok(())
                    })?;
                }
                // Two groups that need each other at the same time, on every node.
                let (there, here) = channel();
                queue.host_task("give").collective("give", (), move |_, ()| {
                    there.send(()).unwrap();
                })?;
                queue
                    .host_task("take")
                    .collective("take", (), move |_, ()| here.recv().unwrap())?;
                Ok(())
            })
            .unwrap();
        let steps: Vec<usize> = order.lock().unwrap().iter().map(|(step, _)| *step).collect();
        assert!(steps.is_sorted() && steps.len() == 6 * shape.0, "{shape:?}: {steps:?}");
    }
}

/// Each node's functions wait for those of other nodes, and on each node for one of another group.
#[test]
fn a_hundred_groups_are_at_work_at_once() {
    const GROUPS: usize = 100;
    for shape in [(1, 1), (2, 1), (3, 2)] {
        cluster(shape)
            .run(|queue| {
                let all = Arc::new(std::sync::Barrier::new(GROUPS));
                let (open, opened) = channel::<()>();
                let opened = Arc::new(Mutex::new(opened));
                // All four threads for other host tasks of each node are blocked meanwhile.
                for _ in 0..4 {
                    let opened = opened.clone();
                    queue.host_task("block").everywhere((), move |_, ()| {
                        let _ended = opened.lock().unwrap().recv();
                    })?;
                }
                let ended = Arc::new(Mutex::new(Some(open)));
                for nth in 0..GROUPS {
                    let (all, ended) = (all.clone(), ended.clone());
                    let name = format!("group {nth}");
                    queue.host_task("meet").collective(name, (), move |partition, ()| {
                        let nodes = partition.communicator();
                        // Of this node, and then of this group.
                        all.wait();
                        let told = nodes.all_gather(&[[nth, partition.node()]])?;
                        let expected = |node| vec![[nth, node]];
                        assert!(told.iter().enumerate().all(|(node, it)| *it == expected(node)));
                        if all.wait().is_leader() {
                            drop(ended.lock().unwrap().take());
                        }
                        Ok(())
                    })?;
                }
                queue.barrier()
            })
            .unwrap();
    }
}

#[test]
fn more_groups_than_threads_for_host_tasks_never_wait_for_each_other() {
    const GROUPS: usize = 8;
    for shape in [(2, 1), (4, 2)] {
        let met = Arc::new(AtomicUsize::new(0));
        cluster(shape)
            .run(|queue| {
                let (open, opened) = channel::<()>();
                let opened = Arc::new(Mutex::new(opened));
                let data = queue.buffer_from(4, vec![1, 2, 3, 4])?;
                // All four threads for other host tasks are blocked, on node 0.
                for _ in 0..4 {
                    let opened = opened.clone();
                    queue.host_task("block").once((), move |()| {
                        let _ended = opened.lock().unwrap().recv();
                    })?;
                }
                // Nodes begin with another group each, and come to all of them.
                for nth in 0..GROUPS {
                    for turn in 0..3 {
                        let (met, name) = (met.clone(), format!("group {nth}"));
                        let task = queue.host_task("meet");
                        task.collective(name, data.read(all()), move |partition, data| {
                            let nodes = partition.communicator();
                            let late = (nth + turn + partition.node()) % 3;
                            std::thread::sleep(Duration::from_millis(late as u64));
                            nodes.barrier()?;
                            let values = [(nth, turn, partition.node())];
                            let values = values.map(|(a, b, c)| [a, b, c]);
                            for (node, theirs) in nodes.all_gather(&values)?.iter().enumerate() {
                                assert_eq!(theirs, &[[nth, turn, node]]);
                            }
                            assert_eq!(data.as_slice(), [1, 2, 3, 4]);
                            met.fetch_add(1, Ordering::SeqCst);
                            Ok(())
                        })?;
                    }
                    // Fences are taken meanwhile, and waited for.
                    assert_eq!(queue.fence(&data)?.wait()?.as_slice(), [1, 2, 3, 4]);
                }
                while met.load(Ordering::SeqCst) < 3 * GROUPS * queue.nodes() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                drop(open);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn nodes_tell_each_other_values_of_any_size() {
    for shape in [(1, 1), (2, 1), (3, 1), (4, 1)] {
        cluster(shape)
            .run(|queue| {
                queue.host_task("talk").collective("talk", (), |partition, ()| {
                    let (nodes, me) = (partition.communicator(), partition.node());
                    for root in 0..partition.nodes() {
                        // One value, none, and more than fits a message.
                        for count in [1, 0, 3000] {
                            let mut values = vec![0_u64; count];
                            let told: Vec<u64> =
                                (0..count as u64).map(|i| i + root as u64).collect();
                            if me == root {
                                values.clone_from(&told);
                            }
                            nodes.broadcast(root, &mut values)?;
                            assert_eq!(values, told);
                        }
                        let own = vec![me as f32; 100 * me];
                        let all = nodes.gather(root, &own)?;
                        assert_eq!(all.is_some(), me == root);
                        for (node, values) in all.into_iter().flatten().enumerate() {
                            assert_eq!(values, vec![node as f32; 100 * node]);
                        }
                        nodes.barrier()?;
                    }
                    let error = nodes.broadcast(partition.nodes(), &mut [0_u8]).unwrap_err();
                    assert!(matches!(error, CollectiveError::NoSuchRoot { .. }), "{error}");
                    Ok(())
                })?;
                Ok(())
            })
            .unwrap();
    }
}

/// The error of a run on three nodes with one collective task.
fn error_of<R: celerity::HostOutcome>(
    function: impl Fn(celerity::CollectivePartition) -> R + Clone + Send + Sync + 'static,
) -> String {
    let outcome = cluster((3, 1)).run(|queue| {
        let function = function.clone();
        let task = queue.host_task("meet");
        task.collective("g", (), move |partition, ()| function(partition))?;
        Ok(())
    });
    outcome.unwrap_err().to_string()
}

type Outcome = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[test]
fn who_waits_for_a_node_that_fails_is_woken_and_the_first_error_is_told() {
    let text = error_of(|partition| -> Outcome {
        if partition.node() == 1 {
            panic!("the disk is on fire");
        }
        Ok(partition.communicator().barrier()?)
    });
    assert!(text.contains("\"meet\" at") && text.contains("the disk is on fire"), "{text}");
    assert!(text.contains("on N1"), "{text}");

    let text = error_of(|partition| -> Outcome {
        if partition.node() == 2 {
            return Err("no such file".into());
        }
        partition.communicator().gather(0, &[1_u8])?;
        Ok(partition.communicator().barrier()?)
    });
    assert!(text.contains("failed on N2: no such file"), "{text}");
}

#[test]
fn nodes_that_do_different_things_are_told_what() {
    let text = error_of(|partition| -> Outcome {
        match partition.node() {
            0 => partition.communicator().broadcast(0, &mut [1_u32])?,
            _ => partition.communicator().barrier()?,
        }
        Ok(())
    });
    assert!(text.contains("must call the same operations in the same order"), "{text}");

    // One waits for a node that has returned, and would for ever.
    let text = error_of(|partition| -> Outcome {
        if partition.node() == 1 {
            partition.communicator().broadcast(0, &mut [1_u32])?;
        }
        Ok(())
    });
    assert!(text.contains("N1: this node is in a broadcast from N0"), "{text}");
    assert!(text.contains("but the task has ended on N0"), "{text}");

    // One tells others something, who do not listen.
    let text = error_of(|partition| -> Outcome {
        if partition.node() == 2 {
            partition.communicator().gather(0, &[1_u32])?;
        }
        Ok(())
    });
    assert!(text.contains("N2 is in a gather to N0 of values of 4 bytes"), "{text}");

    let text = error_of(|partition| -> Outcome {
        let mut values = vec![0_u8; 1 + partition.node()];
        partition.communicator().broadcast(0, &mut values)?;
        Ok(())
    });
    assert!(text.contains("N0 broadcasts 1 byte, but this node expects"), "{text}");
}

#[test]
fn nodes_that_wait_for_each_other_in_different_operations_are_told_what() {
    // Each collects what the others keep for themselves.
    let text = error_of(|partition| -> Outcome {
        partition.communicator().gather(partition.node(), &[1_u8])?;
        Ok(())
    });
    assert!(text.contains("this node is in a gather to N"), "{text}");
    assert!(text.contains("must call the same operations in the same order"), "{text}");

    // They wait in a circle, the first of them some operations later.
    let text = error_of(|partition| -> Outcome {
        let (communicator, next) = (partition.communicator(), (partition.node() + 1) % 3);
        if partition.node() == 0 {
            communicator.gather(1, &[1_u8])?;
        }
        communicator.broadcast(next, &mut [1_u8])?;
        Ok(())
    });
    assert!(text.contains("must call the same operations in the same order"), "{text}");

    // One collects, the other listens.
    let text = error_of(|partition| -> Outcome {
        match partition.node() {
            1 => drop(partition.communicator().gather(1, &[1_u64])?),
            _ => partition.communicator().broadcast(1, &mut [1_u64])?,
        }
        Ok(())
    });
    assert!(
        text.contains("in a gather to N1") && text.contains("in a broadcast from N1"),
        "{text}"
    );
}

#[test]
fn bad_input_is_refused_where_it_is_submitted() {
    for nodes in [1, 2] {
        cluster((nodes, 1))
            .run(|queue| {
                let refused = queue.host_task("far").on_node(nodes).once((), |()| {}).unwrap_err();
                assert!(matches!(refused, Error::NoSuchNode { .. }));
                let text = refused.to_string();
                assert!(
                    text.contains("\"far\" at") && text.contains("tests/all/host_tasks.rs"),
                    "{text}"
                );
                assert!(text.contains(&format!("is to run on node {nodes}")), "{text}");

                // Whatever the number of nodes: what goes with one must go with two.
                let data = queue.buffer::<u32, 1>(4).named("results");
                let text = |error: Error| {
                    assert!(matches!(error, Error::Declare(_)), "{error}");
                    error.to_string()
                };
                let all_nodes = queue.host_task("all write");
                let refused = all_nodes.everywhere(data.write(all()), |_, _| {}).unwrap_err();
                let refused = text(refused);
                assert!(refused.contains("\"all write\" at") && refused.contains("\"results\""));
                assert!(refused.contains("gives different chunks the same elements"), "{refused}");
                let part = fixed(Subrange { offset: [1], range: [2] });
                let collective = queue.host_task("all write");
                let refused = collective.collective("g", data.write(part), |_, _| {}).unwrap_err();
                assert!(text(refused).contains("writes buffer \"results\" through fixed"));

                let distributed = queue.host_task("overlap").distributed(8);
                let refused = distributed.submit(data.write(all()), |_, _| {}).unwrap_err();
                assert!(text(refused).contains("through all"));
                let outside = queue.host_task("outside").distributed(8);
                let refused = outside.submit(data.write(one_to_one()), |_, _| {}).unwrap_err();
                assert!(text(refused).contains("but the buffer is"));
                let split = queue.host_task("split").distributed(8).hint(Hint::SplitAlong(1));
                assert!(matches!(split.submit((), |_, ()| {}), Err(Error::SplitDimension { .. })));
                let granules = queue.host_task("granules").distributed([8, 8]).granularity([0, 1]);
                assert!(matches!(granules.submit((), |_, ()| {}), Err(Error::Granularity { .. })));

                for nth in 0..127 {
                    queue.host_task("meet").collective(format!("{nth}"), (), |_, ()| {})?;
                }
                let one_more = queue.host_task("one more").collective("127", (), |_, ()| {});
                let refused = one_more.unwrap_err().to_string();
                assert!(refused.contains("collective group \"127\""), "{refused}");
                assert!(refused.contains("the run has 128 other groups"), "{refused}");
                queue.host_task("known").collective("g", (), |_, ()| {})?;
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn nodes_that_differ_in_node_or_group_are_named() {
    let differs = |submit: fn(&Queue) -> celerity::Result<()>| {
        let error = cluster((2, 1)).run(|queue| {
            submit(queue)?;
            queue.barrier()
        });
        match error.unwrap_err() {
            Error::Run(error) => assert!(matches!(*error, RunError::Diverged { .. }), "{error}"),
            other => panic!("{other}"),
        }
    };
    differs(|queue| {
        queue.host_task("once").on_node(queue.node()).once((), |()| {})?;
        Ok(())
    });
    differs(|queue| {
        let name = format!("of node {}", queue.node());
        queue.host_task("meet").collective(name, (), |_, ()| {})?;
        Ok(())
    });
    differs(|queue| {
        let task = queue.host_task("split").distributed(4 + queue.node());
        task.submit((), |_, ()| {})?;
        Ok(())
    });
}
