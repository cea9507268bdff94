//! What a run has to say beside its result: that it stands still, or is slower than
//! it could be. Knows who is told, and not how it was found out.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::NodeId;

use crate::contain::caught;
use crate::error::{CommunicationError, RunError};
use crate::stall::Stall;
use crate::starvation::Starvation;

/// Something that a user may want to know. The run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A node has made no progress for a while.
    Stalled(Stall),
    /// A run that has failed has not ended on a node.
    Lingering(Lingering),
    /// A thread of a node is in code of the user's that does not return.
    Blocked(Blocked),
    /// A node has found something at a look of its own that nobody had woken it for:
    /// a defect of a backend or communicator, unless the process was stopped.
    Overslept {
        /// The node that is told of.
        node: NodeId,
        /// How long it had been waiting.
        lasting: Duration,
    },
    /// At the end of a run: a node's devices have stood idle for a good part of it,
    /// because the work for them was not scheduled in time. Not where all of a schedule is checked before it runs.
    Starved {
        /// The node that is told of.
        node: NodeId,
        /// How long that was.
        starvation: Starvation,
        /// How long the run took.
        run: Duration,
    },
    /// Other processes do not come to where this one is, but live.
    Alone {
        /// The node that waits for them.
        node: NodeId,
        /// Which run it waits to begin, counted from 1; `None` if it waits to end.
        run: Option<u64>,
        /// How long it has waited.
        lasting: Duration,
        /// Whom it waits for, as far as it knows.
        missing: Vec<NodeId>,
    },
    /// At the end of the process: MPI is not finalised, since a node was lost after the last run.
    NotFinalised {
        /// The node that ends.
        node: NodeId,
        /// What was lost, if that is known.
        loss: Option<Box<CommunicationError>>,
    },
    /// The run's trace is not complete.
    Trace {
        /// What is wrong with it.
        message: String,
    },
}

/// A node on which a run that has failed does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lingering {
    /// The node that is told of.
    pub node: NodeId,
    /// Why the run is to end.
    pub error: Box<RunError>,
    /// For how long that has been known there.
    pub lasting: Duration,
    /// What has to end before, in words.
    pub waits_for: Vec<String>,
}

/// A thread that is where it cannot do anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The node that the thread belongs to.
    pub node: NodeId,
    /// The code that it is in, as in `a range mapper of T3 "step" at src/main.rs:40`.
    pub inside: String,
    /// How long that was.
    pub lasting: Duration,
    /// What does not happen meanwhile, from a semicolon on; empty if everything else does.
    pub consequence: String,
    /// By which signal the run was interrupted, if it was.
    pub interrupted: Option<String>,
}

/// What who has pressed Ctrl-C can do.
const AGAIN: &str = "; interrupt again to end at once";

impl fmt::Display for Lingering {
    /// `interrupted by SIGINT; N2 waits for kernel of T257 "step" on D0, which has been running
    /// for 1.0s on thread celerity-1; interrupt again to end at once`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, error, waits_for, .. } = self;
        let interrupted = matches!(**error, RunError::Interrupted { .. });
        match interrupted {
            true => write!(f, "{error}")?,
            false => write!(f, "the run has failed: {error}")?,
        }
        write!(f, "; {node} waits for ")?;
        for (nth, one) in waits_for.iter().enumerate() {
            write!(f, "{}{one}", if nth == 0 { "" } else { "; and for " })?;
        }
        f.write_str(if interrupted { AGAIN } else { "" })
    }
}

impl fmt::Display for Blocked {
    /// `N0 has been in a range mapper of T3 "step" at src/main.rs:40, or with the boxes that one names, for 30.0s; meanwhile ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, inside, lasting, consequence, interrupted } = self;
        if let Some(signal) = interrupted {
            write!(f, "interrupted by {signal}; ")?;
        }
        write!(f, "{node} has been in {inside} for {lasting:.1?}{consequence}")?;
        f.write_str(if interrupted.is_some() { AGAIN } else { "" })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled(stall) => stall.fmt(f),
            Self::Lingering(lingering) => lingering.fmt(f),
            Self::Blocked(blocked) => blocked.fmt(f),
            Self::Overslept { node, lasting } => write!(
                f,
                "nothing woke {node} for {lasting:.1?}, though something had happened: a wake-up \
                 was lost, or the process was stopped"
            ),
            Self::Starved { node, starvation, run } => starved(f, *node, starvation, *run),
            Self::Alone { node, run, lasting, missing } => {
                let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
                let missing = match missing.len() {
                    0 => "other processes".to_owned(),
                    1..=8 => missing.join(", "),
                    many => format!("{many} other processes"),
                };
                write!(f, "{node} has waited {lasting:.1?} for {missing} ")?;
                match run {
                    Some(run) => write!(f, "to come to run {run}"),
                    None => f.write_str("to end"),
                }
            }
            Self::NotFinalised { node, loss } => {
                write!(f, "{node} ends without finalising MPI, which launchers take for a crash")?;
                loss.iter().try_for_each(|loss| write!(f, ": {loss}"))
            }
            Self::Trace { message } => f.write_str(message),
        }
    }
}

fn starved(
    f: &mut fmt::Formatter<'_>,
    node: NodeId,
    starvation: &Starvation,
    run: Duration,
) -> fmt::Result {
    let Starvation { unscheduled, held_back } = starvation;
    let percent = 100.0 * starvation.total().as_secs_f64() / run.as_secs_f64().max(1e-9);
    write!(f, "the devices of {node} stood idle for {percent:.0} % of {run:.2?}: ")?;
    write!(f, "{unscheduled:.2?} while submitted tasks were not scheduled yet")?;
    if !held_back.is_zero() {
        write!(f, ", {held_back:.2?} while tasks were held back to see what follows")?;
    }
    f.write_str("; fewer and larger tasks help, and flushing where the program pauses")
}

/// Who is told of [`Warning`]s, on a thread of the runtime: it must not block.
/// Without anybody, they are printed to standard error.
///
/// Whoever subscribes to `tracing` gets them as events, too.
#[derive(Clone, Default)]
pub struct WarningSink(Option<Arc<Listener>>);

type Listener = dyn Fn(&Warning) + Send + Sync;

impl WarningSink {
    /// A sink that calls `listener` with each warning.
    #[must_use]
    pub fn new(listener: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells whoever is told. A listener that panics is not called again for this warning; nor
    /// does the run fail.
    pub fn warn(&self, warning: &Warning) {
        tracing::warn!("{warning}");
        match &self.0 {
            Some(listener) => drop(caught(|| listener(warning))),
            // Nobody reads it, or the disk is full: no reason to fail.
            None => drop(writeln!(io::stderr(), "celerity: {warning}")),
        }
    }
}

impl fmt::Debug for WarningSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "WarningSink(..)" } else { "WarningSink(stderr)" })
    }
}

impl PartialEq for WarningSink {
    /// Whether both tell the same listener.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for WarningSink {}
