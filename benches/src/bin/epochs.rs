//! What an epoch costs in graph generation (IJPP 2022, fig. 7): the time for the task and
//! command graphs of a node, with a shutdown epoch in the end and without, per number of
//! nodes, as a table for `table_figure`.
//!
//! ```sh
//! epochs > docs/figures/epochs.csv
//! ```

use std::time::Instant;

use celerity_benches::pipeline::{Build, Depth, Pipeline, Shape};
use celerity_benches::topologies::Topology;
use clap::Parser;

/// Measures graph generation with and without an epoch in the end.
#[derive(Parser)]
struct Options {
    /// Of so many samples the least counts
    #[arg(long, default_value_t = 100)]
    samples: usize,
}

const NODES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const TOPOLOGIES: [Topology; 4] =
    [Topology::Soup, Topology::Chain, Topology::Jacobi, Topology::WaveSim];

fn main() {
    let options = Options::parse();
    let names = TOPOLOGIES.map(|topology| format!(",{0},{0} and an epoch", topology.name()));
    println!("nodes{}", names.concat());
    for nodes in NODES {
        let cells = TOPOLOGIES.map(|topology| {
            let [without, with] = least(topology, nodes, options.samples);
            format!(",{without:.1},{with:.1}")
        });
        println!("{nodes}{}", cells.concat());
    }
}

/// Microseconds without and with the epoch, which take turns.
fn least(topology: Topology, nodes: usize, samples: usize) -> [f64; 2] {
    let mut least = [f64::INFINITY; 2];
    for sample in 0..2 * samples {
        let mut pipeline = Pipeline::new(Shape::new(Depth::Commands, nodes, 1));
        let start = Instant::now();
        topology.submit(&mut pipeline);
        let with_epoch = sample % 2;
        if with_epoch == 1 {
            std::hint::black_box(pipeline.finish());
        } else {
            drop(std::hint::black_box(pipeline));
        }
        let micros = start.elapsed().as_secs_f64() * 1e6;
        least[with_epoch] = least[with_epoch].min(micros);
    }
    least
}
