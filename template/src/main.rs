//! Ripples on a square of water.

use celerity::prelude::*;
use ripples_kernels::{still_water, wave_step};

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let size = [512, 512];
        let mut u = queue.buffer::<f32, 2>(size).named("u"); // virtual: nothing is allocated yet
        let mut up = queue.buffer::<f32, 2>(size).named("up");
        queue.task("drop").launch(size, u.write(one_to_one()), still_water { middle: 1.0 })?;
        queue.task("rest").launch(size, up.write(one_to_one()), still_water { middle: 0.0 })?;
        for _ in 0..100 {
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood_along_axes([1, 1])));
            queue.task("step").launch(size, accesses, wave_step { c: 0.25 })?;
            std::mem::swap(&mut u, &mut up);
        }
        let water = queue.fence(&u)?.wait()?;
        if queue.is_root() {
            println!("in the middle: {}", water[[256, 256]]);
        }
        Ok(())
    })
}
