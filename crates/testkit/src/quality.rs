//! How good schedules are, in what they cost: instructions, and bytes that are
//! allocated, copied and sent per step of a program's loop, all nodes together.
//! Whether they are right is the business of the checks.

use std::collections::BTreeMap;
use std::iter::Sum;

use celerity_idag::{Instruction, Lifetime, LifetimeChange, Lookahead, MemoryId};

use crate::check::Configuration;
use crate::corpus;
use crate::program::{Op, Program, TaskKind};
use crate::trace::InstructionTrace;
use crate::traffic::BytesMoved;
use crate::violation::Violation;

/// A program by its number of steps.
pub type Stepped = fn(usize) -> Program;

/// The programs that are judged, at a size where chunks are much larger than
/// their borders.
pub const PROGRAMS: [(&str, Stepped); 6] = [
    ("nbody, 65536 bodies", |steps| corpus::nbody(65_536, steps)),
    ("wave_sim, 2048², tiles", |steps| corpus::wave_sim([2048, 2048], steps)),
    ("rsim, 8192 wide", |steps| corpus::rsim(8192, steps)),
    ("matmul, 1024²", |steps| corpus::matmul(1024, steps)),
    ("jacobi, 2050²", |steps| corpus::jacobi([2050, 2050], steps)),
    ("transpose, 1024²", |steps| corpus::transpose(1024, steps)),
];

/// What a schedule costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of all kinds.
    pub instructions: u64,
    /// Bytes of all allocations, user memory aside.
    pub allocated: u64,
    /// Bytes of the allocations that are not given back, in devices' memories.
    pub on_devices: u64,
    /// As before, in host memory.
    pub on_hosts: u64,
    /// Bytes copied within nodes.
    pub copied: u64,
    /// Bytes sent between nodes.
    pub sent: u64,
}

impl Cost {
    /// What one node's instructions cost.
    fn of(instructions: &[Instruction]) -> Self {
        let (mut cost, mut alive) = (Self::default(), BTreeMap::new());
        for effects in instructions.iter().map(Instruction::effects) {
            let traffic = BytesMoved::of(&effects);
            cost.add(traffic);
            let Some(Lifetime { allocation, memory, change }) = effects.lifetime else { continue };
            if change == LifetimeChange::Ended {
                alive.remove(&allocation);
                continue;
            }
            let (_, bytes) = alive.entry(allocation).or_insert((memory, 0));
            *bytes += traffic.allocated.unwrap_or_default();
        }
        let held = |on_host: bool| {
            let there = alive.values().filter(|(memory, _)| (*memory == MemoryId::HOST) == on_host);
            there.map(|(_, bytes)| bytes).sum()
        };
        (cost.on_devices, cost.on_hosts) = (held(false), held(true));
        cost
    }

    fn add(&mut self, traffic: BytesMoved) {
        self.instructions += 1;
        self.allocated += traffic.allocated.unwrap_or_default();
        self.copied += traffic.copied.unwrap_or_default();
        self.sent += traffic.sent.unwrap_or_default();
    }

    /// The average step, if `shorter` is the same program with `steps` less.
    fn per_step(self, shorter: Self, steps: u64) -> [f64; 4] {
        let fields = |cost: Self| [cost.instructions, cost.allocated, cost.copied, cost.sent];
        let (long, short) = (fields(self), fields(shorter));
        [0, 1, 2, 3].map(|field| (long[field] as f64 - short[field] as f64) / steps as f64)
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |a, b| Self {
            instructions: a.instructions + b.instructions,
            allocated: a.allocated + b.allocated,
            on_devices: a.on_devices + b.on_devices,
            on_hosts: a.on_hosts + b.on_hosts,
            copied: a.copied + b.copied,
            sent: a.sent + b.sent,
        })
    }
}

/// What all nodes' schedules of a whole program cost.
///
/// # Errors
/// If a generator refuses the program.
pub fn cost(program: &Program, configuration: &Configuration) -> Result<Cost, Violation> {
    let nodes = InstructionTrace::of_program(program, configuration)?;
    Ok(nodes.iter().map(|node| Cost::of(&node.instructions)).sum())
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
    let shorter = cost(&unobserved(program(WARM_UP)), configuration)?;
    let longer = cost(&unobserved(program(WARM_UP + STEPS)), configuration)?;
    Ok(longer.per_step(shorter, STEPS as u64))
}

/// The program without the fences at its end, which copy everything to the host.
fn unobserved(mut program: Program) -> Program {
    let is_fence = |op: &Op| matches!(op, Op::Task(task) if task.kind == TaskKind::Fence);
    program.ops.retain(|op| !is_fence(op));
    program
}

