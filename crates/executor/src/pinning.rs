//! Which processor cores the threads of a run stay on. Owns how cores are dealt to
//! threads, and undoes it. Refuses to know where the cores come from, and what
//! threads do there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};

use crate::error::RunError;
use crate::sync::lock;

#[cfg_attr(not(target_os = "linux"), path = "pinning/none.rs")]
#[cfg_attr(target_os = "linux", path = "pinning/linux.rs")]
mod system;

pub(crate) use system::{ThreadId, this_thread};

thread_local! {
    /// Where the calling thread was allowed to run before it was pinned.
    static BEFORE: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
}

/// The cores that the calling thread may run on, by number, in order; those of
/// this process, unless the thread has been pinned.
///
/// # Errors
/// [`RunError::Start`] if the system does not tell.
pub fn available_cores() -> Result<Vec<usize>, RunError> {
    system::cores_of(this_thread()).map_err(|error| cannot("tell its cores", &error))
}

/// How many cores the system has, whoever may use them.
///
/// # Errors
/// [`RunError::Start`] if the system does not tell.
pub fn online_cores() -> Result<usize, RunError> {
    system::online().map_err(|error| cannot("tell all cores", &error))
}

/// The cores of a run: some for the threads of the engine, the others for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores {
    /// One for each thread of the engine, or all for all if there are not enough;
    /// none if threads may go where they like.
    engine: Vec<Vec<usize>>,
    jobs: Vec<usize>,
}

impl Cores {
    /// Deals `cores` to so many threads of an engine, one core each, and what is
    /// left to jobs. If nothing would be left, all share all.
    pub(crate) fn deal(cores: &[usize], threads: usize) -> Self {
        if cores.len() <= threads {
            return Self { engine: vec![cores.to_vec(); threads], jobs: cores.to_vec() };
        }
        let (engine, jobs) = cores.split_at(threads);
        Self { engine: engine.iter().map(|&core| vec![core]).collect(), jobs: jobs.to_vec() }
    }

    /// Finds out whether there are such cores, for the calling thread.
    ///
    /// # Errors
    /// [`RunError::Start`] names the first that there is not.
    pub(crate) fn check(cores: &[usize]) -> Result<(), RunError> {
        let before = available_cores()?;
        let tried = cores.iter().try_for_each(|&core| stay(this_thread(), &[core]));
        stay(this_thread(), &before)?;
        tried
    }

    /// Lets the calling thread, one of the engine's, stay on its cores.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system refuses.
    pub(crate) fn pin_engine(&self, thread: usize) -> Result<(), RunError> {
        let Some(cores) = self.engine.get(thread).filter(|cores| !cores.is_empty()) else {
            return Ok(());
        };
        let before = available_cores()?;
        BEFORE.set(Some(before));
        stay(this_thread(), cores)
    }

    /// Lets threads that run jobs stay on the cores for jobs, until the result is
    /// dropped.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system refuses.
    pub(crate) fn pin_jobs(&self, threads: &[ThreadId]) -> Result<PinnedJobs, RunError> {
        let cores: Arc<[usize]> = self.jobs.as_slice().into();
        let mut pinned = PinnedJobs { threads: Vec::new(), cores: cores.clone() };
        if cores.is_empty() {
            return Ok(pinned);
        }
        // Given back before what has been pinned, where something fails.
        let mut places = lock(&PLACES);
        for &thread in threads {
            if let Entry::Vacant(new) = places.entry(thread) {
                let before =
                    system::cores_of(thread).map_err(|error| cannot("tell its cores", &error))?;
                new.insert(Place { before, wanted: Vec::new() });
            }
            places.entry(thread).and_modify(|place| place.wanted.push(cores.clone()));
            pinned.threads.push(thread);
            stay(thread, &cores)?;
        }
        Ok(pinned)
    }
}

/// Where threads are that runs have pinned: those of the pool, which runs share.
static PLACES: Mutex<BTreeMap<ThreadId, Place>> = Mutex::new(BTreeMap::new());

/// Where a thread was allowed to run at first, and where the runs want it that go on, the newest last.
struct Place {
    before: Vec<usize>,
    wanted: Vec<Arc<[usize]>>,
}

/// Threads that are pinned while this lives.
pub(crate) struct PinnedJobs {
    threads: Vec<ThreadId>,
    /// Told from those of others by their address.
    cores: Arc<[usize]>,
}

