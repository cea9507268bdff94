//! Pass: what a task writes on other nodes is outdated here. Nobody reads it before it comes back, which says so itself
//! ([`BufferState::expect`](crate::buffer::BufferState::expect)); until then it costs nothing but its place among the buffer's
//! versions. So this looks only where these have become many: a program that reads another strip of others' data in each step,
//! all of which they write again, would leave one version for each of them, and copy them all when an allocation grows.

use celerity_tdag::{BufferAccess, Mapper, MapperInput, Task};

use crate::buffer::Buffers;
use crate::instruction::InstructionId;
use crate::plan::Launches;

/// Forgets versions of what other nodes write, where there are many. What users' mappers write is left alone.
#[inline]
pub(crate) fn forget_overwritten(
    buffers: &mut Buffers,
    task: &Task,
    launches: &Launches,
    point: InstructionId,
) {
    let is_written = |access: &&BufferAccess| access.mode.writes();
    for access in task.buffer_accesses().filter(is_written) {
        if buffers.get(access.buffer).has_many_versions() {
            forget(buffers, (task, access), launches, point);
        }
    }
}

#[inline(never)]
fn forget(
    buffers: &mut Buffers,
    (task, access): (&Task, &BufferAccess),
    launches: &Launches,
    point: InstructionId,
) {
    if matches!(access.mapper, Mapper::User(_)) || launches.are_all_of(task) {
        return;
    }
    let buffer = buffers.get_mut(access.buffer);
    let global = task.work.extent();
    let all = MapperInput { chunk: global, global, buffer: buffer.extent };
    let mut elsewhere = access.mapper.map(&all);
    let launched = launches.iter().flat_map(|launch| launch.accesses);
    for here in launched.filter(|here| here.buffer == access.buffer && here.mode.writes()) {
        elsewhere.subtract(&here.region);
    }
    buffer.overwrite_elsewhere(&elsewhere, point);
}

#[cfg(test)]
mod tests {
    use celerity_regions::Box3;
    use celerity_tdag::{
        Access, AccessMode, BufferId, BufferInfo, Conflicts, Dependencies, IndexSpace, TaskId, Work,
    };

    use super::*;
    use crate::buffer::BufferState;
    use crate::instruction::MemoryId;
    use crate::plan::Planner;
    use crate::version::Version;

    const COLUMNS: usize = 600;

    fn extent() -> Box3 {
        Box3::from_range([8, COLUMNS])
    }

    /// So many columns of every row are written; this node's are the first four.
    fn task(columns: usize) -> Task {
        let (id, space) = (TaskId::from_index(1), Box3::from_range([8, columns]));
        let access = Access::buffer(BufferId::from_index(0), AccessMode::Write, Mapper::OneToOne);
        Task {
            id,
            name: "write".into(),
            work: Work::Device(IndexSpace::new(2, space)),
            accesses: [access].into(),
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
            location: None,
            forward: None,
        }
    }

    /// Rows of which this node has read a part in each of `steps`, column by column.
    fn read_in(steps: usize) -> Buffers {
        let info = BufferInfo {
            id: BufferId::from_index(0),
            name: "field".into(),
            dims: 2,
            extent: extent(),
            elem_size: 4,
            elem_align: 4,
            host_initialized: false,
        };
        let mut state = BufferState::new(&info, 3, InstructionId::from_index(0));
        for step in 0..steps {
            let strip = Box3::from_offset_range([3, step], [5, 1]);
            let receive = InstructionId::from_index(step as u64 + 1);
            state.versions.update_box(&strip, Version::produced(receive, MemoryId::HOST));
        }
        let mut buffers = Buffers::default();
        buffers.0.insert(info.id, state);
        buffers
    }

    /// How many versions there are when the task has run, and which columns of the own and of others' rows are here.
    fn after(columns: usize, steps: usize) -> (usize, [u64; 2]) {
        let (task, mut buffers) = (task(columns), read_in(steps));
        let own = Box3::from_range([4, columns]);
        let launches = Planner::new(1).plan(&task, own, |_| extent());
        forget_overwritten(&mut buffers, &task, &launches, InstructionId::from_index(1000));
        let state = buffers.get(BufferId::from_index(0));
        let here = |row: usize| {
            let part = Box3::from_offset_range([row, 0], [1, COLUMNS]);
            state.region_current(MemoryId::HOST, &part).volume()
        };
        (state.versions.len(), [here(3), here(7)])
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of versions take minutes")]
    fn strips_that_others_have_overwritten_go_once_they_are_many() {
        let (few, many) = (after(COLUMNS, 20), after(COLUMNS, 450));
        assert_eq!(few.1, [20, 20], "it is not worth a look");
        assert!(few.0 > 20);
        assert_eq!(many.1, [450, 0], "what this node writes, its launches say");
        // Strips of the row that this node has, and what others have written.
        assert!(many.0 < 460, "{} versions", many.0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of versions take minutes")]
    fn what_is_not_written_stays() {
        assert_eq!(after(100, 450).1, [450, 350]);
    }
}
