//! Ctrl-C: ends the run on all nodes as an error does, instead of ending the
//! process in the middle of it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::signal_name;

use crate::error::RunError;
use crate::frontend::NodeFrontend;
use crate::sync::lock;

use super::watch::Hurry;

const INTERRUPTS: [i32; 2] = [SIGINT, SIGTERM];

/// Watches for interrupts until it is dropped.
pub(super) struct Interrupts {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
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
        let fatal = lock(&WATCHED).begin()?;
        let started = Self::start(nodes.to_vec(), hurry, fatal);
        if started.is_err() {
            lock(&WATCHED).end();
        }
        started
    }

    fn start(
        nodes: Vec<Arc<NodeFrontend>>,
        hurry: Option<Hurry>,
        fatal: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let mut signals = Signals::new(heeded())?;
        let handle = signals.handle();
        let watch = move || {
            for signal in signals.forever() {
                fatal.store(true, Ordering::SeqCst);
                let signal = signal_name(signal).unwrap_or("a signal").to_owned();
                hurry.iter().for_each(|hurry| hurry.up(Some(&signal)));
                for node in &nodes {
                    node.abort(RunError::Interrupted { signal: signal.clone() });
                }
            }
        };
        let thread = thread::Builder::new().name("celerity-signals".to_owned()).spawn(watch)?;
        Ok(Self { signals: handle, thread: Some(thread) })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        lock(&WATCHED).end();
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
    fn begin(&mut self) -> io::Result<Arc<AtomicBool>> {
        let fatal = match &self.fatal {
            Some(fatal) => fatal.clone(),
            None => {
                let fatal = Arc::new(AtomicBool::new(true));
                for &signal in heeded() {
                    register_conditional_default(signal, fatal.clone())?;
                }
                self.fatal.insert(fatal).clone()
            }
        };
        self.runs += 1;
        fatal.store(false, Ordering::SeqCst);
        Ok(fatal)
    }

    fn end(&mut self) {
        self.runs -= 1;
        if let (0, Some(fatal)) = (self.runs, &self.fatal) {
            fatal.store(true, Ordering::SeqCst);
        }
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
