//! Ctrl-C: ends the run on all nodes as an error does, instead of ending the
//! process in the middle of it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::{emulate_default_handler, signal_name};

use crate::error::RunError;
use crate::frontend::NodeFrontend;
use crate::sync::lock;

use super::watch::Hurry;

const INTERRUPTS: [i32; 2] = [SIGINT, SIGTERM];

/// Watches for interrupts until it is dropped.
pub(super) struct Interrupts {
    signals: Handle,
    /// Gives back what it has watched, and the first signal that it has heard.
    thread: Option<JoinHandle<(Signals, Option<i32>)>>,
}

impl Interrupts {
    /// Aborts the run of these nodes at the first interrupt. The second one ends
    /// the process, as it would without us: somebody does not want to wait for
    /// kernels to end.
    ///
    /// # Errors
    /// If the system refuses a handler or a thread.
    ///
    /// `hurry` is told of it, since a node may be where it cannot.
    pub(super) fn watch(nodes: &[Arc<NodeFrontend>], hurry: Option<Hurry>) -> io::Result<Self> {
        // A signal before there is somebody to hear it ends the process.
        let mut watched = lock(&WATCHED);
        let fatal = watched.handlers()?;
        let signals = Signals::new(heeded())?;
        let started = Self::start(signals, nodes.to_vec(), hurry, fatal)?;
        watched.begin();
        Ok(started)
    }

    fn start(
        mut signals: Signals,
        nodes: Vec<Arc<NodeFrontend>>,
        hurry: Option<Hurry>,
        fatal: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let handle = signals.handle();
        let watch = move || {
            let mut heard = None;
            for signal in signals.forever() {
                fatal.store(true, Ordering::SeqCst);
                heard.get_or_insert(signal);
                let signal = signal_name(signal).unwrap_or("a signal").to_owned();
                hurry.iter().for_each(|hurry| hurry.up(Some(&signal)));
                for node in &nodes {
                    node.abort(RunError::Interrupted { signal: signal.clone() });
                }
            }
            (signals, heard)
        };
        let thread = thread::Builder::new().name("celerity-signals".to_owned()).spawn(watch)?;
        Ok(Self { signals: handle, thread: Some(thread) })
    }

    /// The run is over. If it has succeeded all the same, and no other goes on, an interrupt came too late for it: then the
    /// process ends as it would without us.
    pub(super) fn end(mut self, has_succeeded: bool) {
        let (heard, is_last) = self.stop();
        if let Some(signal) = heard.filter(|_| has_succeeded && is_last) {
            // What cannot be done leaves all as it was: the run has succeeded.
            drop(emulate_default_handler(signal));
        }
    }

    /// Stops watching; says what was heard, and whether no other run watches.
    fn stop(&mut self) -> (Option<i32>, bool) {
        let Some(thread) = self.thread.take() else { return (None, false) };
        // What comes from here on ends the process by itself, if no other run goes on.
        let is_last = lock(&WATCHED).end();
        self.signals.close();
        let heard = match thread.join() {
            Ok((mut signals, heard)) => heard.or_else(|| signals.pending().next()),
            Err(_) => None,
        };
        (heard, is_last)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Those that whoever started this process has not told it to ignore, as shells do for programs in the background: nobody means
/// them then.
fn heeded() -> &'static [i32] {
    static HEEDED: OnceLock<Vec<i32>> = OnceLock::new();
    // Asked for before there is any handler of ours.
    HEEDED.get_or_init(|| INTERRUPTS.into_iter().filter(|&signal| !is_ignored(signal)).collect())
}

#[allow(unsafe_code)]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a structure of numbers, of which all zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the present one is written to a place that is there.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// The runs of this process that are being watched. Handlers stay installed once
/// they are, so that they have to know when to do what the system does by
/// default.
static WATCHED: Mutex<Watched> = Mutex::new(Watched { runs: 0, fatal: None });

struct Watched {
    runs: usize,
    /// Whether an interrupt ends the process; none before the first run.
    fatal: Option<Arc<AtomicBool>>,
}

impl Watched {
    /// Installs what ends the process where no run is watched, the first time.
    fn handlers(&mut self) -> io::Result<Arc<AtomicBool>> {
        if let Some(fatal) = &self.fatal {
            return Ok(fatal.clone());
        }
        let fatal = Arc::new(AtomicBool::new(true));
        for &signal in heeded() {
            register_conditional_default(signal, fatal.clone())?;
        }
        Ok(self.fatal.insert(fatal).clone())
    }

    /// Another run is watched.
    fn begin(&mut self) {
        self.runs += 1;
        self.fatal.iter().for_each(|fatal| fatal.store(false, Ordering::SeqCst));
    }

    /// One less is; returns whether it was the last.
    fn end(&mut self) -> bool {
        self.runs -= 1;
        if let (0, Some(fatal)) = (self.runs, &self.fatal) {
            fatal.store(true, Ordering::SeqCst);
        }
        self.runs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_ignored_are_told_from_others() {
        assert!(!is_ignored(libc::SIGUSR2));
        // SAFETY: nobody sends this signal to the tests, or waits for it.
        #[allow(unsafe_code)]
        let before = unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert_eq!(before, libc::SIG_DFL);
        assert!(is_ignored(libc::SIGUSR2));
    }
}
