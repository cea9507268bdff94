//! What is sent and what is expected, element by element: the same question for
//! pushes and for messages.

use std::collections::{BTreeMap, BTreeSet};

use celerity_cdag::{NodeId, TransferId};

use crate::violation::Violation;

/// The elements of every transfer to every receiver.
#[derive(Default)]
pub(super) struct Parcels {
    slots: BTreeMap<(TransferId, NodeId), BTreeSet<usize>>,
}

impl Parcels {
    /// Adds elements, each of which must be new.
    pub(super) fn add(
        &mut self,
        transfer: TransferId,
        to: NodeId,
        slots: &BTreeSet<usize>,
        done: &str,
    ) -> Result<(), Violation> {
        let known = self.slots.entry((transfer, to)).or_default();
        match slots.iter().find(|&&slot| !known.insert(slot)) {
            None => Ok(()),
            Some(slot) => {
                let what = format!("element {slot} is {done} twice");
                Err(Violation::Mismatched { transfer, to, what })
            }
        }
    }

    /// Whether `self` (what is sent) is what `awaited` says.
    pub(super) fn check_equal(&self, awaited: &Self) -> Result<(), Violation> {
        let keys: BTreeSet<_> = self.slots.keys().chain(awaited.slots.keys()).collect();
        for &(transfer, to) in keys {
            let none = BTreeSet::new();
            let sent = self.slots.get(&(transfer, to)).unwrap_or(&none);
            let expected = awaited.slots.get(&(transfer, to)).unwrap_or(&none);
            if sent != expected {
                let what = format!("elements {sent:?} are sent, but {expected:?} awaited");
                return Err(Violation::Mismatched { transfer, to, what });
            }
        }
        Ok(())
    }
}
