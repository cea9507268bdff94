//! Kernels of other shapes, as one writes them at first: the same as the baseline `shapes` by hand.

use celerity::prelude::*;
use celerity::{CustomMapper, Element, Result};
use celerity_example_kernels::lattice::{lattice_fill, lattice_step, space_fill, space_step};
use celerity_example_kernels::shapes::{
    ENTRIES, coarsen, coefficients_step, cube_columns, electric_step, magnetic_step, multiply_rows,
    nearest_centre, noise_in_space, noise_on_line, noise_on_plane, noisy_points, refine, shorten,
    spread_in_column, throw_darts,
};
use celerity_kernel::ItemKernel;

use crate::checksum::checksum;
use crate::rounds::fastest;

/// What is timed.
pub(crate) struct Sizes {
    /// Cells of a side of the cube, and of the square.
    pub(crate) sides: (usize, usize),
    /// Rounds, and steps of each.
    pub(crate) rounds: (u32, u32),
    /// Whether results are told instead, after one step.
    pub(crate) checksums: bool,
}

/// Is told the name of each shape, the seconds of a step, and the bytes that it moves between memory and device at least.
type Tell<'a> = dyn Fn(&str, f64, f64) + 'a;

/// How many centres there are.
const CENTRES: usize = 64;

/// Half as many darts does each item throw.
const ROUNDS: u32 = 8;

struct Measure<'a> {
    queue: &'a Queue,
    sizes: &'a Sizes,
    tell: &'a Tell<'a>,
}

/// Measures all shapes.
pub(crate) fn measure(queue: &Queue, sizes: &Sizes, tell: &Tell<'_>) -> Result<()> {
    let measure = Measure { queue, sizes, tell };
    measure.fields()?;
    measure.coefficients()?;
    measure.lattice()?;
    measure.space()?;
    measure.grids()?;
    measure.ways()?;
    measure.nearest()?;
    measure.sparse()?;
    measure.columns()?;
    measure.darts()
}

