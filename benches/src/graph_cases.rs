//! The cases of the benchmark `graphs`, in one list: one program times them,
//! another counts their heap allocations. Knows nothing of either.
//!
//! Groups and functions bear the names of the columns `test_case` and
//! `benchmark` of `benches/reference/celerity-cpp-baseline.csv`; groups of device
//! kernels those of `variant`, `num_nodes` and `devices` of
//! `celerity-cpp-device-kernels.csv`, with slashes between them, and their
//! functions those of `topology`.
//!
//! The original's single-threaded reference for its scheduler thread builds no
//! instruction graphs, so that one does not here, either.
//!
//! The original's instruction-graph benchmarks use host tasks that are split
//! over nodes but not over devices. There are no such tasks here; kernels on one
//! device per node stand for them, whatever the number in the name.

use celerity_tdag::TaskGraphConfig;

use crate::endless::{Program, Running};
use crate::pipeline::{Build, Depth, Output, Pipeline, Shape};
use crate::threaded::{ThreadedPipeline, Throttled};
use crate::topologies::Topology;

/// One sample builds fresh graphs, submits every task and the shutdown epoch, and
/// destroys everything; only one node's graphs are built.
#[derive(Clone, Debug)]
pub struct Case {
    /// Criterion's group.
    pub group: String,
    /// Criterion's function.
    pub function: &'static str,
    workload: Workload,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Workload {
    /// A topology; what is generated is kept to the end.
    Kept(Topology),
    /// A topology; what is generated is forgotten at once.
    Forgotten(Topology),
    /// A topology, one task at a time and 10 µs between two of them.
    Throttled(Topology),
    /// A topology; a scheduler thread builds all but the task graph.
    Threaded(Topology),
    /// Both.
    ThrottledThreaded(Topology),
    /// Tasks that touch nothing, a horizon after each, as the original provokes
    /// them; old tasks are dropped on the way.
    Handling,
}

/// Tasks of [`Workload::Handling`].
const HANDLED: usize = 10_000;

impl Case {
    /// All cases, in the order in which they are measured.
    #[must_use]
    pub fn all() -> Vec<Self> {
        [original(), scheduler_thread(), device_kernels(), long_programs()].concat()
    }

    /// Tasks that a sample submits, epochs and horizons not counted.
    #[must_use]
    pub fn tasks(&self) -> usize {
        match self.workload {
            Workload::Kept(topology)
            | Workload::Forgotten(topology)
            | Workload::Throttled(topology)
            | Workload::Threaded(topology)
            | Workload::ThrottledThreaded(topology) => topology.tasks(),
            Workload::Handling => HANDLED,
        }
    }

    /// Whether a sample takes so long that few are enough.
    #[must_use]
    pub fn is_long(&self) -> bool {
        matches!(self.workload, Workload::Forgotten(_))
    }

    /// One sample.
    #[must_use]
    pub fn sample(&self) -> Output {
        match self.workload {
            Workload::Kept(topology) => submit(topology, Pipeline::new(self.shape)),
            Workload::Forgotten(topology) => {
                submit(topology, Pipeline::new(self.shape).forgetting())
            }
            Workload::Throttled(topology) => {
                submit(topology, Throttled::new(Pipeline::new(self.shape)))
            }
            Workload::Threaded(topology) => submit(topology, ThreadedPipeline::new(self.shape)),
            Workload::ThrottledThreaded(topology) => {
                submit(topology, Throttled::new(ThreadedPipeline::new(self.shape)))
            }
            Workload::Handling => {
                let config = TaskGraphConfig { horizon_step: 0, ..TaskGraphConfig::default() };
                let mut pipeline = Pipeline::with_config(self.shape, config).forgetting();
                (0..HANDLED).for_each(|_| pipeline.host_task());
                pipeline.finish()
            }
        }
    }
}

fn submit(topology: Topology, mut graphs: impl Build) -> Output {
    topology.submit(&mut graphs);
    graphs.finish()
}

/// The original's own benchmarks.
fn original() -> Vec<Case> {
    let mut cases = vec![Case {
        group: "benchmark task handling".into(),
        function: "generating and deleting tasks",
        workload: Workload::Handling,
        shape: Shape::new(Depth::Tasks, 1, 1),
    }];
    let mut add = |group: String, shape| cases.extend(topologies(&group, Workload::Kept, shape));
    add("generating large task graphs".into(), Shape::new(Depth::Tasks, 1, 1));
    for nodes in [1, 4, 16] {
        let group = format!("generating large command graphs for N nodes - {nodes}");
        add(group, Shape::new(Depth::Commands, nodes, 1));
    }
    for devices in [1, 4, 16] {
        let group = format!("generating large instruction graphs for N devices - {devices}");
        add(group, Shape::new(Depth::Instructions, 2, 1));
        let group = format!(
            "generating large instruction graphs for N devices without d2d copy support - {devices}"
        );
        add(group, Shape { direct: false, ..Shape::new(Depth::Instructions, 2, 1) });
    }
    cases
}

/// The original's comparison of one thread with two.
fn scheduler_thread() -> Vec<Case> {
    let mut cases = Vec::new();
    for nodes in [1, 4] {
        let mut add = |name: &str, workload: fn(Topology) -> Workload, depth| {
            let group = format!(
                "building command- and instruction graphs in a dedicated scheduler thread for N \
                 nodes - {nodes} > {name}"
            );
            cases.extend(topologies(&group, workload, Shape::new(depth, nodes, 1)));
        };
        let [one, two] = [Depth::Commands, Depth::Instructions];
        add("reference: single-threaded immediate graph generation", Workload::Kept, one);
        add("immediate submission to a scheduler thread", Workload::Threaded, two);
        add(
            "reference: throttled single-threaded graph generation at 10 us per task",
            Workload::Throttled,
            one,
        );
        add(
            "throttled submission to a scheduler thread at 10 us per task",
            Workload::ThrottledThreaded,
            two,
        );
    }
    cases
}

fn topologies(
    group: &str,
    workload: fn(Topology) -> Workload,
    shape: Shape,
) -> impl Iterator<Item = Case> + use<'_> {
    Topology::ALL.into_iter().map(move |topology| Case {
        group: group.to_owned(),
        function: topology.original_name(),
        workload: workload(topology),
        shape,
    })
}

