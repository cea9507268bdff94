//! What the fuzz targets do with their bytes, as plain functions, so that ordinary tests can do it,
//! too. Each returns for every input, or panics with what it has found.

use std::fmt::Debug;

use celerity_cdag::{Command, NodeId};
use celerity_codec::{RecordingKind, decode, encode, seal};
use celerity_executor::RunError;
use celerity_idag::{DeviceMemory, Instruction, Lookahead, Pilot, wire};
use celerity_tdag::{BufferInfo, Task};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::campaign::check_graphs;
use crate::check::Configuration;
use crate::lawful::{check_configuration, check_program};
use crate::program::{Op, Program, ProgramBuilder, Sizes, seeded};
use crate::recording::decode_program;

/// What a recording of [`RecordingKind::TaskGraph`] holds.
pub type RecordedTasks = (Vec<BufferInfo>, Vec<Task>);

/// What a recording of [`RecordingKind::CommandGraph`] holds.
pub type RecordedCommands = Vec<Command>;

/// What a recording of [`RecordingKind::InstructionGraph`] holds.
pub type RecordedInstructions = (Vec<Instruction>, Vec<Pilot>);

/// Checks all graphs of a program: of the one that `data` is a recording of, else of the one that
/// its bytes choose from the statements of a random program.
///
/// # Panics
/// If a graph breaks a promise, with the program.
pub fn program(data: &[u8]) {
    let (program, configuration) = decode_program(data).unwrap_or_else(|_| translated(data));
    if let Err(failure) = check_graphs(&program, &configuration) {
        panic!("{failure}");
    }
}

/// Statements that a fuzzed program has at most.
const STATEMENTS: usize = 24;

/// Every string of bytes is a lawful program. Its head chooses the cluster, and a random program
/// for its buffers and its stock of statements; each byte after that submits one of these, unless
/// that would be unlawful here. So a byte more or less is a statement more or less.
fn translated(data: &[u8]) -> (Program, Configuration) {
    let (head, choices) = data.split_at(data.len().min(6));
    let head: [u8; 6] = std::array::from_fn(|at| head.get(at).copied().unwrap_or(0));
    let [low, high, nodes, devices, step, parallelism] = head.map(u64::from);
    let configuration = Configuration {
        horizon_step: 1 + step % 6,
        horizon_max_parallelism: 2 + parallelism % 9,
        lookahead: [Lookahead::None, Lookahead::Auto, Lookahead::Infinite][high as usize % 3],
        device_memory: if devices < 128 { DeviceMemory::Own } else { DeviceMemory::Host },
        seed: low,
        ..Configuration::new(1 + nodes as usize % 8, 1 + devices as usize % 4)
    };
    let stock = seeded(Sizes { ops: 48, ..Sizes::default() }, low + 256 * high);
    let mut program = ProgramBuilder::default();
    for spec in stock.buffers() {
        program.create(spec);
    }
    for &choice in choices.iter().take(STATEMENTS) {
        submit(&mut program, &stock.ops[usize::from(choice) % stock.ops.len()]);
    }
    (program.finish(), configuration)
}

fn submit(program: &mut ProgramBuilder, op: &Op) {
    match op {
        Op::Create(spec) => {
            program.create(*spec);
        }
        // What is not lawful here is left out.
        Op::Task(task) => drop(program.try_task(task.clone())),
        Op::Barrier => program.barrier(),
        Op::Drop(buffer) if program.alive().contains(buffer) => program.drop_buffer(*buffer),
        Op::Drop(_) => {}
    }
}

/// Decodes a pilot. The first two bytes choose the cluster.
///
/// # Panics
/// If a pilot is accepted that no node of the cluster could have sent.
pub fn pilot(data: &[u8]) {
    let [nodes, local, bytes @ ..] = data else { return };
    let nodes = 1 + usize::from(*nodes);
    let local = NodeId::from_index(u64::from(*local) % nodes as u64);
    let Ok((from, pilot)) = wire::decode(bytes, nodes, local) else { return };
    assert!(from.slot() < nodes && from != local, "{from} sends to {local} of {nodes}");
    assert_eq!(pilot.to, local, "{pilot:?}");
    assert!(!pilot.region.is_empty(), "{pilot:?}");
    assert_eq!(wire::encode(&pilot, from)[..], *bytes, "{pilot:?} is another pilot, too");
}

/// Decodes `data` as a recording of every kind, and all but its first byte as the body of one.
///
/// # Panics
/// If something is accepted that is not recorded by the very same bytes.
pub fn recording(data: &[u8]) {
    RecordingKind::ALL.into_iter().for_each(|kind| recording_of(kind, data));
    let [kind, body @ ..] = data else { return };
    let kind = RecordingKind::ALL[usize::from(*kind) % RecordingKind::ALL.len()];
    recording_of(kind, &seal(kind, body));
}

fn recording_of(kind: RecordingKind, bytes: &[u8]) {
    match kind {
        RecordingKind::Program => {
            if let Some((program, configuration)) =
                round_trip::<(Program, Configuration)>(kind, bytes)
            {
                // Whatever was decoded can be judged.
                let _ = check_configuration(&configuration).and(check_program(&program));
            }
        }
        RecordingKind::TaskGraph => drop(round_trip::<RecordedTasks>(kind, bytes)),
        RecordingKind::CommandGraph => drop(round_trip::<RecordedCommands>(kind, bytes)),
        RecordingKind::InstructionGraph => drop(round_trip::<RecordedInstructions>(kind, bytes)),
        RecordingKind::Failure => drop(round_trip::<RunError>(kind, bytes)),
        other => panic!("nobody says what a recording of a {other} holds"),
    }
}

/// What `bytes` are decoded to, if to anything.
fn round_trip<T: Serialize + DeserializeOwned + Debug>(
    kind: RecordingKind,
    bytes: &[u8],
) -> Option<T> {
    let value: T = decode(kind, bytes).ok()?;
    let again = encode(kind, &value).expect("what was recorded can be recorded");
    assert!(again == bytes, "other bytes stand for the same {kind}: {value:?}");
    Some(value)
}
