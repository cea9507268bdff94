//! A kernel sees of a buffer what its task has declared.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from(8, vec![0_i32; 8])?;
        let v = queue.buffer::<i32, 1>(8);
        queue.task("copy").parallel_for(8, v.write(one_to_one()), move |item, v| *v = u[item[0]])?;
        println!("{}", v[0]);
        Ok(())
    })
}
