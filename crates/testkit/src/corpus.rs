//! The programs by which Celerity is judged, small, with their numbers of steps
//! as parameters. One corpus for every layer and every configuration.

use celerity_regions::Box3;
use celerity_tdag::AccessMode::{Read, ReadWrite, Write};
use celerity_tdag::{AccessMode, BufferId, IndexSpace, NeighborhoodShape, Split};

use crate::program::{Axis, MapperSpec, Program, ProgramBuilder, SideSpec, TaskKind};

/// Every program of the corpus, by name, with the given number of steps each.
#[must_use]
pub fn all(steps: usize) -> Vec<(&'static str, Program)> {
    vec![
        ("nbody", nbody(12, steps)),
        ("wave_sim", wave_sim([9, 5], steps)),
        ("transpose", transpose(7, steps)),
        ("rsim", rsim(9, steps)),
        ("matmul", matmul(6, steps)),
        ("jacobi", jacobi([8, 6], steps)),
        ("black_scholes", black_scholes(10, steps)),
        ("kernel_cost", kernel_cost([7, 5], steps)),
        ("checkpoints", checkpoints(11, steps)),
        ("game_of_life", game_of_life([9, 7], steps)),
        ("histogram", histogram(12, 5, steps)),
        ("reduce_cost", reduce_cost(10, steps)),
        ("distr_io", distr_io([6, 4], steps)),
        ("cg", cg(10, steps)),
        ("patterns", patterns(9, steps)),
        ("cahn_hilliard", cahn_hilliard([5, 3, 4], steps)),
        ("pendulum", pendulum([6, 5], steps)),
        ("mandelbrot", mandelbrot([7, 4], 3, steps)),
        ("mesh", mesh([7, 6], steps)),
        ("prk", prk([6, 5], steps)),
        ("accuracy", accuracy(10, steps)),
        ("few_rows", few_rows(steps)),
    ]
}

/// Reductions into many elements: partial results of items, folded on each node, combined on all,
/// and read by the next step.
#[must_use]
pub fn histogram(items: usize, kinds: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (text, counts) = (program.initialized([items]), program.initialized([kinds]));
    let halo =
        MapperSpec::Neighborhood { border: [1, 0, 0], shape: NeighborhoodShape::BoundingBox };
    for _ in 0..steps {
        reduce(&mut program, items, &[(text, Read, halo.clone())], counts);
        let space = IndexSpace::new(1, Box3::from_range([items]));
        program.kernel(
            "use",
            space,
            &[(counts, Read, MapperSpec::All), (text, ReadWrite, MapperSpec::OneToOne)],
        );
    }
    program.finish()
}

/// A reduction into one value in each step.
#[must_use]
pub fn reduce_cost(items: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (values, sum) = (program.initialized([items]), program.buffer([]));
    for _ in 0..steps {
        reduce(&mut program, items, &[(values, Read, MapperSpec::OneToOne)], sum);
    }
    program.finish()
}

/// Conjugate gradients: two reductions in a step, each of which the rest of the step needs.
#[must_use]
pub fn cg(rows: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [x, r, p, q] = [(); 4].map(|()| program.buffer([rows]));
    let [pq, mut rr, mut earlier] = [(); 3].map(|()| program.buffer([]));
    let (own, every) = (MapperSpec::OneToOne, MapperSpec::All);
    let columns =
        MapperSpec::Neighborhood { border: [3, 0, 0], shape: NeighborhoodShape::BoundingBox };
    let begun = [x, r, p].map(|buffer| (buffer, Write, own.clone()));
    reduce(&mut program, rows, &begun, rr);
    for _ in 0..steps {
        reduce(&mut program, rows, &[(q, Write, own.clone()), (p, Read, columns.clone())], pq);
        std::mem::swap(&mut rr, &mut earlier);
        let advanced = [
            (x, ReadWrite, own.clone()),
            (r, ReadWrite, own.clone()),
            (p, Read, own.clone()),
            (q, Read, own.clone()),
            (earlier, Read, every.clone()),
            (pq, Read, every.clone()),
        ];
        reduce(&mut program, rows, &advanced, rr);
        let turned = [
            (p, ReadWrite, own.clone()),
            (r, Read, own.clone()),
            (rr, Read, every.clone()),
            (earlier, Read, every.clone()),
        ];
        program.kernel("turn", IndexSpace::new(1, Box3::from_range([rows])), &turned);
    }
    program.finish()
}

