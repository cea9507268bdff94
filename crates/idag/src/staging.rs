//! Pass: what one device has, another needs and no direct copy can bring goes
//! through host memory (instruction-graph preprint, §3.3), once for all who need it. Decides what;
//! how memory is made current is the business of `coherence`.

use celerity_regions::Region;

use crate::buffer::BufferState;
use crate::instruction::MemoryId;
use crate::links::Links;

/// What host memory must have of `region` before `memory` can be made current:
/// what can only come through it, and is not there yet.
pub(crate) fn staged(
    buffer: &BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) -> Region {
    let mut staged = Region::empty();
    buffer.versions.for_each_in_region(region, |part, version| {
        let there = version.holders.contains(memory) || version.holders.contains(MemoryId::HOST);
        if !there && version.is_here() && !links.reach(version.origin, memory) {
            staged.union_box(&part);
        }
    });
    staged
}
