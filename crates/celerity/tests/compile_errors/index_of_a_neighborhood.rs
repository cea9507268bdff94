//! What is around an item is named by its offset from it, by a word that says what edges do.

use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from([4, 2], vec![0_i32; 8])?;
        let v = queue.buffer::<i32, 2>([4, 2]);
        let around = (v.write(one_to_one()), u.read(neighborhood([1, 1])));
        queue.task("item").parallel_for([4, 2], around, |item, (v, u)| *v = u[[item[0], 1]])?;
        let around = (v.write(one_to_one()), u.read(neighborhood([1, 1])));
        queue.task("at").parallel_for([4, 2], around, |_, (v, u)| *v = u.at([0, 1]))?;
        let around = (v.write(one_to_one()), u.read(neighborhood([1, 1])));
        queue.task("row").parallel_for_rows([4, 2], around, |_, (v, u)| v[0] = u[1])?;
        let around = (v.write(one_to_one()), u.read(neighborhood([1, 1]).periodic()));
        queue.task("edge").parallel_for([4, 2], around, |_, (v, u)| *v = u.clamped([0, 1]))?;
        Ok(())
    })
}
