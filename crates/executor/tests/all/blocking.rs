//! Host tasks that block, and runs that are started where they would block.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread::available_parallelism;
use std::time::Duration;

use celerity_executor::{RunError, run_cluster};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::*;

/// As many host tasks as may run at a time on a node.
const HOST_TASKS: usize = 4;

fn line(length: usize) -> Box3 {
    Box3::from_range([length])
}

/// Fills its host lanes with tasks that wait for a kernel, which is submitted
/// when those of all runs that share `all_wait` occupy a thread.
fn feed_waiting_host_tasks(all_wait: Arc<Barrier>) -> Outcome<()> {
    run(&cluster(1, 1), move |node| {
        let (started, starts) = channel();
        let mut feeds = Vec::new();
        for _ in 0..HOST_TASKS {
            let ((feed, food), started, all_wait) = (channel(), started.clone(), all_wait.clone());
            feeds.push(feed);
            host_task(node, "wait", Vec::new(), move |_| {
                all_wait.wait();
                started.send(()).unwrap();
                food.recv().unwrap();
            })?;
        }
        (0..HOST_TASKS).for_each(|_| starts.recv().unwrap());
        kernel(node, "feed", line(1), Vec::new(), move |_, _| {
            feeds.iter().for_each(|feed| feed.send(()).unwrap());
        })?;
        Ok(node.barrier()?)
    })
}

#[test]
fn more_blocking_host_tasks_than_pool_threads_leave_kernels_running() {
    // The runs share one pool, with a thread per processor.
    let runs = available_parallelism().unwrap().get() / HOST_TASKS + 1;
    let all_wait = Arc::new(Barrier::new(runs * HOST_TASKS));
    let threads: Vec<_> = std::iter::repeat_with(|| all_wait.clone())
        .take(runs)
        .map(|all_wait| std::thread::spawn(move || feed_waiting_host_tasks(all_wait)))
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}

#[test]
fn host_tasks_on_every_lane_may_wait_for_fences() {
    for config in configurations() {
        let seen = run(&config, |node| {
            let space = line(8);
            let data = buffer_from(node, space, vec![1; 8]);
            let (sender, seen) = channel();
            for _ in 0..HOST_TASKS {
                let slow = vec![updates(data, Mapper::OneToOne)];
                kernel(node, "slow", space, slow, |p, v| {
                    std::thread::sleep(Duration::from_millis(1));
                    v[0].set(p, v[0].get(p) + 1);
                })?;
                let (snapshot, frontend) = (fence(node, data, space)?, node.clone());
                let sender = sender.clone();
                host_task(node, "wait", Vec::new(), move |_| {
                    sender.send(snapshot.wait(&frontend)).unwrap();
                })?;
            }
            node.barrier()?;
            drop(sender);
            Ok(seen.iter().collect::<Result<Vec<_>, _>>()?)
        });
        let mut seen = seen.unwrap();
        seen.sort();
        assert_eq!(seen, (2..6).map(|value| vec![value; 8]).collect::<Vec<_>>(), "{config:?}");
    }
}

#[test]
fn a_host_task_that_waits_for_a_fence_learns_that_the_run_has_failed() {
    let (sender, seen) = channel();
    let outcome = run(&cluster(1, 1), move |node| {
        let data = buffer_from(node, line(8), vec![1; 8]);
        let both_run = Arc::new(Barrier::new(2));
        let (meet, bad) = (both_run.clone(), vec![updates(data, Mapper::OneToOne)]);
        kernel(node, "bad", line(8), bad, move |_, _| {
            meet.wait();
            panic!("boom");
        })?;
        let (snapshot, frontend) = (fence(node, data, line(8))?, node.clone());
        let sender = sender.clone();
        host_task(node, "wait", Vec::new(), move |_| {
            both_run.wait();
            sender.send(snapshot.wait(&frontend)).unwrap();
        })?;
        Ok(node.barrier()?)
    });
    let Err(ProgramError::Run(error)) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(error, RunError::TaskPanicked { .. }), "{error:?}");
    assert_eq!(seen.recv(), Ok(Err(error)), "the run has waited for the host task");
}

/// What a run says that is started on this thread.
fn inner_run() -> Outcome<u64> {
    run_cluster(&cluster(2, 1), |node| {
        let data = buffer(node, line(4));
        kernel(node, "fill", line(4), vec![writes(data, Mapper::OneToOne)], |p, v| {
            v[0].set(p, p[0]);
        })?;
        Ok(fence(node, data, line(4))?.wait(node)?.iter().sum())
    })
}

fn assert_refused(outcome: &Outcome<u64>) {
    let Err(ProgramError::Run(error @ RunError::Start { .. })) = outcome else {
        panic!("{outcome:?}")
    };
    let message = error.to_string();
    assert!(message.contains("a kernel or host task started it"), "{message}");
}

#[test]
fn a_run_inside_of_a_kernel_or_host_task_is_refused_and_harms_nothing() {
    let (sender, outcomes) = channel();
    let outcome = run(&cluster(1, 2), move |node| {
        let from_kernel = sender.clone();
        kernel(node, "kernel", line(2), Vec::new(), move |_, _| {
            from_kernel.send(inner_run()).unwrap();
        })?;
        let from_parts = sender.clone();
        kernel(node, "spread kernel", line(1), Vec::new(), move |_, _| {
            let inner = || from_parts.send(inner_run()).unwrap();
            rayon::join(inner, inner);
        })?;
        let from_host_task = sender.clone();
        host_task(node, "host task", Vec::new(), move |_| {
            from_host_task.send(inner_run()).unwrap();
        })?;
        Ok(node.barrier()?)
    });
    assert_eq!(outcome, Ok(()));
    let outcomes: Vec<_> = outcomes.iter().collect();
    assert_eq!(outcomes.len(), 5);
    outcomes.iter().for_each(assert_refused);
}

#[test]
fn a_run_inside_of_another_runs_closure_works() {
    let outcome = run(&cluster(2, 1), |node| {
        let before = inner_run()?;
        node.barrier()?;
        Ok(before + inner_run()?)
    });
    assert_eq!(outcome, Ok(12));
}
