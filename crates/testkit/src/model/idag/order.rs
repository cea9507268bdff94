//! Conflicting accesses to one element of one allocation are ordered, and
//! whatever is ordered has a reason.

use std::collections::{BTreeMap, BTreeSet};

use celerity_idag::{AllocationId, InstructionKind};
use celerity_tdag::DependencyKind;

use super::touches::{Allocation, NodeTouches, Touch, Use};
use super::{Cluster, synchronizes};
use crate::element;
use crate::queries::{Dag, Reachability};
use crate::trace::InstructionOrigin;
use crate::violation::Violation;
use crate::visits::strictest;

/// Checks the edges of one node's instructions.
pub(super) fn check(
    cluster: &Cluster<'_>,
    node: usize,
    touches: &NodeTouches,
) -> Result<(), Violation> {
    let dag = &cluster.dags[node];
    let instructions = cluster.nodes[node].instructions.iter();
    let copies = instructions.map(|one| matches!(one.kind, InstructionKind::Copy { .. }));
    let mut checker = Checker {
        dag,
        origins: &cluster.nodes[node].origins,
        copies: copies.collect(),
        reach: dag.reachability(),
        touches,
        cells: BTreeMap::new(),
        reasons: BTreeSet::new(),
    };
    let mut groups = BTreeMap::new();
    for (position, instruction) in cluster.nodes[node].instructions.iter().enumerate() {
        checker.reasons.clear();
        let group = group_of(cluster, &instruction.kind);
        if let Some(before) = group.and_then(|group| groups.insert(group, position)) {
            checker.follow(position, before)?;
        }
        for touch in &touches.touches[position] {
            checker.touch(position, touch)?;
        }
        checker.add_lifetime_reasons(position);
        if let Some(task) = cluster.affecting(&instruction.kind) {
            let earlier = cluster.nodes[node].instructions[..position].iter().enumerate();
            let sharing = earlier.filter(|(_, other)| {
                cluster.affecting(&other.kind).is_some_and(|other| strictest(task, other).is_some())
            });
            checker.reasons.extend(sharing.map(|(on, _)| on));
        }
        if !synchronizes(&instruction.kind) {
            let synchronizes = |on: usize| synchronizes(&cluster.nodes[node].instructions[on].kind);
            checker.check_reasons(position, synchronizes)?;
        }
    }
    checker.check_all_arrived()
}

/// The collective group of what an instruction runs.
fn group_of(cluster: &Cluster<'_>, kind: &InstructionKind) -> Option<usize> {
    let InstructionKind::HostTask { task, .. } = kind else { return None };
    cluster.truth.task(cluster.tasks.op(*task)?).0.kind.group()
}

/// Who is responsible for the contents of an element, and who reads them.
#[derive(Clone, Debug, Default)]
struct Cell {
    /// Any one of these means that the contents are there: the last writer, or
    /// the await receives that cover the element.
    writers: Vec<usize>,
    /// A split receive that nobody has awaited for this element.
    begun: Option<usize>,
    readers: Vec<usize>,
}

struct Checker<'a> {
    dag: &'a Dag,
    /// By instruction.
    origins: &'a [InstructionOrigin],
    /// By instruction: whether it is a copy.
    copies: Vec<bool>,
    reach: Reachability,
    touches: &'a NodeTouches,
    cells: BTreeMap<AllocationId, Vec<Cell>>,
    /// Predecessors that the current instruction may wait for directly.
    reasons: BTreeSet<usize>,
}

