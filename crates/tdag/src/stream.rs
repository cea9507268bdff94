//! A hash of the program so far: equal on all nodes exactly if they submit the
//! same tasks. Knows nothing of who compares it.

use celerity_regions::{Box3, Region};

use crate::access::{Access, BufferAccess};
use crate::id::ObjectId;
use crate::mapper::{Mapper, NeighborhoodShape, Share, Side, Windows};
use crate::space::{IndexSpace, Split};
use crate::task::{BufferInfo, Task, Work};

/// A running hash over buffers, host objects and tasks in the order of their creation.
///
/// It covers what decides about work and data: ids, index spaces, hints,
/// accesses, sizes, operators of combinations; and the names of tasks with functions of the program's, which tell two kernels apart that touch the
/// same, since two processes cannot compare functions. Source lines are left out, as a task may be submitted in another branch for each node, and of a
/// user's mapper everything but its name; what it says can
/// be [added](Self::image). Of a forward, both ends count. The same on every machine.
///
/// O(accesses) per task; allocates nothing but for users' mappers.
///
/// ```
/// use celerity_tdag::{EpochAction, StreamHash, TaskGraph, TaskGraphConfig};
/// let hash_of = |actions: &[EpochAction]| {
///     let mut graph = TaskGraph::new(TaskGraphConfig::default());
///     let mut hash = StreamHash::default();
///     hash.task(&graph.start());
///     let mut tasks = Vec::new();
///     actions.iter().for_each(|action| drop(graph.epoch(*action, &mut tasks)));
///     tasks.iter().for_each(|task| hash.task(task));
///     hash.value()
/// };
/// let shutdown = [EpochAction::Shutdown];
/// assert_eq!(hash_of(&shutdown), hash_of(&shutdown));
/// assert_ne!(hash_of(&shutdown), hash_of(&[EpochAction::Barrier]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHash(u64);

impl StreamHash {
    /// The hash of everything so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    /// Adds a new buffer.
    pub fn buffer(&mut self, info: &BufferInfo) {
        self.words(&[info.id.index(), u64::from(info.dims), info.elem_size]);
        self.words(&[u64::from(info.host_initialized)]);
        self.extent(&info.extent);
    }

    /// Adds what the type of a new buffer's elements is called.
    pub fn element_type(&mut self, name: &str) {
        self.word(11);
        self.text(name);
    }

    /// Adds a new host object. When one ends is left out: its last handle may be with a task, and
    /// go when that has run.
    pub fn object(&mut self, object: ObjectId) {
        self.words(&[9, object.index()]);
    }

    /// Takes a task into the hash, behind those that were added before.
    pub fn task(&mut self, task: &Task) {
        self.word(task.id.index());
        if let Work::Device(_) | Work::HostOnce { .. } | Work::HostSplit { .. } = &task.work {
            self.text(&task.name);
        }
        self.work(&task.work);
        if let Some(forward) = &task.forward {
            for end in [&forward.producer, &forward.consumer] {
                self.word(end.task.index());
                self.work(&end.work);
                end.accesses.iter().for_each(|access| self.buffer_access(access));
            }
        }
        for access in &task.accesses {
            match access {
                Access::Buffer(access) => self.buffer_access(access),
                Access::Object(access) => {
                    self.words(&[6, access.object.index(), access.order as u64]);
                }
            }
        }
    }

    /// Adds what a user's mapper has said of a part of an index space: what no name tells.
    pub fn image(&mut self, image: &Region) {
        self.word(image.boxes().len() as u64);
        image.boxes().iter().for_each(|part| self.extent(part));
    }

