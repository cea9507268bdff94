//! What can be recorded: plain data, built where something happens and put into
//! words by the writer's thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A row of slices within a process: a thread, a lane, a direction of the network.
/// Tracks are shown in order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(u32);

impl TrackId {
    /// The track of this number. Numbers need not be dense.
    #[must_use]
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// The number of the track in its process.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A name, or another word.
pub enum Text {
    /// One that is part of the program.
    Static(&'static str),
    /// One that somebody else keeps, too.
    Shared(Arc<str>),
    /// One that is put into words later, by the writer's thread.
    Shown(Box<dyn fmt::Display + Send>),
}

impl Text {
    /// A text that the writer's thread will make of `value`.
    #[must_use]
    pub fn shown(value: impl fmt::Display + Send + 'static) -> Self {
        Self::Shown(Box::new(value))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(text) => f.write_str(text),
            Self::Shared(text) => f.write_str(text),
            Self::Shown(value) => value.fmt(f),
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

/// What is known of a slice beside its name and times.
#[derive(Debug)]
pub enum Value {
    /// A count, or a number of bytes.
    Number(u64),
    /// A value as text, which the viewer shows as it is.
    Text(Text),
}

/// Something that took time.
///
/// Slices of one track must not overlap, unless one lies within the other.
#[derive(Debug)]
pub struct TimeSlice {
    /// Where it is shown.
    pub track: TrackId,
    /// When it began, since the trace did.
    pub start: Duration,
    /// When it was over; not before `start`.
    pub end: Duration,
    /// What it is called.
    pub name: Text,
    /// What kind of thing it is: viewers filter by it.
    pub category: &'static str,
    /// What else is known.
    pub details: Vec<(&'static str, Value)>,
    /// What later slices of this process call it, if they do.
    pub id: Option<u64>,
    /// The slices of this process that it had to wait for: an arrow leads here
    /// from each of them that has been recorded before.
    pub after: Vec<u64>,
    /// The message that it sends or receives.
    pub message: Option<Message>,
}

/// One end of an arrow between processes. Both ends have the same number, which
/// no other arrow has; below 2^52.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The arrow begins here.
    Sent(u64),
    /// The arrow ends here.
    Received(u64),
}

/// Numbers that change together.
#[derive(Debug)]
pub struct Counter {
    /// When they changed, since the trace began.
    pub at: Duration,
    /// What the numbers are, all together.
    pub name: Text,
    /// Each number's own name, and what it is from now on.
    pub values: Vec<(&'static str, u64)>,
}

/// One line, or several, of a trace.
#[derive(Debug)]
pub(crate) enum TraceRecord {
    Process {
        name: Text,
    },
    Track {
        track: TrackId,
        name: Text,
    },
    Slice(TimeSlice),
    Counter(Counter),
    /// No later slice names one with a smaller id.
    Forget {
        before: u64,
    },
}
