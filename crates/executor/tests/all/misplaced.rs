//! Calls that would wait for themselves, where range mappers and tasks can make them: they are
//! refused, and say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use celerity_executor::{NodeFrontend, RunError, SubmitError};
use celerity_regions::Box3;
use celerity_tdag::{Mapper, MapperInput, UserMapper};

use crate::common::*;

fn line(length: usize) -> Box3 {
    Box3::from_range([length])
}

/// A mapper that does something when it is asked for the `nth` time, and maps one to one.
fn doing(nth: usize, act: impl Fn() + Send + Sync + 'static) -> Mapper {
    let asked = AtomicUsize::new(0);
    Mapper::User(UserMapper::new(move |input: &MapperInput| {
        if asked.fetch_add(1, Ordering::Relaxed) == nth {
            act();
        }
        input.chunk.into()
    }))
}

fn misplaced(error: &RunError, what: &str) {
    let RunError::Misplaced { .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains(what), "{error}");
}

/// What a mapper is told that calls `call`, where it is submitted or where it is scheduled.
fn told(nth: usize, call: fn(&NodeFrontend) -> RunError) -> Vec<RunError> {
    let mut all = Vec::new();
    for config in configurations() {
        let (tell, told) = channel();
        let sum = run(&config, move |node| {
            let (data, frontend, tell) = (buffer_from(node, line(8), vec![5; 8]), node, &tell);
            let (frontend, tell) = (Arc::clone(frontend), tell.clone());
            let mapper = doing(nth, move || drop(tell.send(call(&frontend))));
            kernel(node, "mapped", line(8), vec![reads(data, mapper)], |_, _| {})?;
            Ok(fence(node, data, line(8))?.wait(node)?.iter().sum::<u64>())
        });
        assert_eq!(sum, Ok(40), "the run goes on: {config:?}");
        let of_run: Vec<_> = told.try_iter().collect();
        assert_eq!(of_run.len(), config.nodes, "{config:?}");
        all.extend(of_run);
    }
    all
}

/// How a submission is refused.
fn submission(node: &NodeFrontend) -> RunError {
    match host_task(node, "nested", Vec::new(), |_| {}) {
        Err(SubmitError::Run(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mapper_cannot_submit() {
    for nth in 0..2 {
        let all = told(nth, submission);
        all.iter().for_each(|error| misplaced(error, "mapper cannot submit a task"));
    }
}

#[test]
fn a_mapper_cannot_wait_for_a_barrier() {
    for nth in 0..2 {
        let wait = |node: &NodeFrontend| node.barrier().expect_err("it waits");
        told(nth, wait).iter().for_each(|error| misplaced(error, "cannot wait for a barrier"));
    }
}

#[test]
fn a_mapper_may_drop_a_buffer_rename_it_and_flush() {
    for nth in 0..2 {
        for config in configurations() {
            let sum = run(&config, move |node| {
                let (data, other) = (buffer_from(node, line(8), vec![5; 8]), buffer(node, line(4)));
                let frontend = node.clone();
                let mapper = doing(nth, move || {
                    frontend.rename_buffer(data, "renamed");
                    frontend.flush();
                    frontend.drop_buffer(other);
                });
                kernel(node, "mapped", line(8), vec![reads(data, mapper)], |_, _| {})?;
                Ok(fence(node, data, line(8))?.wait(node)?.iter().sum::<u64>())
            });
            assert_eq!(sum, Ok(40), "{config:?}");
        }
    }
}

/// What a kernel and a host task are told that call `call`.
fn told_in_tasks(call: fn(&NodeFrontend) -> RunError, what: &str) {
    for config in configurations() {
        let (tell, told) = channel();
        let outcome = run(&config, move |node| {
            let (of_kernel, of_host) = (tell.clone(), tell.clone());
            let (here, there) = (node.clone(), node.clone());
            kernel(node, "kernel", line(1), Vec::new(), move |_, _| {
                of_kernel.send(call(&here)).unwrap();
            })?;
            host_task(node, "host task", Vec::new(), move |_| {
                of_host.send(call(&there)).unwrap();
            })?;
            Ok(node.barrier()?)
        });
        assert_eq!(outcome, Ok(()), "{config:?}");
        let told: Vec<_> = told.try_iter().collect();
        assert_eq!(told.len(), 2);
        told.iter().for_each(|error| misplaced(error, what));
    }
}

#[test]
fn a_task_cannot_wait_for_a_barrier() {
    let wait = |node: &NodeFrontend| node.barrier().expect_err("it waits");
    told_in_tasks(wait, "a kernel or host task cannot wait");
}

#[test]
fn a_task_cannot_submit() {
    told_in_tasks(submission, "a kernel or host task cannot submit a task");
}
