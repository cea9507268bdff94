//! The executor's engine alone: submission, selection and retirement.

use std::collections::VecDeque;

use celerity_executor::{Engine, LaneGroup, LaneId, Target};
use celerity_idag::InstructionId;

use crate::case::Case;

/// Instructions that a case submits.
const INSTRUCTIONS: u64 = 2_000;

/// Instructions in flight.
const WINDOW: usize = 32;

/// What each instruction waits for, as distances to earlier ones.
const PATTERNS: [(&str, &[u64]); 4] = [
    ("independent", &[]),
    ("chain", &[1]),
    ("stencil of 4 devices", &[3, 4, 5]),
    ("eight dependencies", &[1, 2, 3, 4, 5, 6, 7, 8]),
];

pub(crate) fn cases() -> Vec<Case> {
    let case = |(name, distances): (&str, &'static [u64])| {
        Case::new(format!("engine/{name}"), move || {
            let mut driver = Driver::new();
            move || (0..INSTRUCTIONS).for_each(|_| driver.step(distances))
        })
    };
    PATTERNS.map(case).into()
}

struct Driver {
    engine: Engine,
    newest: u64,
    running: VecDeque<InstructionId>,
}

impl Driver {
    fn new() -> Self {
        Self { engine: Engine::new(16), newest: 0, running: VecDeque::with_capacity(2 * WINDOW) }
    }

    /// Submits one instruction, starts what may start, and ends the oldest of many.
    fn step(&mut self, distances: &[u64]) {
        let earlier =
            |distance: &u64| self.newest.checked_sub(*distance).map(InstructionId::from_index);
        let dependencies: Vec<InstructionId> = distances.iter().filter_map(earlier).collect();
        let first = u16::try_from(self.newest % 4).expect("below 4") * 3;
        let target = Target::Lanes(LaneGroup::new(LaneId::from_slot(first), 2));
        let id = InstructionId::from_index(self.newest);
        let _ = self.engine.submit(id, &dependencies, target);
        self.newest += 1;
        while let Some(assignment) = self.engine.next_assignment() {
            self.running.push_back(assignment.instruction);
        }
        if self.engine.incomplete() > WINDOW {
            let oldest = self.running.pop_front().expect("something runs");
            let _ = self.engine.complete(oldest);
        }
    }
}
