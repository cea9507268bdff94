//! Who must wait for whom because both touch one element. Fed with accesses in
//! a graph's topological order; compared with the edges that the graph has.

use std::collections::{BTreeMap, BTreeSet};

use celerity_tdag::DependencyKind;

use crate::queries::{Dag, Reachability};
use crate::violation::Violation;

/// The last writer and the readers since, of every element of one buffer.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// The newest member of each collective group.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(BTreeMap<usize, usize>);

/// What one node must wait for, and one element each as the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// The strongest kind for each predecessor.
    on: BTreeMap<usize, (DependencyKind, usize)>,
    /// The one before it in its collective group.
    before: Option<usize>,
    /// Some element has never been written: whoever stands for the initial
    /// contents may be waited for.
    initial: bool,
    /// What may be waited for directly because of host objects, beside or instead of others that
    /// wait for it.
    effects: BTreeSet<usize>,
}

impl Ledger {
    pub(super) fn new(elements: usize) -> Self {
        Self { cells: vec![Cell::default(); elements] }
    }

    /// `node` reads an element. Reads of a node come before its writes.
    pub(super) fn read(&mut self, node: usize, slot: usize, needs: &mut Needs) {
        let cell = &mut self.cells[slot];
        needs.add_writer(cell.writer, DependencyKind::True, slot);
        if cell.readers.last() != Some(&node) {
            cell.readers.push(node);
        }
    }

    /// `node` overwrites an element.
    pub(super) fn write(&mut self, node: usize, slot: usize, needs: &mut Needs) {
        let cell = &mut self.cells[slot];
        needs.add_writer(cell.writer, DependencyKind::Output, slot);
        for &reader in cell.readers.iter().filter(|&&reader| reader != node) {
            needs.add(reader, DependencyKind::Anti, slot);
        }
        *cell = Cell { writer: Some(node), readers: Vec::new() };
    }

    /// The last writer of an element.
    pub(super) fn writer(&self, slot: usize) -> Option<usize> {
        self.cells[slot].writer
    }
}

impl Needs {
    fn add_writer(&mut self, writer: Option<usize>, kind: DependencyKind, slot: usize) {
        match writer {
            Some(writer) => self.add(writer, kind, slot),
            None => self.initial = true,
        }
    }

    fn add(&mut self, on: usize, kind: DependencyKind, slot: usize) {
        let known = self.on.entry(on).or_insert((kind, slot));
        if kind > known.0 {
            *known = (kind, slot);
        }
    }

    /// `node` comes after the one before it in its collective group.
    pub(super) fn follow(&mut self, groups: &mut Groups, group: Option<usize>, node: usize) {
        self.before = group.and_then(|group| groups.0.insert(group, node));
        self.before.into_iter().for_each(|on| self.add(on, DependencyKind::Order, 0));
    }

    /// Adds the nodes that the node waits for because of host objects. Whoever stands for the
    /// objects' beginning may be waited for.
    pub(super) fn add_effects(&mut self, on: impl IntoIterator<Item = usize>) {
        self.initial = true;
        self.effects.extend(on);
    }

    /// Joins the needs of two buffers.
    pub(super) fn merge(&mut self, other: Self) {
        self.initial |= other.initial;
        self.before = self.before.or(other.before);
        self.effects.extend(other.effects);
        for (on, (kind, slot)) in other.on {
            self.add(on, kind, slot);
        }
    }

    /// Everything needed is ordered before `node`, directly or not.
    pub(super) fn check_met(
        &self,
        node: usize,
        dag: &Dag,
        reach: &Reachability,
        place: impl Fn(usize) -> String,
    ) -> Result<(), Violation> {
        let missed = self.on.iter().find(|&(&on, _)| !reach.waits_for(node, on));
        missed.map_or(Ok(()), |(&on, &(kind, slot))| {
            let (later, earlier) = (dag.describe(node), dag.describe(on));
            Err(Violation::Unordered { later, earlier, kind, place: place(slot) })
        })
    }

    /// Every edge of `node` has a reason of the kind that it states. Nodes that
    /// synchronise may stand in for any older reason.
    pub(super) fn check_reasons(
        &self,
        node: usize,
        dag: &Dag,
        synchronizes: impl Fn(usize) -> bool,
    ) -> Result<(), Violation> {
        for (on, kind) in dag.edges(node) {
            let justified = match synchronizes(on) {
                true => self.is_reason_to_synchronize(on, kind),
                // Others that come in between may be the only ones that data calls for.
                false if self.before == Some(on) && kind == Some(DependencyKind::Order) => true,
                false => {
                    let is_effect =
                        kind == Some(DependencyKind::True) && self.effects.contains(&on);
                    is_effect || self.on.get(&on).map(|&(reason, _)| reason) == kind
                }
            };
            if !justified {
                let (later, earlier) = (dag.describe(node), dag.describe(on));
                let kind = kind.map_or_else(|| "no kind".into(), |kind| format!("{kind:?}"));
                return Err(Violation::Spurious { later, earlier, kind });
            }
        }
        Ok(())
    }

    fn is_reason_to_synchronize(&self, on: usize, kind: Option<DependencyKind>) -> bool {
        let older = self.on.range(..=on).next().is_some();
        kind == Some(DependencyKind::Order) || self.initial || older
    }
}
