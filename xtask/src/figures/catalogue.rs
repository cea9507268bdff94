//! Which figures there are, and how each is made: a table.

use super::effort::{Effort, Item};

/// A figure of a paper, made anew.
#[derive(Debug)]
pub(super) struct Figure {
    /// On the command line: a short title, and the number in the paper.
    pub(super) name: &'static str,
    /// Where it stands.
    pub(super) paper: &'static str,
    /// What it shows.
    pub(super) shows: &'static str,
    /// Data and picture in the folder of figures, without their extensions.
    pub(super) file: &'static str,
    /// What measures it; nothing, if another machine has.
    pub(super) source: Option<Source>,
    pub(super) drawn: Drawn,
}

/// What numbers come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A group of `cargo xtask bench`: a curve for each of these.
    Bench { bench: &'static str, counted: &'static str, curves: &'static [Curve] },
    /// A program of the benchmarks that prints data as they are committed.
    Table { program: &'static str, arguments: &'static [&'static str] },
    /// A program of the benchmarks that prints a table in Markdown, with a row per program and mode and a column per
    /// number of nodes: a curve for each program and mode.
    Modes {
        program: &'static str,
        arguments: &'static [&'static str],
        modes: &'static [[&'static str; 2]],
    },
    /// `network` of the baselines, on these numbers of processes: a table with a row for each.
    Barriers { processes: &'static [usize] },
    /// `network` of the baselines, on two processes: a curve for each pattern and column.
    Exchanges { arguments: &'static [&'static str], columns: &'static [(usize, &'static str)] },
    /// Source code, counted.
    Effort(&'static [Effort]),
}

/// Cases of criterion that make a curve: the function's name has a number in the place of `#`.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) label: &'static str,
    pub(super) group: &'static str,
    pub(super) function: &'static str,
}

