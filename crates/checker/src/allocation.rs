//! What is known of one allocation: what it is for, where there is memory behind it, and what it
//! holds. Knows no rule.

use std::convert::Infallible;

use celerity_idag::MemoryId;
use celerity_regions::Box3;
use celerity_tdag::BufferId;

use crate::geometry::bounds;
use crate::ledger::Ledger;
use crate::tiles::BoxMap;

/// An allocation that lives.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) memory: MemoryId,
    pub(crate) buffer: BufferId,
    /// The alloc; none for users' data.
    pub(crate) made_by: Option<u64>,
    pub(crate) bytes: u64,
    /// How often what it holds has been copied from an allocation of the same memory to a larger one.
    pub(crate) moves: u32,
    /// Where there is memory, if there were only addresses at first.
    pub(crate) provided: Option<BoxMap<bool>>,
    /// What it holds: known from the first placement in it.
    pub(crate) contents: Option<Contents>,
}

/// Elements, and who has touched them.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) extent: Box3,
    pub(crate) ledger: Ledger,
}

impl Allocation {
    /// Who has touched what in it; `None` before the first placement.
    pub(crate) fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.contents.as_mut().map(|contents| &mut contents.ledger)
    }

    /// As [`ledger_mut`](Self::ledger_mut), to look at.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.contents.as_ref().map(|contents| &contents.ledger)
    }

    pub(crate) fn extent(&self) -> Option<Box3> {
        self.contents.as_ref().map(|contents| contents.extent)
    }

    /// Whether there is memory for all of `part`.
    pub(crate) fn has_memory(&self, part: &Box3) -> bool {
        self.provided.as_ref().is_none_or(|provided| {
            let there = |_: Box3, there: &bool| if *there { Ok(()) } else { Err(()) };
            provided.visit(part, there).is_ok()
        })
    }

    /// The bounds of what there is memory for.
    pub(crate) fn bounds(&self) -> Option<Box3> {
        let Some(provided) = &self.provided else { return self.extent() };
        let mut all = Box3::EMPTY;
        let Ok(()) = provided.visit_all(|part, there| {
            if *there {
                all = bounds(&all, &part);
            }
            Ok::<(), Infallible>(())
        });
        (!all.is_empty()).then_some(all)
    }

    /// Number of tiles in its ledger.
    pub(crate) fn len(&self) -> usize {
        self.contents.as_ref().map_or(0, |contents| contents.ledger.len())
    }
}
