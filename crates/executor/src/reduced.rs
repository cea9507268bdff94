//! Tasks that reduce are cut at ends of tiles, others between any two items. Where a program has both over one index space, this
//! lets the others be cut as those are, so that what one kind writes lies where the other reads it and nodes do not send
//! each other the elements in between. Knows what has been submitted so far, which is the same on all nodes.

use celerity_tdag::{IndexSpace, Mapper, TaskSpec, Work};

/// So many spaces are remembered, the newest: a program has few that it reduces over again and again.
const MOST_SPACES: usize = 16;

/// The index spaces that have been reduced over, each as it was cut first.
#[derive(Debug, Default)]
pub(crate) struct ReducedSpaces(Vec<IndexSpace>);

impl ReducedSpaces {
    /// Lets a task be cut as one was that has reduced over its space, if each of `nodes` then has about as much. O(1).
    pub(crate) fn align(&self, work: &mut Work, nodes: usize) {
        if let Work::Device(space) | Work::HostSplit { space, .. } = work
            && let Some(reduced) = self.of(space)
        {
            *space = space.cut_as(reduced, nodes);
        }
    }

    /// The space of a task that reduces, if it is news.
    pub(crate) fn news(&self, spec: &TaskSpec) -> Option<IndexSpace> {
        let space = spec.work.space()?;
        let mut accesses = spec.buffer_accesses();
        let reduces = accesses.any(|access| matches!(access.mapper, Mapper::Tiles(_)));
        (reduces && self.of(space).is_none()).then_some(*space)
    }

    /// Remembers a space.
    pub(crate) fn note(&mut self, space: IndexSpace) {
        if self.0.len() == MOST_SPACES {
            self.0.remove(0);
        }
        self.0.push(space);
    }

    fn of(&self, space: &IndexSpace) -> Option<&IndexSpace> {
        let is_same =
            |known: &&IndexSpace| known.extent == space.extent && known.split == space.split;
        self.0.iter().find(is_same)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use celerity_regions::Box3;
    use celerity_tdag::{Access, AccessMode, BufferId, Tiling};

    use super::*;

    fn space(items: usize) -> IndexSpace {
        IndexSpace::new(1, Box3::from_range([items]))
    }

    fn spec(space: IndexSpace, mapper: Mapper) -> TaskSpec {
        let accesses = vec![Access::buffer(BufferId::from_index(0), AccessMode::Write, mapper)];
        TaskSpec { name: "task".into(), work: Work::Device(space), accesses, location: None }
    }

    fn reducing(items: usize) -> TaskSpec {
        let tiling = Tiling::of(&space(items), 8);
        spec(tiling.of_whole_tiles(space(items)), Mapper::Tiles(Arc::new(tiling)))
    }

    #[test]
    fn who_does_not_reduce_is_cut_like_those_who_do_over_the_same_space() {
        let mut spaces = ReducedSpaces::default();
        assert_eq!(spaces.news(&spec(space(5000), Mapper::OneToOne)), None);
        let cut = |spaces: &ReducedSpaces, items| {
            let mut work = Work::Device(space(items));
            spaces.align(&mut work, 3);
            work.space().unwrap().granularity[0]
        };
        assert_eq!(cut(&spaces, 5000), 1);
        spaces.note(spaces.news(&reducing(5000)).unwrap());
        assert_eq!((cut(&spaces, 5000), cut(&spaces, 5001)), (32, 1));
        assert_eq!(spaces.news(&reducing(5000)), None);
        // With fewer than 32 tiles for a node, chunks would be less even.
        spaces.note(spaces.news(&reducing(3000)).unwrap());
        assert_eq!(cut(&spaces, 3000), 1);
        (0..MOST_SPACES).for_each(|items| spaces.note(space(items)));
        assert_eq!((spaces.0.len(), cut(&spaces, 5000)), (MOST_SPACES, 1));
    }
}
