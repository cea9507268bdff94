//! What GPUs run, interpreted, beside loops over elements.

use celerity_regions::Region;

use super::interpreter::Program;
use super::*;

/// Memory as devices have it: aligned to 16 bytes, and of an allocation of `extent`.
struct Allocation {
    words: Vec<u128>,
    extent: Box3,
}

impl Allocation {
    /// Full of numbers that depend on the place.
    fn new(extent: Box3, bytes: usize) -> Self {
        let len = (extent.volume() as usize * bytes).div_ceil(16);
        let words = (0..len as u128)
            .map(|i| (i + 1).wrapping_mul(0x0123_4567_89ab_cdef_0011_2233_4455_6677));
        Self { words: words.collect(), extent }
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Where an element begins.
    fn position(&self, at: Coord3, bytes: usize) -> usize {
        let (min, range) = (self.extent.min(), self.extent.range());
        let along = [0, 1, 2].map(|dim: usize| at[dim] - min[dim]);
        ((along[0] * range[1] + along[1]) * range[2] + along[2]) as usize * bytes
    }

    fn bind<'a>(&mut self, region: &'a Region) -> BoundMemory<'a> {
        let base = self.words.as_mut_ptr().expose_provenance();
        // SAFETY: the interpreter alone touches it, while nobody else does.
        let base = std::ptr::with_exposed_provenance_mut(base);
        // SAFETY: as above.
        unsafe { BoundMemory::new(base, self.extent, region) }
    }
}

/// Never run: the interpreter does its work.
struct NoHost;

impl DeviceKernel for NoHost {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
        unreachable!("GPUs run the assembly");
    }
}

fn interpret(bulk: Bulk, dims: usize, chunk: &Box3, memory: &[BoundMemory<'_>]) {
    interpret_with(bulk, dims, chunk, memory, |_| ());
}

/// With a launch that is changed first.
fn interpret_with(
    bulk: Bulk,
    dims: usize,
    chunk: &Box3,
    memory: &[BoundMemory<'_>],
    change: impl Fn(&mut Launch),
) {
    // SAFETY: the accesses are those of the tests, one to one or at the distance.
    let kernel = unsafe { BulkKernel::new(Arc::new(NoHost), bulk, dims) };
    let code = kernel.device_code().unwrap_or_else(|error| panic!("{error}"));
    let CodeSource::Ptx(text) = code.module().source() else { panic!("not PTX") };
    let mut launch = code.launch(chunk, memory).unwrap();
    change(&mut launch);
    // SAFETY: the memory is that of the tests' allocations.
    unsafe { Program::parse(text, code.entry()).run(&launch) }
}

fn points(of: &Box3) -> impl Iterator<Item = Coord3> {
    let (min, max) = of.corners();
    let plane =
        move |x| (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |z| [x, y, z]));
    (min[0]..max[0]).flat_map(plane)
}

/// Dimensions, an allocation and a chunk in it.
fn chunks() -> Vec<(usize, Box3, Box3)> {
    vec![
        (0, Box3::UNIT, Box3::UNIT),
        (1, Box3::from_range([700]), Box3::from_offset_range([3], [600])),
        (1, Box3::from_offset_range([5], [7]), Box3::from_offset_range([5], [7])),
        (2, Box3::from_offset_range([5, 2], [4, 9]), Box3::from_offset_range([6, 4], [2, 5])),
        (2, Box3::from_range([2, 300]), Box3::from_offset_range([0, 1], [2, 299])),
        (
            3,
            Box3::from_offset_range([1, 2, 3], [4, 5, 6]),
            Box3::from_offset_range([2, 3, 4], [2, 3, 4]),
        ),
        (3, Box3::from_range([2, 2, 2]), Box3::from_range([2, 2, 2])),
    ]
}

/// Sizes of elements.
const SIZES: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 48];

#[test]
fn each_element_of_the_chunk_gets_the_value_and_no_other_does() {
    for (dims, extent, chunk) in chunks() {
        for bytes in SIZES {
            let value: Box<[u8]> = (1..=bytes as u8).collect();
            let mut memory = Allocation::new(extent, bytes);
            let mut expected = memory.bytes();
            for at in points(&chunk) {
                expected[memory.position(at, bytes)..][..bytes].copy_from_slice(&value);
            }
            let region = Region::from(chunk);
            interpret(Bulk::Fill { value }, dims, &chunk, &[memory.bind(&region)]);
            assert!(memory.bytes() == expected, "{bytes} bytes, {chunk} of {extent}");
        }
    }
}

