//! The value of a host object stays with it.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (sender, _kept) = std::sync::mpsc::channel();
        let log = queue.host_object(vec![7]);
        queue.host_task("keep").once(log.sequential(), move |log| sender.send(log).unwrap())?;
        Ok(())
    })
}
