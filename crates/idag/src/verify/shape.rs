//! Ids, edges, horizons and epochs.

use std::collections::BTreeSet;

use super::{Broken, synchronizes};
use crate::instruction::{Instruction, InstructionId, InstructionKind};

/// What has been seen of a graph's shape.
#[derive(Debug)]
pub(super) struct Shape {
    next: InstructionId,
    /// Those that nobody waits for.
    leaves: BTreeSet<InstructionId>,
    /// The synchronisation point.
    point: InstructionId,
    /// The newest horizon: the next one makes it the point.
    pending: Option<InstructionId>,
}

impl Default for Shape {
    fn default() -> Self {
        let first = InstructionId::from_index(0);
        Self { next: first, leaves: BTreeSet::new(), point: first, pending: None }
    }
}

impl Shape {
    pub(super) fn check(&mut self, instruction: &Instruction, broken: &mut Vec<Broken>) {
        let id = instruction.id;
        if id != self.next {
            broken.push(Broken::Id { expected: self.next, found: id });
        }
        self.check_edges(instruction, broken);
        for on in &instruction.dependencies {
            self.leaves.remove(on);
        }
        if synchronizes(&instruction.kind) {
            let missed = std::mem::take(&mut self.leaves).into_iter();
            broken.extend(missed.map(|missed| Broken::NotReached { point: id, missed }));
            self.synchronize(id, &instruction.kind);
        }
        self.leaves.insert(id);
        self.next = id.next();
    }

    fn check_edges(&self, instruction: &Instruction, broken: &mut Vec<Broken>) {
        let later = instruction.id;
        if instruction.dependencies.is_empty() && later.index() > 0 {
            broken.push(Broken::Orphan { instruction: later });
        }
        for (position, &on) in instruction.dependencies.iter().enumerate() {
            let why = if on >= later {
                "which is not older"
            } else if on < self.point {
                "which is older than the synchronisation point"
            } else if instruction.dependencies[..position].contains(&on) {
                "a second time"
            } else {
                continue;
            };
            broken.push(Broken::Edge { later, on, why });
        }
    }

    fn synchronize(&mut self, id: InstructionId, kind: &InstructionKind) {
        match kind {
            InstructionKind::Epoch { .. } => (self.point, self.pending) = (id, None),
            _ => self.point = self.pending.replace(id).unwrap_or(self.point),
        }
    }
}
