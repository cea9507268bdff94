//! Kernels that panic: what is said of it, which numbers are told, and that devices stay usable.

use celerity::Result;
use celerity::prelude::*;
use celerity_example_kernels::{faults, linear};

use crate::{clusters, failures};

fn numbers(queue: &Queue, fragile: usize) -> Result<Vec<u32>> {
    let cells = queue.buffer::<u32, 1>(5000).named("cells");
    queue.task("count").launch(5000, cells.write(one_to_one()), faults::number::new(fragile))?;
    // Goes on until the news arrives; waiting for it must not hang.
    let again = cells.read_write(one_to_one());
    queue.task("fill").launch(5000, again, linear::fill::<u32>::new(2))?;
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
fn a_panic_tells_the_numbers_of_its_message_on_every_device() {
    let complaint = |way: usize| {
        failures(move |queue| {
            let cells = queue.buffer_from([40, 30], vec![2.25_f32; 40 * 30])?;
            let kernel = faults::complain::new(17 * 30 + 4, way);
            queue.task("complain").launch([40, 30], cells.read_write(one_to_one()), kernel)?;
            queue.fence(&cells)?.wait().map(drop)
        })
    };
    // How the line begins that complains, and what it says.
    let complaints = [
        ("0 => panic!", "[17, 4] has 2.25 of -1.50, true and 'x'"),
        (
            "1 => assert_eq!",
            "assertion `left == right` failed: column 4 of {30}\n  left: 4\n right: 0",
        ),
        ("assert!(*cell > 2.5, ", "2.25 of 0x0202,    8|4  |"),
        ("assert!(value", "515 is odd"),
        ("4 => unreachable!", "internal error: entered unreachable code"),
        ("5 => assert!", "assertion failed: *cell > 2.5 && of > 0"),
        ("6 => panic!", "[2.25, NaN], 1e-30"),
        ("7 => assert_ne!", "assertion `left != right` failed\n  left: 10\n right: 10"),
        ("panic!(\"{0} {0:#x}", "9 0x9 [10] [17, 17] [\n    17,\n    17,\n]"),
    ];
    let source = include_str!("../../kernels/src/faults.rs");
    for (way, (line, expected)) in complaints.into_iter().enumerate() {
        let begins = |text: &str| text.trim_start().starts_with(line);
        let line = 1 + source.lines().position(begins).expect("there is the line");
        for text in complaint(way) {
            assert!(text.contains("item [17, 4]") && text.ends_with(expected), "{way}: {text}");
            // GPUs tell the line, too.
            if let Some((_, place)) = text.split_once("faults.rs:") {
                assert!(place.starts_with(&format!("{line}:")), "{way}: {text}");
            }
        }
    }
}

#[test]
fn generic_kernels_tell_their_numbers() {
    let said = failures(|queue| {
        let cells = queue.buffer_from(100, vec![2.5_f64; 100])?;
        let kernel = faults::check_at_most { most: 2.25_f64 };
        queue.task("check").launch(100, cells.read(one_to_one()), kernel)?;
        queue.barrier()
    });
    assert!(said.iter().all(|said| said.ends_with("2.5 is more than 2.25")), "{said:?}");
    let said = failures(|queue| {
        let cells = queue.buffer_from(100, vec![-2; 100])?;
        let kernel = faults::check_at_most { most: -3 };
        queue.task("check").launch(100, cells.read(one_to_one()), kernel)?;
        queue.barrier()
    });
    assert!(said.iter().all(|said| said.ends_with("-2 is more than -3")), "{said:?}");
}

#[test]
fn a_panic_beside_a_barrier_ends_the_task_and_devices_stay_usable() {
    let turned = |queue: &Queue, fragile: usize| {
        let cells = queue.buffer_from(3200, (0..3200).collect::<Vec<u32>>())?;
        let (accesses, turn) = (cells.read_write(one_to_one()), faults::turn { fragile });
        queue.task("turn").launch(nd_range(3200, 32), accesses, turn)?;
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
