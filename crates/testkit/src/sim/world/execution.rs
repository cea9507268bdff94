//! How a simulated job runs: for real, but at a moment of the simulator's
//! choice between its start and its end. Knows neither lanes nor time.
#![allow(unsafe_code)]

use celerity_executor::{
    Arguments, BasePtr, BoundMemory, ElementArray, Job, JobFailure, TaskError, copy_region,
};
use celerity_regions::Box3;

use super::memory::{Memory, Staged};

/// When a job reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Style {
    /// All of it when it starts: whoever must come before has to be done.
    Early,
    /// All of it when it ends: whoever comes after must not have begun.
    Late,
    /// Reads when it starts, writes when it ends: both.
    Stretched,
    /// Does nothing and fails: a fault of the simulation. Host functions return an error, the
    /// others panic.
    Fails,
}

/// How a job failed, if it did.
pub(in crate::sim) type Outcome = Option<JobFailure>;

/// A job between its start and its end.
pub(in crate::sim) enum Execution {
    /// It has run.
    Done(Outcome),
    /// It has not.
    Pending(Job),
    /// A copy has been read.
    Read { staged: Vec<Staged>, target: ElementArray },
    /// A kernel or host function has run on copies of its memory.
    Shadowed { shadows: Vec<Shadow>, outcome: Outcome },
}

/// A copy of an allocation that stands in for it.
pub(in crate::sim) struct Shadow {
    base: BasePtr,
    before: Vec<u64>,
    words: Vec<u64>,
}

/// What faults of the simulation say.
pub(in crate::sim) const FAULT: &str = "a simulated fault";

impl Execution {
    /// Starts a job. The error names memory that does not exist any more; a job
    /// that uses such is not run.
    pub(in crate::sim) fn start(job: Job, style: Style, memory: &Memory) -> Result<Self, String> {
        check(&job, memory)?;
        Ok(match style {
            Style::Early => Self::Done(run(job)),
            Style::Late => Self::Pending(job),
            Style::Stretched => stretch(job, memory),
            Style::Fails => Self::Done(Some(match job {
                Job::Host { .. } => JobFailure::Returned(TaskError::new(FAULT)),
                _ => JobFailure::Panicked(FAULT.to_owned()),
            })),
        })
    }

    /// Ends a job. The error is as for [`start`](Self::start).
    pub(in crate::sim) fn end(self, memory: &mut Memory) -> Result<Outcome, String> {
        match self {
            Self::Done(outcome) => Ok(outcome),
            Self::Pending(job) => {
                check(&job, memory)?;
                Ok(run(job))
            }
            Self::Read { staged, target } => {
                check_base(target.base, memory)?;
                // SAFETY: `Backend::enqueue` promises live memory without races
                // until the job is reported, and nothing runs at the same time.
                staged.into_iter().for_each(|part| unsafe { part.write(target) });
                Ok(None)
            }
            Self::Shadowed { shadows, outcome } => {
                for Shadow { base, before, words } in shadows {
                    check_base(base, memory)?;
                    memory.write_changes(base, &before, &words);
                }
                Ok(outcome)
            }
        }
    }
}

fn stretch(job: Job, memory: &Memory) -> Execution {
    match job {
        Job::Copy { source, target, region, elem_size } => {
            // SAFETY: as for the write in `end`.
            let read = |part: &Box3| unsafe { Staged::read(source, *part, elem_size) };
            let staged = region.boxes().iter().map(read).collect();
            Execution::Read { staged, target }
        }
        Job::Kernel { kernel, chunk, arguments } => shadowed(&arguments, memory, |bound| {
            // SAFETY: copies of what the job is bound to, which nobody else has.
            unsafe { kernel.run(&chunk, bound) };
            Ok(())
        }),
        Job::Host { function, arguments } => {
            // SAFETY: as above.
            shadowed(&arguments, memory, |bound| unsafe { function.call(bound) })
        }
    }
}

/// Runs `body` on copies of the memory that it is bound to.
fn shadowed(
    arguments: &Arguments,
    memory: &Memory,
    body: impl FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError>,
) -> Execution {
    // SAFETY: `Backend::enqueue` promises live memory, of which copies are made.
    let mut bound = unsafe { arguments.bind() };
    let mut shadows = Vec::new();
    for memory_of in bound.iter_mut().filter(|bound| !bound.extent().is_empty()) {
        let base = BasePtr::of_raw(memory_of.base()).expect("bound memory has an address");
        let before = memory.snapshot(base).expect("jobs are bound to memory of the simulation");
        let mut words = before.clone();
        let copy = BasePtr::of_mut_slice(bytemuck::cast_slice_mut(&mut words)).as_ptr();
        // SAFETY: as long as the memory that it is a copy of, and this call's alone.
        *memory_of = unsafe { BoundMemory::new(copy, *memory_of.extent(), memory_of.region()) };
        shadows.push(Shadow { base, before, words });
    }
    let outcome = JobFailure::of(|| body(&bound));
    Execution::Shadowed { shadows, outcome }
}

fn run(job: Job) -> Outcome {
    JobFailure::of(|| {
        match job {
            // SAFETY: `Backend::enqueue` promises live memory, which nobody else uses as long as
            // the job has not been reported.
            Job::Kernel { kernel, chunk, arguments } => unsafe {
                kernel.run(&chunk, &arguments.bind());
            },
            Job::Host { function, arguments } => {
                // SAFETY: as above.
                return unsafe { function.call(&arguments.bind()) };
            }
            Job::Copy { source, target, region, elem_size } => {
                // SAFETY: as for the write in `end`.
                unsafe { copy_region(source, target, &region, elem_size) }
            }
        }
        Ok(())
    })
}

fn check(job: &Job, memory: &Memory) -> Result<(), String> {
    match job {
        Job::Copy { source, target, .. } => {
            check_base(source.base, memory)?;
            check_base(target.base, memory)
        }
        Job::Kernel { arguments, .. } | Job::Host { arguments, .. } => {
            arguments.used_bases().try_for_each(|base| check_base(base, memory))
        }
    }
}

fn check_base(base: BasePtr, memory: &Memory) -> Result<(), String> {
    match memory.is_gone(base) {
        true => Err("uses memory that has been freed".to_owned()),
        false => Ok(()),
    }
}
