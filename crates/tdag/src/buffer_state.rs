//! What the task graph knows of one buffer: who wrote each element last and who
//! has read it since, and so what a task must wait for. Knows one buffer, and
//! neither tasks nor horizons.

use std::sync::Arc;

use celerity_regions::{Region, RegionMap};

use crate::declare::Touched;
use crate::dependency::DependencyKind;
use crate::id::TaskId;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::readers::Readers;
use crate::task::BufferInfo;

/// One buffer of the task graph.
#[derive(Debug)]
pub(crate) struct BufferState {
    pub(crate) info: Arc<BufferInfo>,
    /// `None`: nothing has written it.
    pub(crate) writers: RegionMap<Option<TaskId>>,
    /// Whether every element has a writer, so that reads need no check. May be
    /// false of a buffer that was written piece by piece.
    is_initialized: bool,
    readers: Readers<TaskId>,
}

/// A region map with more entries than this is rewritten when a horizon is
/// applied, so that entries whose writers the horizon stands in for coalesce.
const COMPACT_ABOVE: usize = 16;

impl BufferState {
    /// A new buffer, which the first epoch has written if it comes with contents.
    pub(crate) fn new(info: Arc<BufferInfo>) -> Self {
        let is_initialized = info.host_initialized;
        let initial_writer = is_initialized.then_some(TaskId::from_index(0));
        let writers = RegionMap::new(info.extent, initial_writer);
        Self { info, writers, is_initialized, readers: Readers::default() }
    }

    /// The elements of `reads` that nothing has written.
    pub(crate) fn unwritten(&self, reads: &Region) -> Region {
        if self.is_initialized {
            return Region::empty();
        }
        self.writers.select(reads, Option::is_none)
    }

    /// True dependencies on last writers, output dependencies on those that
    /// are overwritten, anti-dependencies on their readers (003 §3.2, 000 §IV-B).
    /// The readers of what is overwritten are forgotten.
    pub(crate) fn before(
        &mut self,
        touched: &Touched,
        wait_for: impl FnMut(TaskId, DependencyKind),
    ) {
        #[cfg(feature = "mutants")]
        let wait_for = mistakes::forgetting(wait_for);
        let mut wait_for = wait_for;
        let on_writers =
            if touched.mode.reads() { DependencyKind::True } else { DependencyKind::Output };
        self.writers.for_each_in_region(&touched.region, |_, writer| {
            writer.iter().for_each(|&writer| wait_for(writer, on_writers));
        });
        if touched.mode.writes() {
            let on_reader = |reader| wait_for(reader, DependencyKind::Anti);
            self.readers.overwrite(&touched.region, on_reader);
        }
    }

    /// Makes task `id` the last writer, or a reader, of what it touches.
    pub(crate) fn record(&mut self, id: TaskId, touched: &Touched) {
        if !touched.mode.writes() {
            return self.readers.add(id, &touched.region);
        }
        self.writers.update(&touched.region, Some(id));
        self.is_initialized = self.is_initialized || touched.region.contains_box(&self.info.extent);
    }

    /// Merges what the synchronisation point `point` stands in for.
    pub(crate) fn compact(&mut self, point: TaskId) {
        self.readers.compact(point);
        if self.writers.len() > COMPACT_ABOVE {
            self.writers.modify_all(|writer| writer.map(|id| id.max(point)));
        }
    }
}
