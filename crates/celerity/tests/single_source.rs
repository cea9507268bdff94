//! Kernels that `#[kernel]` has made, on whatever devices there are: on a machine
//! with GPUs and a facade that has them, the same tests run there
//! (`CELERITY_PLATFORM=cuda` makes sure of it).

use celerity::prelude::*;
use celerity::{Error, Result, RunError, Subrange};
use celerity_example_kernels::groups::{SUMMANDS, group_sum};
use celerity_example_kernels::{faults, linear};

/// One node, and two that share a GPU if need be.
fn clusters() -> impl Iterator<Item = Config> {
    let config = Config::from_env().unwrap().devices(1).share_gpus(true);
    [1, 2].map(|nodes| config.clone().nodes(nodes)).into_iter()
}

/// What the failure of a kernel says, on every cluster.
fn failures(program: impl Fn(&Queue) -> Result<()> + Sync) -> Vec<String> {
    let failure = |cluster: Config| match cluster.run(&program) {
        Ok(()) => panic!("the program should have failed on {cluster:?}"),
        Err(Error::Run(error)) if matches!(*error, RunError::TaskPanicked { .. }) => {
            error.to_string()
        }
        Err(error) => panic!("no panic of a task: {error:?}"),
    };
    clusters().map(failure).collect()
}

fn numbers(queue: &Queue, fragile: usize) -> Result<Vec<u32>> {
    let cells = queue.buffer::<u32, 1>(5000).named("cells");
    queue.task("count").launch(5000, cells.write(one_to_one()), faults::number::new(fragile))?;
    // Goes on until the news arrives; waiting for it must not hang.
    let again = cells.read_write(one_to_one());
    queue.task("fill").launch_rows(5000, again, linear::fill::<u32>::new(2))?;
    Ok(queue.fence(&cells)?.wait()?.as_slice().to_vec())
}

#[test]
fn a_panic_names_task_kernel_and_message_and_devices_stay_usable() {
    for text in failures(|queue| numbers(queue, 3210).map(drop)) {
        assert!(text.contains("\"count\"") && text.contains("an item of glass"), "{text}");
        assert!(text.contains("item [3210]"), "{text}");
    }
    for cluster in clusters() {
        assert_eq!(cluster.run(|queue| numbers(queue, 5000)).unwrap(), [2; 5000]);
    }
}

#[test]
fn groups_share_memory_and_meet() {
    let values: Vec<f64> = (0..40 * SUMMANDS).map(|i| (i * i % 101) as f64).collect();
    let sums = values.chunks(SUMMANDS).map(|group| group.iter().sum::<f64>());
    let expected: Vec<f64> = sums.flat_map(|sum| [sum; SUMMANDS]).collect();
    for cluster in clusters() {
        let found = cluster.run(|queue| {
            let values = queue.buffer_from(values.len(), values.clone())?;
            let sums = queue.buffer::<f64, 1>(values.range());
            let accesses = (sums.write(one_to_one()), values.read(one_to_one()));
            queue.task("sum").launch_groups(values.range(), SUMMANDS, accesses, group_sum)?;
            Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(found.unwrap(), expected, "{cluster:?}");
    }
}

#[test]
fn an_element_outside_of_the_declared_part_is_not_read() {
    let texts = failures(|queue| {
        let (cells, table) = (queue.buffer::<u32, 1>(8), queue.buffer_from(50, vec![1; 50])?);
        let part = fixed(Subrange { offset: [10], range: [5] });
        let accesses = (cells.write(one_to_one()), table.read(part));
        queue.task("outside").launch(8, accesses, faults::look::new(15))?;
        queue.barrier()
    });
    for text in texts {
        assert!(text.contains("\"outside\"") && text.contains("declared"), "{text}");
    }
}

#[test]
fn a_panic_beside_a_barrier_ends_the_task_and_devices_stay_usable() {
    let turned = |queue: &Queue, fragile: usize| {
        let cells = queue.buffer_from(3200, (0..3200).collect::<Vec<u32>>())?;
        let (accesses, turn) = (cells.read_write(one_to_one()), faults::turn { fragile });
        queue.task("turn").launch_groups(3200, 32, accesses, turn)?;
        Ok(queue.fence(&cells)?.wait()?.as_slice().to_vec())
    };
    for text in failures(|queue| turned(queue, 1234).map(drop)) {
        assert!(text.contains("\"turn\"") && text.contains("glass among others"), "{text}");
        assert!(text.contains("item [1234]"), "{text}");
    }
    let expected: Vec<u32> = (0..3200).map(|at| at / 32 * 32 + 31 - at % 32).collect();
    for cluster in clusters() {
        assert_eq!(cluster.run(|queue| turned(queue, 3200)).unwrap(), expected);
    }
}
