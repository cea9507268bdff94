//! What is borrowed from outside of the run does not live long enough.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let table = [1.0, 2.0];
        let table = &table[..];
        let u = queue.buffer::<f64, 1>(2);
        queue.task("look").parallel_for(2, u.write(one_to_one()), move |item, u| *u = table[item[0]])?;
        Ok(())
    })
}