/// What draws it.
#[derive(Debug)]
pub(super) enum Drawn {
    /// `table_figure` of the benchmarks: times against numbers of what is counted.
    Curves { title: &'static str, counted: &'static str },
    /// Bars: counts for each row.
    Bars { title: &'static str },
    /// `gpu_figure` of the benchmarks, from committed data.
    Gpus { data: &'static str },
}

pub(super) static ALL: [Figure; 9] = [
    Figure {
        name: "ccgrid-2023-1",
        paper: "CCGrid 2023, fig. 1",
        shows: "scheduling time per task, central and on each node",
        file: "scheduling-scaling",
        source: Some(Source::Bench {
            bench: "scaling",
            counted: "nodes",
            curves: &[
                scaling("all-gather by a central scheduler", "scaling/all-gather", "central/#"),
                scaling("all-gather by each node", "scaling/all-gather", "one node/#"),
                scaling("stencil by a central scheduler", "scaling/stencil", "central/#"),
                scaling("stencil by each node", "scaling/stencil", "one node/#"),
            ],
        }),
        drawn: Drawn::Curves { title: "scheduling time per task", counted: "nodes" },
    },
    Figure {
        name: "ijpp-2024-3",
        paper: "IJPP 2024, fig. 3",
        shows: "scheduling time per step, by messages and with collectives",
        file: "collectives-scheduling",
        source: Some(Source::Modes {
            program: "collectives",
            arguments: &["--samples", "5", "--steps", "32", "--count-up-to", "2"],
            modes: &[["off", "by messages"], ["always", "by messages and collectives"]],
        }),
        drawn: Drawn::Curves { title: "scheduling time per step", counted: "nodes" },
    },
    Figure {
        name: "ijpp-2024-4",
        paper: "IJPP 2024, fig. 4",
        shows: "steps that only exchange data, on two processes",
        file: "collectives-exchange",
        source: Some(Source::Exchanges {
            arguments: &["--repetitions", "8", "--sizes", "1024,16384,262144,4194304"],
            columns: &[(3, "by MPI"), (5, "by MPI and Celerity")],
        }),
        drawn: Drawn::Curves { title: "time per step", counted: "KiB" },
    },
    Figure {
        name: "ijpp-2022-5",
        paper: "IJPP 2022, fig. 5",
        shows: "latency of a barrier",
        file: "barriers",
        source: Some(Source::Barriers { processes: &[2, 4] }),
        drawn: Drawn::Curves { title: "latency", counted: "nodes" },
    },
    Figure {
        name: "ijpp-2022-6",
        paper: "IJPP 2022, fig. 6",
        shows: "a chain of ten host tasks, by barriers and by side effects",
        file: "side-effects",
        source: Some(Source::Bench {
            bench: "model",
            counted: "nodes",
            curves: &[
                scaling("one barrier alone", CHAIN, "one barrier alone/# nodes"),
                scaling("by side effects", CHAIN, "by side effects/# nodes"),
                scaling("by barriers", CHAIN, "by barriers/# nodes"),
            ],
        }),
        drawn: Drawn::Curves { title: "time per chain", counted: "nodes" },
    },
    Figure {
        name: "ijpp-2022-7",
        paper: "IJPP 2022, fig. 7",
        shows: "graph generation with and without an epoch in the end",
        file: "epochs",
        source: Some(Source::Table { program: "epochs", arguments: &[] }),
        drawn: Drawn::Curves { title: "time per graph", counted: "nodes" },
    },
    Figure {
        name: "ijpp-2022-8",
        paper: "IJPP 2022, fig. 8",
        shows: "search for the largest set without conflicts",
        file: "independent-sets",
        source: Some(Source::Bench {
            bench: "model",
            counted: "candidates",
            curves: &[
                scaling("16 tasks 32 conflicts", SETS, "16 tasks and 32 conflicts/#"),
                scaling("64 tasks 128 conflicts", SETS, "64 tasks and 128 conflicts/#"),
                scaling("64 tasks 512 conflicts", SETS, "64 tasks and 512 conflicts/#"),
                scaling("128 tasks 1024 conflicts", SETS, "128 tasks and 1024 conflicts/#"),
            ],
        }),
        drawn: Drawn::Curves { title: "time per search", counted: "candidates" },
    },
    Figure {
        name: "euro-par-2019-3",
        paper: "Euro-Par 2019, fig. 3",
        shows: "lines of code and cyclomatic complexity",
        file: "effort",
        source: Some(Source::Effort(&EFFORTS)),
        drawn: Drawn::Bars { title: "lines of code and cyclomatic complexity" },
    },
    Figure {
        name: "euro-par-2019-4",
        paper: "Euro-Par 2019, fig. 4; preprint on instruction graphs, fig. 6",
        shows: "rates per GPU on one, two and four GPUs",
        file: "gpu-scaling",
        source: None,
        drawn: Drawn::Gpus { data: "docs/benchmarks/h200-compare.csv" },
    },
];

const CHAIN: &str = "model: a chain of 10 host tasks";
const SETS: &str = "model: the largest set without conflicts";

const fn scaling(label: &'static str, group: &'static str, function: &'static str) -> Curve {
    Curve { label, group, function }
}

const fn item(file: &'static str, names: &'static [&'static str]) -> Item {
    Item { file, names }
}

/// The host's side of programs, as kernels are the same functions in both, or nearly so: for MPI all of it but what
/// both share, for CUDA C++ memory, its first contents and a step.
static EFFORTS: [Effort; 5] = [
    Effort {
        program: "wave_sim over MPI",
        ours: &[item("benches/baselines/src/wave.rs", &["fn ours"])],
        by_hand: &[item(
            "benches/baselines/src/wave.rs",
            &["struct Band", "fn by_hand", "fn step", "fn exchange", "fn update"],
        )],
    },
    Effort {
        program: "nbody over MPI",
        ours: &[item("benches/baselines/src/nbody.rs", &["fn ours", "fn step"])],
        by_hand: &[item("benches/baselines/src/nbody.rs", &["fn by_hand"])],
    },
    Effort {
        program: "wave_sim in CUDA C++",
        ours: &[item(
            "crates/celerity/examples/wave_sim/main.rs",
            &["fn fill", "fn first_step", "fn step"],
        )],
        by_hand: &[item(
            "benches/baselines/cuda/wave_sim.cu",
            &[
                "struct Band",
                "struct Part",
                "> divide(",
                "void launch(",
                "void compute(",
                "void fetch(",
                "void step(",
            ],
        )],
    },
    Effort {
        program: "matmul in CUDA C++",
        ours: &[item("crates/celerity/examples/matmul/main.rs", &["fn fill", "fn product"])],
        by_hand: &[item(
            "benches/baselines/cuda/matmul.cu",
            &["struct Part", "dim3 blocks(", "> divide(", "void product("],
        )],
    },
    Effort {
        program: "rsim in CUDA C++",
        ours: &[item("crates/celerity/examples/rsim/main.rs", &["fn begin", "fn step"])],
        by_hand: &[item("benches/baselines/cuda/rsim.cu", &["struct Room"])],
    },
];
