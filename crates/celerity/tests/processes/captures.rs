//! Captures where each node is a process: every process gets its values, at barriers and at its
//! end, and all are told if one of them captures alone.

use std::thread;
use std::time::Duration;

use celerity::{Max, RunError, prelude::*};

use crate::faults::{config, fail_with};

const STEPS: usize = 60;
const SHARE: usize = 5000;

/// Looks at residuals, captures at barriers, and ends with what is asked for on one node.
pub(crate) fn run() {
    let outcome = celerity::run(|queue| {
        let (node, nodes) = (queue.node(), queue.nodes());
        let items = SHARE * nodes;
        let values = queue.buffer_from(items, (0..items as u64).collect::<Vec<_>>())?;
        let most = queue.buffer::<u64, 0>([]).named("most");
        let log = queue.host_object(vec![node]).named("log");
        let (mut behind, mut seen) = (LookBehind::new(4), Vec::new());
        for step in 0..STEPS {
            let accesses = (values.read_write(one_to_one()), most.reduce(Max));
            queue.task("step").parallel_for(items, accesses, |_, (value, most)| {
                *value += 1;
                most.combine(*value);
            })?;
            queue.host_task("note").on_node(step % nodes).once(log.exclusive(), move |log| {
                log.push(100 + step);
            })?;
            seen.extend(behind.look(queue.fence(&most)?)?.map(|most| most[[]]));
            if step % 20 == 19 {
                // Each part on a node that has to be sent it.
                let part = |of: usize| Subrange { offset: [SHARE * of], range: [3] };
                let (first, last, log) = queue.barrier_with((
                    values.capture_part(part(nodes - 1)).on_node(0),
                    values.capture_part(part(0)).on_node(nodes - 1),
                    log.capture(),
                ))?;
                let expected = |of: usize| (SHARE * of + step + 1) as u64;
                assert_eq!(first.map(|first| first[SHARE * (nodes - 1)]), {
                    (node == 0).then(|| expected(nodes - 1))
                });
                assert_eq!(last.map(|last| last[0]), (node == nodes - 1).then(|| expected(0)));
                assert_eq!(log[0], node, "the object of another node");
                assert_eq!(log.len(), 1 + (0..=step).filter(|step| step % nodes == node).count());
            }
        }
        for most in behind.rest() {
            seen.push(most?[[]]);
        }
        let greatest = (0..STEPS).map(|step| (items + step) as u64);
        assert!(seen.iter().copied().eq(greatest), "{seen:?}");
        let (all, log) = queue.finish((values.capture().on_node(0), log.capture()))?;
        assert_eq!(log[0], node);
        // Node 0 goes on alone, and longer than the others live.
        if let Some(all) = all {
            thread::sleep(Duration::from_millis(500));
            let expected = (0..items).map(|value| (value + STEPS) as u64);
            assert!(all.as_slice().iter().copied().eq(expected));
        }
        Ok(node)
    });
    if outcome.unwrap_or_else(|error| panic!("{error}")) == 0 {
        crate::passed();
    }
}

/// The last node captures where the others go on. All name the capture.
pub(crate) fn in_a_branch() {
    let (node, error, _) = fail_with(&config(), |queue| {
        let log = queue.host_object(queue.node()).named("log");
        queue.barrier_with(log.capture())?;
        if queue.node() == queue.nodes() - 1 {
            queue.barrier_with(log.capture())?;
        }
        queue.barrier()
    });
    let RunError::Diverged { task, other_task, .. } = &error else { panic!("N{node}: {error}") };
    let named = |task: &String| {
        task.contains("\"capture of log\"") && task.contains("tests/processes/captures.rs:")
    };
    assert!(named(task) || named(other_task), "N{node}: {error}");
    println!("N{node}: {error}");
    if node == 0 {
        crate::passed();
    }
}
