//! Whole graphs survive a recording, or say why they cannot be recorded.

use std::fmt::Debug;

use celerity_codec::{EncodeError, RecordingKind, decode, encode};
use celerity_tdag::{BufferInfo, Task};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::fuzzing::{RecordedCommands, RecordedInstructions, RecordedTasks};
use celerity_testkit::program::{Program, Sizes, seeded};
use celerity_testkit::trace::{CommandTrace, GeneratorInput, InstructionTrace, TaskTrace};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The corpus, and random programs: what is recorded of them does not depend on user mappers
/// below the task graph.
fn programs() -> impl Iterator<Item = Program> {
    let corpus = corpus::all(3).into_iter().map(|(_, program)| program);
    corpus.chain((0..60).map(|seed| seeded(Sizes::default(), seed)))
}

fn tasks_of(trace: &TaskTrace) -> RecordedTasks {
    let buffers = trace.events.iter().filter_map(|event| match event {
        GeneratorInput::Create(info) => Some(BufferInfo::clone(info)),
        _ => None,
    });
    (buffers.collect(), trace.tasks.iter().map(|task| Task::clone(task)).collect())
}

fn has_user_mappers((_, tasks): &RecordedTasks) -> bool {
    tasks.iter().flat_map(|task| task.buffer_accesses()).any(|access| access.is_on_trust())
}

/// Graphs are compared as they print, which shows all of them.
fn assert_survives<T: Serialize + DeserializeOwned + Debug>(kind: RecordingKind, value: &T) {
    let bytes = encode(kind, value).unwrap();
    let decoded: T = decode(kind, &bytes).unwrap();
    assert_eq!(format!("{decoded:?}"), format!("{value:?}"));
    assert_eq!(encode(kind, &decoded).unwrap(), bytes);
}

#[test]
fn task_graphs_survive_unless_they_hold_user_mappers() {
    let (mut recorded, mut refused) = (0, 0);
    for program in programs() {
        let trace = TaskTrace::of(&program, Configuration::new(1, 1).task_graph()).unwrap();
        let tasks = tasks_of(&trace);
        if has_user_mappers(&tasks) {
            let error = encode(RecordingKind::TaskGraph, &tasks).unwrap_err();
            assert!(matches!(error, EncodeError::Refused { .. }));
            assert!(error.to_string().contains("user mappers cannot be recorded"), "{error}");
            refused += 1;
        } else {
            assert_survives(RecordingKind::TaskGraph, &tasks);
            recorded += 1;
        }
    }
    assert!(recorded >= 10 && refused >= 10, "{recorded} recorded, {refused} refused");
}

#[test]
fn command_and_instruction_graphs_survive() {
    for (nth, program) in programs().enumerate() {
        let configuration = Configuration::new(1 + nth % 4, 1 + nth % 3);
        let tasks = TaskTrace::of(&program, configuration.task_graph()).unwrap();
        let commands = CommandTrace::of_all(&tasks, configuration.nodes).unwrap();
        let instructions =
            InstructionTrace::of_all(&tasks, &commands, configuration.devices).unwrap();
        for (commands, instructions) in commands.into_iter().zip(instructions) {
            assert_survives::<RecordedCommands>(RecordingKind::CommandGraph, &commands.commands);
            let InstructionTrace { instructions, pilots, .. } = instructions;
            assert_survives::<RecordedInstructions>(
                RecordingKind::InstructionGraph,
                &(instructions, pilots),
            );
        }
    }
}