/// The tasks of a reduction over `items` items, as the facade lowers one.
fn reduce(
    program: &mut ProgramBuilder,
    items: usize,
    others: &[(BufferId, AccessMode, MapperSpec)],
    result: BufferId,
) {
    reduce_all(program, items, others, &[result]);
}

/// The tasks of a kernel that reduces into several results.
fn reduce_all(
    program: &mut ProgramBuilder,
    items: usize,
    others: &[(BufferId, AccessMode, MapperSpec)],
    results: &[BufferId],
) {
    let space = IndexSpace::new(1, Box3::from_range([items]));
    let partials: Vec<_> = results.iter().map(|_| program.buffer([items])).collect();
    let written = partials.iter().map(|&partials| (partials, Write, MapperSpec::OneToOne));
    let accesses: Vec<_> = others.iter().cloned().chain(written).collect();
    program.kernel("reduce", space, &accesses);
    for (&partials, &result) in partials.iter().zip(results) {
        let split = TaskKind::HostSplit { space, group: None };
        program.submit("fold", split, &[(partials, ReadWrite, MapperSpec::OneToOne)]);
        let accesses = [(result, Write, MapperSpec::All), (partials, Read, MapperSpec::All)];
        program.submit("combine", TaskKind::Combine, &accesses);
        program.drop_buffer(partials);
    }
}

/// Every node writes its rows, and reads those of all.
#[must_use]
pub fn distr_io(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let field = program.buffer(size);
    let space = IndexSpace::new(2, Box3::from_range(size));
    program.kernel("fill", space, &[(field, Write, MapperSpec::OneToOne)]);
    for _ in 0..steps {
        let split = |group| TaskKind::HostSplit { space, group };
        program.submit("write", split(None), &[(field, Read, MapperSpec::OneToOne)]);
        program.submit("read", split(Some(0)), &[(field, ReadWrite, MapperSpec::OneToOne)]);
    }
    program.finish()
}

/// Everybody reads everybody's positions: an all-gather per step.
#[must_use]
pub fn nbody(bodies: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let positions = program.initialized([bodies]);
    let velocities = program.initialized([bodies]);
    let space = IndexSpace::new(1, Box3::from_range([bodies]));
    for _ in 0..steps {
        program.kernel(
            "accelerate",
            space,
            &[(positions, Read, MapperSpec::All), (velocities, ReadWrite, MapperSpec::OneToOne)],
        );
        program.kernel(
            "move",
            space,
            &[
                (velocities, Read, MapperSpec::OneToOne),
                (positions, ReadWrite, MapperSpec::OneToOne),
            ],
        );
    }
    program.finish()
}

/// A stencil on two buffers that change places: a halo exchange per step.
#[must_use]
pub fn wave_sim(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (mut now, mut before) = (program.buffer(size), program.buffer(size));
    let tiles = IndexSpace { split: Split::Tiled, ..IndexSpace::new(2, Box3::from_range(size)) };
    for buffer in [now, before] {
        program.kernel("fill", tiles, &[(buffer, Write, MapperSpec::OneToOne)]);
    }
    let halo = MapperSpec::Neighborhood { border: [1, 1, 0], shape: NeighborhoodShape::AlongAxes };
    for _ in 0..steps {
        program.kernel(
            "wave_step",
            tiles,
            &[(before, ReadWrite, MapperSpec::OneToOne), (now, Read, halo.clone())],
        );
        std::mem::swap(&mut now, &mut before);
    }
    program.finish()
}

/// Rows become columns: everybody sends to everybody.
#[must_use]
pub fn transpose(size: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (mut from, mut to) = (program.initialized([size, size]), program.buffer([size, size]));
    let space = IndexSpace::new(2, Box3::from_range([size, size]));
    let side = |from| Axis::Along { from, start: 0, stride: 1, width: 1, mirrored: false };
    let transposed = MapperSpec::Affine([side(1), side(0), Axis::Constant { min: 0, max: 1 }]);
    for _ in 0..steps {
        program.kernel(
            "transpose",
            space,
            &[(from, Read, transposed.clone()), (to, Write, MapperSpec::OneToOne)],
        );
        std::mem::swap(&mut from, &mut to);
    }
    program.finish()
}

