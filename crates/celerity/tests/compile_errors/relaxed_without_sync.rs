//! Several threads see what is relaxed at the same time.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let cell = queue.host_object(std::cell::Cell::new(0));
        queue.host_task("look").once(cell.relaxed(), |cell| drop(cell.get()))?;
        Ok(())
    })
}
