//! And items contribute what the buffer holds.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let sum = queue.buffer::<u32, 0>([]);
        queue.task("sum").parallel_for(8, sum.reduce(celerity::Sum), |_, sum| sum.combine(1.5))?;
        Ok(())
    })
}