/// Each step reads all earlier rows and writes one more: allocations grow.
#[must_use]
pub fn rsim(width: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let history = program.buffer([steps + 1, width]);
    for step in 0..=steps {
        let row = Box3::from_offset_range([step, 0], [1, width]);
        let columns = IndexSpace { split: Split::Along(1), ..IndexSpace::new(2, row) };
        let mut accesses = vec![(history, Write, MapperSpec::OneToOne)];
        if step > 0 {
            let earlier = MapperSpec::Fixed(vec![Box3::from_range([step, width])]);
            accesses.push((history, Read, earlier));
        }
        program.kernel("radiosity", columns, &accesses);
    }
    program.finish()
}

/// Products of square matrices: each item reads a row of one and a column of
/// the other.
#[must_use]
pub fn matmul(size: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [a, mut b] = [(); 2].map(|()| program.initialized([size, size]));
    let mut c = program.buffer([size, size]);
    let space = IndexSpace::new(2, Box3::from_range([size, size]));
    for _ in 0..steps {
        program.kernel(
            "multiply",
            space,
            &[
                (a, Read, MapperSpec::Slice { dim: 1 }),
                (b, Read, MapperSpec::Slice { dim: 0 }),
                (c, Write, MapperSpec::OneToOne),
            ],
        );
        std::mem::swap(&mut b, &mut c);
    }
    program.finish()
}

/// A stencil over the interior, while the border keeps its initial contents.
#[must_use]
pub fn jacobi(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [mut old, mut new] = [(); 2].map(|()| program.initialized(size));
    let interior = Box3::from_offset_range([1, 1], size.map(|side| side - 2));
    let space = IndexSpace { granularity: [2, 1, 1], ..IndexSpace::new(2, interior) };
    let halo =
        MapperSpec::Neighborhood { border: [1, 1, 0], shape: NeighborhoodShape::BoundingBox };
    for _ in 0..steps {
        program.kernel(
            "relax",
            space,
            &[(old, Read, halo.clone()), (new, Write, MapperSpec::OneToOne)],
        );
        std::mem::swap(&mut old, &mut new);
    }
    program.finish()
}

/// A stencil on a torus: opposite edges of the world meet.
#[must_use]
pub fn game_of_life(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [mut world, mut next] = [(); 2].map(|()| program.buffer(size));
    let space = IndexSpace::new(2, Box3::from_range(size));
    program.kernel("fill", space, &[(world, Write, MapperSpec::OneToOne)]);
    let around = MapperSpec::Periodic {
        border: [1, 1, 0],
        shape: NeighborhoodShape::BoundingBox,
        along: [true, true, false],
    };
    for step in 0..steps {
        let split = if step % 4 < 3 { Split::OneDimensional } else { Split::Tiled };
        program.kernel(
            "step",
            IndexSpace { split, ..space },
            &[(next, Write, MapperSpec::OneToOne), (world, Read, around.clone())],
        );
        std::mem::swap(&mut world, &mut next);
    }
    program.finish()
}

/// Prices from contracts, item by item: nothing is exchanged until all are gathered.
#[must_use]
pub fn black_scholes(options: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [contracts, prices] = [(); 2].map(|()| program.buffer([options]));
    let space = IndexSpace::new(1, Box3::from_range([options]));
    program.kernel("draw", space, &[(contracts, Write, MapperSpec::OneToOne)]);
    for _ in 0..steps {
        program.kernel(
            "price",
            space,
            &[(prices, Write, MapperSpec::OneToOne), (contracts, Read, MapperSpec::OneToOne)],
        );
    }
    if steps > 0 {
        program.host_once("gather", &[(prices, Read, MapperSpec::All)]);
    }
    program.finish()
}

/// A stencil that declares what it reads, and the same by one that reads the whole
/// field, in turns.
#[must_use]
pub fn kernel_cost(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (mut from, mut to) = (program.buffer(size), program.buffer(size));
    let space = IndexSpace::new(2, Box3::from_range(size));
    for buffer in [from, to] {
        program.kernel("fill", space, &[(buffer, Write, MapperSpec::OneToOne)]);
    }
    let near =
        MapperSpec::Neighborhood { border: [1, 1, 0], shape: NeighborhoodShape::BoundingBox };
    for step in 0..steps {
        let (name, read) = match step % 2 {
            0 => ("row", near.clone()),
            _ => ("index", MapperSpec::All),
        };
        program.kernel(name, space, &[(to, ReadWrite, MapperSpec::OneToOne), (from, Read, read)]);
        std::mem::swap(&mut from, &mut to);
    }
    program.finish()
}

