//! What is relaxed is only looked at.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let log = queue.host_object(Vec::new());
        queue.host_task("note").once(log.relaxed(), |log| log.push(7))?;
        Ok(())
    })
}