impl Checker<'_> {
    /// An instruction comes after the one before it in its collective group.
    fn follow(&mut self, position: usize, before: usize) -> Result<(), Violation> {
        self.reasons.insert(before);
        match self.reach.waits_for(position, before) {
            true => Ok(()),
            false => Err(Violation::Unordered {
                later: self.dag.describe(position),
                earlier: self.dag.describe(before),
                kind: DependencyKind::Order,
                place: "their collective group".into(),
            }),
        }
    }

    fn touch(&mut self, position: usize, touch: &Touch) -> Result<(), Violation> {
        for &slot in &touch.slots {
            let cell = self.cell(touch.allocation, slot).clone();
            let next = match touch.how {
                Use::Read => self.read(position, cell, touch.allocation, slot)?,
                Use::Write | Use::Begin => {
                    self.overwrite(position, cell, touch.allocation, slot)?;
                    let begun = (touch.how == Use::Begin).then_some(position);
                    Cell { writers: vec![position], begun, readers: Vec::new() }
                }
                Use::Arrive => self.arrive(position, cell, touch.allocation, slot)?,
            };
            *self.cell(touch.allocation, slot) = next;
        }
        Ok(())
    }

    fn cell(&mut self, allocation: AllocationId, slot: usize) -> &mut Cell {
        let extent = self.touches.extent(allocation);
        let cells = self.cells.entry(allocation);
        &mut cells.or_insert_with(|| vec![Cell::default(); element::volume(&extent)])[slot]
    }

    fn read(
        &mut self,
        position: usize,
        mut cell: Cell,
        allocation: AllocationId,
        slot: usize,
    ) -> Result<Cell, Violation> {
        if let Some(begun) = cell.begun {
            return Err(self.unordered(position, begun, DependencyKind::True, allocation, slot));
        }
        self.wait_for_any(position, &cell.writers, DependencyKind::True, allocation, slot)?;
        cell.readers.push(position);
        Ok(cell)
    }

    fn overwrite(
        &mut self,
        position: usize,
        cell: Cell,
        allocation: AllocationId,
        slot: usize,
    ) -> Result<(), Violation> {
        if let Some(begun) = cell.begun {
            return Err(self.unordered(position, begun, DependencyKind::Output, allocation, slot));
        }
        self.wait_for_any(position, &cell.writers, DependencyKind::Output, allocation, slot)?;
        self.check_not_wasted(position, &cell, allocation, slot)?;
        for reader in cell.readers.into_iter().filter(|&reader| reader != position) {
            self.wait_for_any(position, &[reader], DependencyKind::Anti, allocation, slot)?;
        }
        Ok(())
    }

    fn check_not_wasted(
        &self,
        position: usize,
        cell: &Cell,
        allocation: AllocationId,
        slot: usize,
    ) -> Result<(), Violation> {
        let mut writers = cell.writers.iter().copied();
        let wasted = writers
            .find(|&writer| self.copies[writer] && self.origins[writer] == self.origins[position]);
        match wasted {
            Some(copy) if cell.readers.is_empty() => Err(Violation::Wasted {
                copy: self.dag.describe(copy),
                overwriter: self.dag.describe(position),
                place: self.place(allocation, slot),
            }),
            _ => Ok(()),
        }
    }

    fn place(&self, allocation: AllocationId, slot: usize) -> String {
        format!("{} {:?}", self.touches.name(allocation), self.touches.point(allocation, slot))
    }

    fn arrive(
        &mut self,
        position: usize,
        mut cell: Cell,
        allocation: AllocationId,
        slot: usize,
    ) -> Result<Cell, Violation> {
        match cell.begun.take() {
            Some(begun) => {
                self.wait_for_any(position, &[begun], DependencyKind::True, allocation, slot)?;
                cell.writers = vec![position];
            }
            // Another await receive covers the element, too.
            None => cell.writers.push(position),
        }
        Ok(cell)
    }

    fn wait_for_any(
        &mut self,
        position: usize,
        any: &[usize],
        kind: DependencyKind,
        allocation: AllocationId,
        slot: usize,
    ) -> Result<(), Violation> {
        self.reasons.extend(any);
        match any.first() {
            Some(&first) if !any.iter().any(|&on| self.reach.waits_for(position, on)) => {
                Err(self.unordered(position, first, kind, allocation, slot))
            }
            _ => Ok(()),
        }
    }

    fn unordered(
        &self,
        later: usize,
        earlier: usize,
        kind: DependencyKind,
        allocation: AllocationId,
        slot: usize,
    ) -> Violation {
        Violation::Unordered {
            later: self.dag.describe(later),
            earlier: self.dag.describe(earlier),
            kind,
            place: self.place(allocation, slot),
        }
    }

    /// Users may wait for the alloc and for more memory, the free for its users, and
    /// what provides memory for what has reserved the addresses.
    fn add_lifetime_reasons(&mut self, position: usize) {
        let NodeTouches { touches, allocations } = self.touches;
        for touch in &touches[position] {
            let allocation = &allocations[&touch.allocation];
            self.reasons.extend(allocation.made_by);
            self.reasons.extend(allocation.providers_of(touch));
        }
        let grown = |one: &&Allocation| one.grown_by().any(|grown| grown == position);
        for grown in allocations.values().filter(grown) {
            self.reasons.extend(grown.made_by);
        }
        for (id, freed) in allocations.iter().filter(|(_, a)| a.freed_by.contains(&position)) {
            let users = touches.iter().enumerate().filter(|(_, of_instruction)| {
                of_instruction.iter().any(|touch| touch.allocation == *id)
            });
            let makers = freed.made_by.into_iter().chain(freed.grown_by());
            self.reasons.extend(users.map(|(user, _)| user).chain(makers));
        }
    }

    fn check_reasons(
        &self,
        position: usize,
        synchronizes: impl Fn(usize) -> bool,
    ) -> Result<(), Violation> {
        let mut edges = self.dag.edges(position).map(|(on, _)| on);
        match edges.find(|on| !synchronizes(*on) && !self.reasons.contains(on)) {
            None => Ok(()),
            Some(on) => Err(Violation::Spurious {
                later: self.dag.describe(position),
                earlier: self.dag.describe(on),
                kind: "they share no element".into(),
            }),
        }
    }

    /// Data must not arrive in memory that nobody watches.
    fn check_all_arrived(&self) -> Result<(), Violation> {
        for (&allocation, cells) in &self.cells {
            for (slot, cell) in cells.iter().enumerate() {
                if let Some(begun) = cell.begun {
                    let what = format!("{} is never awaited", self.place(allocation, slot));
                    return Err(Violation::Malformed { node: self.dag.describe(begun), what });
                }
            }
        }
        Ok(())
    }
}
