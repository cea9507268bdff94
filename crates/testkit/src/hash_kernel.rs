//! The twin's computation as kernels and host functions over the memory that
//! the executor binds: the only part of this crate that touches raw memory.
//! Evaluates the real mappers, item by item, and checks that every access is
//! inside of what was declared.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use celerity_executor::{BoundMemory, DeviceKernel, HostFunction, HostKernel};
use celerity_regions::{Box3, Coord3};
use celerity_tdag::{AccessMode, BufferId, Mapper, MapperInput};

use crate::element;
use crate::hash::{Mixer, mixes};
use crate::program::{BufferSpec, MapperTable, TaskOp, buffer_slot};
use crate::twin::ObservedElements;
use crate::visits::Visit;

/// A task's computation.
#[derive(Clone, Debug)]
pub struct HashKernel {
    op: usize,
    space: Box3,
    accesses: Vec<KernelAccess>,
    visit: Option<Visit>,
}

#[derive(Clone, Debug)]
struct KernelAccess {
    buffer: BufferId,
    mode: AccessMode,
    mapper: Mapper,
    extent: Box3,
    words: usize,
}

impl HashKernel {
    /// The computation of statement `op`.
    #[must_use]
    pub fn new(
        op: usize,
        task: &TaskOp,
        buffers: &[BufferSpec],
        lowering: &mut MapperTable,
    ) -> Self {
        let accesses = task.accesses.iter().map(|access| {
            let BufferSpec { extent, words, .. } = buffers[buffer_slot(access.buffer)];
            let mapper = lowering.lower(&access.mapper, access.mode);
            KernelAccess { buffer: access.buffer, mode: access.mode, mapper, extent, words }
        });
        Self { op, space: task.space(), accesses: accesses.collect(), visit: None }
    }

    /// The same, which notes when it runs as a host function, if there is a `visit`.
    #[must_use]
    pub fn visiting(self, visit: Option<Visit>) -> Self {
        Self { visit, ..self }
    }

    /// The same for a task that runs once.
    #[must_use]
    pub fn into_host_function(self) -> HostFunction {
        HostFunction::new(move |memory| {
            during(self.visit.clone(), Box3::UNIT, || self.run_items(&Box3::UNIT, memory));
            Ok(())
        })
    }

    /// Hands copies of all that is read to `publish`, one per access.
    #[must_use]
    pub fn into_snapshot_function(
        self,
        publish: impl FnOnce(Vec<ObservedElements>) + Send + 'static,
    ) -> HostFunction {
        HostFunction::new(move |memory| {
            let accesses = self.accesses.iter().zip(memory);
            let snapshots = accesses.map(|(access, bound)| {
                let words = Words::new(bound, access.words);
                let touched = access.touched([0; 3], &self.space);
                let words = touched.values().flat_map(|&at| words.read(at)).collect();
                ObservedElements { op: self.op, buffer: access.buffer, words }
            });
            during(self.visit.clone(), Box3::UNIT, || publish(snapshots.collect()));
            Ok(())
        })
    }

    /// The same, to run on the host for each chunk.
    #[must_use]
    pub fn into_host_kernel(self) -> HostKernel {
        HostKernel::new(move |call, memory| {
            during(self.visit.clone(), call.chunk, || self.run_items(&call.chunk, memory));
            Ok(())
        })
    }

    fn run_items(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        assert_eq!(memory.len(), self.accesses.len(), "one binding for each access");
        element::points(chunk).for_each(|item| self.run_item(item, memory));
    }

    fn run_item(&self, item: Coord3, memory: &[BoundMemory<'_>]) {
        let mut mixer = Mixer::for_item(self.op, item);
        for (nth, access) in self.accesses.iter().enumerate().filter(|(_, a)| mixes(a.mode)) {
            let words = Words::new(&memory[nth], access.words);
            mixer = mixer.with(nth as u64);
            for (slot, at) in access.touched(item, &self.space) {
                mixer = words.read(at).fold(mixer.with(slot as u64), Mixer::with);
            }
        }
        for (nth, access) in self.accesses.iter().enumerate().filter(|(_, a)| a.mode.writes()) {
            let words = Words::new(&memory[nth], access.words);
            for (slot, at) in access.touched(item, &self.space) {
                (0..access.words).for_each(|word| {
                    let value = mixer.written(nth, slot, word);
                    match access.mode {
                        AccessMode::Update => words.add(at, word, value),
                        _ => words.write(at, word, value),
                    }
                });
            }
        }
    }
}

fn during(visit: Option<Visit>, chunk: Box3, body: impl FnOnce()) {
    match visit {
        Some(visit) => visit.during(chunk, body),
        None => body(),
    }
}

impl DeviceKernel for HashKernel {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        self.run_items(chunk, memory);
    }

    fn is_serial(&self, _: &Box3) -> bool {
        true
    }
}

impl KernelAccess {
    /// The elements that an item touches, by slot: ascending.
    fn touched(&self, item: Coord3, space: &Box3) -> BTreeMap<usize, Coord3> {
        let chunk = Box3::new(item, item.map(|coordinate| coordinate + 1));
        let input = MapperInput { chunk, global: *space, buffer: self.extent };
        let image = self.mapper.map(&input);
        let points = image.boxes().iter().flat_map(element::points);
        points.map(|at| (element::slot(&self.extent, at), at)).collect()
    }
}

/// Checked access to the words of bound elements.
struct Words<'a> {
    memory: &'a BoundMemory<'a>,
    words: usize,
}

impl<'a> Words<'a> {
    fn new(memory: &'a BoundMemory<'a>, words: usize) -> Self {
        assert!(memory.base().cast::<u64>().is_aligned(), "elements are aligned");
        Self { memory, words }
    }

    fn read(&self, at: Coord3) -> impl Iterator<Item = u64> + use<> {
        let first = self.element(at);
        // SAFETY: `element` has checked that `at` is one of the declared
        // elements, which the engine keeps allocated and unwritten by others
        // while the kernel runs; each has `words` aligned words.
        (0..self.words).map(move |word| unsafe { first.add(word).read() })
    }

    fn write(&self, at: Coord3, word: usize, value: u64) {
        assert!(word < self.words, "an element has {} words", self.words);
        // SAFETY: as in `read`; the access writes, so nobody else reads or
        // writes the declared elements while the kernel runs.
        unsafe { self.element(at).add(word).write(value) }
    }

    fn add(&self, at: Coord3, word: usize, value: u64) {
        assert!(word < self.words, "an element has {} words", self.words);
        // SAFETY: as in `write`; items of a chunk meet here, but run one after another, since the
        // kernel says that it is serial.
        unsafe {
            let place = self.element(at).add(word);
            place.write(place.read().wrapping_add(value));
        }
    }

    /// The first word of an element.
    ///
    /// # Panics
    /// If the element was not declared, or is not where it should be.
    fn element(&self, at: Coord3) -> *mut u64 {
        let (extent, region) = (self.memory.extent(), self.memory.region());
        assert!(region.contains_point(at), "{at:?} is touched, but only {region} is bound");
        assert!(extent.contains_point(at), "{at:?} is not inside of the allocation of {extent}");
        let position = element::slot(extent, at) * self.words;
        // SAFETY: the allocation holds `extent.volume()` elements of `words`
        // words each, and `at` is inside of `extent`.
        unsafe { self.memory.base().cast::<u64>().add(position) }
    }
}
