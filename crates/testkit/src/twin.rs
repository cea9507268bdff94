//! The sequential twin: what a program means, on whole arrays, one item after
//! the other. Knows no graph, no node and no device.

use celerity_tdag::{AccessMode, BufferId};

use crate::element;
use crate::footprint::{ElementFootprint, footprints};
use crate::hash::{Mixer, initial_contents, mixes};
use crate::program::{BufferSpec, Op, Program, TaskKind, TaskOp, buffer_slot};

/// All that a program shows to the outside: what its fences have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// In order of the program.
    pub snapshots: Vec<ObservedElements>,
}

/// What one access of a fence has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedElements {
    /// The fence's position in the program.
    pub op: usize,
    /// The buffer.
    pub buffer: BufferId,
    /// The elements' words, in ascending order of elements.
    pub words: Vec<u64>,
}

/// Runs a program. O(items · elements that each touches).
#[must_use]
pub fn interpret(program: &Program) -> Observation {
    let footprints = footprints(program);
    let mut memory = Memory::default();
    let mut snapshots = Vec::new();
    for (index, (op, footprint)) in program.ops.iter().zip(&footprints).enumerate() {
        match (op, footprint) {
            (Op::Create(spec), _) => memory.create(spec),
            (Op::Task(task), Some(footprint)) if task.kind == TaskKind::Fence => {
                snapshots.extend(memory.snapshots(index, task, footprint));
            }
            (Op::Task(task), Some(footprint)) => memory.execute(index, task, footprint),
            (Op::Task(_) | Op::Barrier | Op::Drop(_), _) => {}
        }
    }
    Observation { snapshots }
}

/// All buffers' contents.
#[derive(Default)]
struct Memory {
    buffers: Vec<(BufferSpec, Vec<u64>)>,
}

impl Memory {
    fn create(&mut self, spec: &BufferSpec) {
        let (id, elements) = (self.buffers.len() as u64, element::volume(&spec.extent));
        let contents = match spec.host_initialized {
            true => initial_contents(id, elements, spec.words),
            false => vec![0; elements * spec.words],
        };
        self.buffers.push((*spec, contents));
    }

    fn execute(&mut self, op: usize, task: &TaskOp, footprint: &ElementFootprint) {
        // All items read before any item writes: disjoint images, and sums where images meet,
        // are what makes this equal to any order.
        let items = element::points(&task.space()).enumerate();
        let seen: Vec<Mixer> = items
            .map(|(nth, item)| self.read(Mixer::for_item(op, item), nth, task, footprint))
            .collect();
        for (nth, mixer) in seen.into_iter().enumerate() {
            self.write(mixer, nth, task, footprint);
        }
    }

    fn read(
        &self,
        start: Mixer,
        item: usize,
        task: &TaskOp,
        footprint: &ElementFootprint,
    ) -> Mixer {
        let mut mixer = start;
        for (nth, access) in task.accesses.iter().enumerate().filter(|(_, a)| mixes(a.mode)) {
            mixer = mixer.with(nth as u64);
            for &slot in footprint.item(nth, item) {
                let words = self.element(access.buffer, slot).iter();
                mixer = words.fold(mixer.with(slot as u64), |mixer, &word| mixer.with(word));
            }
        }
        mixer
    }

    fn write(&mut self, mixer: Mixer, item: usize, task: &TaskOp, footprint: &ElementFootprint) {
        for (nth, access) in task.accesses.iter().enumerate().filter(|(_, a)| a.mode.writes()) {
            let (spec, contents) = &mut self.buffers[buffer_slot(access.buffer)];
            for &slot in footprint.item(nth, item) {
                for word in 0..spec.words {
                    let (place, value) =
                        (&mut contents[slot * spec.words + word], mixer.written(nth, slot, word));
                    *place = match access.mode {
                        AccessMode::Update => place.wrapping_add(value),
                        _ => value,
                    };
                }
            }
        }
    }

    fn snapshots(
        &self,
        op: usize,
        task: &TaskOp,
        footprint: &ElementFootprint,
    ) -> Vec<ObservedElements> {
        let accesses = task.accesses.iter().enumerate();
        let snapshots = accesses.map(|(nth, access)| {
            let slots = footprint.item(nth, 0).iter();
            let words = slots.flat_map(|&slot| self.element(access.buffer, slot)).copied();
            ObservedElements { op, buffer: access.buffer, words: words.collect() }
        });
        snapshots.collect()
    }

    fn element(&self, buffer: BufferId, slot: usize) -> &[u64] {
        let (spec, contents) = &self.buffers[buffer_slot(buffer)];
        &contents[slot * spec.words..(slot + 1) * spec.words]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use crate::program::{AccessSpec, MapperSpec, ProgramBuilder};
    use celerity_regions::Box3;
    use celerity_tdag::AccessMode::{ReadWrite, Write};
    use celerity_tdag::IndexSpace;

    fn last_words(program: &Program) -> Vec<u64> {
        interpret(program).snapshots.pop().expect("programs end with fences").words
    }

    #[test]
    fn a_word_is_the_hash_of_what_its_item_has_read() {
        let mut program = ProgramBuilder::default();
        let buffer = program.initialized([3]);
        let space = IndexSpace::new(1, Box3::from_range([3]));
        program.kernel("step", space, &[(buffer, ReadWrite, MapperSpec::OneToOne)]);
        let expected = (0..3u64).map(|item| {
            let slot = item as usize;
            let read = crate::hash::initial(0, slot, 0);
            let mixer = Mixer::for_item(1, [item, 0, 0]).with(0).with(item).with(read);
            mixer.written(0, slot, 0)
        });
        assert_eq!(last_words(&program.finish()), expected.collect::<Vec<_>>());
    }

    #[test]
    fn every_input_matters() {
        let complete = corpus::jacobi([5, 5], 3);
        let expected = last_words(&complete);
        for skipped in 2..5 {
            let mut shorter = complete.clone();
            let Op::Task(TaskOp { accesses, .. }) = &mut shorter.ops[skipped] else {
                unreachable!("statements 2 to 4 are relaxations")
            };
            accesses[0].mapper = MapperSpec::OneToOne;
            assert_ne!(last_words(&shorter), expected, "statement {skipped}");
        }
    }

    #[test]
    fn elements_of_several_words_differ_in_each() {
        let mut program = ProgramBuilder::default();
        let extent = Box3::from_range([2]);
        let spec = BufferSpec { dims: 1, extent, words: 3, host_initialized: false };
        let buffer = program.create(spec);
        let access = AccessSpec { buffer, mode: Write, mapper: MapperSpec::All };
        let task = TaskOp {
            name: "fill".into(),
            kind: TaskKind::HostOnce { node: 0 },
            accesses: vec![access],
            effects: Vec::new(),
        };
        program.try_task(task).unwrap();
        let mut words = last_words(&program.finish());
        assert_eq!(words.len(), 6);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 6);
    }
}
