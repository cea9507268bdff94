//! Who has read what since it was last written: the source of
//! anti-dependencies, in every graph layer.

use celerity_regions::{Box3, Region};

use crate::id::GraphId;
#[cfg(feature = "mutants")]
use crate::mistakes;

/// The reads of one buffer (or allocation) that no later write has covered.
///
/// ```
/// use celerity_regions::Box3;
/// use celerity_tdag::{Readers, TaskId};
/// let (left, all) = (Box3::from_range([4]), Box3::from_range([8]));
/// let reader = TaskId::from_index(1);
/// let mut readers = Readers::default();
/// readers.add(reader, &all.into());
/// let mut seen = vec![];
/// readers.overwrite(&left.into(), |id| seen.push(id));
/// assert_eq!(seen, [reader]);
/// readers.overwrite(&left.into(), |_| unreachable!("nobody has read the new contents"));
/// ```
#[derive(Clone, Debug)]
pub struct Readers<I> {
    entries: Vec<Reader<I>>,
}

#[derive(Clone, Debug)]
struct Reader<I> {
    id: I,
    region: Region,
}

/// Above so many entries, those that one synchronisation point stands in for
/// are merged when it is applied.
const COMPACT_ABOVE: usize = 8;

impl<I> Default for Readers<I> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<I: GraphId> Readers<I> {
    /// Notes that `id`, the newest node, reads `region`.
    pub fn add(&mut self, id: I, region: &Region) {
        if region.is_empty() {
            return;
        }
        match self.entries.last_mut() {
            #[cfg(feature = "mutants")]
            Some(last) if mistakes::replaces_read() && last.id == id => {
                last.region = region.clone();
            }
            Some(last) if last.id == id => last.region.union_with(region),
            _ => self.entries.push(Reader { id, region: region.clone() }),
        }
    }

    /// Calls `each` for every reader of a part of `region`, and forgets those
    /// parts: whoever writes next waits for the writer instead. O(entries).
    pub fn overwrite(&mut self, region: &Region, mut each: impl FnMut(I)) {
        self.entries.retain_mut(|reader| {
            if !reader.region.intersects(region) {
                return true;
            }
            each(reader.id);
            reader.region = reader.region.difference(region);
            !reader.region.is_empty()
        });
    }

    /// Calls `each` for every reader of a part of `part`, keeping all. O(entries).
    pub fn for_each_in(&self, part: &Box3, mut each: impl FnMut(I)) {
        for reader in &self.entries {
            if reader.region.intersects_box(part) {
                each(reader.id);
            }
        }
    }

    /// Merges the entries that `point` stands in for, so that their number
    /// stays within that of the nodes since the synchronisation point.
    pub fn compact(&mut self, point: I) {
        if self.entries.len() <= COMPACT_ABOVE {
            return;
        }
        let older = self.entries.iter().filter(|reader| reader.id <= point);
        let merged = Region::from_boxes(older.flat_map(|reader| reader.region.boxes()).copied());
        self.entries.retain(|reader| reader.id > point);
        if !merged.is_empty() {
            self.entries.insert(0, Reader { id: point, region: merged });
        }
    }
}
