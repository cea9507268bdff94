//! The rules of host objects, of any of the three graphs: side effects are ordered or kept apart as
//! IJPP 2022 (§4.3) says, pair by pair.
//!
//! Owns which recent nodes affect which object. Does not know the algorithm that makes the edges.

use std::collections::BTreeMap;

use celerity_tdag::{ObjectId, SideEffectOrder, Task};

use crate::violation::{Check, Violation};
use crate::window::RecentNodes;

/// The recent nodes of one graph with side effects, by object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectHistory(BTreeMap<ObjectId, Vec<(u64, SideEffectOrder)>>);

impl ObjectHistory {
    /// Checks node `me` of `window`, the newest, which runs `task` or a part of it, and remembers
    /// it. Of two nodes with effects on one object: if one is sequential, the later one waits for
    /// the earlier one; if one is exclusive, it waits for it or conflicts with it. Whoever is
    /// older than the synchronisation point is waited for by way of that. No other conflict is
    /// there. Without an order that is tracked, only the last of these is checked.
    pub(crate) fn check<L>(
        &mut self,
        window: &RecentNodes<L>,
        me: u64,
        task: &Task,
        conflicts: &[u64],
    ) -> Check {
        let point = window.point();
        let clash = |earlier: u64, what| Violation::Objects {
            later: window.vertex(me),
            earlier: window.vertex(earlier),
            what,
        };
        let waits_for = |earlier| window.order().is_none_or(|order| order.waits_for(me, earlier));
        let mut explained = Vec::new();
        for effect in task.side_effects() {
            let nodes = self.0.entry(effect.object).or_default();
            for &(earlier, order) in nodes.iter() {
                let orders = [effect.order, order];
                if orders == [SideEffectOrder::Relaxed; 2] {
                    continue;
                }
                let waits = waits_for(earlier);
                if orders.contains(&SideEffectOrder::Sequential) || earlier < point {
                    if !waits {
                        return Err(clash(earlier, "are not ordered by it").into());
                    }
                    continue;
                }
                explained.push(earlier);
                // A conflict is what keeps two apart that nothing orders.
                if window.order().is_some() && !waits && !conflicts.contains(&earlier) {
                    return Err(clash(earlier, "may be at it at the same time").into());
                }
            }
            if effect.order == SideEffectOrder::Sequential {
                // It waits for all of them, and all later ones wait for it.
                nodes.clear();
            }
            nodes.push((me, effect.order));
        }
        match conflicts.iter().find(|with| !explained.contains(with)) {
            Some(&with) => Err(clash(with, "conflict for no reason").into()),
            None => Ok(()),
        }
    }

    /// Forgets all but the newest effects before the synchronisation point: whoever waits for the
    /// point waits for all of them.
    pub(crate) fn compact(&mut self, point: u64) {
        for nodes in self.0.values_mut() {
            let older = nodes.partition_point(|(node, _)| *node < point);
            if older > 1 {
                // The newest stands in for the others.
                let relaxed =
                    |(_, order): (u64, SideEffectOrder)| order == SideEffectOrder::Relaxed;
                let all_relaxed = nodes.drain(..older - 1).all(relaxed);
                if !all_relaxed {
                    nodes[0].1 = SideEffectOrder::Sequential;
                }
            }
        }
    }

    /// How many effects are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}