impl Measure<'_> {
    /// Times a step, or tells what it makes of a buffer.
    fn of<T: Element, const D: usize>(
        &self,
        name: &str,
        bytes: f64,
        result: &Buffer<T, D>,
        step: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if !self.sizes.checksums {
            (self.tell)(name, fastest(self.queue, self.sizes.rounds, step)?, bytes);
            return Ok(());
        }
        step()?;
        let result = self.queue.fence(result)?.wait()?;
        if self.queue.is_root() {
            println!(
                "{name} checksum={:016x}",
                checksum(&[bytemuck::cast_slice(result.as_slice())])
            );
        }
        Ok(())
    }

    /// A buffer that a kernel has filled.
    fn filled<T: Element, const D: usize>(
        &self,
        range: [usize; D],
        fill: impl for<'a> ItemKernel<D, &'a mut T>,
    ) -> Result<Buffer<T, D>> {
        let buffer = self.queue.buffer(range);
        self.queue.task("fill").launch(range, buffer.write(one_to_one()), fill)?;
        Ok(buffer)
    }

    fn in_space(&self, side: usize, salt: u64) -> Result<Buffer<f32, 3>> {
        self.filled([side; 3], noise_in_space { salt })
    }

    fn on_line(&self, len: usize, salt: u64) -> Result<Buffer<f32, 1>> {
        self.filled([len], noise_on_line { salt })
    }

    fn fields(&self) -> Result<()> {
        let (side, c) = (self.sizes.sides.0, 0.5);
        let fields = (0..6).map(|salt| self.in_space(side, salt)).collect::<Result<Vec<_>>>()?;
        let [ex, ey, ez, hx, hy, hz] = &fields[..] else { unreachable!() };
        let half = |changes: [&Buffer<f32, 3>; 3], by: [&Buffer<f32, 3>; 3]| {
            let ([a, b, c], [d, e, f]) = (
                changes.map(|field| field.read_write(one_to_one())),
                by.map(|field| field.read(neighborhood_along_axes([1; 3]))),
            );
            (a, b, c, d, e, f)
        };
        let cells = side.pow(3) as f64;
        self.of("fields", 72.0 * cells, hx, || {
            let (magnetic, electric) =
                (half([hx, hy, hz], [ex, ey, ez]), half([ex, ey, ez], [hx, hy, hz]));
            self.queue.task("magnetic").launch([side; 3], magnetic, magnetic_step { c })?;
            self.queue.task("electric").launch([side; 3], electric, electric_step { c }).map(drop)
        })
    }

    fn coefficients(&self) -> Result<()> {
        let side = self.sizes.sides.0;
        let all = (0..9).map(|salt| self.in_space(side, salt)).collect::<Result<Vec<_>>>()?;
        let [out, u, a, b, c, d, e, f, g] = &all[..] else { unreachable!() };
        let cells = side.pow(3) as f64;
        self.of("coefficients", 36.0 * cells, out, || {
            let around = u.read(neighborhood_along_axes([1; 3]));
            let [a, b, c, d, e, f, g] = [a, b, c, d, e, f, g].map(|field| field.read(one_to_one()));
            let accesses = (out.write(one_to_one()), around, a, b, c, d, e, f, g);
            self.queue.task("step").launch([side; 3], accesses, coefficients_step).map(drop)
        })
    }

    fn lattice(&self) -> Result<()> {
        let range = [self.sizes.sides.1; 2];
        let buffers = || [(); 9].map(|()| self.queue.buffer::<f32, 2>(range));
        let (from, to) = (buffers(), buffers());
        let all = from.each_ref().map(|field| field.write(one_to_one()));
        self.queue.task("fluid").launch(range, all, lattice_fill)?;
        let cells = (range[0] * range[1]) as f64;
        self.of("lattice", 72.0 * cells, &to[5], || {
            let around = neighborhood([1, 1]).periodic();
            let to = to.each_ref().map(|field| field.write(one_to_one()));
            let from = from.each_ref().map(|field| field.read(around));
            self.queue.task("step").launch(range, (to, from), lattice_step { rate: 1.25 }).map(drop)
        })
    }

    fn space(&self) -> Result<()> {
        let range = [self.sizes.sides.0; 3];
        let buffers = || [(); 19].map(|()| self.queue.buffer::<f32, 3>(range));
        let (from, to) = (buffers(), buffers());
        let all = from.each_ref().map(|field| field.write(one_to_one()));
        self.queue.task("fluid").launch(range, all, space_fill)?;
        let cells = range.iter().product::<usize>() as f64;
        self.of("space", 152.0 * cells, &to[5], || {
            let around = neighborhood([1; 3]).periodic();
            let to = to.each_ref().map(|field| field.write(one_to_one()));
            let from = from.each_ref().map(|field| field.read(around));
            self.queue.task("step").launch(range, (to, from), space_step { rate: 1.25 }).map(drop)
        })
    }

    fn grids(&self) -> Result<()> {
        let side = self.sizes.sides.0;
        let (coarse, fine) = (self.in_space(side, 0)?, self.in_space(2 * side, 1)?);
        let cells = side.pow(3) as f64;
        self.of("coarser", 36.0 * cells, &coarse, || {
            let accesses = (coarse.write(one_to_one()), fine.read(blocks([2; 3])));
            self.queue.task("coarsen").launch([side; 3], accesses, coarsen).map(drop)
        })?;
        self.of("finer", 68.0 * cells, &fine, || {
            let accesses = (fine.read_write(one_to_one()), coarse.read(halves()));
            self.queue.task("refine").launch([2 * side; 3], accesses, refine).map(drop)
        })
    }

    fn ways(&self) -> Result<()> {
        let side = self.sizes.sides.1;
        let range = [side; 2];
        let ways = self.filled(range, noise_on_plane { salt: 0 })?;
        let (from, to) = (self.on_line(side, 1)?, self.on_line(side, 2)?);
        self.of("ways", 8.0 * (side * side) as f64, &ways, || {
            let ends = (from.read(select([1])), to.read(select([0])));
            let accesses = (ways.read_write(one_to_one()), ends.0, ends.1);
            self.queue.task("shorten").launch(range, accesses, shorten).map(drop)
        })
    }

    fn nearest(&self) -> Result<()> {
        let len = self.sizes.sides.1.pow(2);
        let points = self.filled([len], noisy_points { salt: 0 })?;
        let centres = self.filled([CENTRES], noisy_points { salt: 1 })?;
        let nearest = self.queue.buffer::<u32, 1>(len);
        self.of("nearest", 20.0 * len as f64, &nearest, || {
            let accesses =
                (nearest.write(one_to_one()), points.read(one_to_one()), centres.read(all()));
            self.queue.task("nearest").launch(len, accesses, nearest_centre).map(drop)
        })
    }

    fn sparse(&self) -> Result<()> {
        // A row for each cell of a cube of half the side.
        let side = self.sizes.sides.0.div_ceil(2);
        let rows = side.pow(3);
        let (x, y) = (self.on_line(rows, 0)?, self.queue.buffer::<f32, 1>(rows));
        let values = self.on_line(ENTRIES * rows, 1)?;
        let cube = cube_columns { cells: rows as u32, side: side as u32 };
        let columns = self.filled([ENTRIES * rows], cube)?;
        self.of("sparse", (8 * ENTRIES + 8) as f64 * rows as f64, &y, || {
            let entries = || blocks([ENTRIES]);
            let matrix = (columns.read(entries()), values.read(entries()));
            let accesses = (y.write(one_to_one()), matrix.0, matrix.1, x.read(all()));
            self.queue.task("multiply").launch(rows, accesses, multiply_rows).map(drop)
        })
    }

    fn columns(&self) -> Result<()> {
        let side = self.sizes.sides.0;
        let (warmth, spread) = (self.in_space(side, 0)?, self.in_space(side, 1)?);
        let factors = self.queue.buffer::<f32, 3>([side; 3]);
        self.of("columns", 28.0 * side.pow(3) as f64, &warmth, || {
            let system =
                (warmth.read_write(slice(0)), factors.write(slice(0)), spread.read(slice(0)));
            self.queue.task("spread").launch([1, side, side], system, spread_in_column).map(drop)
        })
    }

    fn darts(&self) -> Result<()> {
        let len = self.sizes.sides.1.pow(2);
        let hits = self.queue.buffer::<u32, 1>(len);
        self.of("darts", 4.0 * len as f64, &hits, || {
            let throw = throw_darts { rounds: ROUNDS };
            self.queue.task("throw").launch(len, hits.write(one_to_one()), throw).map(drop)
        })
    }
}

/// Each item has the element at half of its index along each dimension.
fn halves() -> CustomMapper<3, 3> {
    mapper("halves", |chunk: Chunk<3>, _: [usize; 3]| {
        let offset = chunk.offset.map(|at| at / 2);
        let end = |dim: usize| (chunk.offset[dim] + chunk.range[dim]).div_ceil(2);
        Subrange { offset, range: std::array::from_fn(|dim| end(dim) - offset[dim]) }
    })
}
