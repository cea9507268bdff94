//! A whole run: starts the nodes of an in-process cluster, calls user code once
//! per node, and ends it all, whatever happens.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use celerity_cdag::NodeId;

use crate::backend::CpuBackend;
use crate::check::ScheduleCheck;
use crate::communicator::{Communicator as _, LocalCommunicator, local_cluster};
use crate::config::ClusterConfig;
use crate::error::{RunError, panic_message};
use crate::frontend::NodeFrontend;
use crate::node::NodeMachine;
use crate::observe::Observer;
use crate::pool::CpuPool;
use crate::progress::Progress;
use crate::reactor::Reactor;
use crate::threads::{no_threads, refuse_inside_jobs};

/// Runs a program on a cluster of `config.nodes` nodes in this process.
///
/// `body` is called once per node: for node 0 on the calling thread, for the
/// others on threads of their own. When it has returned, the node completes
/// everything that was submitted. The value is that of node 0.
///
/// Nobody hangs: if a task panics or cannot be run, or `body` fails or panics
/// on any node, all nodes stop, calls of the frontends return the run's first
/// error, and `run_cluster` returns when nothing runs any more. Runs in one
/// process are independent; one that has failed does not disturb the next.
///
/// # Errors
/// Before `body` is called: [`RunError::Start`] if the configuration is
/// [invalid](ClusterConfig::validate), if the system gives no threads, or if a
/// kernel or host task calls this, as it would wait on threads that it occupies.
///
/// Later, in this order: the error that `body` returned on node 0; otherwise
/// the run's first error, in time, of any node.
///
/// # Panics
/// With the panic of `body` on node 0, once everything has stopped.
pub fn run_cluster<R, E>(
    config: &ClusterConfig,
    body: impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync,
) -> Result<R, E>
where
    R: Send,
    E: From<RunError> + Display + Send,
{
    run_cluster_observed(config, |_| None, body)
}

/// As [`run_cluster`], while `observer` may give each node somebody who is
/// shown its graphs.
///
/// # Errors
/// As [`run_cluster`], and [`RunError::Schedule`] if an observer objects.
///
/// # Panics
/// As [`run_cluster`].
pub fn run_cluster_observed<R, E>(
    config: &ClusterConfig,
    observer: impl Fn(NodeId) -> Option<Box<dyn Observer>>,
    body: impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync,
) -> Result<R, E>
where
    R: Send,
    E: From<RunError> + Display + Send,
{
    let cluster = Cluster::new(config)?;
    let nodes = cluster.nodes(observer);
    thread::scope(|scope| {
        let reactor = cluster.start(scope, nodes)?;
        let others = start_others(scope, &cluster.frontends[1..], &body);
        let outcome = drive(&cluster.frontends[0], &body);
        others.into_iter().for_each(|node| drop(node.join()));
        drop(reactor.join());
        match outcome {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    })
}

struct Cluster {
    config: ClusterConfig,
    pool: Arc<CpuPool>,
    reactor: Reactor,
    frontends: Vec<Arc<NodeFrontend>>,
    progress: Vec<Arc<Progress>>,
}

impl Cluster {
    fn new(config: &ClusterConfig) -> Result<Self, RunError> {
        refuse_inside_jobs()?;
        config.validate()?;
        let pool = CpuPool::of_process()?;
        let reactor = Reactor::new();
        let progress: Vec<_> = (0..config.nodes).map(|_| Arc::<Progress>::default()).collect();
        let frontends = progress.iter().enumerate().map(|(index, progress)| {
            let node = NodeId::from_index(index as u64);
            let (submitter, rounds) = (reactor.submitter(), reactor.rounds());
            Arc::new(NodeFrontend::new(config, node, progress.clone(), submitter, rounds))
        });
        let frontends = frontends.collect();
        Ok(Self { config: config.clone(), pool, reactor, frontends, progress })
    }

    /// Starts the thread that polls all nodes.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        nodes: Vec<NodeMachine>,
    ) -> Result<ScopedJoinHandle<'scope, ()>, RunError> {
        let thread = thread::Builder::new().name("celerity-reactor".to_owned());
        thread
            .spawn_scoped(scope, || self.react(nodes))
            .map_err(|error| no_threads(&error.to_string()))
    }

    fn react(&self, mut nodes: Vec<NodeMachine>) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.reactor.run(&mut nodes)));
        if let Err(panic) = outcome {
            let message = panic_message(&*panic);
            for progress in &self.progress {
                progress.fail(RunError::Internal { message: message.clone() });
            }
            // Only now, as whoever waits for a payload looks for the error.
            drop(nodes);
            self.reactor.discard_until_closed(self.config.nodes);
        }
    }

    fn nodes(&self, observer: impl Fn(NodeId) -> Option<Box<dyn Observer>>) -> Vec<NodeMachine> {
        let wakers = (0..self.config.nodes).map(|_| self.reactor.waker()).collect();
        let ends = local_cluster(wakers, &self.pool);
        let mut checks = ScheduleCheck::of_all(&self.config).into_iter();
        let pairs = ends.into_iter().zip(&self.progress);
        pairs
            .map(|(end, progress)| {
                let check = checks.next().map(|check| Box::new(check) as Box<dyn Observer>);
                let observers = check.into_iter().chain(observer(end.node()));
                let node = self.node(end, progress);
                observers.fold(node, NodeMachine::with_observer)
            })
            .collect()
    }

    fn node(&self, end: LocalCommunicator, progress: &Arc<Progress>) -> NodeMachine {
        let ClusterConfig { devices, device_memory_limit, lookahead, .. } = self.config;
        let waker = self.reactor.waker();
        let backend = CpuBackend::new(devices, device_memory_limit, &self.pool, waker);
        NodeMachine::new(devices, Box::new(end), Box::new(backend), progress.clone())
            .with_lookahead(lookahead)
    }
}

/// Calls `body` on the other nodes. Their values are dropped, their failures
/// end the run.
fn start_others<'scope, R, E>(
    scope: &'scope Scope<'scope, '_>,
    frontends: &'scope [Arc<NodeFrontend>],
    body: &'scope (impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync),
) -> Vec<ScopedJoinHandle<'scope, ()>>
where
    R: Send,
    E: From<RunError> + Display + Send,
{
    let mut threads = Vec::new();
    for frontend in frontends {
        let thread = thread::Builder::new().name(format!("celerity-{}", frontend.node()));
        match thread.spawn_scoped(scope, || drop(drive(frontend, body))) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                frontend.abort(no_threads(&error.to_string()));
                frontend.close();
            }
        }
    }
    threads
}

/// One node's user code from start to end; the outer error is its panic.
fn drive<R, E>(
    frontend: &Arc<NodeFrontend>,
    body: &impl Fn(&Arc<NodeFrontend>) -> Result<R, E>,
) -> thread::Result<Result<R, E>>
where
    E: From<RunError> + Display,
{
    let node = frontend.node();
    let outcome = catch_unwind(AssertUnwindSafe(|| body(frontend)));
    let outcome = match outcome {
        Ok(Ok(value)) => Ok(frontend.shutdown().map(|()| value).map_err(E::from)),
        Ok(Err(error)) => {
            frontend.abort(RunError::Stopped { node, message: error.to_string() });
            Ok(Err(error))
        }
        Err(panic) => {
            let message = format!("the program panicked: {}", panic_message(&*panic));
            frontend.abort(RunError::Stopped { node, message });
            Err(panic)
        }
    };
    frontend.close();
    outcome
}
