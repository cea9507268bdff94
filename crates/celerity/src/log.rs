//! What a run says on standard error while it goes. Errors are returned, not
//! logged.

use std::io::{self, Write as _};

use celerity_executor::WarningSink;

/// How much to print to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// No line is printed.
    Off,
    /// What ends a run without an error to return.
    Critical,
    /// What makes a run fail.
    Error,
    /// What is probably a mistake.
    Warn,
    /// What is good to know.
    #[default]
    Info,
    /// What helps to find a mistake: the cluster of each run.
    Debug,
    /// Everything: each submitted task.
    Trace,
}

impl LogLevel {
    /// Prints a message of the given level, if that is not above this one.
    pub(crate) fn print(self, level: Self, message: impl FnOnce() -> String) {
        if level <= self {
            print(&format!("celerity: {}\n", message()));
        }
    }

    /// Prints warnings, if they are not above this level.
    pub(crate) fn warnings(self) -> WarningSink {
        WarningSink::new(move |warning| self.print(Self::Warn, || warning.to_string()))
    }
}

/// Writes `text` to standard error, at once: under a launcher, processes share the stream. If
/// that cannot take it, as if its reader is gone or its disk full, that is no reason to fail.
pub(crate) fn print(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_above_the_level_are_not_even_built() {
        let built = |configured: LogLevel, level| {
            let mut built = false;
            configured.print(level, || {
                built = true;
                "a message of a test".to_owned()
            });
            built
        };
        assert!(built(LogLevel::Trace, LogLevel::Debug));
        assert!(built(LogLevel::Debug, LogLevel::Debug));
        assert!(!built(LogLevel::Info, LogLevel::Debug));
        assert!(!built(LogLevel::Off, LogLevel::Critical));
    }
}
