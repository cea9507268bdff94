//! Many boxes over many entries, in one pass: what an update of each by itself would take boxes times entries for.

use super::tree::Tree;
use crate::entry::{Entry, coalesce};
use crate::region::Region;

/// Lays disjoint `parts` over disjoint `entries`, of which what lies outside of all parts is left, and merges entries of equal
/// values.
///
/// O((n + k) log (n + k)) for n entries and k pairs of an entry and a part that intersect, where merging takes no more than a few
/// [rounds](coalesce).
pub(super) fn overlay<V: Clone + PartialEq>(
    entries: Vec<Entry<V>>,
    mut parts: Vec<Entry<V>>,
) -> Vec<Entry<V>> {
    coalesce(&mut parts);
    let mut parts = Tree::new(parts);
    let mut all = Vec::with_capacity(entries.len() + parts.len());
    let mut covered = Vec::new();
    for Entry { extent, value } in entries {
        parts.for_each_in(&extent, &mut |part, _| covered.push(part));
        let mut keep = |extent| all.push(Entry { extent, value: value.clone() });
        match covered[..] {
            [] => keep(extent),
            [only] => extent.for_each_outside(&only, keep),
            _ => {
                let covered = Region::from_boxes(covered.iter().copied());
                Region::from(extent).difference(&covered).boxes().iter().copied().for_each(keep);
            }
        }
        covered.clear();
    }
    all.extend(parts.take_entries());
    coalesce(&mut all);
    all
}
