//! And as long as that of a host task.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (sender, _kept) = std::sync::mpsc::channel();
        let u = queue.buffer_from(8, vec![0_i32; 8])?;
        queue.host_task("keep").once(u.read(all()), move |u| sender.send(u.as_slice()).unwrap())?;
        Ok(())
    })
}
