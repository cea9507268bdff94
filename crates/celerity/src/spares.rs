//! Buffers that the runtime uses again for its own ends: who reduces in each step needs not have one made, allocated and freed
//! each time, and a program whose buffers do not end lets the lookahead look ahead. Knows nothing of what is in them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers of partial results of one result, which earlier reductions have done with; of each its handle.
#[derive(Debug)]
pub(crate) struct SpareBuffers<H>(Mutex<VecDeque<SpareBuffer<H>>>);

/// A buffer that is in use, or waits for it.
#[derive(Debug)]
pub(crate) struct SpareBuffer<H> {
    pub(crate) handle: H,
    pub(crate) layout: SpareLayout,
}

/// What a buffer has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpareLayout {
    pub(crate) partials: u64,
    /// Size and alignment of each.
    pub(crate) element: (u64, u64),
}

/// Those of one result take so much in all, …
const SPARE_BYTES: u64 = 1 << 20;

/// … and are so many: as many steps but one may be under way before one waits for the combination of another.
const MOST_SPARES: u64 = 4;

impl SpareLayout {
    /// How many are kept.
    fn most(self) -> usize {
        let bytes = self.partials.saturating_mul(self.element.0).max(1);
        match SPARE_BYTES / bytes {
            0 | 1 => 0,
            fit => fit.min(MOST_SPARES) as usize,
        }
    }
}

impl<H> Default for SpareBuffers<H> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<H> SpareBuffers<H> {
    /// The one that has waited for longest, if all but one are there: its last readers may not have run yet, and what is
    /// written into it has to wait for them.
    pub(crate) fn take(&self, layout: SpareLayout) -> Option<SpareBuffer<H>> {
        let mut spares = self.lock();
        if spares.front()?.layout != layout {
            // The program does something else now.
            spares.clear();
            return None;
        }
        let is_enough = spares.len() + 1 >= layout.most();
        is_enough.then(|| spares.pop_front()).flatten()
    }

    /// Keeps a buffer, or ends it if there are enough.
    pub(crate) fn put(&self, spare: SpareBuffer<H>) {
        let mut spares = self.lock();
        if spares.len() < spare.layout.most() {
            spares.push_back(spare);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SpareBuffer<H>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
