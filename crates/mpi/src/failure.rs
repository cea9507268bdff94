//! Errors of a run as bytes, so that every node reports the same. Owns what
//! becomes of those that cannot be read.

use celerity_codec::{RecordingKind, decode, encode};
use celerity_executor::RunError;

/// The bytes of an error.
pub(crate) fn write(error: &RunError) -> Vec<u8> {
    encode(RecordingKind::Failure, error).unwrap_or_else(|refused| {
        let message = format!("{error} (which could not be told as it is: {refused})");
        let plain = RunError::Internal { message };
        encode(RecordingKind::Failure, &plain).expect("a short text can be encoded")
    })
}

/// The error that was written.
pub(crate) fn read(bytes: &[u8]) -> RunError {
    decode(RecordingKind::Failure, bytes).unwrap_or_else(|refused| RunError::Internal {
        message: format!("another node stopped the run, but its reason is unreadable: {refused}"),
    })
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use celerity_cdag::{NodeId, TransferId};
    use celerity_executor::{ArbiterError, CommunicationError, ScheduleError, TaskError};
    use celerity_idag::{DeviceId, InstructionId, MessageId};
    use celerity_regions::Box3;
    use celerity_tdag::{BufferId, TaskId};

    use super::*;

    #[test]
    fn errors_arrive_as_they_were() {
        let node = NodeId::from_index(3);
        let transfer =
            TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
        let region = Box::new(Box3::from_range([4, 5]).into());
        let instruction = InstructionId::from_index(7);
        let inconsistent = ArbiterError::InconsistentReceives { instruction, transfer, region };
        let reused =
            CommunicationError::Reused { from: node, to: node, message: MessageId::from_index(6) };
        let overlap = celerity_cdag::Diagnostic::OverlappingWrites {
            task: "T3 \"step\"".to_owned(),
            buffer: "u".into(),
            region: Box3::from_range([4]).into(),
            first: node,
            second: NodeId::from_index(4),
        };
        let apart = ScheduleError::from(celerity_idag::Diagnostic::UnwrittenElements {
            task: "T3 \"step\"".to_owned(),
            buffer: "u".into(),
            region: Box3::from_range([4, 5]).into(),
        });
        for error in [
            RunError::Schedule { node, error: Box::new(apart) },
            RunError::TaskPanicked {
                task: "T3 \"step\"".to_owned(),
                node,
                device: Some(DeviceId::from_index(2)),
                message: "π".to_owned(),
            },
            RunError::Arbitration { node, task: None, error: Box::new(inconsistent) },
            RunError::Schedule { node, error: Box::new(overlap.into()) },
            RunError::Communication { node, error: Box::new(reused) },
        ] {
            assert_eq!(read(&write(&error)), error);
        }
    }

    #[test]
    fn what_a_host_task_returned_arrives_as_texts() {
        let inner = std::io::Error::other("the disk is full");
        let outer = RunError::TaskFailed {
            task: "T4 \"sync\"".to_owned(),
            node: NodeId::from_index(0),
            device: None,
            error: TaskError::new(inner),
        };
        let error = RunError::TaskFailed {
            task: "T5 \"save\"".to_owned(),
            node: NodeId::from_index(0),
            device: None,
            error: TaskError::new(outer),
        };
        let arrived = read(&write(&error));
        assert_eq!(arrived, error);
        assert_eq!(format!("{arrived:?}"), format!("{error:?}"));
        let cause = arrived.source().expect("what the host task returned");
        assert_eq!(cause.to_string(), "task T4 \"sync\" failed on N0: the disk is full");
        let behind = cause.source().expect("what that one returned");
        assert_eq!(
            (behind.to_string(), behind.source().is_none()),
            ("the disk is full".into(), true)
        );
    }

    #[test]
    fn nonsense_is_an_error_too() {
        let RunError::Internal { message } = read(b"nonsense") else { panic!("not that") };
        assert!(message.contains("unreadable"), "{message}");
    }
}