impl Drop for PinnedJobs {
    fn drop(&mut self) {
        let mut places = lock(&PLACES);
        for &thread in &self.threads {
            let Entry::Occupied(mut place) = places.entry(thread) else { continue };
            place.get_mut().wanted.retain(|cores| !Arc::ptr_eq(cores, &self.cores));
            // It could go there before; if not any more, it stays where it is.
            match place.get().wanted.last() {
                Some(cores) => drop(stay(thread, cores)),
                None => drop(stay(thread, &place.remove().before)),
            }
        }
    }
}

/// Where a thread may run that the calling thread starts for jobs: not where a
/// pinned one has to stay, which it would inherit.
pub(crate) fn for_new_thread() -> Option<Vec<usize>> {
    BEFORE.with_borrow(Clone::clone)
}

/// Lets the calling thread run on `cores`, as far as the system agrees: that it
/// was allowed to before is known.
pub(crate) fn release(cores: &[usize]) {
    drop(stay(this_thread(), cores));
}

fn stay(thread: ThreadId, cores: &[usize]) -> Result<(), RunError> {
    let text =
        |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let free =
        || system::cores_of(this_thread()).map_or("unknown cores".to_owned(), |free| text(&free));
    system::keep_on(thread, cores).map_err(|error| {
        cannot(&format!("stay on {}, where this one may run on {}", text(cores), free()), &error)
    })
}

fn cannot(what: &str, error: &std::io::Error) -> RunError {
    let what = format!("thread pinning (CELERITY_THREAD_PINNING): a thread cannot {what}: {error}");
    RunError::Start { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_comes_first_and_jobs_get_the_rest() {
        let dealt = Cores::deal(&[4, 5, 6, 7], 2);
        assert_eq!(dealt, Cores { engine: vec![vec![4], vec![5]], jobs: vec![6, 7] });
        let scarce = Cores::deal(&[4, 5], 2);
        assert_eq!(scarce, Cores { engine: vec![vec![4, 5]; 2], jobs: vec![4, 5] });
        assert_eq!(Cores::deal(&[], 1), Cores { engine: vec![vec![]], jobs: vec![] });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_stays_and_what_it_starts_does_not() {
        let pinned = std::thread::spawn(|| {
            let all = available_cores().unwrap();
            let last = *all.last().unwrap();
            Cores::deal(&[last], 1).pin_engine(0).unwrap();
            assert_eq!(available_cores(), Ok(vec![last]));
            let job = crate::threads::start("job".to_owned(), move || {
                assert_eq!(available_cores(), Ok(all));
            });
            job.unwrap().join().unwrap();
        });
        pinned.join().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_of_jobs_are_released_in_the_end() {
        let (all, me) = (available_cores().unwrap(), this_thread());
        let cores = Cores { engine: Vec::new(), jobs: vec![all[0]] };
        let pinned = cores.pin_jobs(&[me]).unwrap();
        assert_eq!(available_cores(), Ok(vec![all[0]]));
        drop(pinned);
        assert_eq!(available_cores(), Ok(all));
    }

    /// Runs that begin and end in any order: the newest that goes on decides.
    #[cfg(target_os = "linux")]
    #[test]
    fn runs_side_by_side_leave_threads_as_they_were() {
        std::thread::spawn(|| {
            let (all, me) = (available_cores().unwrap(), this_thread());
            let pin = |core: usize| {
                Cores { engine: Vec::new(), jobs: vec![all[core]] }.pin_jobs(&[me]).unwrap()
            };
            let (first, last) = (0, all.len() - 1);
            let [a, b, c] = [first, last, last].map(pin);
            drop(a);
            assert_eq!(available_cores(), Ok(vec![all[last]]));
            let d = pin(first);
            drop(c);
            assert_eq!(available_cores(), Ok(vec![all[first]]));
            drop(d);
            assert_eq!(available_cores(), Ok(vec![all[last]]));
            drop(b);
            assert_eq!(available_cores(), Ok(all));
        })
        .join()
        .unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn cores_that_are_not_there_are_named() {
        let all = available_cores().unwrap();
        assert_eq!(Cores::check(&all), Ok(()));
        for core in [1023, 1 << 40] {
            let error = Cores::check(&[all[0], core]).unwrap_err().to_string();
            assert!(error.contains(&format!("cannot stay on {core}")), "{error}");
            assert_eq!(available_cores(), Ok(all.clone()), "it was only tried");
        }
    }
}