fn device_kernels() -> Vec<Case> {
    let clusters = [1, 2, 4].into_iter().flat_map(|nodes| [1, 4, 16].map(|d| (nodes, d)));
    let of_cluster = |(nodes, devices)| {
        Topology::ALL.map(|topology| Case {
            group: format!("idag_device_kernel/{nodes}/{devices}"),
            function: topology.name(),
            workload: Workload::Kept(topology),
            shape: Shape::new(Depth::Instructions, nodes, devices),
        })
    };
    clusters.flat_map(of_cluster).collect()
}

/// A long program on a node in the middle, with everything older than a horizon
/// or two forgotten.
fn long_programs() -> Vec<Case> {
    let topology = Topology::LongWaveSim { steps: 5000 };
    let clusters = [(1, 1), (1, 4), (4, 1), (4, 4), (16, 4), (64, 4), (256, 1)];
    let case = |(nodes, devices)| Case {
        group: format!("steady_pruned_tdag_cdag_idag_middle_node/{nodes}/{devices}"),
        function: topology.name(),
        workload: Workload::Forgotten(topology),
        shape: Shape::new(Depth::Instructions, nodes, devices).in_the_middle(),
    };
    clusters.map(case).into()
}

/// One iteration is one more task of a program that has been running for long.
#[derive(Clone, Debug)]
pub struct SteadyCase {
    /// Criterion's group.
    pub group: &'static str,
    /// The program; its name is criterion's function.
    pub program: Program,
    shape: Shape,
}

impl SteadyCase {
    /// Three programs on all layers.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let layers = [
            ("steady state/tasks", Shape::new(Depth::Tasks, 1, 1)),
            ("steady state/commands/4", Shape::new(Depth::Commands, 4, 1)),
            ("steady state/instructions/4/4", Shape::new(Depth::Instructions, 4, 4)),
        ];
        let programs = [Program::WaveSim, Program::Jacobi, Program::Chain];
        let of_layer = |(group, shape): (_, Shape)| {
            programs.map(|program| Self { group, program, shape: shape.in_the_middle() })
        };
        layers.into_iter().flat_map(of_layer).collect()
    }

    /// The program in its steady state, behind its first thousand tasks.
    #[must_use]
    pub fn start(&self) -> Running<Pipeline> {
        let mut running = Running::new(self.program, Pipeline::new(self.shape).forgetting());
        running.advance(1000);
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_cases_share_a_name() {
        let cases = Case::all();
        let steady = SteadyCase::all();
        let names: BTreeSet<(&str, &str)> = cases
            .iter()
            .map(|case| (case.group.as_str(), case.function))
            .chain(steady.iter().map(|case| (case.group, case.program.name())))
            .collect();
        assert_eq!(names.len(), cases.len() + steady.len());
    }

    #[test]
    fn a_sample_submits_as_many_tasks_as_the_case_says() {
        for case in Case::all().iter().filter(|case| !case.is_long()) {
            let tasks = case.sample().tasks;
            assert!(tasks >= case.tasks() + 2, "{}/{}: {tasks}", case.group, case.function);
        }
    }
}
