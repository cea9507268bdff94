//! Kernels run on devices, where no host object is.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let log = queue.host_object(Vec::new());
        queue.task("step").parallel_for(10, log.sequential(), |item, log| log.push(item[0]))?;
        Ok(())
    })
}
