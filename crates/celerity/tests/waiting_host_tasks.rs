//! Host tasks that wait for the results of reductions: as many as run at a time, before the kernel
//! that reduces has ended. What folds and combines its partial results must not wait for one of them.

use std::sync::{Arc, Barrier};

use celerity::prelude::*;
use celerity::{Platform, Result, Sum};

/// Host tasks of a node that run at a time.
const HOST_TASKS: usize = 4;

/// Items: enough that on several nodes partial results are folded before they are combined.
const COUNT: usize = 1 << 16;

#[test]
fn as_many_as_run_at_a_time_may_wait_for_a_reduction() {
    for [nodes, devices] in [[1, 1], [1, 2], [2, 1], [3, 2]] {
        let cpus = Config::default().platform(Platform::Cpu).nodes(nodes).devices(devices);
        let sum = cpus.run(count_while_others_wait);
        let sum = sum.unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}"));
        assert_eq!(sum, COUNT as f64);
    }
}

fn count_while_others_wait(queue: &Queue) -> Result<f64> {
    // The kernel goes on when all host tasks have begun, which are on its node.
    let all_begun = Arc::new(Barrier::new(HOST_TASKS + 1));
    let (sum, begun) = (queue.buffer::<f64, 0>([]), all_begun.clone());
    queue.task("count").parallel_for(COUNT, sum.reduce(Sum), move |item, sum| {
        if item[0] == 0 {
            begun.wait();
        }
        sum.combine(1.0);
    })?;
    for _ in 0..HOST_TASKS {
        let (fence, begun) = (queue.fence(&sum)?, all_begun.clone());
        queue.host_task("wait").once((), move |()| {
            begun.wait();
            assert_eq!(fence.wait()?[[]], COUNT as f64);
            Ok(())
        })?;
    }
    queue.fence(&sum)?.wait().map(|sum| sum[[]])
}
