//! The model notices deliberate mistakes: a check that cannot fail checks
//! nothing.

use celerity_idag::{Instruction, InstructionId, InstructionKind};
use celerity_regions::{Box3, Region};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::model::idag;
use celerity_testkit::program::Program;
use celerity_testkit::queries::{BufferNames, Dag};
use celerity_testkit::trace::{CommandTrace, InstructionTrace, TaskTrace};
use celerity_testkit::truth::Truth;
use celerity_testkit::violation::Violation;

const NODES: usize = 2;
const DEVICES: usize = 2;

/// A program with the instruction graphs of two nodes of two devices.
struct Case {
    program: Program,
    tasks: TaskTrace,
    nodes: Vec<InstructionTrace>,
}

impl Case {
    fn new(program: Program) -> Self {
        let tasks = TaskTrace::of(&program, Configuration::new(NODES, DEVICES).task_graph());
        let tasks = tasks.expect("the program is lawful");
        let commands = CommandTrace::of_all(&tasks, NODES).expect("the program is lawful");
        let nodes = InstructionTrace::of_all(&tasks, &commands, DEVICES);
        let case = Self { program, tasks, nodes: nodes.expect("the program is lawful") };
        assert_eq!(case.verdict(), Ok(()));
        case
    }

    fn verdict(&self) -> Result<(), Violation> {
        let configuration = Configuration { seed: 7, ..Configuration::new(NODES, DEVICES) };
        idag::check(&Truth::of(&self.program), &self.tasks, &self.nodes, &configuration)
    }

    /// Changes the first instruction of a node that `change` wants to change.
    fn tamper(&mut self, node: usize, mut change: impl FnMut(&mut InstructionKind) -> bool) {
        let mut instructions = self.nodes[node].instructions.iter_mut();
        let found = instructions.any(|instruction| change(&mut instruction.kind));
        assert!(found, "there is no instruction to tamper with");
    }
}

#[test]
fn every_edge_that_orders_memory_is_missed() {
    let mut dropped_edges = 0;
    for (name, program) in corpus::all(2) {
        let mut case = Case::new(program);
        for position in 0..case.nodes[0].instructions.len() {
            let sound = case.nodes[0].instructions[position].dependencies.clone();
            for &on in &sound {
                let instructions = &mut case.nodes[0].instructions;
                instructions[position].dependencies.retain(|dep| *dep != on);
                if is_needed(instructions, position, on) {
                    assert!(case.verdict().is_err(), "{name}: I{position} without {on}");
                    dropped_edges += 1;
                }
                case.nodes[0].instructions[position].dependencies = sound.clone();
            }
        }
    }
    assert!(dropped_edges > 100, "only {dropped_edges} edges were needed");
}

/// Whether no other edges order the two. Horizons and epochs stand in for
/// older instructions, which may be ordered by other edges, too.
fn is_needed(instructions: &[Instruction], position: usize, on: InstructionId) -> bool {
    let earlier = on.index() as usize;
    let stands_in = matches!(
        instructions[earlier].kind,
        InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. }
    );
    !stands_in
        && !Dag::of_instructions("", instructions, &BufferNames::default())
            .reachability()
            .waits_for(position, earlier)
}

#[test]
fn a_missing_pilot_is_noticed() {
    let mut case = Case::new(corpus::nbody(12, 2));
    case.nodes[0].pilots.pop().expect("something is sent");
    assert!(matches!(case.verdict(), Err(Violation::Mismatched { .. })));
}

#[test]
fn a_pilot_without_a_send_is_noticed() {
    let mut case = Case::new(corpus::nbody(12, 2));
    let mut pilot = case.nodes[0].pilots.last().expect("something is sent").clone();
    pilot.message = pilot.message.next();
    case.nodes[0].pilots.push(pilot);
    assert!(matches!(case.verdict(), Err(Violation::Mismatched { .. })));
}

#[test]
fn a_send_that_brings_too_little_is_noticed() {
    let mut case = Case::new(corpus::nbody(12, 2));
    let shorten = |region: &mut Region| {
        let elements = region.bounding_box();
        *region = Box3::new(elements.min(), [elements.max()[0] - 1, 1, 1]).into();
    };
    shorten(&mut case.nodes[0].pilots[0].region);
    case.tamper(0, |kind| match kind {
        InstructionKind::Send { region, .. } => {
            shorten(region);
            true
        }
        _ => false,
    });
    assert!(matches!(case.verdict(), Err(Violation::Mismatched { .. })));
}

