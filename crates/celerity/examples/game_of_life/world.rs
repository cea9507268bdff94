//! A world without the runtime: the sequential program, and pictures.

use celerity_example_kernels::life::{NEIGHBOURS, initial, next};
use image::{Rgb, RgbImage};

/// The world of `size`² cells after `steps` generations, by a loop over its cells.
pub(crate) fn reference(size: usize, steps: u64, seed: u64) -> Vec<u8> {
    let places = || (0..size).flat_map(|y| (0..size).map(move |x| [y, x]));
    let mut world: Vec<u8> = places().map(|place| initial(place, seed)).collect();
    for _ in 0..steps {
        let at = |[y, x]: [usize; 2], [down, right]: [isize; 2]| {
            let around = |index: usize, step: isize| {
                (index as isize + step).rem_euclid(size as isize) as usize
            };
            world[around(y, down) * size + around(x, right)]
        };
        let cell =
            |place| next(at(place, [0, 0]), NEIGHBOURS.map(|step| at(place, step)).iter().sum());
        world = places().map(cell).collect();
    }
    world
}

/// Living cells dark on white.
pub(crate) fn paint(cells: &[u8], size: usize) -> RgbImage {
    let side = u32::try_from(size).expect("the option's type bounds the size");
    RgbImage::from_fn(side, side, |x, y| match cells[y as usize * size + x as usize] {
        0 => Rgb([247, 247, 247]),
        _ => Rgb([20, 60, 110]),
    })
}
