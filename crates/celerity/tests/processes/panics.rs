//! Panics in what a program hands over besides kernels, on one process of several: combiners of
//! reductions, range mappers, host tasks. All processes are told, and none hangs.

use std::process::ExitCode;

use celerity::{CheckLevel, Operator, RunError, prelude::*};

use crate::faults::{ENDED, config, fail_with};

/// Adds up to less than a hundred thousand.
#[derive(Clone, Copy)]
struct Moody;

const TOO_MUCH: u32 = 100_000;

impl Operator<u32> for Moody {
    const IS_COMMUTATIVE: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        assert!(a + b < TOO_MUCH, "too much for me");
        a + b
    }
}

/// Of the last node, a single item is too much.
pub(crate) fn combiner() -> ExitCode {
    let (node, error) = panics(|queue| {
        let (sum, items) = (queue.buffer::<u32, 0>([]).named("sum"), 1000 * queue.nodes());
        queue.task("add").parallel_for(items, sum.reduce(Moody), move |item, sum| {
            sum.combine(if item[0] + 1 == items { TOO_MUCH } else { 1 });
        })?;
        queue.fence(&sum)?.wait().map(drop)
    });
    assert!(matches!(error, RunError::TaskPanicked { .. }), "N{node}: {error}");
    told(node, &error)
}

/// What each node has is not too much, and all together are.
pub(crate) fn combination() -> ExitCode {
    let (node, error) = panics(|queue| {
        let (sum, nodes) = (queue.buffer::<u32, 0>([]).named("sum"), queue.nodes());
        let each = TOO_MUCH / (1000 * nodes as u32) + 1;
        queue.task("add").parallel_for(1000 * nodes, sum.reduce(Moody), move |_, sum| {
            sum.combine(each);
        })?;
        queue.fence(&sum)?.wait().map(drop)
    });
    assert!(matches!(error, RunError::TaskPanicked { .. }), "N{node}: {error}");
    told(node, &error)
}

/// The last node's range mapper knows the whole index space and no part of it.
pub(crate) fn range_mapper() -> ExitCode {
    let (node, error) = panics(|queue| {
        let is_last = queue.node() + 1 == queue.nodes();
        let ignorant = mapper("ignorant", move |chunk: Chunk<1>, _: [usize; 1]| {
            assert!(!is_last || chunk.range == chunk.global.range, "I do not know parts");
            Subrange::new(chunk.offset, chunk.range)
        });
        let values = queue.buffer_from(60, vec![1_u32; 60])?;
        queue.task("look").parallel_for(60, values.read(ignorant), |_, _| ())?;
        queue.barrier()
    });
    assert!(matches!(error, RunError::Schedule { .. }), "N{node}: {error}");
    told(node, &error)
}

/// A host task that runs on the last node, of which others need the result.
pub(crate) fn host_task() -> ExitCode {
    let (node, error) = panics(|queue| {
        let values = queue.buffer_from(60, vec![1_u32; 60])?;
        let task = queue.host_task("fragile").on_node(queue.nodes() - 1);
        task.once(values.read_write(all()), |_| panic!("broken"))?;
        queue.fence(&values)?.wait().map(drop)
    });
    assert!(matches!(error, RunError::TaskPanicked { .. }), "N{node}: {error}");
    told(node, &error)
}

/// What a node is told of a program that panics. A sample of calls of mappers would be made when
/// tasks are submitted, so nothing is checked.
fn panics<R: Send>(program: impl Fn(&Queue) -> celerity::Result<R> + Sync) -> (usize, RunError) {
    std::panic::set_hook(Box::new(|_| ()));
    let (node, error, _) = fail_with(&config().check(CheckLevel::Off), program);
    (node, error)
}

fn told(node: usize, error: &RunError) -> ExitCode {
    println!("N{node}: {error}");
    ExitCode::from(ENDED)
}
