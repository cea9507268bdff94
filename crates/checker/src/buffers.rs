//! What is known of each buffer, independently of any graph's node: what it
//! holds in sequential execution, what this node holds, what was accessed where.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_idag::{AllocationId, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, BufferInfo};

use crate::geometry::bounds;
use crate::ledger::Ledger;
use crate::violation::{AbstractValue, BufferPart, Vertex, Violation};

/// One buffer.
#[derive(Clone, Debug)]
pub(crate) struct TrackedBuffer {
    pub(crate) info: Arc<BufferInfo>,
    /// Sequential execution up to the task in hand, and who orders tasks.
    pub(crate) truth: Ledger,
    /// This node's share, and who orders its commands.
    pub(crate) held: Ledger,
    /// By memory: the bounding box of all that was accessed there.
    accessed: BTreeMap<MemoryId, Box3>,
}

impl TrackedBuffer {
    /// Elements of this buffer, for messages.
    pub(crate) fn place(&self, part: Box3) -> BufferPart {
        BufferPart { buffer: self.info.id, name: self.info.name.clone(), part, allocation: None }
    }

    /// Elements of this buffer in an allocation, for messages.
    pub(crate) fn place_in(&self, part: Box3, memory: MemoryId, id: AllocationId) -> BufferPart {
        BufferPart { allocation: Some((memory, id)), ..self.place(part) }
    }

    pub(crate) fn note_access(&mut self, memory: MemoryId, part: &Box3) {
        let known = self.accessed.entry(memory).or_insert(Box3::EMPTY);
        *known = bounds(known, part);
    }

    /// The bounding box of what was accessed in `memory`.
    pub(crate) fn accessed(&self, memory: MemoryId) -> Box3 {
        self.accessed.get(&memory).copied().unwrap_or(Box3::EMPTY)
    }
}

/// The buffers that live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(BTreeMap<BufferId, TrackedBuffer>);

impl Buffers {
    /// Adds a buffer, or renames it.
    pub(crate) fn create(&mut self, info: &Arc<BufferInfo>) {
        if let Some(known) = self.0.get_mut(&info.id) {
            known.info = info.clone();
            return;
        }
        let version =
            if info.host_initialized { AbstractValue::Initial } else { AbstractValue::Undefined };
        let ledger = Ledger::new(info.extent, version, None);
        let buffer = TrackedBuffer {
            info: info.clone(),
            truth: ledger.clone(),
            held: ledger,
            accessed: BTreeMap::new(),
        };
        self.0.insert(info.id, buffer);
    }

    pub(crate) fn remove(&mut self, buffer: BufferId) -> Option<TrackedBuffer> {
        self.0.remove(&buffer)
    }

    /// The buffer that `vertex` names.
    pub(crate) fn get(
        &self,
        vertex: Vertex,
        id: BufferId,
    ) -> Result<&TrackedBuffer, Box<Violation>> {
        self.0.get(&id).ok_or_else(|| Violation::UnknownBuffer { vertex, buffer: id }.into())
    }

    /// The buffer that `vertex` names.
    pub(crate) fn get_mut(
        &mut self,
        vertex: Vertex,
        id: BufferId,
    ) -> Result<&mut TrackedBuffer, Box<Violation>> {
        self.0.get_mut(&id).ok_or_else(|| Violation::UnknownBuffer { vertex, buffer: id }.into())
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut TrackedBuffer> {
        self.0.values_mut()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Number of tiles in all ledgers.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|buffer| buffer.truth.len() + buffer.held.len()).sum()
    }
}