    /// Adds data: two that differ in a bit have different hashes, but for one in 2⁶⁴. 8 GB/s on a
    /// core of an AMD EPYC.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // Steps of one hash wait for each other; four do not.
        let mut lanes = [Self(1), Self(2), Self(3), Self(4)];
        let (words, tail) = bytes.as_chunks();
        let (blocks, rest) = words.as_chunks::<4>();
        for block in blocks {
            let block = block.map(u64::from_le_bytes);
            lanes.iter_mut().zip(block).for_each(|(lane, word)| lane.word(word));
        }
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        self.words(&lanes.map(Self::value));
        rest.iter().chain([&last]).for_each(|word| self.word(u64::from_le_bytes(*word)));
        self.word(bytes.len() as u64);
    }

    fn work(&mut self, work: &Work) {
        match work {
            Work::Device(space) => self.index_space(space),
            Work::HostOnce { node } => self.words(&[2, *node]),
            Work::HostSplit { space, group } => {
                let group = group
                    .map_or([0; 2], |one| [1 + u64::from(one.number()), one.name_hash().into()]);
                self.words(&[6, group[0], group[1]]);
                self.index_space(space);
            }
            Work::Fence => self.word(3),
            Work::Horizon => self.word(4),
            Work::Epoch(action) => self.words(&[5, *action as u64]),
            Work::Combine { operator } => self.words(&[8, *operator]),
            Work::Forward => self.word(10),
        }
    }

    fn index_space(&mut self, space: &IndexSpace) {
        let split = match space.split {
            Split::OneDimensional => 0,
            Split::Tiled => 1,
            Split::Along(dim) => 2 + u64::from(dim),
        };
        self.words(&[1, u64::from(space.dims), split, u64::from(space.oversubscription)]);
        self.words(&space.granularity);
        self.extent(&space.extent);
    }

    fn buffer_access(&mut self, access: &BufferAccess) {
        self.words(&[access.buffer.index(), access.mode as u64]);
        match &access.mapper {
            Mapper::OneToOne => self.word(1),
            Mapper::All => self.word(2),
            Mapper::Slice { dim } => self.words(&[3, u64::from(*dim)]),
            Mapper::Neighborhood { border, shape } => {
                self.words(&[4, u64::from(*shape == NeighborhoodShape::AlongAxes)]);
                self.words(border);
            }
            Mapper::Fixed(region) => {
                self.word(5);
                self.image(region);
            }
            Mapper::Periodic { border, shape, along } => {
                self.words(&[6, u64::from(*shape == NeighborhoodShape::AlongAxes)]);
                self.words(border);
                self.words(&along.map(u64::from));
            }
            Mapper::PerDimension(mapper) => {
                self.words(&[7, mapper.sides().len() as u64]);
                mapper.sides().iter().for_each(|side| self.side(side));
            }
            Mapper::Tiles(tiling) => {
                self.word(8);
                self.words(&tiling.tile());
                self.extent(&tiling.space());
            }
            Mapper::User(_) => {
                self.text(&access.mapper.to_string());
            }
        }
    }

    fn side(&mut self, side: &Side) {
        match side {
            Side::All => self.word(1),
            Side::Only { min, max } => self.words(&[2, *min, *max]),
            Side::Windows(Windows { from, stride, first, width, clamped }) => {
                let first = first.cast_unsigned();
                self.words(&[3, (*from).into(), *stride, first, *width, (*clamped).into()]);
            }
            Side::Share(Share { from, granularity }) => {
                self.words(&[4, (*from).into(), *granularity]);
            }
        }
    }

    fn extent(&mut self, extent: &Box3) {
        self.words(&extent.min());
        self.words(&extent.max());
    }

    fn text(&mut self, text: &str) {
        let (words, tail) = text.as_bytes().as_chunks();
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        words.iter().chain([&last]).for_each(|word| self.word(u64::from_le_bytes(*word)));
        self.word(text.len() as u64);
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|&word| self.word(word));
    }

    /// Multiplication spreads a difference upwards, the rotation brings it down
    /// again.
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_data_and_its_length_count() {
        let hash_of = |bytes: &[u8]| {
            let mut hash = StreamHash::default();
            hash.bytes(bytes);
            hash.value()
        };
        // Miri takes its time for each bit.
        for length in 0..if cfg!(miri) { 12 } else { 100 } {
            let data = vec![0; length];
            assert_ne!(hash_of(&data), hash_of(&vec![0; length + 1]));
            for bit in 0..8 * length {
                let mut other = data.clone();
                other[bit / 8] |= 1 << (bit % 8);
                assert_ne!(hash_of(&data), hash_of(&other), "bit {bit} of {length} bytes");
            }
        }
        let swapped = |first, second| [[first; 8], [0; 8], [0; 8], [0; 8], [second; 8]].concat();
        assert_ne!(hash_of(&swapped(1, 2)), hash_of(&swapped(2, 1)));
    }
}
