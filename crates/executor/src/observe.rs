//! Watching what a node's generators make, before anything of it runs: for
//! checkers, recorders and pictures. Decides nothing but whether the run may go
//! on.

use std::sync::Arc;

use celerity_cdag::Command;
use celerity_cpd::Weighed;
use celerity_idag::{AllocationId, Instruction, Pilot, Released, Schedule};
use celerity_tdag::{BufferId, BufferInfo, Task};

use crate::contain::caught;

/// Somebody who is shown one node's graphs as they are generated. Tasks and ends
/// of buffers come in order; a new buffer or name is shown at once, while tasks
/// that were submitted before it may be held back.
///
/// An error of any method, or a panic, stops the run with
/// [`RunError::Schedule`](crate::RunError::Schedule) before what was shown is
/// executed. Then nobody is shown anything more.
pub trait Observer: Send {
    /// A buffer has been created, or renamed. `user_data` is the allocation that stands for a new
    /// buffer's initial contents.
    fn buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>);

    /// What moving elements costs in one operation and between pairs of nodes, by which that has been
    /// decided. Shown at once, and before the task that reads them; only if the run
    /// [tells](crate::ClusterConfig::tells_weighed).
    fn weighed(&mut self, _weighed: &Weighed) {}

    /// A task, with all of this node's commands, instructions and pilots for it.
    ///
    /// # Errors
    /// Why the run must not go on.
    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), String>;

    /// A buffer has ended: the instructions that give its memory back.
    ///
    /// # Errors
    /// Why the run must not go on.
    fn buffer_end(&mut self, buffer: BufferId, frees: &[Instruction]) -> Result<(), String>;
}

/// A node's observers, and the commands of a task that they have not been shown
/// yet. Instructions and pilots need no such memory: the lookahead lets whole
/// tasks go, so those of a task lie side by side in one schedule.
#[derive(Default)]
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    commands: Vec<Command>,
    /// What one of them has said against the run.
    objection: Option<String>,
}

/// How much of a schedule observers have been shown.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown {
    instructions: usize,
    pilots: usize,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.all.push(observer);
    }

    pub(crate) fn buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>) {
        self.tell(|observer| observer.buffer(info, user_data));
    }

    pub(crate) fn weighed(&mut self, weighed: &Weighed) {
        self.tell(|observer| observer.weighed(weighed));
    }

    /// Tells all of them something; a panic is an error of what is shown next.
    fn tell(&mut self, mut what: impl FnMut(&mut dyn Observer)) {
        let told = self.show(|observer| {
            what(observer);
            Ok(())
        });
        drop(told);
    }

    /// Shows all of them something, until one objects or panics: then nobody is shown anything more.
    fn show(
        &mut self,
        mut what: impl FnMut(&mut dyn Observer) -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(objection) = &self.objection {
            return Err(objection.clone());
        }
        let shown = self.all.iter_mut().try_for_each(|one| match caught(|| what(&mut **one)) {
            Ok(shown) => shown,
            Err(said) => Err(format!("an observer panicked: {said}")),
        });
        self.objection = shown.as_ref().err().cloned();
        shown
    }

    /// Takes notice of what has been released last. At the end of a task or a
    /// buffer, shows what `schedule` holds for it: all that is not in `shown`
    /// yet. Costs nothing if nobody looks.
    pub(crate) fn released(
        &mut self,
        released: Released<'_>,
        schedule: &Schedule,
        shown: &mut Shown,
    ) -> Result<(), String> {
        if self.all.is_empty() {
            return Ok(());
        }
        let instructions = &schedule.instructions[shown.instructions..];
        let pilots = &schedule.pilots[shown.pilots..];
        match released {
            Released::Command(command) => {
                self.commands.push(command.clone());
                return Ok(());
            }
            Released::TaskEnd(task) => {
                let commands = std::mem::take(&mut self.commands);
                self.show(|one| one.task(task, &commands, instructions, pilots))?;
                self.commands = commands;
            }
            Released::BufferEnd(buffer) => self.show(|one| one.buffer_end(buffer, instructions))?,
        }
        self.commands.clear();
        shown.instructions = schedule.instructions.len();
        shown.pilots = schedule.pilots.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use celerity_regions::Box3;

    use super::*;

    /// Panics as soon as it is shown a buffer, or when that ends.
    struct Clumsy {
        at_once: bool,
        shown: Arc<std::sync::atomic::AtomicUsize>,
    }

    impl Clumsy {
        fn look(&self, panics: bool) {
            self.shown.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(!panics, "the disk is full");
        }
    }

    impl Observer for Clumsy {
        fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {
            self.look(self.at_once);
        }

        fn task(
            &mut self,
            _: &Arc<Task>,
            _: &[Command],
            _: &[Instruction],
            _: &[Pilot],
        ) -> Result<(), String> {
            unreachable!("there is no task")
        }

        fn buffer_end(&mut self, _: BufferId, _: &[Instruction]) -> Result<(), String> {
            self.look(true);
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_an_error_of_what_is_shown_next_and_the_last() {
        let id = BufferId::from_index(0);
        let (extent, name) = (Box3::from_range([8]), "u".into());
        let (dims, elem_size, elem_align, host_initialized) = (1, 8, 8, false);
        let info = Arc::new(BufferInfo {
            id,
            name,
            dims,
            extent,
            elem_size,
            elem_align,
            host_initialized,
        });
        for (at_once, expected) in [(true, 1), (false, 2)] {
            let (mut observers, shown) = (Observers::default(), Arc::default());
            observers.add(Box::new(Clumsy { at_once, shown: Arc::clone(&shown) }));
            observers.buffer(&info, None);
            for _ in 0..2 {
                let (end, schedule) = (Released::BufferEnd(id), Schedule::default());
                let told = observers.released(end, &schedule, &mut Shown::default());
                assert_eq!(told, Err("an observer panicked: the disk is full".to_owned()));
                observers.buffer(&info, None);
            }
            assert_eq!(shown.load(std::sync::atomic::Ordering::Relaxed), expected);
        }
    }
}
