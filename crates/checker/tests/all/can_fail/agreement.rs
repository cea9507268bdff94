//! The checker and the brute-force models, which share no code, agree whether
//! a randomly damaged schedule is sound.
//!
//! They differ lawfully where this test does not look. The models also refuse
//! an edge without a reason. The checker also refuses an edge to what a horizon
//! stands in for, and takes nothing instead of an edge to that horizon; so
//! there are no horizons here. It wants each part of a split receive awaited
//! once, pilots only for sends, and messages and allocations numbered in order;
//! no damage here is of that kind.

use celerity_cdag::CommandKind;
use celerity_idag::InstructionKind;
use celerity_regions::{Box3, Region};
use celerity_testkit::check::Configuration;
use celerity_testkit::program::{Sizes, any_program};
use celerity_testkit::violation::Violation;
use proptest::prelude::*;

use super::case::{Case, without};

/// A way to damage a schedule; `pick` chooses among the places for it.
#[derive(Clone, Copy, Debug)]
enum Damage {
    DropTaskEdge,
    DropCommandEdge,
    DropInstructionEdge,
    ShrinkCopy,
    ShrinkSend,
    ShrinkAwait,
    ShrinkPush,
    ShrinkChunk,
    ShrinkKernel,
    ShrinkBinding,
    WrongElemSize,
    WrongBytes,
    DropPilot,
}

fn any_damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        2 => Just(Damage::DropTaskEdge),
        2 => Just(Damage::DropCommandEdge),
        4 => Just(Damage::DropInstructionEdge),
        4 => Just(Damage::ShrinkCopy),
        1 => Just(Damage::ShrinkSend),
        2 => Just(Damage::ShrinkAwait),
        2 => Just(Damage::ShrinkPush),
        1 => Just(Damage::ShrinkChunk),
        1 => Just(Damage::ShrinkKernel),
        1 => Just(Damage::ShrinkBinding),
        1 => Just(Damage::WrongElemSize),
        1 => Just(Damage::WrongBytes),
        1 => Just(Damage::DropPilot),
    ]
}

/// Cuts the last row off a box that has several.
fn shrink(part: &mut Box3) -> bool {
    let wide = (0..3).find(|&dim| part.range()[dim] > 1);
    if let Some(dim) = wide {
        let mut max = part.max();
        max[dim] -= 1;
        *part = Box3::new(part.min(), max);
    }
    wide.is_some()
}

fn shrink_region(region: &mut Region) -> bool {
    let mut boxes = region.boxes().to_vec();
    let shrunk = boxes.first_mut().is_some_and(shrink);
    *region = Region::from_boxes(boxes);
    shrunk
}

/// Damages the `pick`-th place, modulo their number. Whether there was one.
fn damage(case: &mut Case, damage: Damage, pick: usize) -> bool {
    match damage {
        Damage::DropTaskEdge => drop_task_edge(case, pick),
        Damage::DropCommandEdge => drop_command_edge(case, pick),
        Damage::DropPilot => drop_pilot(case, pick),
        Damage::ShrinkAwait | Damage::ShrinkPush | Damage::ShrinkChunk => {
            let nodes = case.commands.iter_mut();
            let all = nodes.flat_map(|node| node.commands.iter_mut().map(|one| &mut one.kind));
            first_of(all.collect(), pick, |kind| damage_command(kind, damage))
        }
        _ => {
            let nodes = case.instructions.iter_mut();
            let all = nodes.flat_map(|node| node.instructions.iter_mut());
            first_of(all.collect(), pick, |one| match damage {
                Damage::DropInstructionEdge => one.dependencies.pop().is_some(),
                _ => damage_instruction(&mut one.kind, damage),
            })
        }
    }
}

/// Tries all places, beginning with the `pick`-th.
fn first_of<T>(mut all: Vec<T>, pick: usize, mut change: impl FnMut(&mut T) -> bool) -> bool {
    let count = all.len();
    (0..count).any(|step| change(&mut all[(pick + step) % count]))
}

fn damage_command(kind: &mut CommandKind, damage: Damage) -> bool {
    match (kind, damage) {
        (CommandKind::AwaitPush { region, .. }, Damage::ShrinkAwait) => shrink_region(region),
        (CommandKind::Push { targets, .. }, Damage::ShrinkPush) => shrink_region(&mut targets[0].1),
        (CommandKind::Execute { chunk }, Damage::ShrinkChunk) => shrink(chunk),
        _ => false,
    }
}

fn damage_instruction(kind: &mut InstructionKind, damage: Damage) -> bool {
    match (kind, damage) {
        (InstructionKind::Send { region, .. }, Damage::ShrinkSend) => shrink_region(region),
        (InstructionKind::Copy { region, .. }, Damage::ShrinkCopy) => shrink_region(region),
        (InstructionKind::Kernel { chunk, .. }, Damage::ShrinkKernel) => shrink(chunk),
        (InstructionKind::Kernel { accesses, .. }, Damage::ShrinkBinding) => {
            accesses.first_mut().is_some_and(|access| shrink_region(&mut access.region))
        }
        (InstructionKind::Copy { elem_size: size, .. }, Damage::WrongElemSize)
        | (InstructionKind::Alloc { bytes: size, .. }, Damage::WrongBytes) => {
            *size += 8;
            true
        }
        _ => false,
    }
}

fn drop_task_edge(case: &mut Case, pick: usize) -> bool {
    let position = pick % case.tasks.tasks.len();
    let Some(edge) = case.tasks.tasks[position].dependencies.iter().next() else { return false };
    case.change_task(position, |task| task.dependencies = without(&task.dependencies, edge.on));
    true
}

fn drop_command_edge(case: &mut Case, pick: usize) -> bool {
    let nodes = case.commands.iter_mut();
    let all = nodes.flat_map(|node| node.commands.iter_mut()).collect();
    first_of(all, pick, |command| {
        let Some(edge) = command.dependencies.iter().next() else { return false };
        command.dependencies = without(&command.dependencies, edge.on);
        true
    })
}

fn drop_pilot(case: &mut Case, pick: usize) -> bool {
    let mut nodes = case.instructions.iter_mut().filter(|node| !node.pilots.is_empty());
    let Some(node) = nodes.next() else { return false };
    let position = pick % node.pilots.len();
    node.pilots.remove(position);
    true
}

proptest! {
    #[test]
    fn checker_and_models_agree(
        program in any_program(Sizes::default()),
        (nodes, devices) in (1..4usize, 1..3usize),
        kind in any_damage(),
        pick in 0..1000usize,
    ) {
        let endless = 1000;
        let mut case = Case::new(program, Configuration {
            horizon_step: endless,
            horizon_max_parallelism: endless,
            ..Configuration::new(nodes, devices)
        });
        if damage(&mut case, kind, pick) {
            let (verdict, models) = (case.verdict(), case.verdict_of_models());
            if let Err(Violation::Spurious { .. }) = models {
                // Only the models mind, and they do not say whether that is all.
                return Ok(());
            }
            let same = verdict.is_err() == models.is_err();
            prop_assert!(same, "{:?}\n{:?}\n{}", verdict, models, case.program);
        }
    }
}
