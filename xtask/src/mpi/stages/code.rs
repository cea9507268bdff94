//! What the code of a program does on one node, and what is said of it on all.

use std::path::Path;

use super::Stage;
use crate::mpi::Mpi;
use crate::mpi::build::Program;
use crate::mpi::judge::{End, Expected};

/// What a host task of node 0 has returned.
const FAILED: &[&str] = &[
    "N0: task T2 \"save\" at ",
    "N1: task T2 \"save\" at ",
    "N2: task T2 \"save\" at ",
    " failed on N0: the disk is full",
];
/// What one process says before the run, and the others repeat.
const UNWRITABLE: &[&str] =
    &["N1 could not start: the graphs cannot be written", "unwritable.N1.txt\": Is a directory"];
/// Why the run ends, and for whom it waits.
const LINGERING: &[&str] = &[
    "the run has failed: task T1 \"fragile\" at ",
    "; N2 waits for kernel of T1 \"fragile\" at ",
    "on D0, which has been running for ",
    "N0: task T1",
    "N1: task T1",
    "N2: task T1",
    "panicked on N0, D0: item [0]: broken",
];
/// Where the process is that says nothing.
const BLOCKED: &[&str] = &[
    "N2 has been in a range mapper of T1 \"late\" at ",
    "; meanwhile N2 schedules nothing",
    "test result: ok. 1 passed",
];
const FICKLE: &[&str] = &["N0: ", "N1: ", "N2: ", "a range mapper of task T2 \"step\" at "];
const OVERFLOWING: &[&str] =
    &["the stack of item [23] of kernel `deep`", "groups of [8], has overflowed", "256 KiB"];
const DROPPING: &[&str] = &[
    "N0: task T1 \"keeper\" at ",
    "N1: task T1 \"keeper\" at ",
    "N2: task T1 \"keeper\" at ",
    "panicked on N2: dropping what it owned: broken",
];
const FENCE: &[&str] = &[
    "there is no memory for the copy of [0..16777216] of buffer \"field\"",
    "the program stopped on N2: there is no memory",
];

const COMBINER: &[&str] = &[
    "N0: task T1 \"add\" at ",
    "N1: task T1 \"add\" at ",
    "N2: task T1 \"add\" at ",
    "panicked on N2, D0: item [2999]: too much for me",
];
/// Each node combines, and each may be the first to say so.
const COMBINATION: &[&str] =
    &["N0: task ", "N1: task ", "N2: task ", "\"sum of add\" at ", "too much for me"];
const IGNORANT: &[&str] = &[
    "N0: cannot schedule the program on N2: a range mapper of task T1 \"look\" at ",
    "N1: cannot schedule the program on N2: a range mapper of task T1 \"look\" at ",
    "N2: cannot schedule the program on N2: a range mapper of task T1 \"look\" at ",
    "panicked: I do not know parts",
];
const FRAGILE: &[&str] = &[
    "N0: task T1 \"fragile\" at ",
    "N1: task T1 \"fragile\" at ",
    "N2: task T1 \"fragile\" at ",
    "panicked on N2: broken",
];

/// All hear of it, also those that waited for the node in a barrier.
const MEETING: &[&str] = &[
    "N0: task T1 \"meet\" at ",
    "N1: task T1 \"meet\" at ",
    "N2: task T1 \"meet\" at ",
    "panicked on N2: the disk is on fire",
];
/// Nobody can wake who waits inside of MPI, so that all processes are ended.
const MEETING_IN_MPI: &[&str] = &[
    "celerity: task T1 \"meet\" at ",
    "panicked on N2: the disk is on fire",
    "celerity: a task still waits in MPI 2s later, where nothing can wake it",
];

/// Who comes later is told, and need not be ended.
const MEETING_LATE: &[&str] = &[
    "N0: task T2 \"meet\" at ",
    "N1: task T2 \"meet\" at ",
    "N2: task T2 \"meet\" at ",
    "panicked on N2: the disk is on fire",
];

/// Errors, panics, mappers and memory of a program of three processes.
pub(super) fn facade<'a>(mpi: &Mpi, program: &'a Program, scratch: &Path) -> Vec<Stage<'a>> {
    let stage = |name: &str, role, told, end| {
        let expected = Expected::Told(told, end);
        Stage::new(format!("facade: {name}"), program, &["-n", "3"], expected).role(role)
    };
    let unwritable = scratch.join("unwritable.txt").display().to_string();
    vec![
        stage("an error of a host task", "failing", FAILED, End::Well),
        stage("a file that cannot be written", "unwritable", UNWRITABLE, End::Well)
            .with("CELERITY_PRINT_GRAPHS", &unwritable),
        stage("an end that takes its time", "lingering", LINGERING, End::Badly),
        stage("a mapper that does not return", "blocked", BLOCKED, End::Well),
        stage("a mapper of many opinions", "fickle", FICKLE, End::Badly),
        Stage {
            // A launcher that ends all processes at once may not pass on what one has said.
            launch: mpi.three_with_survivors().to_vec(),
            ..stage("a stack that overflows", "overflowing", OVERFLOWING, End::Somehow)
        },
        stage("a value that panics", "dropping", DROPPING, End::Badly),
        stage("a combiner that panics", "combiner-panic", COMBINER, End::Badly),
        stage("a combination that panics", "combination-panic", COMBINATION, End::Badly),
        stage("a mapper that panics", "mapper-panic", IGNORANT, End::Badly),
        stage("a host task that panics", "host-task-panic", FRAGILE, End::Badly),
        stage("a fence without memory", "fence", FENCE, End::Badly),
        stage("host tasks of which one panics", "collective-panic", MEETING, End::Badly),
        stage(
            "host tasks of which one panics, others in MPI",
            "collective-mpi-panic",
            MEETING_IN_MPI,
            End::Badly,
        ),
        stage(
            "host tasks of which one panics, others wait for it to ask for MPI",
            "collective-mpi-absent",
            MEETING_IN_MPI,
            End::Badly,
        ),
        stage(
            "host tasks of which one panics, others come to MPI later",
            "collective-mpi-late",
            MEETING_LATE,
            End::Badly,
        ),
    ]
}
