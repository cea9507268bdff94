//! A host task that runs once has no index to map.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from(8, vec![0.0; 8])?;
        queue.host_task("look").once(u.read(one_to_one()), |_| ())?;
        Ok(())
    })
}
