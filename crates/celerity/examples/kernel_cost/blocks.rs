//! Steps of the wave in blocks of several shapes, beside the rule's.

use celerity::prelude::*;
use celerity::{Result, TaskBuilder, TaskId};
use celerity_example_kernels::costs::step_by_index;
use celerity_example_kernels::wave::{wave_step, wave_step_row};

use super::{C, fastest};

/// Threads of a block, along y and x.
const SHAPES: [[usize; 2]; 11] = [
    [1, 64],
    [1, 128],
    [1, 256],
    [2, 32],
    [2, 64],
    [2, 128],
    [4, 32],
    [4, 64],
    [8, 16],
    [8, 32],
    [16, 16],
];

type Field = Buffer<f32, 2>;

/// Submits a step by way of a task: to which field, from which.
type Step = fn(TaskBuilder<'_>, [usize; 2], &Field, &Field) -> Result<TaskId>;

const FORMS: [(&str, Step); 3] = [
    ("by row", |task, range, up, u| {
        let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
        task.launch(range, accesses, wave_step_row { c: C })
    }),
    ("by item", |task, range, up, u| {
        let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
        task.launch(range, accesses, wave_step { c: C })
    }),
    ("by index", |task, range, up, u| {
        task.launch(range, (up.read_write(one_to_one()), u.read(all())), step_by_index { c: C })
    }),
];

/// Prints how fast each form is in blocks of each shape, as parts of what it is by the rule.
pub(super) fn measure(
    queue: &Queue,
    range: [usize; 2],
    rounds: (u32, u32),
    (up, u): &(Field, Field),
) -> Result<()> {
    let time = |step: Step, block: Option<[usize; 2]>| {
        fastest(queue, rounds, || {
            let task = queue.task("step");
            let task = if let Some(block) = block { task.block(block) } else { task };
            step(task, range, up, u).map(drop)
        })
    };
    for (name, step) in FORMS {
        let usual = time(step, None)?;
        if queue.is_root() {
            println!("{name:12}{:9.3} ms by the rule", usual * 1e3);
        }
        for shape in SHAPES {
            let seconds = time(step, Some(shape))?;
            if queue.is_root() {
                let [rows, columns] = shape;
                let (ms, part) = (seconds * 1e3, usual / seconds);
                println!("{name:12}{ms:9.3} ms in {rows:2} x {columns:3}{part:7.3}");
            }
        }
    }
    Ok(())
}
