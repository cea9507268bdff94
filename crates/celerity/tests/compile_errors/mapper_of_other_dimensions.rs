//! What goes by the item's own index needs as many dimensions as the buffer has.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from([4, 4], vec![0.0; 16])?;
        queue.task("line").parallel_for(4, u.read(neighborhood([1])), |_, _| ())?;
        Ok(())
    })
}
