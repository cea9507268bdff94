//! What users' range mappers say of each chunk of a task. Each is asked once per chunk, so that
//! all that a node decides about the task rests on the same answers; and they are summed up in a
//! number, which nodes compare: nodes that go by different answers would wait for each other
//! without end. Knows neither buffers' contents nor who owns them.

use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferAccess, BufferId, MapperInput, StreamHash, Task};

use crate::assign::Chunks;

/// The images of all chunks, in order of nodes, under those mappers of a task that are users'.
/// Built-in ones say the same everywhere, and cost little.
#[derive(Debug, Default)]
pub(crate) struct Answers<'a>(Vec<(&'a BufferAccess, Vec<Region>)>);

impl<'a> Answers<'a> {
    /// Asks users' mappers for the images of all `chunks`, and adds what they say to `said`.
    /// `extent_of` is the extent of a buffer that any node may have to send or to receive parts
    /// of; of other buffers, nobody asks for more than its own chunk's image.
    /// O(chunks · evaluation), if there are such mappers.
    pub(crate) fn ask(
        task: &'a Task,
        chunks: &Chunks,
        extent_of: impl Fn(BufferId) -> Option<Box3>,
        said: &mut StreamHash,
    ) -> Self {
        let global = task.work.extent();
        let mut all = Self::default();
        for access in task.buffer_accesses().filter(|access| access.is_on_trust()) {
            let Some(buffer) = extent_of(access.buffer) else { continue };
            let image = |chunk| access.mapper.map(&MapperInput { chunk, global, buffer });
            let images: Vec<_> = (0..chunks.len()).map(|at| image(chunks.get(at))).collect();
            images.iter().for_each(|image| said.image(image));
            all.0.push((access, images));
        }
        all
    }

    /// The image of the chunk at this position under the mapper of an access of the task, if
    /// that was asked for.
    pub(crate) fn of(&self, access: &BufferAccess, position: usize) -> Option<&Region> {
        let (_, images) = self.0.iter().find(|(asked, _)| std::ptr::eq(*asked, access))?;
        images.get(position)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use celerity_tdag::{
        Access, AccessMode, Dependencies, IndexSpace, Mapper, TaskId, UserMapper, Work,
    };

    use super::*;

    fn task(accesses: Vec<Access>) -> Task {
        Task {
            id: TaskId::from_index(1),
            name: "step".into(),
            work: Work::Device(IndexSpace::new(1, Box3::from_range([8]))),
            accesses: accesses.into(),
            dependencies: Dependencies::default(),
            location: None,
        }
    }

    fn access(buffer: u64, mapper: Mapper) -> Access {
        Access::buffer(BufferId::from_index(buffer), AccessMode::Read, mapper)
    }

    #[test]
    fn each_of_a_users_mappers_is_asked_once_per_chunk_and_others_are_not() {
        let asked = Arc::<AtomicU64>::default();
        let counter = asked.clone();
        let ahead = Mapper::User(UserMapper::new(move |input: &MapperInput| {
            counter.fetch_add(1, Ordering::Relaxed);
            Box3::new(input.chunk.min(), input.buffer.max()).into()
        }));
        let task =
            task(vec![access(0, ahead.clone()), access(1, Mapper::OneToOne), access(2, ahead)]);
        let chunks = Chunks::of(&task.work, 2);
        let extent = Box3::from_range([8]);
        let all_but_last = |buffer: BufferId| (buffer.index() < 2).then_some(extent);
        let mut said = StreamHash::default();
        let answers = Answers::ask(&task, &chunks, all_but_last, &mut said);
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        let access = |nth| task.buffer_accesses().nth(nth).unwrap();
        let of = |nth, position| answers.of(access(nth), position).cloned();
        assert_eq!(of(0, 1), Some(Box3::from_offset_range([4], [4]).into()));
        assert_eq!((of(0, 2), of(1, 0), of(2, 0)), (None, None, None));
    }

    #[test]
    fn what_is_said_differs_if_any_answer_does() {
        let said_with = |last: u64| {
            let fickle = Mapper::User(UserMapper::new(move |input: &MapperInput| {
                let end = if input.chunk.min()[0] == 4 { last } else { 8 };
                Box3::new(input.chunk.min(), [end, 1, 1]).into()
            }));
            let task = task(vec![access(0, fickle)]);
            let chunks = Chunks::of(&task.work, 2);
            let mut said = StreamHash::default();
            let _ = Answers::ask(&task, &chunks, |_| Some(Box3::from_range([8])), &mut said);
            said
        };
        assert_eq!(said_with(8), said_with(8));
        assert_ne!(said_with(8), said_with(7));
    }
}
