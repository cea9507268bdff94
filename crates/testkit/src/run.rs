//! Runs programs through the real runtime and observes them as the
//! [twin](crate::twin) does, on every node.

use std::fmt;
use std::sync::{Arc, Mutex};

use celerity_executor::{
    CheckLevel, ClusterConfig, DeviceKernel, HostData, NodeFrontend, Payload, Run, RunError,
    SubmitError,
};
use celerity_tdag::BufferId;

use crate::configuration::Configuration;
use crate::element;
use crate::hash::initial_contents;
use crate::hash_kernel::HashKernel;
use crate::program::{BufferSpec, MapperTable, Op, Program, TaskKind, TaskOp};
use crate::twin::{Observation, ObservedElements};
use crate::violation::Violation;
use crate::visits::Visits;

/// What every node has observed, in order of nodes.
///
/// # Errors
/// [`Violation::RunFailed`] if the runtime gives up.
pub fn run(
    program: &Program,
    configuration: &Configuration,
) -> Result<Vec<Observation>, Violation> {
    run_on(program, configuration, Run::new, |_, kernel| kernel)
}

/// What every node has observed, in order of nodes, when the program runs where
/// `place` says, with kernels that `adapt` has made fit for the devices there, or has
/// put in the place of ours.
///
/// # Errors
/// [`Violation::RunFailed`] if the runtime gives up.
pub fn run_on(
    program: &Program,
    configuration: &Configuration,
    place: impl FnOnce(&ClusterConfig) -> Run<'static>,
    adapt: impl Fn(KernelTask<'_>, Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel> + Sync,
) -> Result<Vec<Observation>, Violation> {
    let config = ClusterConfig {
        nodes: configuration.nodes,
        devices: configuration.devices,
        device_memory: Some(configuration.device_memory),
        horizon_step: configuration.horizon_step,
        horizon_max_parallelism: configuration.horizon_max_parallelism,
        lookahead: configuration.lookahead,
        collectives: configuration.forwards.in_runs(),
        check: CheckLevel::Full,
        ..ClusterConfig::default()
    };
    let records: Vec<NodeSnapshots> = (0..config.nodes).map(|_| NodeSnapshots::default()).collect();
    let visits: Vec<Visits> = (0..config.nodes).map(|_| Visits::default()).collect();
    let driven = Mutex::new(Vec::new());
    place(&config)
        .execute(|frontend| {
            let node = frontend.node();
            driven.lock().expect("nobody panics while noting").push(node);
            let (record, visits) = (&records[node.slot()], &visits[node.slot()]);
            Driver::new(frontend, program, (record, visits), &adapt).run()
        })
        .map_err(|Failed(message)| Violation::RunFailed { message })?;
    for node in driven.into_inner().expect("nobody panics while noting") {
        visits[node.slot()].check(program, node, config.nodes)?;
    }
    Ok(records.iter().map(NodeSnapshots::observation).collect())
}

/// A task that runs on devices, with what there is to know of it.
#[derive(Clone, Copy, Debug)]
pub struct KernelTask<'a> {
    /// Its position in the program.
    pub op: usize,
    /// What it is.
    pub task: &'a TaskOp,
    /// The program's buffers, by id.
    pub buffers: &'a [BufferSpec],
}

/// The snapshots of one node, in order of their arrival.
#[derive(Clone, Debug, Default)]
struct NodeSnapshots(Arc<Mutex<Vec<ObservedElements>>>);

impl NodeSnapshots {
    fn observation(&self) -> Observation {
        let mut snapshots = self.0.lock().expect("nobody panics while recording").clone();
        // Fences may complete in any order; those of one statement are stored
        // together, in order of its accesses.
        snapshots.sort_by_key(|snapshot| snapshot.op);
        Observation { snapshots }
    }

    fn publisher(&self) -> impl FnOnce(Vec<ObservedElements>) + Send + 'static {
        let record = self.0.clone();
        move |snapshots| {
            record.lock().expect("nobody panics while recording").extend(snapshots);
        }
    }
}

/// The main thread of one node.
struct Driver<'a> {
    frontend: &'a NodeFrontend,
    program: &'a Program,
    record: &'a NodeSnapshots,
    visits: &'a Visits,
    buffers: Vec<BufferSpec>,
    lowering: MapperTable,
    adapt: &'a Adapt<'a>,
}

type Adapt<'a> = dyn Fn(KernelTask<'_>, Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel> + Sync + 'a;

impl<'a> Driver<'a> {
    fn new(
        frontend: &'a NodeFrontend,
        program: &'a Program,
        (record, visits): (&'a NodeSnapshots, &'a Visits),
        adapt: &'a Adapt<'a>,
    ) -> Self {
        let (buffers, lowering) = (program.buffers(), MapperTable::default());
        Self { frontend, program, record, visits, buffers, lowering, adapt }
    }

    fn run(mut self) -> Result<(), Failed> {
        for _ in 0..self.program.objects() {
            let _ = self.frontend.create_object(None);
        }
        let mut next_buffer = BufferId::from_index(0);
        for (index, op) in self.program.ops.iter().enumerate() {
            match op {
                Op::Create(spec) => {
                    self.create(next_buffer, spec);
                    next_buffer = next_buffer.next();
                }
                Op::Task(task) => self.submit(index, task)?,
                Op::Barrier => self.frontend.barrier()?,
                Op::Drop(buffer) => self.frontend.drop_buffer(*buffer),
            }
        }
        Ok(())
    }

    fn create(&self, expected: BufferId, spec: &BufferSpec) {
        let initial = spec.host_initialized.then(|| {
            let elements = element::volume(&spec.extent);
            let words = initial_contents(expected.index(), elements, spec.words);
            HostData::new(words)
        });
        let id = self.frontend.create_buffer(spec.to_new_buffer(), initial);
        assert_eq!(id, expected, "buffer ids are dense in order of creation");
    }

    fn submit(&mut self, op: usize, task: &TaskOp) -> Result<(), Failed> {
        let kernel = HashKernel::new(op, task, &self.buffers, &mut self.lowering)
            .visiting(self.visits.of(op, task));
        let payload = match task.kind {
            TaskKind::Device(_) => {
                let task = KernelTask { op, task, buffers: &self.buffers };
                Payload::Kernel((self.adapt)(task, Arc::new(kernel)))
            }
            TaskKind::HostOnce { .. } | TaskKind::Combine => {
                Payload::Host(kernel.into_host_function())
            }
            TaskKind::HostSplit { .. } => Payload::HostSplit(kernel.into_host_kernel()),
            TaskKind::Fence => {
                Payload::Host(kernel.into_snapshot_function(self.record.publisher()))
            }
        };
        self.frontend.submit(task.to_task_spec(&mut self.lowering), payload)?;
        Ok(())
    }
}

/// Any error of a run, as text.
#[derive(Debug)]
struct Failed(String);

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        Self(error.to_string())
    }
}

impl From<SubmitError> for Failed {
    fn from(error: SubmitError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
