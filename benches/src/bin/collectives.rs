//! Two tables about the programs of IJPP 2024, table 3, in Markdown: steps that a node schedules per
//! second (its fig. 3), without collectives, as the paper discovers them, and as Celerity does; and
//! what all nodes send for a step.
//!
//! ```sh
//! collectives --samples 21
//! ```

use celerity_benches::collectives::{Pattern, Running, Traffic};
use celerity_cpd::Collectives;
use clap::Parser;

/// Measures how collectives are scheduled, and counts what is sent with them and without.
#[derive(Parser)]
struct Options {
    /// Of so many samples the median counts
    #[arg(long, default_value_t = 11)]
    samples: usize,
    /// Steps of a sample
    #[arg(long, default_value_t = 64)]
    steps: usize,
    /// The largest cluster whose traffic is counted: every node's commands are generated
    #[arg(long, default_value_t = 1024)]
    count_up_to: usize,
}

const NODES: [usize; 6] = [2, 4, 16, 64, 256, 1024];
const MODES: [(Collectives, &str); 4] = [
    (Collectives::Off, "off"),
    (Collectives::Paper, "paper"),
    (Collectives::Auto, "auto"),
    (Collectives::Always, "always"),
];

fn main() {
    let options = Options::parse();
    scheduling(&options);
    println!();
    messages(&options);
}

fn scheduling(options: &Options) {
    let heads = NODES.map(|nodes| format!(" {nodes} |")).concat();
    println!("| program | collectives |{heads}");
    println!("| --- | --- |{}", " ---: |".repeat(NODES.len()));
    for pattern in Pattern::ALL {
        let mut rows = MODES.map(|(_, name)| format!("| {} | {name} |", pattern.name()));
        for nodes in NODES {
            for (row, sample) in rows.iter_mut().zip(medians(pattern, nodes, options)) {
                let [low, median, high] = sample;
                *row += &format!(" {median:.1} ({low:.1}–{high:.1}) |");
            }
        }
        rows.iter().for_each(|row| println!("{row}"));
    }
}

/// Microseconds per step, least, median and most, of the modes, which take turns. Of the first node
/// and one in the middle, the one that takes longer counts.
fn medians(pattern: Pattern, nodes: usize, options: &Options) -> [[f64; 3]; MODES.len()] {
    let mut running = MODES.map(|(collectives, _)| {
        [0, nodes / 2].map(|position| Running::new(pattern, collectives, nodes, [position]))
    });
    let mut samples = MODES.map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..options.samples.max(1) {
        for (of_mode, samples) in running.iter_mut().zip(&mut samples) {
            for (one, samples) in of_mode.iter_mut().zip(samples) {
                samples.push(one.time(options.steps).as_secs_f64() * 1e6);
            }
        }
    }
    samples.map(|positions| {
        let spreads = positions.map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            [samples[0], samples[samples.len() / 2], samples[samples.len() - 1]]
        });
        let [first, middle] = spreads;
        if first[1] > middle[1] { first } else { middle }
    })
}

fn messages(options: &Options) {
    let counted = NODES.into_iter().filter(|&nodes| nodes <= options.count_up_to);
    let nodes: Vec<usize> = counted.collect();
    let heads: String = nodes.iter().map(|nodes| format!(" {nodes} |")).collect();
    println!("| program | collectives |{heads}");
    println!("| --- | --- |{}", " ---: |".repeat(nodes.len()));
    for pattern in Pattern::ALL {
        for (collectives, name) in MODES {
            let cells = nodes.iter().map(|&nodes| {
                let all = 0..nodes;
                let Traffic { messages, bytes } =
                    Running::new(pattern, collectives, nodes, all).traffic();
                format!(" {messages}, {} KiB |", bytes.div_ceil(1024))
            });
            println!("| {} | {name} |{}", pattern.name(), cells.collect::<String>());
        }
    }
}
