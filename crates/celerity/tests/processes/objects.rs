//! Host objects where each node is a process: every process has a value of its own, orders what
//! runs there, and gets its value back.

use celerity::prelude::*;

const STEPS: usize = 100;

/// Checks what each node gets back.
pub(crate) fn run() {
    let rank = celerity::run(|queue| {
        let node = queue.node();
        let log = queue.host_object(vec![node]).named("log");
        let sum = queue.host_object(0);
        let items = 8 * queue.nodes();
        let values = queue.buffer_from(items, vec![0_u64; items])?;
        for step in 0..STEPS {
            let step_of = values.read_write(one_to_one());
            queue.task("step").parallel_for(items, step_of, |_, value| *value += 1)?;
            // Reads what all nodes have written, in the order of the steps.
            let accesses = (log.sequential(), values.read(all()));
            queue.host_task("note").once(accesses, move |(log, values)| {
                assert!(values.as_slice().iter().all(|value| *value == step as u64 + 1));
                log.push(step);
            })?;
            queue.host_task("add").once(sum.exclusive(), move |sum| *sum += step)?;
            let both = (sum.exclusive(), log.relaxed());
            queue.host_task("all").collective("all", both, move |partition, (sum, log)| {
                partition.communicator().barrier()?;
                assert_eq!(log[0], partition.node(), "the object of another node");
                *sum += 1000;
                Ok(())
            })?;
        }
        let (log, sum) = (log.take(queue)?, sum.take(queue)?);
        assert_eq!(log[0], node, "the value is this node's own");
        match queue.is_root() {
            true => assert!(log[1..].iter().copied().eq(0..STEPS), "{log:?}"),
            false => assert_eq!(log.len(), 1, "these tasks run on node 0"),
        }
        let own: usize = if queue.is_root() { (0..STEPS).sum() } else { 0 };
        assert_eq!(sum, own + 1000 * STEPS);
        Ok(node)
    });
    if rank.unwrap_or_else(|error| panic!("{error}")) == 0 {
        crate::passed();
    }
}
