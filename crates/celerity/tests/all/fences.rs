//! Fences: blocking and awaited, whole and in part, and when the run fails.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use celerity::prelude::*;
use celerity::{Error, Result};

/// Wakes a thread that is parked in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (2, 3), (4, 1)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

fn counted(queue: &Queue, range: [usize; 2]) -> Result<Buffer<u32, 2>> {
    let buffer = queue.buffer::<u32, 2>(range).named("counted");
    queue.task("count").parallel_for(range, buffer.write(one_to_one()), |item, element| {
        *element = item.linear_id() as u32;
    })?;
    Ok(buffer)
}

#[test]
fn every_node_gets_a_snapshot() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let buffer = counted(queue, [6, 7])?;
            let snapshot = queue.fence(&buffer)?.wait()?;
            assert_eq!(snapshot[[5, 6]], 41);
            assert_eq!(snapshot.part(), Subrange::whole([6, 7]));
            assert_eq!(snapshot.rows().nth(2), Some(&[14, 15, 16, 17, 18, 19, 20][..]));
            assert_eq!(snapshot.get([6, 0]), None);
            assert_eq!(snapshot.as_slice(), (0..42).collect::<Vec<_>>());
            Ok(())
        };
        cluster.run(program).unwrap();
    }
}

#[test]
fn a_part_is_indexed_like_the_buffer() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let buffer = counted(queue, [6, 7])?;
            let part = Subrange { offset: [2, 3], range: [2, 2] };
            let snapshot = queue.fence_part(&buffer, part)?.wait()?;
            assert_eq!(snapshot.as_slice(), [17, 18, 24, 25]);
            assert_eq!((snapshot[[2, 3]], snapshot[[3, 4]]), (17, 25));
            assert_eq!((snapshot.get([1, 3]), snapshot.get([2, 5])), (None, None));
            assert_eq!(snapshot.part(), part);
            assert_eq!(snapshot.into_vec().len(), 4);
            Ok(())
        };
        cluster.run(program).unwrap();
    }
}

#[test]
fn a_fence_stands_at_its_place_in_the_program() {
    for cluster in clusters() {
        let snapshots = cluster.run(|queue| {
            let line = queue.buffer_from(9, vec![0_u8; 9])?;
            let mut fences = Vec::new();
            for _ in 0..5 {
                fences.push(queue.fence(&line)?);
                queue.task("add").parallel_for(9, line.read_write(one_to_one()), |_, x| *x += 1)?;
            }
            // Waited for in another order than submitted.
            fences.into_iter().rev().map(|fence| Ok(fence.wait()?[8])).collect::<Result<Vec<_>>>()
        });
        assert_eq!(snapshots.unwrap(), [4, 3, 2, 1, 0]);
    }
}

#[test]
fn fences_can_be_awaited() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let (a, b) = (counted(queue, [3, 3])?, counted(queue, [4, 4])?);
            let (a, b) = (queue.fence(&a)?, queue.fence(&b)?);
            let sum = async { Ok::<_, Error>(a.await?[[2, 2]] + b.await?[[3, 3]]) };
            assert_eq!(block_on(sum)?, 23);
            Ok(())
        };
        cluster.run(program).unwrap();
    }
}

#[test]
fn nothing_is_there_at_once() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let empty = queue.buffer::<f64, 2>([0, 4]);
            assert_eq!(queue.fence(&empty)?.wait()?.into_vec(), []);
            let some = counted(queue, [2, 2])?;
            let nothing = Subrange { offset: [1, 1], range: [0, 1] };
            assert_eq!(block_on(queue.fence_part(&some, nothing)?)?.as_slice(), []);
            Ok(())
        };
        cluster.run(program).unwrap();
    }
}

#[test]
fn a_fence_outlives_its_run() {
    for cluster in clusters() {
        let fence = cluster.run(|queue| queue.fence(&counted(queue, [2, 3])?)).unwrap();
        assert_eq!(fence.wait().unwrap().into_vec(), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn waiting_in_a_failed_run_returns_its_error() {
    for cluster in clusters() {
        for awaited in [false, true] {
            let program = |queue: &Queue| {
                let buffer = counted(queue, [64, 64])?;
                let accesses = buffer.read_write(one_to_one());
                queue.task("broken").parallel_for([64, 64], accesses, |_, _| panic!("broken"))?;
                let fence = queue.fence(&buffer)?;
                let outcome = if awaited { block_on(fence) } else { fence.wait() };
                let message = outcome.unwrap_err().to_string();
                assert!(message.contains("broken"), "{message}");
                Ok(())
            };
            let message = cluster.run(program).unwrap_err().to_string();
            assert!(message.contains("broken"), "{message}");
        }
    }
}
