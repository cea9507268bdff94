//! How schedules bring data to the devices of a node that read it: copies per step of a program's
//! loop, all nodes together, by the memories at their ends. Judges nothing.

use std::fmt;

use celerity_idag::{Instruction, Lookahead};

use crate::check::Configuration;
use crate::corpus;
use crate::program::{Op, Program, TaskKind};
use crate::quality::Stepped;
use crate::trace::InstructionTrace;
use crate::traffic::BytesMoved;
use crate::violation::Violation;

/// The programs whose copies are counted. Elements have 8 bytes.
const PROGRAMS: [(&str, Stepped); 6] = [
    ("nbody, 65536 bodies", |steps| corpus::nbody(65_536, steps)),
    ("nbody, 4194304 bodies", |steps| corpus::nbody(4_194_304, steps)),
    ("patterns, 256²", |steps| corpus::patterns(256, steps)),
    ("cg, 65536 rows", |steps| corpus::cg(65_536, steps)),
    ("matmul, 1024²", |steps| corpus::matmul(1024, steps)),
    ("wave_sim, 2048²", |steps| corpus::wave_sim([2048, 2048], steps)),
];

/// The clusters on which they are counted: nodes and devices.
const CLUSTERS: [(usize, usize); 4] = [(1, 2), (1, 4), (1, 8), (2, 4)];

/// Bytes from which on devices share what arrives, as for GPUs.
const SHARED_FROM: u64 = 1 << 20;

/// Steps before the first that counts, and steps that count: even, as buffers change places.
const WARM_UP: usize = 8;
const STEPS: usize = 4;

/// Numbers and bytes of copies, by the memories at their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// From devices to the host.
    pub to_host: CopyTotals,
    /// From the host to devices.
    pub from_host: CopyTotals,
    /// From device to device.
    pub between_devices: CopyTotals,
}

/// How many copies, and how much they move together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyTotals {
    /// Copies.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Copies {
    /// The copies among the instructions of one node.
    #[must_use]
    pub fn among(instructions: &[Instruction]) -> Self {
        let mut copies = Self::default();
        for effects in instructions.iter().map(Instruction::effects) {
            let (Some(source), Some(target)) = (&effects.source, &effects.target) else { continue };
            let on_device = |memory: celerity_idag::MemoryId| memory.device().is_some();
            let moved =
                match (on_device(source.placement.memory), on_device(target.placement.memory)) {
                    (true, true) if source.placement.memory != target.placement.memory => {
                        &mut copies.between_devices
                    }
                    (true, false) => &mut copies.to_host,
                    (false, true) => &mut copies.from_host,
                    (true, true) | (false, false) => continue,
                };
            moved.count += 1;
            moved.bytes += BytesMoved::of(&effects).copied.unwrap_or_default();
        }
        copies
    }

    /// All three kinds.
    fn kinds(self) -> [CopyTotals; 3] {
        [self.to_host, self.from_host, self.between_devices]
    }
}

impl fmt::Display for CopyTotals {
    /// `12 of 128 KiB`: the number of copies, and what each moves on average.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes.checked_div(self.count) {
            None => f.write_str("0"),
            Some(bytes) if bytes < 1 << 10 => write!(f, "{} of {bytes} B", self.count),
            Some(bytes) => write!(f, "{} of {} KiB", self.count, bytes >> 10),
        }
    }
}

/// The copies of all nodes in so many steps of a program.
fn of_steps(
    program: Stepped,
    steps: usize,
    configuration: &Configuration,
) -> Result<[CopyTotals; 3], Violation> {
    let mut program: Program = program(steps);
    program.ops.retain(|op| !matches!(op, Op::Task(task) if task.kind == TaskKind::Fence));
    let mut sum = [CopyTotals::default(); 3];
    for node in InstructionTrace::of_program(&program, configuration)? {
        for (sum, more) in sum.iter_mut().zip(Copies::among(&node.instructions).kinds()) {
            *sum = CopyTotals { count: sum.count + more.count, bytes: sum.bytes + more.bytes };
        }
    }
    Ok(sum)
}

/// Copies of one step in the steady state: to the host, from the host, between devices.
///
/// # Errors
/// If a generator refuses the program.
pub fn per_step(
    program: Stepped,
    configuration: &Configuration,
) -> Result<[CopyTotals; 3], Violation> {
    let shorter = of_steps(program, WARM_UP, configuration)?;
    let longer = of_steps(program, WARM_UP + STEPS, configuration)?;
    let average = |long: u64, short: u64| (long - short) / STEPS as u64;
    Ok([0, 1, 2].map(|kind| CopyTotals {
        count: average(longer[kind].count, shorter[kind].count),
        bytes: average(longer[kind].bytes, shorter[kind].bytes),
    }))
}

/// A table in Markdown: copies per step, and how much each moves on average.
///
/// # Errors
/// If a generator refuses a program.
pub fn table() -> Result<String, Violation> {
    let mut table = String::from(
        "| program | nodes × devices | to the host | from the host | between devices |\n\
         | --- | --- | ---: | ---: | ---: |\n",
    );
    for (name, program) in PROGRAMS {
        for (nodes, devices) in CLUSTERS {
            let cluster = Configuration::new(nodes, devices);
            let configuration =
                Configuration { lookahead: Lookahead::Auto, share_from: SHARED_FROM, ..cluster };
            let [to_host, from_host, between] = per_step(program, &configuration)?;
            table += &format!(
                "| {name} | {nodes} × {devices} | {to_host} | {from_host} | {between} |\n"
            );
        }
    }
    Ok(table)
}
