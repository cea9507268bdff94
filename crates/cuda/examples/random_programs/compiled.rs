//! Tasks of random programs as one kernel that rustc has compiled, for CPUs and GPUs:
//! what a task's accesses are, in the numbers that the kernel takes.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use celerity_example_kernels::programs::{
    ACCESSES, ADDS, ANY, AROUND, AXES, BITS, BOXES, FILTER, IN_BOXES, MODE, NUMBERS, ON_AXIS,
    OPERANDS, READS, SHARED, SIZE, THROWN_AT, WORDS, WRITES, run_statement,
};
use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_kernel::abi::{ALIGNMENT, AccessMemory, Chunk, Mapping};
use celerity_kernel::{AtomicView, Bounds, Item, ItemKernel, Kernel, Layout, PartView};
use celerity_regions::Box3;
use celerity_tdag::{AccessMode, NeighborhoodShape};
use celerity_testkit::element;
use celerity_testkit::hash::mixes;
use celerity_testkit::program::{AccessSpec, Axis, BufferSpec, MapperSpec, SideSpec, buffer_slot};
use celerity_testkit::run::KernelTask;

/// A task's kernel.
pub(crate) struct Statement {
    kernel: run_statement,
    space: Box3,
    /// Words of an element, and whether it is written, by access.
    accesses: Vec<(usize, bool)>,
}

impl Statement {
    /// # Panics
    /// If the task has more accesses than the kernel.
    pub(crate) fn new(task: KernelTask<'_>) -> Self {
        let KernelTask { op, task, buffers } = task;
        assert!(task.accesses.len() <= ACCESSES, "{task} has more than {ACCESSES} accesses");
        let space = task.space();
        let (mut numbers, mut accesses) = ([[0; NUMBERS]; ACCESSES], Vec::new());
        for (numbers, access) in numbers.iter_mut().zip(&task.accesses) {
            let buffer = &buffers[buffer_slot(access.buffer)];
            *numbers = numbers_of(access, buffer, &space);
            accesses.push((buffer.words, access.mode.writes()));
        }
        let kernel = run_statement::new(op as u64, [space.min(), space.range()], numbers);
        Self { kernel, space, accesses }
    }
}

/// What the kernel is told about an access.
fn numbers_of(access: &AccessSpec, buffer: &BufferSpec, space: &Box3) -> [u64; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    let (reads, writes) = (mixes(access.mode), access.mode.writes());
    let adds = access.mode == AccessMode::Update;
    numbers[MODE] = u64::from(reads) * READS + u64::from(writes) * WRITES + u64::from(adds) * ADDS;
    numbers[WORDS] = buffer.words as u64;
    let size = buffer.extent.range();
    numbers[SIZE..SIZE + 3].copy_from_slice(&size);
    for dim in 0..3 {
        let axis = axis(&access.mapper, dim, size[dim], space).map(|number| number as u64);
        numbers[AXES + 4 * dim..][..4].copy_from_slice(&axis);
    }
    let (filter, operands) = filter(&access.mapper, &buffer.extent);
    numbers[FILTER] = filter;
    numbers[OPERANDS..OPERANDS + operands.len()].copy_from_slice(&operands);
    numbers
}

/// Where an item's elements are along one dimension of a buffer: `from`, `base`, `stride`
/// and `width`.
fn axis(mapper: &MapperSpec, dim: usize, size: u64, space: &Box3) -> [i64; 4] {
    let everything = [0, 0, 0, size as i64];
    let own = [dim as i64, 0, 1, 1];
    match mapper {
        MapperSpec::OneToOne => own,
        MapperSpec::Slice { dim: whole } if usize::from(*whole) != dim => own,
        MapperSpec::Neighborhood { border, .. } => {
            let border = border[dim] as i64;
            [dim as i64, -border, 1, 2 * border + 1]
        }
        MapperSpec::Affine(axes) => affine(axes[dim], space),
        MapperSpec::PerDimension(sides) => match sides.get(dim) {
            Some(SideSpec::Only { min, max }) => [0, *min as i64, 0, *max as i64 - *min as i64],
            Some(SideSpec::Windows { from, stride, first, width, .. }) => {
                [i64::from(*from), *first, *stride as i64, *width as i64]
            }
            Some(SideSpec::All | SideSpec::Share { .. }) | None => everything,
        },
        MapperSpec::Slice { .. }
        | MapperSpec::All
        | MapperSpec::Periodic { .. }
        | MapperSpec::Fixed(_)
        | MapperSpec::Scatter { .. } => everything,
    }
}

fn affine(axis: Axis, space: &Box3) -> [i64; 4] {
    match axis {
        Axis::Constant { min, max } => [0, min as i64, 0, max as i64 - min as i64],
        Axis::Along { from, start, stride, width, mirrored } => {
            let along = usize::from(from);
            let (start, stride) = (start as i64, stride as i64);
            let (first, last) = (space.min()[along] as i64, space.max()[along] as i64 - 1);
            match mirrored {
                false => [i64::from(from), start - stride * first, stride, width as i64],
                true => [i64::from(from), start + stride * last, -stride, width as i64],
            }
        }
    }
}

