//! A collective as one node sees it, element by element.

use std::collections::BTreeSet;

use celerity_cdag::NodeId;
use celerity_cpd::{Collective, Ends};
use celerity_regions::Box3;

use crate::element;

/// What a collective is to one node: slots in the buffer's extent.
pub(super) struct ExchangedSlots {
    /// What it gives to others.
    pub(super) provided: BTreeSet<usize>,
    /// What comes to it, from others.
    pub(super) arriving: BTreeSet<usize>,
}

impl ExchangedSlots {
    /// For a node, of a buffer of so many elements.
    pub(super) fn at(extent: &Box3, collective: &Collective, node: NodeId) -> Self {
        let all = || element::slots(extent, &collective.region);
        let Some(rank) = collective.members.rank(node) else {
            return Self { provided: BTreeSet::new(), arriving: BTreeSet::new() };
        };
        let part = |ends: &Ends| match ends {
            Ends::All => all(),
            Ends::One(one) if *one == node => all(),
            Ends::One(_) => BTreeSet::new(),
            Ends::Each(parts) => element::slots(extent, &parts[rank]),
        };
        let provided = part(&collective.from);
        let arriving = part(&collective.to).difference(&provided).copied().collect();
        Self { provided, arriving }
    }
}
