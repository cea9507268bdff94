//! Which item would have what of several boxes, no promise says.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer::<f64, 1>(8);
        let ends = region_mapper("ends", |chunk: Chunk<1>, _: [usize; 1]| {
            [0, 4].map(|first| Subrange::new([first + chunk.offset[0]], chunk.range))
        });
        queue.task("write").parallel_for(4, u.write(ends), |_, _| ())?;
        Ok(())
    })
}
