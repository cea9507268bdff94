//! A device is told of one box per access.

use celerity::prelude::*;
use celerity::kernels::Module;
use celerity::kernel;

static MODULE: Module = Module::without_code("case", "");

#[kernel]
fn look(_item: Item<1>, u: celerity::RegionView<'_, f64, 1>) {
    let _ = u;
}

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from(8, vec![0.0; 8])?;
        let even = per_dimension([Side::along(0).stride(2).window(1)]).with_gaps();
        queue.task("look").launch(4, u.read(even), look)?;
        Ok(())
    })
}
