//! What the task graph knows of one buffer: who wrote each element last and who
//! has read it since, and so what a task must wait for. Knows one buffer, and
//! neither tasks nor horizons.

use std::sync::Arc;

use celerity_regions::{Region, RegionMap};

use crate::dependency::DependencyKind;
use crate::footprint::Touched;
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
    /// are overwritten, anti-dependencies on their readers (Euro-Par 2019, §3.2; CCGrid 2023,
    /// §IV-B). Who is overwritten unread is waited for, of others only the readers: they wait for
    /// it themselves. The readers of what is overwritten are forgotten.
    pub(crate) fn before(
        &mut self,
        touched: &Touched,
        point: TaskId,
        wait_for: impl FnMut(TaskId, DependencyKind),
    ) {
        #[cfg(feature = "mutants")]
        let wait_for = mistakes::forgetting(wait_for);
        let mut wait_for = wait_for;
        let region = &touched.region;
        let stand_ins = self.readers.stand_ins();
        self.writers.for_each_in_region(region, |part, writer| match *writer {
            Some(writer) if touched.mode.reads() => wait_for(writer, DependencyKind::True),
            Some(writer) if !stand_ins.include(writer, &part, point) => {
                wait_for(writer, DependencyKind::Output);
            }
            _ => {}
        });
        if touched.mode.writes() {
            self.readers.overwrite(region, |reader| wait_for(reader, DependencyKind::Anti));
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
        self.writers.compact(|writer| writer.map(|id| id.max(point)));
    }
}
