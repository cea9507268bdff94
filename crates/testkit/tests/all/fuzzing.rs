//! What the fuzz targets do, on random bytes and on valid encodings that have been damaged.

use celerity_cdag::{NodeId, TransferId};
use celerity_codec::{RecordingKind, encode};
use celerity_idag::{MessageId, Pilot, wire};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, Task, TaskId};
use celerity_testkit::check::Configuration;
use celerity_testkit::program::{Program, Sizes, seeded};
use celerity_testkit::recording::encode_program;
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};
use celerity_testkit::{corpus, fuzzing};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes in front of a recording's body.
const HEADER: usize = 28;

/// Lengths that nobody has, written over valid ones.
const HOSTILE: [u64; 6] = [1 << 20, 1 << 32, 1 << 40, 1 << 60, u64::MAX - 7, u64::MAX];

/// What happens to bytes on their way.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Flip(usize),
    Byte(usize, u8),
    Word(usize, u64),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<usize>();
    prop_oneof![
        at().prop_map(Damage::Cut),
        at().prop_map(Damage::Flip),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (at(), proptest::sample::select(&HOSTILE[..]))
            .prop_map(|(at, word)| Damage::Word(at, word)),
        (at(), at()).prop_map(|(at, len)| Damage::Repeat(at, len)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        if len < 8 {
            return;
        }
        match *self {
            Self::Cut(at) => bytes.truncate(at % len),
            Self::Flip(at) => bytes[at / 8 % len] ^= 1 << (at % 8),
            Self::Byte(at, byte) => bytes[at % len] = byte,
            Self::Word(at, word) => {
                // Where the encoding has numbers of eight bytes, most begin at one of these.
                let at = (at % (len - 7)) & !3;
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            Self::Repeat(at, more) => {
                let at = at % len;
                let part = bytes[at..(at + more % 64).min(len)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}

/// The bodies of valid recordings, each behind the byte by which the target chooses its kind.
fn bodies() -> Vec<Vec<u8>> {
    let configuration = Configuration::new(2, 2);
    let programs: Vec<Program> = [corpus::jacobi([5, 4], 2), corpus::wave_sim([5, 4], 1)].into();
    let of_kind = |kind: usize, bytes: &[u8]| [&[kind as u8], &bytes[HEADER..]].concat();
    let mut bodies = Vec::new();
    for program in programs {
        bodies.push(of_kind(0, &encode_program(&program, &configuration).unwrap()));
        let tasks = TaskTrace::of(&program, configuration.task_graph()).unwrap();
        let list: Vec<Task> = tasks.tasks.iter().map(|task| Task::clone(task)).collect();
        let buffers: [(); 0] = [];
        bodies.push(of_kind(1, &encode(RecordingKind::TaskGraph, &(&buffers[..], &list)).unwrap()));
        let commands = CommandTrace::of_all(&tasks, 2).unwrap();
        bodies
            .push(of_kind(2, &encode(RecordingKind::CommandGraph, &commands[0].commands).unwrap()));
        let graphs = InstructionTrace::of_all(&tasks, &commands, 2).unwrap();
        let graph = (&graphs[0].instructions, &graphs[0].pilots);
        bodies.push(of_kind(3, &encode(RecordingKind::InstructionGraph, &graph).unwrap()));
    }
    bodies
}

fn valid_pilot() -> Vec<u8> {
    let pilot = Pilot {
        to: NodeId::from_index(1),
        message: MessageId::from_index(3),
        transfer: TransferId { consumer: TaskId::from_index(4), buffer: BufferId::from_index(0) },
        region: Box3::from_range([4, 4]).into(),
        from_device: false,
    };
    [&[3, 1], &wire::encode(&pilot, NodeId::from_index(2))[..]].concat()
}

#[test]
fn undamaged_bytes_are_accepted() {
    bodies().iter().for_each(|body| fuzzing::recording(body));
    fuzzing::pilot(&valid_pilot());
    let program = seeded(Sizes::default(), 5);
    fuzzing::program(&encode_program(&program, &Configuration::new(3, 2)).unwrap());
}

#[test]
fn every_truncation_of_a_recording_is_judged() {
    for body in bodies() {
        (0..body.len().min(700)).for_each(|len| fuzzing::recording(&body[..len]));
    }
}

#[test]
fn hostile_words_everywhere_are_judged() {
    for body in bodies() {
        for at in (1..body.len().saturating_sub(7)).step_by(4).take(300) {
            for word in HOSTILE {
                let mut damaged = body.clone();
                damaged[at..at + 8].copy_from_slice(&word.to_le_bytes());
                fuzzing::recording(&damaged);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_bytes_are_judged(bytes in vec(any::<u8>(), 0..300)) {
        fuzzing::recording(&bytes);
        fuzzing::pilot(&bytes);
    }

    #[test]
    fn damaged_pilots_are_judged(damages in vec(damage(), 1..4)) {
        let mut bytes = valid_pilot();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        fuzzing::pilot(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damaged_recordings_are_judged(damages in vec(damage(), 1..4)) {
        for mut body in bodies_once().iter().cloned() {
            damages.iter().for_each(|damage| damage.apply(&mut body));
            fuzzing::recording(&body);
        }
    }
}

proptest! {
    // Each case generates and checks all graphs of a cluster.
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes_become_programs_that_pass(bytes in vec(any::<u8>(), 0..32)) {
        fuzzing::program(&bytes);
    }
}

fn bodies_once() -> &'static [Vec<u8>] {
    static BODIES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    BODIES.get_or_init(bodies)
}
