//! A kernel runs later, on other threads: it owns what it captures.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let factor = 2.0;
        let u = queue.buffer::<f64, 1>(8);
        queue.task("scale").parallel_for(8, u.write(one_to_one()), |_, u| *u = factor)?;
        Ok(())
    })
}
