//! What a host task returns when it fails. Knows no task: who runs it adds which it was.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::causes::{chain, text_of_error};

/// The error of a host task: any error, shared by all that report it.
///
/// On the process where the task ran, this is the very error that the task has returned. On
/// others it is one with the same text, and with causes of the same texts. Two are equal if
/// their texts are, and those of their causes.
#[derive(Clone)]
pub struct TaskError(Arc<dyn Error + Send + Sync>);

impl TaskError {
    /// Wraps an error, or a message.
    ///
    /// ```
    /// use celerity_executor::TaskError;
    ///
    /// let error = TaskError::new(std::io::Error::other("the disk is full"));
    /// assert_eq!(error.to_string(), "the disk is full");
    /// assert!(error.downcast_ref::<std::io::Error>().is_some());
    /// ```
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }

    /// Its text, and those of its causes.
    fn texts(&self) -> impl Iterator<Item = String> {
        chain(&*self.0).map(text_of_error)
    }
}

/// Not an error itself, so that what has it for a cause names the task's own.
impl Deref for TaskError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for TaskError {
    /// The text of the program's error. What writes it is the program's as well, and may panic where the runtime asks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text_of_error(&*self.0))
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_with_causes(&*self.0, f)
    }
}

impl PartialEq for TaskError {
    fn eq(&self, other: &Self) -> bool {
        self.texts().eq(other.texts())
    }
}

impl Eq for TaskError {}

#[cfg(feature = "serde")]
mod wire {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::*;

    /// An error of another process, of which the text is known.
    #[derive(Debug)]
    struct Told {
        text: String,
        cause: Option<Box<Self>>,
    }

    impl fmt::Display for Told {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.text)
        }
    }

    impl Error for Told {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
        }
    }

    impl Serialize for TaskError {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.texts().collect::<Vec<_>>().serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for TaskError {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let mut texts = Vec::<String>::deserialize(deserializer)?;
            let first = if texts.is_empty() { String::new() } else { texts.remove(0) };
            let behind = |cause, text| Some(Box::new(Told { text, cause }));
            let cause = texts.into_iter().rev().fold(None, behind);
            Ok(Self(Arc::new(Told { text: first, cause })))
        }
    }
}
