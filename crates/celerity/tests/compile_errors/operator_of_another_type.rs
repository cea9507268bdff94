//! An operator combines what the buffer holds.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let bits = queue.buffer::<f32, 0>([]);
        queue.task("bits").parallel_for(8, bits.reduce(celerity::And), |_, bits| bits.combine(1.0))?;
        Ok(())
    })
}
