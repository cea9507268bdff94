//! Which figures there are, and how each is made: a table.

use super::effort::{Effort, Item};
use super::predicted::{Costs, Predicted};
use super::traced::Traced;

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
    /// Predictions, and what was measured beside them.
    Predicted(&'static [Predicted]),
    /// Source code, counted.
    Effort(&'static [Effort]),
    /// Traces of programs.
    Traces(&'static [Traced]),
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
    /// `table_figure` of the benchmarks: what its `--shows` says of times, against numbers of what is counted.
    Curves { title: &'static str, counted: &'static str, shows: &'static str },
    /// Bars: counts for each row.
    Bars { title: &'static str },
    /// `gpu_figure` of the benchmarks, from committed data.
    Gpus { data: &'static str },
    /// The code behind `cargo xtask timeline`, a picture for each program.
    Timelines(&'static [Traced]),
}

pub(super) static ALL: [Figure; 13] = [
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
        drawn: curves("scheduling time per task", "nodes", "time"),
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
        drawn: curves("scheduling time per step", "nodes", "time"),
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
        drawn: curves("time per step", "KiB", "time"),
    },
    Figure {
        name: "ijpp-2022-5",
        paper: "IJPP 2022, fig. 5",
        shows: "latency of a barrier",
        file: "barriers",
        source: Some(Source::Barriers { processes: &[2, 4] }),
        drawn: curves("latency", "nodes", "time"),
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
        drawn: curves("time per chain", "nodes", "time"),
    },
    Figure {
        name: "ijpp-2022-7",
        paper: "IJPP 2022, fig. 7",
        shows: "graph generation with and without an epoch in the end",
        file: "epochs",
        source: Some(Source::Table { program: "epochs", arguments: &[] }),
        drawn: curves("time per graph", "nodes", "time"),
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
        drawn: curves("time per search", "candidates", "time"),
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
        drawn: Drawn::Gpus { data: "docs/benchmarks/h200-compare-four.csv" },
    },
    Figure {
        name: "ccgrid-2023-4",
        paper: "CCGrid 2023, fig. 4",
        shows: "predicted: weak scaling of programs, and ways to cut stencils",
        file: "weak-scaling",
        source: Some(Source::Predicted(&WEAK)),
        drawn: curves("parallel efficiency, predicted", "GPUs", "efficiency"),
    },
    Figure {
        name: "ijpp-2024-5",
        paper: "IJPP 2024, fig. 5",
        shows: "predicted: strong scaling of N bodies, by messages and with collectives",
        file: "nbody-scaling",
        source: Some(Source::Predicted(&BODIES)),
        drawn: curves("speed-up, predicted", "GPUs", "speed-up"),
    },
    Figure {
        name: "preprint-6",
        paper: "Euro-Par 2019, fig. 4; preprint on instruction graphs, fig. 6",
        shows: "predicted beside measured: speed-ups of programs",
        file: "strong-scaling",
        source: Some(Source::Predicted(&STRONG)),
        drawn: curves("speed-up (rings: predicted, discs: measured)", "GPUs", "speed-up"),
    },
    Figure {
        name: "preprint-7",
        paper: "preprint on instruction graphs, fig. 7",
        shows: "timelines of small problems: what of scheduling runs beside kernels",
        file: "preprint-7",
        source: Some(Source::Traces(&SMALL)),
        drawn: Drawn::Timelines(&SMALL),
    },
];

/// Problems so small that scheduling can be seen beside them. Of rsim all tasks are held back until the last one is
/// known, so all of it is shown.
static SMALL: [Traced; 3] = [
    Traced {
        program: "nbody",
        arguments: &["--random", "512", "--steps", "300"],
        shown: Some(10_000.0),
    },
    Traced { program: "rsim", arguments: &["--edge", "6", "--steps", "60"], shown: None },
    Traced {
        program: "wave_sim",
        arguments: &["--size", "256", "--steps", "600", "--frames", "0"],
        shown: Some(5_000.0),
    },
];

/// Problems that grow with the number of GPUs, as in the paper: side lengths and numbers of bodies by roots.
static WEAK: [Predicted; 10] = [
    Predicted {
        label: "black_scholes",
        example: "black_scholes",
        arguments: |gpus| format!("--options {} --steps 10", 450_000_000 * gpus),
        environment: &[],
        costs: OPTIONS,
        up_to: 1024,
        measured: None,
    },
    Predicted {
        label: "nbody",
        example: "nbody",
        arguments: |gpus| format!("--random {} --steps 5 --kernel group", bodies(gpus)),
        environment: &[],
        costs: pull(&[1, 2, 4], |there, gpus| bodies(gpus) as f64 / there as f64),
        up_to: 128,
        measured: None,
    },
    wave("wave_sim bands", |gpus| field(gpus, "bands", 1)),
    wave("wave_sim bands and four chunks", |gpus| field(gpus, "bands", 4)),
    wave("wave_sim tiles", |gpus| field(gpus, "tiles", 1)),
    wave("wave_sim tiles and four chunks", |gpus| field(gpus, "tiles", 4)),
    alloy("cahn_hilliard slabs", |gpus| block(gpus, "slabs", 1)),
    alloy("cahn_hilliard slabs and four chunks", |gpus| block(gpus, "slabs", 4)),
    alloy("cahn_hilliard tiles", |gpus| block(gpus, "tiles", 1)),
    alloy("cahn_hilliard tiles and four chunks", |gpus| block(gpus, "tiles", 4)),
];

/// As many bodies as the paper has, in groups of 128.
fn bodies(gpus: u64) -> u64 {
    ((gpus as f64).sqrt() * 4096.0).round() as u64 * 128
}

fn field(gpus: u64, cut: &str, chunks: u64) -> String {
    let size = ((gpus as f64).sqrt() * 24_500.0).round();
    format!("--size {size} --steps 200 --frames 0 --cut {cut} --oversubscribe {chunks}")
}

fn block(gpus: u64, cut: &str, chunks: u64) -> String {
    let size = ((gpus as f64).cbrt() * 768.0).round();
    format!("--size {size} --steps 100 --frames 0 --cut {cut} --oversubscribe {chunks}")
}

const fn wave(label: &'static str, arguments: fn(u64) -> String) -> Predicted {
    let (example, environment, costs) = ("wave_sim", &[], WAVES);
    Predicted { label, example, arguments, environment, costs, up_to: 1024, measured: None }
}

/// Its bytes in double precision: potentials and energies read a field and write one, a step reads two. The part of a copy's
/// rate is what heat in 1024³ cells had on an H100, a stencil of as many points: 16 bytes per cell in 6.693 ms
/// (docs/benchmarks/h100-fast-forms.txt), beside copies of 3.015 TB/s (h100-compare.csv).
const fn alloy(label: &'static str, arguments: fn(u64) -> String) -> Predicted {
    let kernels = &[("potential", 16.0), ("evolve", 24.0), ("energy", 16.0)];
    let costs = Costs::Bytes { kernels, part: 0.851, others: &["fill", "total"] };
    let (example, environment) = ("cahn_hilliard", &[]);
    Predicted { label, example, arguments, environment, costs, up_to: 128, measured: None }
}

/// 2²⁰ bodies in double precision, in 8 of the paper's 20 steps, as each is like the others: by the kernel that was measured, and by one that would fill GPUs with few bodies, too.
static BODIES: [Predicted; 5] = [
    million("measured kernel by messages", MESSAGES, &[1, 2, 4]),
    million("measured kernel by messages and collectives", COLLECTIVES, &[1, 2, 4]),
    million("full rate by messages", MESSAGES, &[1]),
    million("full rate by messages and collectives", COLLECTIVES, &[1]),
    million("full rate with what is weighed", &[], &[1]),
];

const MESSAGES: &[&str] = &["CELERITY_COLLECTIVES=off"];
const COLLECTIVES: &[&str] = &["CELERITY_COLLECTIVES=always"];

const fn million(
    label: &'static str,
    environment: &'static [&'static str],
    gpus: &'static [u64],
) -> Predicted {
    // Where kernels of few bodies take all of the time, there is nothing to see on more.
    let up_to = if gpus.len() > 1 { 128 } else { 1024 };
    Predicted {
        label,
        example: "nbody",
        arguments: |_| "--random 1048576 --steps 8 --kernel group".into(),
        environment,
        costs: pull(gpus, |there, _| f64::from(1 << 20) / there as f64),
        up_to,
        measured: None,
    }
}

/// What was measured on up to four GPUs (`compare.sh` of the bundle), with fewer steps, as each is like the others.
static STRONG: [Predicted; 7] = [
    Predicted {
        label: "wave_sim predicted",
        example: "wave_sim",
        arguments: |gpus| {
            let chunks = gpus.min(2);
            format!("--size 16384 --steps 100 --frames 0 --oversubscribe {chunks}")
        },
        environment: &[],
        costs: WAVES,
        up_to: 1024,
        measured: Some("wave_sim"),
    },
    Predicted {
        label: "nbody predicted",
        example: "nbody",
        arguments: |_| "--random 131072 --steps 20 --kernel group".into(),
        environment: &[],
        costs: pull(&[1, 2, 4], |_, _| 1.0),
        up_to: 1024,
        measured: Some("nbody"),
    },
    Predicted {
        label: "nbody in single precision predicted",
        example: "nbody",
        arguments: |_| "--random 131072 --steps 20 --kernel group --precision single".into(),
        environment: &[],
        costs: Costs::Steps {
            program: "nbody_single",
            gpus: &[1, 2, 4],
            kernel: "kick",
            items: |size| size,
            longer: |_, _| 1.0,
            others: &["drift", "energies"],
        },
        up_to: 1024,
        measured: Some("nbody_single"),
    },
    Predicted {
        label: "matmul predicted",
        example: "matmul",
        arguments: |_| "--size 8192 --steps 6".into(),
        environment: &[],
        costs: Costs::Steps {
            program: "matmul",
            gpus: &[1],
            kernel: "product",
            items: |size| size * size,
            longer: |_, _| 1.0,
            others: &["fill"],
        },
        up_to: 1024,
        measured: Some("matmul"),
    },
    Predicted {
        label: "black_scholes predicted",
        example: "black_scholes",
        arguments: |_| "--options 50000000 --steps 20".into(),
        environment: &[],
        costs: OPTIONS,
        up_to: 1024,
        measured: Some("black_scholes"),
    },
    Predicted {
        label: "rsim predicted",
        example: "rsim",
        arguments: |_| "--edge 64 --steps 30".into(),
        environment: &[],
        costs: Costs::Steps {
            program: "rsim",
            gpus: &[1, 2, 4],
            kernel: "radiosity",
            items: |size| size,
            longer: |_, _| 1.0,
            others: &["room", "flash"],
        },
        up_to: 1024,
        measured: Some("rsim"),
    },
    Predicted {
        label: "pendulum predicted",
        example: "pendulum",
        arguments: |_| "--size 4096 --rounds 10".into(),
        environment: &[],
        costs: Costs::Steps {
            program: "pendulum",
            gpus: &[1],
            kernel: "swing",
            items: |size| size * size,
            longer: |_, _| 1.0,
            others: &[],
        },
        up_to: 1024,
        measured: Some("pendulum"),
    },
];

const WAVES: Costs = Costs::Trace("docs/benchmarks/h200-wave_sim-2-gpus-whole.json.gz");
const OPTIONS: Costs = Costs::Steps {
    program: "black_scholes",
    gpus: &[1],
    kernel: "price",
    items: |size| size,
    longer: |_, _| 1.0,
    others: &["draw"],
};

/// Of nbody in groups, in double precision; an item goes through all bodies.
const fn pull(gpus: &'static [u64], longer: fn(u64, u64) -> f64) -> Costs {
    let (program, kernel) = ("nbody", "kick");
    Costs::Steps {
        program,
        gpus,
        kernel,
        items: |size| size,
        longer,
        others: &["drift", "energies"],
    }
}

const fn curves(title: &'static str, counted: &'static str, shows: &'static str) -> Drawn {
    Drawn::Curves { title, counted, shows }
}

const CHAIN: &str = "model: a chain of 10 host tasks";
const SETS: &str = "model: the largest set without conflicts";

const fn scaling(label: &'static str, group: &'static str, function: &'static str) -> Curve {
    Curve { label, group, function }
}

const fn item(file: &'static str, names: &'static [&'static str]) -> Item {
    Item { file, names }
}

/// The host's side of programs, as kernels are the same functions in both, or nearly so. Over MPI it is all but what both
/// share, with the results and the clock that either has in its function; where one of ours has the kernels by hand, that
/// one. What stands inside of kernels is left out, also as a loop (`update`, `multiply`, `advance`).
/// For CUDA C++ it is memory, its first contents and a step. What chooses a kernel's form is left out (`Plan`,
/// `Kernels`), and so is what indices of kernels are computed by (`Slab`); where ours is one function with results, so
/// are those by hand (`gather`).
static EFFORTS: [Effort; 16] = [
    Effort {
        program: "wave_sim over MPI",
        ours: &[item(WAVE, &["fn ours"])],
        by_hand: &[item(WAVE, &["struct Band", "fn by_hand", "fn step", "fn exchange"])],
    },
    Effort {
        program: "nbody over MPI",
        ours: &[item("benches/baselines/src/nbody.rs", &["fn ours", "fn step"])],
        by_hand: &[item("benches/baselines/src/nbody.rs", &["fn by_hand"])],
    },
    Effort {
        program: "matmul over MPI",
        ours: &[item("benches/baselines/src/matmul.rs", &["fn ours_by_hand"])],
        by_hand: &[item("benches/baselines/src/matmul.rs", &["fn by_hand"])],
    },
    Effort {
        program: "rsim over MPI",
        ours: &[item("benches/baselines/src/rsim.rs", &["fn ours", "fn step"])],
        by_hand: &[item("benches/baselines/src/rsim.rs", &["fn by_hand"])],
    },
    Effort {
        program: "black_scholes over MPI",
        ours: &[item("benches/baselines/src/black_scholes.rs", &["fn ours"])],
        by_hand: &[item("benches/baselines/src/black_scholes.rs", &["fn by_hand"])],
    },
    Effort {
        program: "cahn_hilliard over MPI",
        ours: &[item("benches/baselines/src/cahn_hilliard/ours.rs", &["fn with_loops", "fn each"])],
        by_hand: &[item(
            "benches/baselines/src/cahn_hilliard.rs",
            &["fn by_hand", "fn around", "fn update"],
        )],
    },
    Effort {
        program: "mesh over MPI",
        // By hand, parts are cut by the same function; the rows that they get here are only ours.
        ours: &[
            item("benches/baselines/src/mesh.rs", &["fn ours"]),
            item(HEAT, &["struct Heat", "struct Zone", "impl Zone", "impl Heat"]),
            item(PARTS, &["struct Parts", "struct Cells", "impl Cells", "impl Parts"]),
        ],
        by_hand: &[
            item("benches/baselines/src/mesh.rs", &["fn by_hand"]),
            item(
                "benches/baselines/src/mesh/part.rs",
                &["struct Part", "struct Neighbour", "impl Part"],
            ),
        ],
    },
    Effort {
        program: "pendulum over MPI",
        ours: &[item("benches/baselines/src/pendulum.rs", &["fn ours"])],
        by_hand: &[item("benches/baselines/src/pendulum.rs", &["fn by_hand"])],
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
        program: "nbody in CUDA C++",
        ours: &[item(
            "crates/celerity/examples/nbody/system.rs",
            &["struct System", "fn new of impl<T: Number> System", "fn kick", "fn drift"],
        )],
        by_hand: &[item("benches/baselines/cuda/nbody.cu", &["struct System without void read("])],
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
        ours: &[item(
            "crates/celerity/examples/rsim/main.rs",
            &["struct Room", "fn begin", "fn step"],
        )],
        by_hand: &[item("benches/baselines/cuda/rsim.cu", &["struct Room"])],
    },
    Effort {
        program: "black_scholes in CUDA C++",
        ours: &[item("crates/celerity/examples/black_scholes/main.rs", &["fn simulate"])],
        by_hand: &[item(
            "benches/baselines/cuda/black_scholes.cu",
            &["struct Part", "> divide(", "void step(", "> gather("],
        )],
    },
    Effort {
        program: "cahn_hilliard in CUDA C++",
        ours: &[item(
            "crates/celerity/examples/cahn_hilliard/main.rs",
            &["struct Alloy", "fn new of impl<'q> Alloy", "fn step", "fn energies", "fn task"],
        )],
        by_hand: &[item(
            "benches/baselines/cuda/cahn_hilliard.cu",
            &[
                "struct Part",
                "> divide(",
                "void launch(",
                "void fetch(",
                "void everywhere(",
                "void potentials(",
                "void evolve(",
                "void energies(",
                "void start(",
                "void step(",
            ],
        )],
    },
    Effort {
        program: "mesh in CUDA C++",
        ours: &[
            item(
                HEAT,
                &["struct Heat", "struct Zone", "impl Zone", "impl Heat without fn temperatures"],
            ),
            item(
                PARTS,
                &[
                    "struct Parts",
                    "struct Place",
                    "struct Cells",
                    "impl Cells",
                    "impl Parts",
                    "fn bisect",
                    "fn places",
                ],
            ),
        ],
        by_hand: &[item(
            "benches/baselines/cuda/mesh.cu",
            &[
                "struct Layout",
                "void fill_up(",
                "> lay_out(",
                "struct Part",
                "void upload(",
                "> divide(",
                "void start(",
                "void launch(",
                "void compute(",
                "void fetch(",
                "void step(",
            ],
        )],
    },
    Effort {
        program: "pendulum in CUDA C++",
        ours: &[item("crates/celerity/examples/pendulum/main.rs", &["fn let_go"])],
        by_hand: &[item(
            "benches/baselines/cuda/pendulum.cu",
            &["struct Rows", "struct Part", "> divide(", "void compute(", "> gather("],
        )],
    },
];

const WAVE: &str = "benches/baselines/src/wave.rs";
const HEAT: &str = "crates/celerity/examples/mesh/heat.rs";
const PARTS: &str = "crates/celerity/examples/mesh/partition.rs";
