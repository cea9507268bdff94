//! Which kernels, and host functions that never block, are so short that waking a thread for them takes longer than they do, and
//! which are over soon enough for a thread that has other things to do. Learns it from how
//! long they took; knows neither lanes nor threads.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::backend::Job;
use crate::polling::{BRIEF_KERNEL, SHORT_KERNEL};
use crate::window::IdMap;
use crate::work::Computing;

/// So many runs in a row must have been short before a kernel counts as short. Enough that
/// a kernel which is so now and then hardly ever does. It is brief if the last run was.
pub(super) const TRIALS: u32 = 4;

/// How long a kernel will probably take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// At most as long as it takes to wake a thread.
    Short,
    /// At most as long as a node's thread may be away.
    Brief,
    /// Longer, or nothing is known.
    Any,
}

/// How long chunks of one size have taken with one kernel.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Short runs since the last one that was not.
    short: AtomicU32,
    /// Whether the last run was brief.
    brief: AtomicBool,
}

impl Pace {
    /// What the next run is likely to be.
    pub(super) fn length(&self) -> Length {
        if self.short.load(Ordering::Relaxed) >= TRIALS {
            Length::Short
        } else if self.brief.load(Ordering::Relaxed) {
            Length::Brief
        } else {
            Length::Any
        }
    }

    /// Runs the kernel, and learns from it.
    pub(super) fn timed<R>(&self, run: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = run();
        self.took(start.elapsed());
        result
    }

    pub(super) fn took(&self, time: Duration) {
        // Runs on several lanes may lose a count to each other, which does no harm.
        let short = self.short.load(Ordering::Relaxed);
        let short = if time <= SHORT_KERNEL { short.saturating_add(1) } else { 0 };
        self.short.store(short, Ordering::Relaxed);
        self.brief.store(time <= BRIEF_KERNEL, Ordering::Relaxed);
    }
}

/// The paces of all kernels and host functions that have run on one thread and never block. As many as a program has such
/// kernels, times the powers of two among the sizes of their chunks.
#[derive(Default)]
pub(super) struct Paces {
    paces: IdMap<(TypeId, u32), Arc<Pace>>,
    /// Whether all kernels run on one thread, also those that could use several.
    one_thread: bool,
}

impl Paces {
    /// From now on no kernel has more than one thread.
    pub(super) fn use_one_thread(&mut self) {
        self.one_thread = true;
    }

    /// That of a job; `None` if it may take any time, or uses other threads.
    pub(super) fn of(&mut self, job: &Job) -> Option<Arc<Pace>> {
        let (of, steps) = match job {
            Job::Kernel { kernel, chunk, .. } if self.one_thread || kernel.is_serial(chunk) => {
                let kernel: &dyn Any = &**kernel;
                (kernel.type_id(), chunk.volume())
            }
            Job::Host { function, .. } => {
                let Computing { of, steps } = function.is_computing()?;
                (of, steps)
            }
            Job::Kernel { .. } | Job::Copy { .. } => return None,
        };
        let size = u64::BITS - steps.leading_zeros();
        Some(self.paces.entry((of, size)).or_default().clone())
    }
}

#[cfg(test)]
mod tests {
    use celerity_regions::Box3;

    use super::*;
    use crate::backend::Arguments;
    use crate::bound::BoundMemory;
    use crate::work::DeviceKernel;

    struct Serial;
    impl DeviceKernel for Serial {
        unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {}

        fn is_serial(&self, chunk: &Box3) -> bool {
            chunk.volume() < 64
        }
    }

    struct Other;
    impl DeviceKernel for Other {
        unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {}

        fn is_serial(&self, _: &Box3) -> bool {
            true
        }
    }

    fn job(kernel: impl DeviceKernel, items: usize) -> Job {
        let arguments = Arguments::new(Box::default(), |_| None);
        Job::Kernel { kernel: Arc::new(kernel), chunk: Box3::from_range([items]), arguments }
    }

    #[test]
    fn launches_of_one_kernel_with_similar_sizes_share_a_pace() {
        let mut paces = Paces::default();
        let mut of = |job: Job| paces.of(&job);
        let pace = of(job(Serial, 32)).expect("it is serial");
        assert!(Arc::ptr_eq(&pace, &of(job(Serial, 63)).unwrap()));
        assert!(!Arc::ptr_eq(&pace, &of(job(Serial, 31)).unwrap()), "half as many items");
        assert!(!Arc::ptr_eq(&pace, &of(job(Other, 32)).unwrap()), "another kernel");
        assert!(of(job(Serial, 64)).is_none(), "spread over other threads");
        paces.use_one_thread();
        assert!(paces.of(&job(Serial, 64)).is_some(), "there are no other threads");
    }

    #[test]
    fn a_kernel_is_short_after_some_short_runs_in_a_row() {
        let pace = Pace::default();
        assert_eq!(pace.length(), Length::Any);
        for _ in 0..3 {
            for _ in 0..TRIALS {
                assert_ne!(pace.length(), Length::Short);
                pace.took(SHORT_KERNEL);
            }
            assert_eq!(pace.length(), Length::Short);
            pace.took(SHORT_KERNEL + Duration::from_nanos(1));
            assert_eq!(pace.length(), Length::Brief);
        }
    }

    #[test]
    fn a_kernel_is_brief_if_its_last_run_was() {
        let pace = Pace::default();
        for _ in 0..3 {
            pace.took(BRIEF_KERNEL);
            assert_eq!(pace.length(), Length::Brief);
            pace.took(BRIEF_KERNEL + Duration::from_nanos(1));
            assert_eq!(pace.length(), Length::Any);
        }
    }
}
