//! The user's program, once on each node of this process, and what comes of it.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use celerity_cdag::NodeId;

use crate::contain::{end, text_of};
use crate::error::{RunError, text_of_error};
use crate::frontend::NodeFrontend;
use crate::threads::no_threads;

/// What the program has come to on one node; the outer error is its panic.
type Outcome<R, E> = thread::Result<Result<R, E>>;

/// Runs `body` on all nodes, on the first one in this thread, and returns what the run
/// has come to.
pub(super) fn run_program<R, E>(
    frontends: &[Arc<NodeFrontend>],
    body: &(impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync),
) -> Outcome<R, E>
where
    R: Send,
    E: From<RunError> + Display + Send,
{
    let (first, others) = frontends.split_first().expect("a process has a node");
    let mut outcomes = thread::scope(|users| {
        let others = start_others(users, others, body);
        let mut outcomes = vec![(first.node(), drive(first, body))];
        let joined = others.into_iter().map(|(node, it)| (node, it.join().and_then(|it| it)));
        outcomes.extend(joined);
        outcomes
    });
    let decisive = decisive(&outcomes, first.error());
    let (_, outcome) = outcomes.swap_remove(decisive);
    outcomes.into_iter().for_each(|other| drop(end(other)));
    outcome
}

/// Whose outcome is that of the run: of the node whose program has failed first; otherwise
/// of the first one, which also tells what failed elsewhere; unless all is well there.
fn decisive<R, E>(outcomes: &[(NodeId, Outcome<R, E>)], error: Option<RunError>) -> usize {
    let has_failed = |outcome: &Outcome<R, E>| !matches!(outcome, Ok(Ok(_)));
    let first = match error {
        Some(RunError::Stopped { node, .. }) => {
            outcomes.iter().position(|(other, outcome)| *other == node && has_failed(outcome))
        }
        _ => None,
    };
    first.or_else(|| outcomes.iter().position(|(_, outcome)| has_failed(outcome))).unwrap_or(0)
}

/// Calls `body` on the other nodes, as far as there are threads. Their failures end the
/// run.
fn start_others<'scope, R, E>(
    scope: &'scope Scope<'scope, '_>,
    frontends: &'scope [Arc<NodeFrontend>],
    body: &'scope (impl Fn(&Arc<NodeFrontend>) -> Result<R, E> + Sync),
) -> Vec<(NodeId, ScopedJoinHandle<'scope, Outcome<R, E>>)>
where
    R: Send + 'scope,
    E: From<RunError> + Display + Send + 'scope,
{
    let mut threads = Vec::new();
    for frontend in frontends {
        let node = frontend.node();
        let thread = thread::Builder::new().name(format!("celerity-{node}"));
        match thread.spawn_scoped(scope, || drive(frontend, body)) {
            Ok(thread) => threads.push((node, thread)),
            Err(error) => {
                frontend.abort(no_threads(&error.to_string()));
                frontend.close();
            }
        }
    }
    threads
}

/// One node's program from start to end.
fn drive<R, E>(
    frontend: &Arc<NodeFrontend>,
    body: &impl Fn(&Arc<NodeFrontend>) -> Result<R, E>,
) -> Outcome<R, E>
where
    E: From<RunError> + Display,
{
    let node = frontend.node();
    let outcome = catch_unwind(AssertUnwindSafe(|| body(frontend)));
    let outcome = match outcome {
        Ok(Ok(value)) => match frontend.shutdown() {
            Ok(()) => Ok(Ok(value)),
            // Both are the program's own, and may panic. The node must hear of its end in any case.
            Err(error) => catch_unwind(AssertUnwindSafe(|| {
                drop(value);
                Err(E::from(error))
            })),
        },
        Ok(Err(error)) => {
            frontend.abort(RunError::Stopped { node, message: text_of_error(&error) });
            Ok(Err(error))
        }
        Err(panic) => {
            let message = format!("the program panicked: {}", text_of(&*panic));
            frontend.abort(RunError::Stopped { node, message });
            Err(panic)
        }
    };
    frontend.close();
    outcome
}
