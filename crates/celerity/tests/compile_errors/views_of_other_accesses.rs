//! The views of a compiled kernel are those of the accesses.

use celerity::prelude::*;
use celerity::kernel;
use celerity::kernels::Module;

static MODULE: Module = Module::without_code("case", "");

#[kernel]
fn copy(_item: Item<1>, (v, u): (&mut f64, &f64)) {
    *v = *u;
}

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (u, v) = (queue.buffer_from(8, vec![0.0; 8])?, queue.buffer::<f64, 1>(8));
        queue.task("copy").launch(8, (v.write(one_to_one()), u.read(all())), copy)?;
        Ok(())
    })
}
