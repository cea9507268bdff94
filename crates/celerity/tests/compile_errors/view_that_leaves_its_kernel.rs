//! A view is there as long as the call of the kernel.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (sender, _kept) = std::sync::mpsc::sync_channel(8);
        let u = queue.buffer_from(8, vec![0_i32; 8])?;
        queue.task("keep").parallel_for(8, u.read(one_to_one()), move |_, u| sender.send(u).unwrap())?;
        Ok(())
    })
}
