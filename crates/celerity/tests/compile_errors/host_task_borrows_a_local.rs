//! So does a host task.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let names = vec!["mercury", "venus"];
        queue.host_task("print").once((), |()| println!("{names:?}"))?;
        Ok(())
    })
}
