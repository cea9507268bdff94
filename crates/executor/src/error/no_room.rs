//! A memory without room: who wanted how much of it for what, and who has it.

use celerity_regions::Box3;
use celerity_tdag::Count;
use thiserror::Error;

/// An allocation that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[error(
    "{}, {} of {memory}, where {} resident{}{}; use more nodes or devices, or drop buffers earlier",
    wanted(.task.as_deref(), *.extent, .buffer),
    Count(*.bytes, "byte"),
    bytes_are(*.resident),
    free_bytes(*.free),
    listed(.residents)
)]
#[non_exhaustive]
pub struct NoRoom {
    /// Which memory, as in `M2, the memory of D0`.
    pub memory: String,
    /// Id, name and source line of the task that would have used the allocation first, if
    /// that is known.
    pub task: Option<String>,
    /// The buffer's name, as messages print it.
    pub buffer: String,
    /// The elements that the allocation was to hold, if they are known.
    pub extent: Option<Box3>,
    /// Bytes of the allocation that there is no room for.
    pub bytes: u64,
    /// Bytes that all buffers together hold in that memory.
    pub resident: u64,
    /// Bytes that are left, if the memory has a limit or tells.
    pub free: Option<u64>,
    /// Which buffers hold memory there: those that hold most first.
    pub residents: Vec<Resident>,
}

/// A buffer that holds memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Resident {
    /// The buffer's name, as messages print it.
    pub buffer: String,
    /// Bytes of all its allocations in one memory.
    pub bytes: u64,
}

/// How many residents a message names.
const RESIDENTS_SHOWN: usize = 8;

fn wanted(task: Option<&str>, extent: Option<Box3>, buffer: &str) -> String {
    let task = task.map_or_else(String::new, |task| format!("task {task} needs "));
    let extent = extent.map_or_else(String::new, |extent| format!("{extent} of "));
    format!("{task}{extent}buffer {buffer}")
}

fn free_bytes(free: Option<u64>) -> String {
    free.map_or_else(String::new, |free| format!(" and {} free", bytes_are(free)))
}

/// So many bytes and their verb, as in "3 bytes are" resident.
pub(crate) fn bytes_are(bytes: u64) -> String {
    format!("{} {}", Count(bytes, "byte"), if bytes == 1 { "is" } else { "are" })
}

fn listed(residents: &[Resident]) -> String {
    let (shown, rest) = residents.split_at(residents.len().min(RESIDENTS_SHOWN));
    let shown = shown.iter().map(|Resident { buffer, bytes }| format!("{bytes} of {buffer}"));
    let bytes: u64 = rest.iter().map(|resident| resident.bytes).sum();
    let rest = (!rest.is_empty()).then(|| format!("{bytes} of {} more", rest.len()));
    let all: Vec<_> = shown.chain(rest).collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_room(task: Option<&str>, residents: u64) -> String {
        let resident = |n| Resident { buffer: format!("\"B{n}\""), bytes: 100 - n };
        let error = NoRoom {
            memory: "M2, the memory of D0".to_owned(),
            task: task.map(str::to_owned),
            buffer: "\"u\"".to_owned(),
            extent: task.map(|_| Box3::from_range([4, 8])),
            bytes: 256,
            resident: 190,
            free: Some(10),
            residents: (0..residents).map(resident).collect(),
        };
        error.to_string()
    }

    #[test]
    fn messages_name_who_wants_what_and_who_has_it() {
        assert_eq!(
            no_room(Some("T3 \"step\" at main.rs:4"), 2),
            "task T3 \"step\" at main.rs:4 needs [0..4, 0..8] of buffer \"u\", 256 bytes of M2, \
             the memory of D0, where 190 bytes are resident and 10 bytes are free: 100 of \"B0\", \
             99 of \"B1\"; use more nodes or devices, or drop buffers earlier"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let message = no_room(None, 0);
        assert!(message.starts_with("buffer \"u\", 256 bytes of M2,"), "{message}");
        assert!(message.contains("10 bytes are free; use"), "{message}");
    }

    #[test]
    fn of_many_residents_the_largest_are_named() {
        let message = no_room(None, 10);
        assert!(message.contains("93 of \"B7\", 183 of 2 more; use"), "{message}");
    }
}