fn filter(mapper: &MapperSpec, buffer: &Box3) -> (u64, Vec<u64>) {
    match mapper {
        MapperSpec::Neighborhood { shape: NeighborhoodShape::AlongAxes, .. } => (ON_AXIS, vec![]),
        MapperSpec::Periodic { border, shape, along } => {
            let axes_only = u64::from(*shape == NeighborhoodShape::AlongAxes);
            (AROUND, [&border[..], &along.map(u64::from), &[axes_only]].concat())
        }
        MapperSpec::PerDimension(sides) => {
            let share = |side: &SideSpec| match side {
                SideSpec::Share { from, granularity } => [*granularity, u64::from(*from)],
                _ => [0; 2],
            };
            let none = std::iter::repeat([0; 2]);
            (SHARED, sides.iter().map(share).chain(none).take(3).flatten().collect())
        }
        MapperSpec::Fixed(boxes) => {
            assert!(boxes.len() <= BOXES, "more than {BOXES} boxes");
            (IN_BOXES, [boxes.len() as u64].into_iter().chain(boxes.iter().map(packed)).collect())
        }
        MapperSpec::Scatter { seed } => {
            let elements = buffer.volume().max(1);
            let coprime = |&factor: &u64| gcd(factor, elements) == 1;
            let factor = (seed % elements..).find(coprime).expect("one is coprime");
            (THROWN_AT, vec![factor, *seed])
        }
        _ => (ANY, vec![]),
    }
}

/// A box in one number.
fn packed(part: &Box3) -> u64 {
    let corners = [part.min(), part.max()].into_iter().flatten();
    corners.rev().fold(0, |packed, coordinate| {
        assert!(coordinate >> BITS == 0, "{part} does not fit {BITS} bits per coordinate");
        packed << BITS | coordinate
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl DeviceKernel for Statement {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        let bound: [Words; ACCESSES] = std::array::from_fn(|nth| self.words(nth, memory));
        let reads = bound.each_ref().map(|words| {
            // SAFETY: the executor has bound the declared elements, which nobody writes
            // if this access does not.
            unsafe { PartView::new(words.base, words.layout, words.part) }
        });
        let writes = bound.each_ref().map(|words| {
            // SAFETY: as above; of an access that reads, nobody asks for it.
            unsafe { AtomicView::new(words.base, words.layout, words.part) }
        });
        let global = bounds(&self.space, 1).range();
        for at in element::points(chunk) {
            let item = Item::new(at.map(|index| index as usize), global);
            let ([r0, r1, r2, r3], [w0, w1, w2, w3]) = (reads, writes);
            self.kernel.item(item, (r0, r1, r2, r3, w0, w1, w2, w3));
        }
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        let compiled = run_statement::module().compiled();
        compiled.map_err(|error| NoDeviceCode { reason: error.to_string().into() })?;
        Ok(self)
    }
}

// SAFETY: the code was compiled from the function that `run` calls, whose views are confined to
// what was declared.
unsafe impl DeviceCode for Statement {
    /// Always the same: it is loaded by address.
    fn module(&self) -> &Arc<CodeModule> {
        static MODULE: OnceLock<Arc<CodeModule>> = OnceLock::new();
        MODULE.get_or_init(|| {
            let module = run_statement::module();
            let texts = module.compiled().expect("`device_code` has looked");
            let texts = texts.iter().map(|ptx| (ptx.architecture, Cow::Borrowed(ptx.text)));
            CodeModule::new(module.name(), CodeSource::PtxFor(texts.collect()))
        })
    }

    fn entry(&self) -> &str {
        run_statement::DESCRIPTION.entry
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let (items, global) = (bounds(chunk, 1), bounds(&self.space, 1).range());
        let chunk = Chunk::new(items, global);
        let access = |wanted: bool| {
            (0..ACCESSES).map(move |nth| {
                let written = self.accesses.get(nth).is_some_and(|&(_, written)| written);
                let words = if written == wanted { self.words(nth, memory) } else { Words::none() };
                words.on_device()
            })
        };
        let accesses: Vec<_> = access(false).chain(access(true)).collect();
        let mut parameters = Parameters::default();
        let mut append = |bytes: &[u8], alignment| parameters.push_bytes(bytes, alignment);
        let shape = self.kernel.put_launch(&chunk, &accesses, &mut append)?;
        Ok(Launch { grid: shape.grid, block: shape.block, shared_bytes: 0, parameters })
    }
}

/// The memory of an access as numbers, of which each element has some.
struct Words {
    base: *mut u64,
    extent: Bounds<3>,
    layout: Layout<3>,
    /// The box around what was declared.
    part: Bounds<3>,
}

impl Statement {
    fn words(&self, nth: usize, memory: &[BoundMemory<'_>]) -> Words {
        let (Some(&(words, _)), Some(bound)) = (self.accesses.get(nth), memory.get(nth)) else {
            return Words::none();
        };
        if bound.extent().is_empty() || bound.region().is_empty() {
            return Words::none();
        }
        let extent = bounds(bound.extent(), words);
        let part = bounds(&bound.region().bounding_box(), words);
        Words { base: bound.base().cast(), extent, layout: Layout::row_major(&extent), part }
    }
}

impl Words {
    /// Of no access.
    fn none() -> Self {
        let nothing = Bounds::EMPTY;
        let base = std::ptr::without_provenance_mut(ALIGNMENT as usize);
        Self { base, extent: nothing, layout: Layout::row_major(&nothing), part: nothing }
    }

    fn on_device(&self) -> AccessMemory {
        let Self { base, extent, part, .. } = *self;
        let mapping = Mapping::Opaque;
        AccessMemory { address: base as u64, extent, part, buffer: extent.max(), mapping }
    }
}

/// A box of elements as a box of their words.
fn bounds(part: &Box3, words: usize) -> Bounds<3> {
    let wide = |[x, y, z]: [u64; 3]| [x as usize, y as usize, z as usize * words];
    Bounds::new(wide(part.min()), wide(part.max()))
}