/// Kernels and host tasks in turns, with fences, barriers and a buffer that is
/// made and dropped in every step.
#[must_use]
pub fn checkpoints(size: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let state = program.initialized([size]);
    let space = IndexSpace::new(1, Box3::from_range([size]));
    for step in 0..steps {
        let summary = program.buffer([]);
        program.kernel("advance", space, &[(state, ReadWrite, MapperSpec::OneToOne)]);
        program.host_once(
            "summarise",
            &[(state, Read, MapperSpec::All), (summary, Write, MapperSpec::All)],
        );
        program.kernel(
            "adjust",
            space,
            &[(summary, Read, MapperSpec::All), (state, ReadWrite, MapperSpec::OneToOne)],
        );
        match step % 2 {
            0 => program.fence(state),
            _ => program.barrier(),
        }
        program.drop_buffer(summary);
    }
    program.finish()
}

/// Who reads what, of five kinds (IJPP 2024, table 3): all by all, all by one and back again, rows
/// by columns, and neighbours.
#[must_use]
pub fn patterns(size: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [mut from, mut to] = [program.initialized([size]), program.buffer([size])];
    let [mut field, mut next] = [program.initialized([size, size]), program.buffer([size, size])];
    let line = IndexSpace::new(1, Box3::from_range([size]));
    let alone = IndexSpace::new(1, Box3::from_range([1]));
    let square = IndexSpace::new(2, Box3::from_range([size, size]));
    let along = |from| SideSpec::Windows { from, stride: 1, first: 0, width: 1, clamped: false };
    let around =
        MapperSpec::Neighborhood { border: [1, 1, 0], shape: NeighborhoodShape::BoundingBox };
    let turned = MapperSpec::PerDimension(vec![along(1), along(0)]);
    for _ in 0..steps {
        let mut of_line = |name, space, read, write| {
            program.kernel(name, space, &[(from, Read, read), (to, Write, write)]);
            std::mem::swap(&mut from, &mut to);
        };
        of_line("all", line, MapperSpec::All, MapperSpec::OneToOne);
        of_line("alone", alone, MapperSpec::All, MapperSpec::All);
        of_line("own", line, MapperSpec::OneToOne, MapperSpec::OneToOne);
        of_line("alone", alone, MapperSpec::All, MapperSpec::All);
        of_line("all", line, MapperSpec::All, MapperSpec::OneToOne);
        for (name, read) in [("turn", turned.clone()), ("around", around.clone())] {
            program.kernel(
                name,
                square,
                &[(field, Read, read), (next, Write, MapperSpec::OneToOne)],
            );
            std::mem::swap(&mut field, &mut next);
        }
    }
    program.finish()
}

/// A stencil on a torus in three dimensions, by three kernels in turns: a potential, a step by it,
/// and the energy of what has come of it.
#[must_use]
pub fn cahn_hilliard(size: [usize; 3], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [c, potential, energy] = [(); 3].map(|()| program.buffer(size));
    let space = IndexSpace::new(3, Box3::from_range(size));
    let (own, shape) = (MapperSpec::OneToOne, NeighborhoodShape::AlongAxes);
    let around = MapperSpec::Periodic { border: [1; 3], shape, along: [true; 3] };
    program.kernel("fill", space, &[(c, Write, own.clone())]);
    for _ in 0..steps {
        program.kernel(
            "potential",
            space,
            &[(potential, Write, own.clone()), (c, Read, around.clone())],
        );
        program.kernel(
            "evolve",
            space,
            &[(c, ReadWrite, own.clone()), (potential, Read, around.clone())],
        );
        program.kernel("energy", space, &[(energy, Write, own.clone()), (c, Read, around.clone())]);
    }
    program.finish()
}

/// Points that know nothing of each other, and a table that all of them read.
#[must_use]
pub fn pendulum(size: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let (magnets, rest, after) =
        (program.initialized([3]), program.buffer(size), program.buffer(size));
    let board = IndexSpace::new(2, Box3::from_range(size));
    for step in 0..steps {
        let split = if step % 2 == 0 { Split::OneDimensional } else { Split::Tiled };
        let own = MapperSpec::OneToOne;
        program.kernel(
            "swing",
            IndexSpace { split, ..board },
            &[(rest, Write, own.clone()), (after, Write, own), (magnets, Read, MapperSpec::All)],
        );
    }
    program.finish()
}

