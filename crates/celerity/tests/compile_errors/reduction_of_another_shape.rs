//! One value is combined into a buffer without dimensions, and values at indices into others.

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let (sum, counts) = (queue.buffer::<u32, 0>([]), queue.buffer::<u32, 2>([2, 2]));
        let accesses = (sum.reduce(celerity::Sum), counts.reduce(celerity::Sum));
        queue.task("count").parallel_for(8, accesses, |_, (sum, counts)| {
            sum.combine_at([0, 0], 1);
            counts.combine(1);
            counts.combine_at(3, 1);
        })?;
        Ok(())
    })
}