#[test]
fn a_copy_that_brings_too_little_leaves_stale_data() {
    let mut case = Case::new(corpus::nbody(12, 2));
    case.tamper(0, |kind| match kind {
        InstructionKind::Copy { region, .. } if region.volume() > 1 => {
            let all = region.bounding_box();
            *region = Box3::new(all.min(), [all.max()[0] - 1, 1, 1]).into();
            true
        }
        _ => false,
    });
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::Stale { .. }), "{violation}");
}

#[test]
fn a_second_copy_is_redundant() {
    let mut case = Case::new(corpus::nbody(12, 1));
    let trace = &mut case.nodes[0];
    let (position, copy) = trace
        .instructions
        .iter()
        .enumerate()
        .find(|(_, one)| matches!(one.kind, InstructionKind::Copy { .. }))
        .map(|(position, one)| (position, one.clone()))
        .expect("initial contents are copied");
    // Right behind the copy, with all later ids moved up by one.
    let moved = |id: InstructionId| match id.index() > position as u64 {
        true => id.next(),
        false => id,
    };
    for instruction in &mut trace.instructions[position + 1..] {
        instruction.id = instruction.id.next();
        let again = instruction.dependencies.contains(&copy.id);
        instruction.dependencies.iter_mut().for_each(|dep| *dep = moved(*dep));
        if again {
            instruction.dependencies.push(copy.id.next());
        }
    }
    let mut second = Instruction { id: copy.id.next(), ..copy.clone() };
    second.dependencies.push(copy.id);
    trace.instructions.insert(position + 1, second);
    trace.origins.insert(position + 1, trace.origins[position]);
    let violation = case.verdict().unwrap_err();
    let wasteful = matches!(violation, Violation::Redundant { .. } | Violation::Wasted { .. });
    assert!(wasteful, "{violation}");
}

#[test]
fn a_kernel_bound_to_too_little_is_noticed() {
    let mut case = Case::new(corpus::jacobi([8, 6], 1));
    case.tamper(1, |kind| match kind {
        InstructionKind::Kernel { accesses, .. } => {
            let corner = Box3::new(accesses[0].region.bounding_box().min(), [1; 3]);
            accesses[0].region = accesses[0].region.difference_box(&corner);
            let unit = accesses[0].region.boxes()[0].min();
            let unit = Box3::new(unit, unit.map(|coordinate| coordinate + 1));
            accesses[0].region = accesses[0].region.difference_box(&unit);
            true
        }
        _ => false,
    });
    assert!(matches!(case.verdict(), Err(Violation::BadPlacement { .. })));
}

#[test]
fn an_allocation_of_the_wrong_size_is_noticed() {
    let mut case = Case::new(corpus::wave_sim([6, 4], 1));
    case.tamper(0, |kind| match kind {
        InstructionKind::Alloc { bytes, .. } => {
            *bytes += 8;
            true
        }
        _ => false,
    });
    assert!(matches!(case.verdict(), Err(Violation::BadPlacement { .. })));
}

#[test]
fn an_allocation_that_outlives_its_buffer_is_noticed() {
    let mut case = Case::new(corpus::checkpoints(8, 1));
    let trace = &mut case.nodes[0];
    let mut instructions = trace.instructions.iter_mut();
    let free = instructions
        .find(|one| matches!(one.kind, InstructionKind::Free { .. }))
        .expect("the summary is dropped");
    // A horizon of its own has no effect on memory.
    let task = case.tasks.tasks[0].id;
    free.kind = InstructionKind::Horizon { task };
    let violation = case.verdict().unwrap_err();
    assert!(matches!(violation, Violation::Freed { times: 0, .. }), "{violation}");
}

#[test]
fn a_chunk_that_runs_twice_is_noticed() {
    let mut case = Case::new(corpus::nbody(12, 1));
    let mut first = None;
    case.tamper(0, |kind| match (kind, &first) {
        (InstructionKind::Kernel { chunk, .. }, None) => {
            first = Some(*chunk);
            false
        }
        (kind @ InstructionKind::Kernel { .. }, Some(_)) => {
            let InstructionKind::Kernel { chunk, .. } = kind else { unreachable!() };
            *chunk = first.expect("there was a first kernel");
            true
        }
        _ => false,
    });
    assert!(case.verdict().is_err());
}