/// Points that know nothing of each other, band by band of their rows: each step overwrites what the one before has
/// found, and all of it is gathered in the end.
#[must_use]
pub fn mandelbrot([rows, columns]: [usize; 2], bands: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let escapes = program.buffer([rows, columns]);
    for _ in 0..steps {
        for band in 0..bands {
            let [begin, end] = [band, band + 1].map(|band| band * rows / bands);
            let of_band = Box3::from_offset_range([begin, 0], [end - begin, columns]);
            let space = IndexSpace::new(2, of_band);
            program.kernel("escape", space, &[(escapes, Write, MapperSpec::OneToOne)]);
        }
    }
    if steps > 0 {
        program.host_once("gather", &[(escapes, Read, MapperSpec::All)]);
    }
    program.finish()
}

/// Parts of a mesh: a row each for what other parts need, its border, and for the rest. A border is computed from
/// those of its neighbours, and what is inside from its own.
#[must_use]
pub fn mesh([parts, elements]: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let widths = [2, elements];
    let mut now = widths.map(|width| program.initialized([parts, width]));
    let tables = widths.map(|width| program.initialized([parts, width]));
    let mut next = widths.map(|width| program.buffer([parts, width]));
    let (own, row) = (MapperSpec::OneToOne, MapperSpec::Slice { dim: 1 });
    let beside = SideSpec::Windows { from: 0, stride: 1, first: -1, width: 3, clamped: true };
    let neighbours = MapperSpec::PerDimension(vec![beside, SideSpec::All]);
    for _ in 0..steps {
        let [border, inner] = now;
        for (zone, name, borders) in [(0, "border", &neighbours), (1, "inner", &row)] {
            program.kernel(
                name,
                IndexSpace::new(2, Box3::from_range([parts, widths[zone]])),
                &[
                    (next[zone], Write, own.clone()),
                    (tables[zone], Read, own.clone()),
                    (inner, Read, row.clone()),
                    (border, Read, borders.clone()),
                ],
            );
        }
        std::mem::swap(&mut now, &mut next);
    }
    program.finish()
}

/// Of the Parallel Research Kernels: a stencil whose input changes in every step, and a wavefront,
/// in which each rank waits for the one before.
#[must_use]
pub fn prk([ranks, lines]: [usize; 2], steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [field, out, bands] = [(); 3].map(|()| program.initialized([ranks, lines]));
    let edges = [(); 2].map(|()| program.initialized([ranks, 2]));
    let whole = IndexSpace::new(2, Box3::from_range([ranks, lines]));
    let inner = Box3::from_offset_range([2, 2], [ranks - 4, lines - 4]);
    let star = MapperSpec::Neighborhood { border: [2, 2, 0], shape: NeighborhoodShape::AlongAxes };
    let (own, row) = (MapperSpec::OneToOne, MapperSpec::Slice { dim: 1 });
    let before = SideSpec::Windows { from: 0, stride: 1, first: -1, width: 1, clamped: true };
    let before = MapperSpec::PerDimension(vec![before, SideSpec::All]);
    for step in 0..steps {
        let accesses = [(out, ReadWrite, own.clone()), (field, Read, star.clone())];
        program.kernel("stencil", IndexSpace::new(2, inner), &accesses);
        program.kernel("increment", whole, &[(field, ReadWrite, own.clone())]);
        let [earlier, later] = [edges[step % 2], edges[(step + 1) % 2]];
        program.kernel(
            "wave",
            IndexSpace::new(2, Box3::from_range([ranks, 1])),
            &[
                (bands, ReadWrite, row.clone()),
                (earlier, Read, before.clone()),
                (later, Write, row.clone()),
            ],
        );
    }
    program.finish()
}

/// Numbers made and judged, batch by batch: three reductions by one kernel, each batch's results in
/// buffers of their own.
#[must_use]
pub fn accuracy(batch: usize, steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let found = program.buffer([batch]);
    for _ in 0..steps {
        let space = IndexSpace::new(1, Box3::from_range([batch]));
        program.kernel("approximate", space, &[(found, Write, MapperSpec::OneToOne)]);
        let results = [(); 3].map(|()| program.buffer([]));
        reduce_all(&mut program, batch, &[(found, Read, MapperSpec::OneToOne)], &results);
        for result in results {
            program.fence(result);
            program.drop_buffer(result);
        }
    }
    program.finish()
}

