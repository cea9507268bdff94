//! A memory without room: who wanted how much of it for what, and who has it.

use celerity_regions::Box3;
use celerity_tdag::Count;
use thiserror::Error;

/// An allocation that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[error(
    "{}, {} of {memory}, where {} resident{}{}; {}use more nodes or devices, or drop buffers earlier",
    wanted(.task.as_deref(), (*.needed, *.extent), .buffer),
    Count(*.bytes, "byte"),
    bytes_are(*.resident),
    free_bytes(*.free),
    listed(.residents),
    advice((*.needed, *.extent))
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
    /// The elements that the task needs of it, if they are known.
    pub needed: Option<Box3>,
    /// The elements that the allocation was to hold, if they are known: also those that later tasks and fences will need in one
    /// piece with them.
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

/// What the task needs and what was to be allocated, if the latter is more.
fn merged((needed, extent): (Option<Box3>, Option<Box3>)) -> Option<(Box3, Box3)> {
    needed.zip(extent).filter(|(needed, extent)| needed != extent && extent.contains(needed))
}

fn wanted(task: Option<&str>, parts: (Option<Box3>, Option<Box3>), buffer: &str) -> String {
    if let (Some(task), Some((needed, extent))) = (task, merged(parts)) {
        return format!(
            "task {task} needs {needed} of buffer {buffer}, and what follows {extent} in one piece"
        );
    }
    let task = task.map_or_else(String::new, |task| format!("task {task} needs "));
    let extent = parts.1.map_or_else(String::new, |extent| format!("{extent} of "));
    format!("{task}{extent}buffer {buffer}")
}

fn advice(parts: (Option<Box3>, Option<Box3>)) -> &'static str {
    match merged(parts) {
        Some(_) => "let what follows need smaller parts, as `fence_part` does, ",
        None => "",
    }
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
            needed: task.map(|_| Box3::from_range([4, 8])),
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
    fn what_others_will_need_is_told_from_what_the_task_needs() {
        let parts =
            |needed, extent| (Some(Box3::from_range(needed)), Some(Box3::from_range(extent)));
        let task = Some("T1 \"init\"");
        assert_eq!(
            wanted(task, parts([4, 8], [8, 8]), "\"u\""),
            "task T1 \"init\" needs [0..4, 0..8] of buffer \"u\", and what follows [0..8, 0..8] in one piece"
        );
        assert!(advice(parts([4, 8], [8, 8])).contains("fence_part"));
        // What grows may be less than what is needed.
        assert_eq!(
            wanted(task, parts([8, 8], [4, 8]), "\"u\""),
            "task T1 \"init\" needs [0..4, 0..8] of buffer \"u\""
        );
        assert_eq!(advice(parts([8, 8], [4, 8])), "");
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
