//! How good schedules are, in what they cost: instructions, and bytes that are
//! allocated, copied and sent per step of a program's loop, all nodes together.
//! Whether they are right is the business of the checks.

use celerity_idag::{Instruction, InstructionKind, Lookahead};

use crate::check::Configuration;
use crate::corpus;
use crate::program::Program;
use crate::trace::{CommandTrace, InstructionTrace, TaskTrace};
use crate::violation::Violation;

/// A program by its number of steps.
pub type Stepped = fn(usize) -> Program;

/// The programs that are judged, at a size where chunks are much larger than
/// their borders.
pub const PROGRAMS: [(&str, Stepped); 6] = [
    ("nbody, 128 bodies", |steps| corpus::nbody(128, steps)),
    ("wave_sim, 26², tiles", |steps| corpus::wave_sim([26, 26], steps)),
    ("rsim, 32 wide", |steps| corpus::rsim(32, steps)),
    ("matmul, 16²", |steps| corpus::matmul(16, steps)),
    ("jacobi, 26²", |steps| corpus::jacobi([26, 26], steps)),
    ("transpose, 16²", |steps| corpus::transpose(16, steps)),
];

/// What a schedule costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of all kinds.
    pub instructions: u64,
    /// Bytes of all allocations, user memory aside.
    pub allocated: u64,
    /// Bytes copied within nodes.
    pub copied: u64,
    /// Bytes sent between nodes.
    pub sent: u64,
}

impl Cost {
    fn add(&mut self, instruction: &Instruction) {
        self.instructions += 1;
        match &instruction.kind {
            InstructionKind::Alloc { bytes, .. } => self.allocated += bytes,
            InstructionKind::Copy { elements, elem_size, .. } => {
                self.copied += elements.volume() * elem_size;
            }
            InstructionKind::Send { elements, elem_size, .. } => {
                self.sent += elements.volume() * elem_size;
            }
            _ => {}
        }
    }

    /// The average step, if `shorter` is the same program with `steps` less.
    fn per_step(self, shorter: Self, steps: u64) -> [f64; 4] {
        let fields = |cost: Self| [cost.instructions, cost.allocated, cost.copied, cost.sent];
        let (long, short) = (fields(self), fields(shorter));
        [0, 1, 2, 3].map(|field| (long[field] as f64 - short[field] as f64) / steps as f64)
    }
}

/// What all nodes' schedules of a whole program cost.
///
/// # Errors
/// If a generator refuses the program.
pub fn cost(program: &Program, configuration: &Configuration) -> Result<Cost, Violation> {
    let tasks = TaskTrace::of(program, configuration.task_graph())?;
    let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
    let nodes = InstructionTrace::on(&tasks, &commands, configuration)?;
    let mut cost = Cost::default();
    nodes.iter().flat_map(|node| &node.instructions).for_each(|one| cost.add(one));
    Ok(cost)
}

/// Steps before the first that counts, so that everybody has allocated what
/// does not grow, and steps that count: even, as buffers change places.
const WARM_UP: usize = 16;
const STEPS: usize = 8;

/// The cost of one step of a program in the steady state: instructions, bytes
/// allocated, bytes copied, bytes sent.
///
/// # Errors
/// If a generator refuses the program.
pub fn cost_per_step(
    program: Stepped,
    configuration: &Configuration,
) -> Result<[f64; 4], Violation> {
    let shorter = cost(&program(WARM_UP), configuration)?;
    let longer = cost(&program(WARM_UP + STEPS), configuration)?;
    Ok(longer.per_step(shorter, STEPS as u64))
}

/// A cluster with the runtime's default lookahead.
fn cluster(nodes: usize, devices: usize) -> Configuration {
    Configuration { lookahead: Lookahead::Auto, ..Configuration::new(nodes, devices) }
}

/// A table in Markdown: every program on nodes {1,2,4,8} × devices {1,2,4}.
///
/// # Errors
/// If a generator refuses a program.
pub fn table() -> Result<String, Violation> {
    let mut table = String::from(
        "| program | nodes × devices | instructions | bytes allocated | bytes copied | bytes sent |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for (name, program) in PROGRAMS {
        for nodes in [1, 2, 4, 8] {
            for devices in [1, 2, 4] {
                let step = cost_per_step(program, &cluster(nodes, devices))?;
                let [instructions, allocated, copied, sent] = step.map(|value| value.round());
                table += &format!(
                    "| {name} | {nodes} × {devices} | {instructions} | {allocated} | {copied} | {sent} |\n"
                );
            }
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(program: Stepped, nodes: usize, devices: usize) -> [f64; 4] {
        cost_per_step(program, &cluster(nodes, devices)).unwrap()
    }

    /// Words of 8 bytes in the corpus.
    const WORD: f64 = 8.0;

    #[test]
    fn a_stencil_moves_its_borders_and_nothing_else() {
        // Bands of 26 columns: each inner border crosses both ways.
        let jacobi: Stepped = |steps| corpus::jacobi([26, 26], steps);
        for (nodes, devices) in [(1, 1), (1, 4), (2, 1), (4, 1)] {
            let [_, allocated, copied, sent] = step(jacobi, nodes, devices);
            // The border's corners were never written: they need not move.
            let row = 24.0 * WORD;
            assert_eq!(allocated, 0.0, "{nodes}x{devices}");
            assert_eq!(sent, 2.0 * row * (nodes - 1) as f64, "{nodes}x{devices}");
            let between_devices = 2.0 * row * (nodes * (devices - 1)) as f64;
            // What is sent goes to the host first, and what arrives to the device.
            assert_eq!(copied, between_devices + 2.0 * sent, "{nodes}x{devices}");
        }
    }

    #[test]
    fn an_all_gather_sends_every_part_to_every_node_once() {
        let nbody: Stepped = |steps| corpus::nbody(128, steps);
        for nodes in [1, 2, 4, 8] {
            let [_, allocated, _, sent] = step(nbody, nodes, 2);
            assert_eq!(allocated, 0.0);
            assert_eq!(sent, 128.0 * WORD * (nodes - 1) as f64);
        }
    }
}
