//! What the schedules of whole programs consist of, all nodes together: nodes, edges, and
//! edges that other edges imply; allocations, copies, messages, and the longest chain.
//! Two states of the generators are compared by it, over the corpus and over random
//! programs. Judges nothing: whether schedules are right is the business of the checks.

use std::fmt;
use std::ops::AddAssign;

use celerity_idag::Lookahead;

use crate::campaign::Campaign;
use crate::check::Configuration;
use crate::corpus;
use crate::program::{Program, Sizes, seeded};
use crate::quality::PROGRAMS;
use crate::queries::{BufferNames, Dag};
use crate::trace::{CommandTrace, InstructionTrace, TaskTrace};
use crate::traffic::BytesMoved;
use crate::violation::Violation;

/// The columns of a [`Census`], in order.
const COLUMNS: [&str; 16] = [
    "tasks",
    "task edges",
    "implied",
    "commands",
    "command edges",
    "implied",
    "instructions",
    "instruction edges",
    "implied",
    "longest chain",
    "allocations",
    "bytes allocated",
    "copies",
    "bytes copied",
    "messages",
    "bytes sent",
];

/// How much of everything there is. An edge is *implied* if other edges order its ends.
/// `Display` gives a row of a table, columns in the order of [`header`], with `|` between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census([u64; COLUMNS.len()]);

impl Census {
    /// Counts what is generated for a program, on all nodes.
    ///
    /// # Errors
    /// If a generator finds fault with the program.
    pub fn of(program: &Program, configuration: &Configuration) -> Result<Self, Violation> {
        let tasks = TaskTrace::on(program, configuration)?;
        let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
        let instructions = InstructionTrace::on(&tasks, &commands, configuration)?;
        let (mut census, unnamed) = (Self::default(), BufferNames::default());
        let _ = census.add_graph(0, &Dag::of_tasks(&tasks.tasks, &unnamed));
        for node in &commands {
            let _ = census.add_graph(3, &Dag::of_commands("", &node.commands, &unnamed));
        }
        for node in &instructions {
            let dag = Dag::of_instructions("", &node.instructions, &unnamed);
            let chain = census.add_graph(6, &dag);
            census.0[9] += chain;
            let traffic = node.instructions.iter().map(|one| BytesMoved::of(&one.effects()));
            traffic.for_each(|traffic| census.add_traffic(traffic));
        }
        Ok(census)
    }

    /// Adds nodes and edges at three columns; returns the length of the longest chain.
    fn add_graph(&mut self, column: usize, dag: &Dag) -> u64 {
        let reach = dag.reachability();
        self.0[column] += dag.len() as u64;
        for node in 0..dag.len() {
            let edges: Vec<usize> = dag.edges(node).map(|(on, _)| on).collect();
            let implied = |on: &&usize| edges.iter().any(|&other| reach.waits_for(other, **on));
            self.0[column + 1] += edges.len() as u64;
            self.0[column + 2] += edges.iter().filter(implied).count() as u64;
        }
        dag.critical_path().len() as u64
    }

    fn add_traffic(&mut self, traffic: BytesMoved) {
        let BytesMoved { allocated, copied, sent } = traffic;
        for (column, bytes) in [(10, allocated), (12, copied), (14, sent)] {
            if let Some(bytes) = bytes {
                self.0[column] += 1;
                self.0[column + 1] += bytes;
            }
        }
    }
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|value| write!(f, " {value} |"))
    }
}

/// The first two lines of a table in Markdown whose rows are a name and a [`Census`].
#[must_use]
pub fn header() -> String {
    let names: String = COLUMNS.iter().map(|column| format!(" {column} |")).collect();
    format!("| program |{names}\n| --- |{}", " ---: |".repeat(COLUMNS.len()))
}

/// A row per program of the corpus, small and large, all clusters together, and one for
/// `programs` random ones in random configurations, from `seed` on. Calls `each` with the
/// name of every single case and its census, too.
///
/// # Errors
/// If a generator finds fault with a program.
pub fn table(
    programs: u64,
    seed: u64,
    mut each: impl FnMut(&str, &Census),
) -> Result<String, Violation> {
    let mut table = header() + "\n";
    let mut rows = 0;
    let mut row = |name: &str, cases: Vec<(String, Program, Configuration)>| {
        let mut sum = Census::default();
        for (case, program, configuration) in cases {
            let census = Census::of(&program, &configuration)?;
            each(&case, &census);
            sum += census;
        }
        rows += 1;
        table += &format!("| {name} |{sum}\n");
        Ok(())
    };
    for (name, program) in corpus::all(6) {
        row(name, on_clusters(name, &program))?;
    }
    for (name, program) in PROGRAMS {
        row(name, on_clusters(name, &program(6)))?;
    }
    let campaign = Campaign { programs, seed, nodes: 1..=8, devices: 1..=4, run_every: 0 };
    let random = (0..programs).map(|nth| {
        let (_, configuration) = campaign.case(seed + nth);
        let program = seeded(Sizes::default(), seed + nth);
        (format!("random {}", seed + nth), program, configuration)
    });
    row("random programs", random.collect())?;
    Ok(table)
}

/// A program on nodes {1,2,4,8} × devices {1,2,4}, with each lookahead, and with short rows
/// copied one by one or by way of dense stages.
fn on_clusters(name: &str, program: &Program) -> Vec<(String, Program, Configuration)> {
    let clusters = [1, 2, 4, 8].into_iter().flat_map(|n| [1, 2, 4].map(|d| (n, d)));
    let cases = clusters.flat_map(|(nodes, devices)| {
        let lookaheads = [Lookahead::None, Lookahead::Auto];
        lookaheads.into_iter().flat_map(move |lookahead| {
            [0, 64].map(|linearize_below| Configuration {
                lookahead,
                linearize_below,
                ..Configuration::new(nodes, devices)
            })
        })
    });
    let case = |configuration: Configuration| {
        let Configuration { nodes, devices, lookahead, linearize_below, .. } = configuration;
        let name = format!("{name} {nodes}x{devices} {lookahead:?} {linearize_below}");
        (name, program.clone(), configuration)
    };
    cases.map(case).collect()
}
