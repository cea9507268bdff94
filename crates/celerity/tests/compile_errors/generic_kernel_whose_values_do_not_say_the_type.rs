//! A generic kernel is made by `{ value }` where each type parameter occurs among the values, and by
//! `new` elsewhere.

use celerity::kernels::Module;

static MODULE: Module = Module::without_code("case", "");

mod kernels {
    use celerity::{Item, Number, kernel};

    #[kernel(instances(f32, f64))]
    pub fn scale<T: Number>(_item: Item<1>, x: &mut T, by: T) {
        *x = by;
    }

    #[kernel(instances(f32, f64))]
    pub fn copy<T: Number>(_item: Item<1>, (to, from): (&mut T, &T), times: u32) {
        for _ in 0..times {
            *to = *from;
        }
    }
}

fn main() {
    let _ = kernels::scale { by: 2.0_f64 };
    let _ = kernels::copy::<f32>::new(3);
    let _ = kernels::copy::<f32> { times: 3 };
}