/// The bytes that all allocations of all nodes hold after a program's loop: on
/// devices, and on hosts.
///
/// # Errors
/// If a generator refuses the program.
pub fn memory(program: Stepped, configuration: &Configuration) -> Result<[u64; 2], Violation> {
    let cost = cost(&unobserved(program(WARM_UP)), configuration)?;
    Ok([cost.on_devices, cost.on_hosts])
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
        "| program | nodes × devices | instructions | bytes allocated | bytes copied | bytes sent \
         | held on devices | held on hosts |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (name, program) in PROGRAMS {
        for nodes in [1, 2, 4, 8] {
            for devices in [1, 2, 4] {
                let step = cost_per_step(program, &cluster(nodes, devices))?;
                let [instructions, allocated, copied, sent] = step.map(|value| value.round());
                let [on_devices, on_hosts] = memory(program, &cluster(nodes, devices))?;
                table += &format!(
                    "| {name} | {nodes} × {devices} | {instructions} | {allocated} | {copied} \
                     | {sent} | {on_devices} | {on_hosts} |\n"
                );
            }
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of an element in the corpus.
    const WORD: f64 = 8.0;

    /// Every cluster of the table.
    fn clusters() -> impl Iterator<Item = (f64, f64, Configuration)> {
        let all = [1, 2, 4, 8].into_iter().flat_map(|n| [1, 2, 4].map(|d| (n, d)));
        all.map(|(n, d)| (n as f64, d as f64, cluster(n, d)))
    }

    /// Checks bytes copied and sent per step against formulas in nodes and devices.
    fn assert_moves(program: usize, copied: fn(f64, f64) -> f64, sent: fn(f64) -> f64) {
        let (name, program) = PROGRAMS[program];
        for (n, d, configuration) in clusters() {
            let [_, _, found, on_wire] = cost_per_step(program, &configuration).unwrap();
            assert_eq!([found, on_wire], [copied(n, d), sent(n)], "{name}, {n} × {d}");
        }
    }

    /// What it costs in copies if everybody needs all: each part goes to the host
    /// once, to be sent; what arrives goes to all devices, and what a device has
    /// to its neighbours.
    fn gathered(n: f64, d: f64) -> f64 {
        f64::from(n > 1.0) + d * (n - 1.0) + (d - 1.0)
    }

    #[test]
    fn an_all_gather_moves_every_part_to_everybody_once() {
        assert_moves(0, |n, d| 65_536.0 * WORD * gathered(n, d), |n| 65_536.0 * WORD * (n - 1.0));
        assert_moves(2, |n, d| 8_192.0 * WORD * gathered(n, d), |n| 8_192.0 * WORD * (n - 1.0));
        assert_moves(
            3,
            |n, d| 1024.0 * 1024.0 * WORD * gathered(n, d),
            |n| 1024.0 * 1024.0 * WORD * (n - 1.0),
        );
    }

    #[test]
    fn a_transposition_moves_what_changes_sides() {
        const MATRIX: f64 = 1024.0 * 1024.0 * WORD;
        let sent = |n| MATRIX * (1.0 - 1.0 / n);
        assert_moves(5, |n, d| 2.0 * MATRIX * (1.0 - 1.0 / n) + MATRIX / n * (1.0 - 1.0 / d), sent);
    }

    #[test]
    fn a_stencil_moves_its_borders_and_nothing_else() {
        // The border's corners were never written: they need not move.
        const ROW: f64 = 2048.0 * WORD;
        let sent = |n| 2.0 * ROW * (n - 1.0);
        // What is sent goes to the host first, and what arrives to the device.
        assert_moves(4, |n, d| 4.0 * ROW * (n - 1.0) + 2.0 * ROW * n * (d - 1.0), sent);
    }

    #[test]
    fn tiles_move_what_lies_along_their_sides() {
        // Lines that cut the field, or a node's part of it, with as many rows and
        // columns of tiles as powers of two allow.
        fn cuts(tiles: f64) -> [f64; 2] {
            let long = 2.0_f64.powf(tiles.log2().div_euclid(2.0));
            [long - 1.0, tiles / long - 1.0]
        }
        let (_, program) = PROGRAMS[1];
        for (n, d, configuration) in clusters().filter(|(n, d, _)| n * d < 32.0) {
            let [_, allocated, copied, sent] = cost_per_step(program, &configuration).unwrap();
            let side = 2.0 * 2048.0 * WORD;
            let expected = side * cuts(n).iter().sum::<f64>();
            assert_eq!([allocated, sent], [0.0, expected], "{n} × {d}");
            assert!(copied >= 2.0 * sent && (d > 1.0 || copied == 2.0 * sent), "{n} × {d}");
        }
    }

    #[test]
    fn hosts_hold_borders_and_not_tiles() {
        let (_, program) = PROGRAMS[1];
        // On a grid of 2 × 2 nodes each sends two borders of two buffers, and receives as many.
        let borders = 4 * 2 * (2 + 2) * 1024 * 8;
        for devices in [1, 2, 4] {
            let [_, on_hosts] = memory(program, &cluster(4, devices)).unwrap();
            assert_eq!(on_hosts, borders, "{devices} devices");
        }
    }

    #[test]
    fn nothing_that_does_not_grow_is_allocated_in_the_steady_state() {
        for (name, program) in PROGRAMS {
            for (n, d, configuration) in clusters() {
                let [_, allocated, ..] = cost_per_step(program, &configuration).unwrap();
                // A row of rsim per step, on every device and, to be sent, on every host.
                let row = 8192.0 * WORD * (n * d + if n > 1.0 { n } else { 0.0 });
                let expected = if name.starts_with("rsim") { row } else { 0.0 };
                assert_eq!(allocated, expected, "{name}, {n} × {d}");
            }
        }
    }
}