#[test]
fn each_element_of_the_chunk_gets_that_at_the_distance() {
    for (dims, extent, chunk) in chunks() {
        for (bytes, shift) in SIZES.into_iter().flat_map(|bytes| [(bytes, 3_u64), (bytes, 0)]) {
            let mut distance = [0; 3];
            distance[..dims].fill(shift.wrapping_sub(1));
            let moved = |at: Coord3| [0, 1, 2].map(|dim| at[dim].wrapping_add(distance[dim]));
            let min = moved(chunk.min());
            // Nothing lies before the beginning.
            if min.contains(&u64::MAX) {
                continue;
            }
            let source = Box3::new(min, [0, 1, 2].map(|dim: usize| min[dim] + chunk.range()[dim]));
            // Wider than what is copied.
            let around = Box3::new(
                source.min(),
                match dims {
                    0 => source.max(),
                    1 => [source.max()[0] + 2, 1, 1],
                    2 => [source.max()[0], source.max()[1] + 3, 1],
                    _ => [source.max()[0], source.max()[1] + 1, source.max()[2] + 5],
                },
            );
            let (mut to, mut from) =
                (Allocation::new(extent, bytes), Allocation::new(around, bytes));
            from.words.iter_mut().for_each(|word| *word = word.rotate_left(29));
            let (mut expected, read) = (to.bytes(), from.bytes());
            for at in points(&chunk) {
                let from = &read[from.position(moved(at), bytes)..][..bytes];
                expected[to.position(at, bytes)..][..bytes].copy_from_slice(from);
            }
            let (written, looked_at) = (Region::from(chunk), Region::from(source));
            let memory = [to.bind(&written), from.bind(&looked_at)];
            interpret(Bulk::Copy { bytes, distance }, dims, &chunk, &memory);
            assert!(to.bytes() == expected, "{bytes} bytes, {source} to {chunk} of {extent}");
            assert!(from.bytes() == read, "what is copied stays as it was");
        }
    }
}

#[test]
fn rows_and_planes_beyond_the_blocks_take_turns() {
    let chunk = Box3::from_range([3, 5, 2]);
    let mut memory = Allocation::new(chunk, 1);
    let region = Region::from(chunk);
    let few = |launch: &mut Launch| {
        assert_eq!(launch.grid, [1, 5, 3]);
        launch.grid = [1, 2, 2];
    };
    interpret_with(Bulk::Fill { value: [7].into() }, 3, &chunk, &[memory.bind(&region)], few);
    assert!(memory.bytes()[..30].iter().all(|&byte| byte == 7));
}

#[test]
fn elements_that_are_no_parameter_are_refused() {
    let of = |bytes: usize| {
        let bulk = Bulk::Fill { value: vec![1; bytes].into() };
        // SAFETY: it is never launched.
        let kernel = unsafe { BulkKernel::new(Arc::new(NoHost), bulk, 1) };
        kernel.device_code().map(drop)
    };
    assert_eq!(of(MOST_BYTES), Ok(()));
    let error = of(MOST_BYTES + 1).unwrap_err().to_string();
    assert!(error.contains("1025 bytes") && error.contains("`#[kernel]`"), "{error}");
}

/// A backend that is asked whether a kernel can run launches it for one item, with memory that holds
/// nothing, to see how many parameters it has.
#[test]
fn how_a_launch_is_called_can_be_asked_without_memory() {
    let region = Region::empty();
    let nothing = BoundMemory::of_nothing(&region);
    let parameters = |bulk: Bulk, chunk: &Box3, memory: &[BoundMemory<'_>]| {
        // SAFETY: it is never launched.
        let kernel = unsafe { BulkKernel::new(Arc::new(NoHost), bulk, 3) };
        kernel.launch(chunk, memory).unwrap().parameters.as_bytes().len()
    };
    let back = || Bulk::Copy { bytes: 12, distance: [-95_i64 as u64, 3, -4_i64 as u64] };
    let chunk = Box3::new([100, 0, 4], [101, 1, 5]);
    let mut memory = Allocation::new(Box3::from_range([101, 4, 5]), 12);
    let all = Region::from(Box3::from_range([101, 4, 5]));
    let bound = memory.bind(&all);
    let asked = parameters(back(), &Box3::UNIT, &[nothing, nothing]);
    assert_eq!(asked, parameters(back(), &chunk, &[bound, bound]));
    let fill = || Bulk::Fill { value: [7; 12].into() };
    let asked = parameters(fill(), &Box3::UNIT, &[nothing]);
    assert_eq!(asked, parameters(fill(), &chunk, &[bound]));
}