/// Tasks over so few rows that not all nodes of a larger cluster have one, and which exchange these among
/// themselves: all by all, all by one node that may be another one, back again, and rows by columns. Then
/// other nodes need what these have.
#[must_use]
pub fn few_rows(steps: usize) -> Program {
    let mut program = ProgramBuilder::default();
    let [rows, table] = [(); 2].map(|()| program.buffer([3, 3]));
    let [sums, wide] = [program.buffer([3]), program.buffer([8])];
    let over = |count: usize| IndexSpace::new(1, Box3::from_range([count]));
    let square = IndexSpace::new(2, Box3::from_range([3, 3]));
    let along = |from| SideSpec::Windows { from, stride: 1, first: 0, width: 1, clamped: false };
    let turned = MapperSpec::PerDimension(vec![along(1), along(0)]);
    for step in 0..steps as u64 {
        let mut add = |name: &str, kind, accesses: &[_]| program.submit(name, kind, accesses);
        let own = || MapperSpec::OneToOne;
        add("fill", TaskKind::Device(square), &[(rows, Write, own())]);
        let by_columns = [(rows, Read, turned.clone()), (table, Write, own())];
        add("turn", TaskKind::Device(square), &by_columns);
        let by_all = [(table, Read, MapperSpec::All), (sums, Write, own())];
        add("sum", TaskKind::Device(over(3)), &by_all);
        let by_one = [(sums, Read, MapperSpec::All), (rows, Write, MapperSpec::All)];
        add("judge", TaskKind::HostOnce { node: 3 * step + 4 }, &by_one);
        add("own", TaskKind::Device(square), &[(rows, ReadWrite, own())]);
        add("judge", TaskKind::HostOnce { node: step }, &[(table, ReadWrite, MapperSpec::All)]);
        add("sum", TaskKind::Device(over(2)), &[(table, Read, MapperSpec::All)]);
        let by_everybody = [(table, Read, MapperSpec::All), (wide, Write, own())];
        add("spread", TaskKind::Device(over(8)), &by_everybody);
    }
    program.finish()
}

/// Tasks that read what a table names, runs of `run` elements all over two buffers, of one and of four rows, which others write in each
/// step. Not one of [`all`], whose models look at every edge.
//
// Few items read: each of them hashes all that it reads.
#[must_use]
pub fn table(elements: usize, run: usize, apart: usize, steps: usize) -> Program {
    const READERS: usize = 8;
    let mut program = ProgramBuilder::default();
    let (values, wide) = (program.initialized([elements]), program.initialized([4, elements]));
    let (found, folded) = (program.buffer([READERS]), program.buffer([READERS]));
    let starts = (0..elements).step_by(run + apart);
    let runs = starts.map(|start| (start, run.min(elements - start)));
    let named = runs.clone().map(|(start, run)| Box3::from_offset_range([start], [run])).collect();
    let columns = runs.map(|(start, run)| Box3::from_offset_range([0, start], [4, run])).collect();
    let (named, columns) = (MapperSpec::Fixed(named), MapperSpec::Fixed(columns));
    let line = IndexSpace::new(1, Box3::from_range([elements]));
    let plane = IndexSpace::new(2, Box3::from_range([4, elements]));
    let readers = IndexSpace::new(1, Box3::from_range([READERS]));
    let own = || MapperSpec::OneToOne;
    for _ in 0..steps {
        program.kernel("fill", line, &[(values, ReadWrite, own())]);
        program.kernel("fill rows", plane, &[(wide, ReadWrite, own())]);
        program.kernel("look", readers, &[(values, Read, named.clone()), (found, Write, own())]);
        program.kernel("fold", readers, &[(wide, Read, columns.clone()), (folded, Write, own())]);
    }
    program.finish()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Folders of the examples that hold no program.
    const SHARED: [&str; 2] = ["data", "support"];

    #[test]
    fn every_example_is_in_the_corpus() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../celerity/examples");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let examples: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        let corpus = all(1);
        let known = |name: &str| SHARED.contains(&name) || corpus.iter().any(|it| it.0 == name);
        let missing: Vec<_> = examples.iter().filter(|name| !known(name)).collect();
        assert!(examples.len() > SHARED.len() && missing.is_empty(), "{missing:?}");
    }
}
