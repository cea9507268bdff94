//! A wavefront over a grid: each rank waits for the one before it.

use celerity::prelude::*;
use celerity_example_kernels::prk::p2p::{p2p_fill, p2p_turn, p2p_wave};
use celerity_example_kernels::prk::reduce::fill_rows;

use crate::bench::{Bench, Benchmark, Verdict, rate};

#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// How often the wave passes, after a first time.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    iterations: u32,
    /// Columns, which ranks share.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    columns: u64,
    /// Lines.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    lines: u64,
    /// Lines that a rank computes before the next one goes on.
    #[arg(default_value_t = 1)]
    group: u64,
}

impl Options {
    /// As the suite has it: less than all lines, and at least one.
    fn group(&self) -> u64 {
        self.group.min(self.lines.saturating_sub(1)).max(1)
    }
}

impl Benchmark for Options {
    const TITLE: &'static str = "pipeline execution on 2D grid";

    fn check(&self, ranks: usize) -> Result<(), String> {
        match self.columns <= ranks as u64 {
            true => Err(format!(
                "First grid dimension {} must be >= number of ranks {ranks}",
                self.columns
            )),
            false => Ok(()),
        }
    }

    fn parameters(&self, ranks: usize) -> Vec<String> {
        let mut lines = vec![
            format!("Number of ranks                = {ranks}"),
            format!("Grid sizes                     = {}, {}", self.columns, self.lines),
            format!("Number of iterations           = {}", self.iterations),
        ];
        if self.group() > 1 {
            lines.push(format!("Group factor                   = {} (cheating!)", self.group()));
        }
        lines
    }

    fn run(&self, bench: &Bench<'_>) -> celerity::Result<Verdict> {
        let wavefront = Wavefront::new(bench, self)?;
        let mut seconds = bench.time(self.iterations, |_| wavefront.pass())?;
        let [rank, at] = wavefront.last();
        let corner = Subrange::new([rank, at], [1, 1]);
        let found = bench.queue.fence_part(&wavefront.bands, corner)?.wait()?.as_slice()[0];
        let expected = f64::from(self.iterations + 1) * (self.columns + self.lines - 2) as f64;
        let is_wrong = (found - expected).abs() / expected >= 1e-8;
        let wrong = is_wrong.then(|| {
            format!("checksum {found:.6} does not match verification value {expected:.6}")
        });
        let flops = 2.0 * ((self.columns - 1) * (self.lines - 1)) as f64;
        // The suite's sign of a grouping, which it calls cheating.
        if self.group() > 1 {
            seconds = -seconds;
        }
        Ok(Verdict { wrong, rate: rate("MFlops/s", flops / seconds, seconds) })
    }
}

struct Wavefront<'q> {
    queue: &'q Queue,
    ranks: usize,
    size: [usize; 2],
    group: usize,
    width: usize,
    /// A rank's columns, line by line, as a row.
    bands: Buffer<f64, 2>,
    /// The last column of each rank at some lines, as odd and as even waves leave it.
    edges: [Buffer<f64, 2>; 2],
}

impl<'q> Wavefront<'q> {
    fn new(bench: &Bench<'q>, options: &Options) -> celerity::Result<Self> {
        let (queue, ranks, group) = (bench.queue, bench.ranks, options.group() as usize);
        let size @ [lines, columns] = [options.lines as usize, options.columns as usize];
        let width = columns.div_ceil(ranks);
        let bands = queue.buffer::<f64, 2>([ranks, lines * width]).named("grid");
        let fill = p2p_fill { width };
        queue.task("fill").launch(bands.range(), bands.write(one_to_one()), fill)?;
        let edges = ["even edges", "odd edges"]
            .map(|name| queue.buffer::<f64, 2>([ranks, group + 1]).named(name));
        for edges in &edges {
            let fill = fill_rows { value: 0.0 };
            queue.task("fill").launch(edges.range(), edges.write(one_to_one()), fill)?;
        }
        Ok(Self { queue, ranks, size, group, width, bands, edges })
    }

    /// Where the last point of the grid lies.
    fn last(&self) -> [usize; 2] {
        let ([lines, columns], width) = (self.size, self.width);
        [(columns - 1) / width, (lines - 1) * width + (columns - 1) % width]
    }

    /// All waves of an iteration. In each, every rank has a block of lines at most.
    fn pass(&self) -> celerity::Result<()> {
        let Self { queue, ranks, size, group, width, bands, edges: [even, odd] } = self;
        let blocks = (size[0] - 1).div_ceil(*group);
        let waves = if blocks == 0 { 0 } else { blocks + ranks - 1 };
        for wave in 0..waves {
            let (after, before) = if wave % 2 == 0 { (even, odd) } else { (odd, even) };
            let accesses =
                (bands.read_write(slice(1)), before.read(neighbours()), after.write(slice(1)));
            let kernel = p2p_wave { size: *size, width: *width, wave, group: *group };
            queue.task("wave").launch([*ranks, 1], accesses, kernel)?;
        }
        let at @ [rank, place] = self.last();
        let last = per_dimension([Side::only(rank..rank + 1), Side::only(place..place + 1)]);
        let accesses = (bands.write(one_to_one()), bands.read(last));
        queue.task("turn").launch([1, 1], accesses, p2p_turn { at })?;
        Ok(())
    }
}

/// The rows of the ranks one before: the first rank has none.
fn neighbours() -> celerity::CustomMapper<2, 2> {
    mapper("ranks before", |ranks: Chunk<2>, [_, lines]: [usize; 2]| {
        let [first, end] = [ranks.offset[0], ranks.offset[0] + ranks.range[0]];
        let start = first.saturating_sub(1);
        Subrange::new([start, 0], [end.saturating_sub(1) - start, lines])
    })
}
