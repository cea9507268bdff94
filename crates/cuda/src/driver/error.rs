//! What a driver says when it does not do what it was asked for.

use thiserror::Error;

/// Why a call of the driver failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no driver on this machine, or none that works.
    #[error("no CUDA driver found: {reason}")]
    Missing {
        /// What was tried.
        reason: String,
    },
    /// The driver is too old.
    #[error("the driver supports CUDA {}, but at least {} is needed; update it", version(*.found), version(*.needed))]
    TooOld {
        /// What it supports, as 1000 × major + 10 × minor.
        found: u32,
        /// What is needed, likewise.
        needed: u32,
    },
    /// Windows between GPUs cannot be as they are asked for.
    #[error(
        "`WindowConfig` asks for {slots} slots of {slot_bytes} bytes; there are 1 to 1024, of at least 65536"
    )]
    NoWindows {
        /// Pieces in a window.
        slots: u16,
        /// Bytes of a piece.
        slot_bytes: u64,
    },
    /// A GPU needs a thread of its own.
    #[error("the system gives no thread for a GPU: {reason}")]
    NoThread {
        /// What the system says.
        reason: String,
    },
    /// Code was not accepted.
    #[error("the driver rejects the code: {log}")]
    Rejected {
        /// What its compiler says.
        log: String,
    },
    /// Anything else.
    #[error("{call} failed: {code}, {meaning}")]
    Failed {
        /// The function of the driver that failed.
        call: &'static str,
        /// The driver's name for the error.
        code: String,
        /// What the driver says that the number means.
        meaning: String,
        /// What callers can tell apart.
        failure: Failure,
    },
}

/// The failures that somebody does something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no memory.
    OutOfMemory,
    /// There is nothing of that name.
    NotFound,
    /// The rest.
    Other,
}

impl DriverError {
    /// Whether memory was asked for, and there was none.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Failed { failure: Failure::OutOfMemory, .. })
    }

    /// Whether something was asked for by a name that does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Failed { failure: Failure::NotFound, .. })
    }
}

fn version(number: u32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        let error = DriverError::TooOld { found: 11_080, needed: 12_000 };
        let text = "the driver supports CUDA 11.8, but at least 12.0 is needed; update it";
        assert_eq!(error.to_string(), text);
    }
}
