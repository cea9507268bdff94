//! Nobody writes through a read: neither an element, nor a row, nor a part.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from(8, vec![0_i32; 8])?;
        queue.task("items").parallel_for(8, u.read(one_to_one()), |_, u| *u = 1)?;
        queue.task("rows").parallel_for_rows(8, u.read(one_to_one()), |_, u| u[0] = 1)?;
        queue.task("parts").parallel_for(8, u.read(slice(0)), |item, u| u[item[0]] = 1)?;
        queue.task("region").parallel_for(
            4,
            u.read(per_dimension([Side::along(0).stride(2).window(1)]).with_gaps()),
            |item, u| u[2 * item[0]] = 1,
        )?;
        queue.host_task("host").once(u.read(all()), |u| u[0] = 1)?;
        Ok(())
    })
}
