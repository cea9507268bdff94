//! The host's side of a launch: from a chunk and the memory bound to its accesses
//! to the parameters of the entry point.

use super::blocks::{AccessBlock, LaunchBlock};
use super::describe::{Description, EntryKind, Form, ViewKind, ViewParameter};
use super::launch_error::LaunchError;
use super::mapping::Mapping;
use super::sides::{are_shifts, have_gaps_along, hull};
use super::tiles::{TileBlock, Tiles};
use super::{ALIGNMENT, Geometry, STACK, check_groups};
use crate::bounds::{Bounds, Layout};

/// The items of a launch, in three dimensions, of which the index space has the
/// first ones; the rest are of size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The items to run: at least one.
    pub items: Bounds<3>,
    /// The size of the whole index space.
    pub global: [usize; 3],
    /// Items of a group; all 1 for kernels without.
    pub group: [usize; 3],
    /// How the index space is cut into tiles, for kernels that reduce.
    pub tiles: Option<Tiles>,
    /// Threads of a block along each dimension, if that is not left to a rule: for kernels over items and
    /// rows that do not reduce, wherever there can be such blocks (see [`is_block`](super::is_block)).
    pub block: Option<[usize; 3]>,
    /// Which entry point is launched, as [`Description::entry_kind`] says of the task.
    pub entry_kind: EntryKind,
}

impl Chunk {
    /// Items of an index space in no groups and no tiles, in blocks by the rule, for the plain entry point.
    #[must_use]
    pub const fn new(items: Bounds<3>, global: [usize; 3]) -> Self {
        let (group, entry_kind) = ([1; 3], EntryKind::Plain);
        Self { items, global, group, tiles: None, block: None, entry_kind }
    }
}

/// Memory for one access of a launch. Boxes in three dimensions, as in [`Chunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessMemory {
    /// Where the first element of `extent` is on the device.
    pub address: u64,
    /// The elements that the allocation holds, row-major.
    pub extent: Bounds<3>,
    /// The box that the chunk declared, or the smallest box around what it did.
    pub part: Bounds<3>,
    /// The buffer's size; of a reduction, that of the buffer that is reduced into.
    pub buffer: [usize; 3],
    /// How the access's range mapper relates items to elements.
    pub mapping: Mapping,
}

/// What decides of an access which entry point a task launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessKind {
    /// How its range mapper relates items to elements.
    pub mapping: Mapping,
    /// The buffer's size.
    pub buffer: [usize; 3],
    /// Whether elements are both read and written.
    pub updates: bool,
}

/// Writes the parameters of a launch but for what the kernel takes by value, and
/// says how large the launch is. `slices` are the bytes of its slices of local memory; `sink` gets bytes and
/// the alignment at which to append them.
///
/// # Errors
/// See [`LaunchError`]; `sink` may have got some bytes then.
pub fn write_parameters(
    kernel: &Description,
    slices: usize,
    chunk: &Chunk,
    accesses: &[AccessMemory],
    sink: &mut dyn FnMut(&[u8], usize),
) -> Result<Geometry, LaunchError> {
    let (views, given) = (kernel.views.len(), accesses.len());
    if views != given {
        return Err(LaunchError::AccessCount { views, given });
    }
    for (access, (view, memory)) in kernel.views.iter().zip(accesses).enumerate() {
        check(access, view, memory, chunk)?;
    }
    let mut launch = launch_block(kernel, chunk, accesses);
    let tiles = tile_block(kernel, chunk)?;
    let shape = match &tiles {
        Some(tiles) => tile_geometry(kernel, chunk, tiles, launch.run),
        None => geometry(kernel, chunk, accesses, &mut launch),
    };
    sink(&launch.to_bytes(), align_of::<LaunchBlock>());
    if let Some(tiles) = &tiles {
        sink(&tiles.to_bytes(), align_of::<TileBlock>());
    }
    let mut shared = kernel.slices_begin().saturating_add(slices);
    for (view, memory) in kernel.views.iter().zip(accesses) {
        sink(&memory.address.to_ne_bytes(), align_of::<u64>());
        let block = match view.kind.reduces() {
            true => reduction_block(view, memory, chunk, &mut shared),
            false => view_block(view, memory, chunk),
        };
        sink(&block.to_bytes(), align_of::<AccessBlock>());
    }
    // Whether a device has that much was seen when the kernel was submitted.
    let shared_bytes = u32::try_from(shared).unwrap_or(u32::MAX);
    Ok(Geometry { shared_bytes, ..shape? })
}

/// The chunk's tiles, if the kernel reduces.
fn tile_block(kernel: &Description, chunk: &Chunk) -> Result<Option<TileBlock>, LaunchError> {
    if !kernel.reduces() {
        return Ok(None);
    }
    let (offset, range) = (chunk.items.min(), chunk.items.range());
    let block = chunk.tiles.and_then(|tiles| tiles.block(offset, range));
    block.map(Some).ok_or(LaunchError::Tiles { items: chunk.items })
}

/// One block for each tile.
fn tile_geometry(
    kernel: &Description,
    chunk: &Chunk,
    tiles: &TileBlock,
    run: u16,
) -> Result<Geometry, LaunchError> {
    let (range, group) = (chunk.items.range(), chunk.group);
    let block = if kernel.form == Form::Group {
        check_groups(kernel.dims, chunk.items.min(), range, group)
            .map_err(|error| LaunchError::Groups { group, error })?;
        along_axes(kernel.dims, words(group))
    } else {
        let lanes = chunk.tiles.map_or(1, |tiles| tiles.lanes());
        [lanes as u64 / u64::from(run), 1, 1]
    };
    let blocks: u64 = tiles.chunk.iter().product();
    let threads = [blocks * block[0], block[1], block[2]];
    Geometry::in_blocks(threads, block).ok_or(LaunchError::TooLarge { range })
}

/// Accumulators of arrays take so many bytes of shared memory, with all else that is there: what
/// every device has without being asked for it.
const MOST_SHARED: usize = 40 << 10;

/// As [`access_block`], for partial results: an element for each tile, or as many as are reduced
/// into, whose accumulators are in shared memory where there is room.
fn reduction_block(
    view: &ViewParameter,
    memory: &AccessMemory,
    chunk: &Chunk,
    shared: &mut usize,
) -> AccessBlock {
    let mut block = access_block(view.kind, memory, chunk);
    if let ViewKind::ArrayReducer { .. } = view.kind {
        let elements: usize = memory.buffer.iter().product();
        block.strides = [elements as u64, 1, 1];
        block.detail = AccessBlock::IN_GLOBAL;
        let end = elements.saturating_mul(view.size).saturating_add(*shared);
        if end <= MOST_SHARED {
            block.detail = *shared as u32;
            *shared = end.next_multiple_of(super::local::ALIGNMENT);
        }
    }
    block
}

/// The shape of a launch without tiles. Says in `launch` how threads take what they take.
fn geometry(
    kernel: &Description,
    chunk: &Chunk,
    accesses: &[AccessMemory],
    launch: &mut LaunchBlock,
) -> Result<Geometry, LaunchError> {
    let (range, group) = (chunk.items.range(), chunk.group);
    let mut threads = along_axes(kernel.dims, launch.range.map(|size| size.max(1)));
    let shape = if kernel.form == Form::Group {
        check_groups(kernel.dims, chunk.items.min(), range, group)
            .map_err(|error| LaunchError::Groups { group, error })?;
        Geometry::in_blocks(threads, along_axes(kernel.dims, words(group)))
    } else {
        threads[0] = threads[0].div_ceil(u64::from(launch.run));
        if kernel.takes_steps && kernel.dims > 1 {
            let slowest = kernel.dims - 1;
            launch.steps = match kernel.is_bordered() {
                true => {
                    let most = most_steps(kernel, chunk.entry_kind, accesses, launch.run);
                    Geometry::steps(threads, slowest, most)
                }
                false => Geometry::steps_of_many(threads, slowest),
            };
            if chunk.entry_kind == EntryKind::Stacked
                && launch.run > 1
                && launch.steps >= STACK as u8
            {
                launch.stack = STACK as u8;
            }
            threads[slowest] = threads[slowest].div_ceil(u64::from(launch.steps));
        }
        let wanted = chunk.block.map(|block| along_axes(kernel.dims, words(block)));
        match launch.run {
            1 => Geometry::covering(threads, false, wanted),
            _ => Geometry::covering(threads, true, wanted)
                .and_then(|shape| with_edges(shape, kernel, launch)),
        }
    };
    shape.ok_or(LaunchError::TooLarge { range })
}

/// How many steps a thread takes along the slowest dimension at the most.
///
/// Measured on H200s (H100s where nothing else is said), by rows, in GB/s or as a part of a copy's bandwidth:
///
/// | stencil | 1 | 2 | 4 | 8 | 16 | 32 | 64 |
/// | --- | --- | --- | --- | --- | --- | --- | --- |
/// | reaction, 16384² `f32` (H100) | 0.93 | 0.97 | 0.92 | 0.88 | | | |
/// | water, 16384² `f32` | | 4,080 | 3,943 | 3,836 | 3,769 | | |
/// | heat, 512³ `f32`, planes of 1 MiB | | 3,395 | 3,642 | 3,578 | 3,422 | 3,325 | 3,099 |
/// | heat, 512³ `f64`, of 2 MiB | | 3,568 | 3,692 | 3,757 | 3,666 | 3,628 | 3,623 |
/// | heat, 1024³ `f32`, of 4 MiB | | 3,585 | 3,674 | 3,613 | 3,530 | 3,414 | 3,323 |
/// | heat, 1024³ `f64`, of 8 MiB | | 2,966 | 3,296 | 3,491 | 3,554 | 3,590 | 3,579 |
/// | heat, 256 · 2048² `f32`, of 16 MiB | | 2,835 | 3,242 | 3,468 | 3,551 | 3,571 | 3,483 |
/// | heat, 64 · 4096² `f64`, of 128 MiB | | 2,760 | 3,362 | 3,602 | 3,693 | 3,707 | 3,662 |
/// | heat, 1024 · 1024 · 1023 `f32`, rows not aligned for runs (H100) | 0.34 | 0.48 | 0.55 | 0.61 | | | |
///
/// In stacks, means of 27 over 512³ `f32` had 2,859 GB/s for 4 steps and 2,959 for 8, over 1024³ 3,004 and 2,954; means of 9 over
/// 16384² `f32` 4,124 and 3,960.
fn most_steps(
    kernel: &Description,
    entry_kind: EntryKind,
    accesses: &[AccessMemory],
    run: u16,
) -> u64 {
    match (run, kernel.dims) {
        (1, _) => 8,
        (_, 3) if planes_are_large(kernel, accesses) => 32,
        (_, 3) => 4,
        _ if entry_kind == EntryKind::Stacked => STACK as u64,
        _ => 2,
    }
}

/// Whether a plane of what kernels over three dimensions look around in is too large for a cache to
/// hold those that blocks are at, which come plane by plane.
fn planes_are_large(kernel: &Description, accesses: &[AccessMemory]) -> bool {
    let mut planes = kernel.views.iter().zip(accesses).filter(|(view, _)| view.kind.is_bordered());
    planes.any(|(view, memory)| {
        let [_, rows, columns] = memory.extent.range();
        rows.saturating_mul(columns).saturating_mul(view.size) >= LARGE_PLANE
    })
}

/// Bytes of a plane from which on it is large: of the 50 MiB of cache of an H100, a sixth.
const LARGE_PLANE: usize = 8 << 20;

/// Adds blocks for what is left of rows. Says in `launch` how many there were before.
fn with_edges(shape: Geometry, kernel: &Description, launch: &mut LaunchBlock) -> Option<Geometry> {
    let fastest = kernel.dims - 1;
    let (left, behind) = (launch.inner_min[fastest], launch.inner_max[fastest]);
    let (edges, [_, y, z]) = (left + launch.range[fastest] - behind, shape.block.map(u64::from));
    launch.blocks = shape.grid[0];
    shape.with_columns(edges.checked_mul(y * z)?)
}

fn check(
    access: usize,
    view: &ViewParameter,
    memory: &AccessMemory,
    chunk: &Chunk,
) -> Result<(), LaunchError> {
    let touched = touched(view.kind, memory, chunk).ok_or(match (view.kind, memory.mapping) {
        (ViewKind::OwnPart, Mapping::Opaque | Mapping::PerDimension { .. }) => {
            LaunchError::Unknown { access }
        }
        (view, mapping) => LaunchError::Mapping { access, view, mapping: mapping.name() },
    })?;
    let complete = match view.kind {
        ViewKind::Whole => memory.extent == touched,
        _ => memory.extent.contains_all(&touched),
    };
    match complete {
        false => Err(LaunchError::Incomplete { access }),
        true if !memory.address.is_multiple_of(ALIGNMENT) => {
            Err(LaunchError::Misaligned { access })
        }
        true => Ok(()),
    }
}

/// The box of elements that views of this kind lead to, or `None` if the mapping
/// is not one for such views.
fn touched(view: ViewKind, memory: &AccessMemory, chunk: &Chunk) -> Option<Bounds<3>> {
    match (view, memory.mapping) {
        (ViewKind::Own, _) => own(memory, chunk),
        (ViewKind::Neighborhood, Mapping::Neighborhood { border, .. }) => {
            let (min, max) = (chunk.items.min(), chunk.items.max());
            let least = core::array::from_fn(|dim| min[dim].saturating_sub(border[dim]));
            let most = core::array::from_fn(|dim| {
                max[dim].saturating_add(border[dim]).min(memory.buffer[dim])
            });
            Some(Bounds::new(least, most))
        }
        // A border of nothing goes around nowhere.
        (ViewKind::Periodic, Mapping::Neighborhood { border, axes_only }) => {
            let mapping = Mapping::Periodic { border, axes_only, along: [false; 3] };
            touched(view, &AccessMemory { mapping, ..*memory }, chunk)
        }
        (ViewKind::Periodic, Mapping::Periodic { border, along, .. }) => {
            let (min, max) = (chunk.items.min(), chunk.items.max());
            let mut touched = ([0; 3], memory.buffer);
            for dim in 0..3 {
                let end = max[dim].saturating_add(border[dim]);
                let leaves = min[dim] < border[dim] || end > memory.buffer[dim];
                // Both edges, and what is between them, since addresses are those of one box.
                if !(along[dim] && leaves) {
                    touched.0[dim] = min[dim].saturating_sub(border[dim]);
                    touched.1[dim] = end.min(memory.buffer[dim]);
                }
            }
            Some(Bounds::new(touched.0, touched.1))
        }
        (ViewKind::OwnPart, Mapping::PerDimension { sides }) => {
            hull(&sides, &chunk.items, memory.buffer)
        }
        (ViewKind::Whole, Mapping::All) => Some(Bounds::from_range(memory.buffer)),
        (ViewKind::Part, Mapping::PerDimension { .. } | Mapping::Opaque)
        | (ViewKind::Shared, _)
        | (ViewKind::Reducer { .. } | ViewKind::ArrayReducer { .. }, Mapping::Tiles) => {
            Some(memory.part)
        }
        _ => None,
    }
}

/// The elements of the chunk's items, if each has one: its own, or one that is as far from there as for all others.
fn own(memory: &AccessMemory, chunk: &Chunk) -> Option<Bounds<3>> {
    match memory.mapping {
        Mapping::OneToOne => Some(chunk.items),
        Mapping::PerDimension { sides } if are_shifts(&sides) => {
            let shifted = hull(&sides, &chunk.items, memory.buffer)?;
            (shifted.range() == chunk.items.range()).then_some(shifted)
        }
        _ => None,
    }
}

fn launch_block(kernel: &Description, chunk: &Chunk, accesses: &[AccessMemory]) -> LaunchBlock {
    let (mut inner_min, mut inner_max) = inner(kernel.dims, chunk, accesses);
    if let (EntryKind::Narrow, Some(fastest)) = (chunk.entry_kind, kernel.dims.checked_sub(1)) {
        (inner_min[fastest], inner_max[fastest]) = (0, chunk.items.range()[fastest] as u64);
    }
    let (mut run, items) = (1, kernel.run() as u16);
    if let Some(fastest) = kernel.dims.checked_sub(1)
        && items > 1
        && come_in_rows(kernel, fastest, accesses)
        && aligned(kernel, items.into(), chunk, accesses)
        && counts_in_32_bits(chunk, accesses)
        && tiles_are_runs(kernel.dims, items.into(), chunk)
    {
        let min = inner_min[fastest].next_multiple_of(items.into());
        let max = inner_max[fastest] / u64::from(items) * u64::from(items);
        if min < max {
            (inner_min[fastest], inner_max[fastest], run) = (min, max, items);
        }
    }
    LaunchBlock {
        offset: words(chunk.items.min()),
        range: words(chunk.items.range()),
        global: words(chunk.global),
        inner_min,
        inner_max,
        run,
        steps: 1,
        stack: 1,
        blocks: 0,
    }
}

impl Description {
    /// Which entry point a task with these items and accesses launches. The same for all chunks of the task. O(accesses).
    ///
    /// That for narrow rows, if there is one, rows are narrow, and neighbourhoods reach no farther along them than runs that
    /// look over their ends may. That for stacks, if there is one, neighbourhoods are boxes that reach one
    /// element far, rows of buffers are whole runs, and no element is both read and written: what one level writes, the next
    /// might read, so that it would wait for it (a stencil of nine points over 16384² `f64` that adds to what is there had 0.88 of
    /// its rate on an H200; with rows that were no whole runs, heat in a box `f32` 0.78). Of both, that for stacks, unless rows
    /// have very few runs.
    #[must_use]
    pub fn entry_kind(
        &self,
        space: &Bounds<3>,
        accesses: impl IntoIterator<Item = AccessKind>,
    ) -> EntryKind {
        let Some(fastest) = self.dims.checked_sub(1) else { return EntryKind::Plain };
        let row = space.range()[fastest];
        let mut is_narrow = self.narrow_entry.is_some() && row <= NARROW;
        let mut is_stacked = self.stacked_entry.is_some();
        for AccessKind { mapping, buffer, updates } in accesses {
            if let Mapping::Neighborhood { border, axes_only }
            | Mapping::Periodic { border, axes_only, .. } = mapping
            {
                is_narrow &= border[fastest] <= 1 && space.max()[fastest] <= buffer[fastest];
                is_stacked &= !axes_only && border[..self.dims].iter().all(|&border| border == 1);
            }
            is_stacked &= !updates && buffer[fastest].is_multiple_of(self.run());
        }
        match (is_narrow, is_stacked) {
            (true, true) if row <= FEW_RUNS * self.run() => EntryKind::Narrow,
            (_, true) => EntryKind::Stacked,
            (true, false) => EntryKind::Narrow,
            (false, false) => EntryKind::Plain,
        }
    }
}

/// Rows of so many runs are narrow even if they could be taken in stacks, whose edges are apart. On an H200, means of 27 over rows of 256, 128,
/// 64 and 32 `f32` had 2,474, 2,192, 1,799 and 1,284 GB/s in stacks, and 1,889, 1,917, 1,856 and 1,907 as narrow ones;
/// `f64`, in runs half as long, 2,698, 2,532, 2,244 and 1,857, and 1,953 to 2,002.
const FEW_RUNS: usize = 16;

/// The longest rows that stencils take in runs from end to end. In tests less, so that small launches are of both kinds.
const NARROW: usize = if cfg!(test) { 24 } else { 256 };

/// Whether threads take what there is of tiles in runs of so many items: a block has that much fewer threads then.
fn tiles_are_runs(dims: usize, run: usize, chunk: &Chunk) -> bool {
    chunk.tiles.is_none_or(|tiles| {
        let range = chunk.items.range();
        let count = (0..3).map(|dim| range[dim].div_ceil(tiles.tile[dim]));
        count.product::<usize>() >= MANY_TILES && tiles.are_runs(run, dims, chunk.items.max())
    })
}

/// So many tiles keep a GPU busy with blocks of 64 threads. On an H200, seven points and the greatest change over 2²⁰ `f32` took 22.7 µs in 256
/// tiles with runs, and 15.4 without; in 1,024 tiles 14.0 and 16.1. In tests less, as small launches are to have runs.
const MANY_TILES: usize = if cfg!(test) { 1 } else { 512 };

/// Whether places along x are numbers of 32 bits, also behind the chunk in its last block, and no
/// neighbourhood reaches very far.
fn counts_in_32_bits(chunk: &Chunk, accesses: &[AccessMemory]) -> bool {
    let far = AccessBlock::FAR as usize;
    let is_near = |memory: &AccessMemory| match memory.mapping {
        Mapping::Neighborhood { border, .. } | Mapping::Periodic { border, .. } => {
            border.iter().all(|&reach| reach < far)
        }
        _ => true,
    };
    chunk.items.range().iter().all(|&size| size < u32::MAX as usize - far)
        && accesses.iter().all(is_near)
}

/// The items, counted from the chunk's first, from which every neighbourhood stays inside of its
/// buffer.
fn inner(dims: usize, chunk: &Chunk, accesses: &[AccessMemory]) -> ([u64; 3], [u64; 3]) {
    let (mut min, mut max) = (chunk.items.min(), chunk.items.max());
    for memory in accesses {
        let (Mapping::Neighborhood { border, .. } | Mapping::Periodic { border, .. }) =
            memory.mapping
        else {
            continue;
        };
        for dim in 0..dims {
            min[dim] = min[dim].max(border[dim]);
            max[dim] = max[dim].min(memory.buffer[dim].saturating_sub(border[dim]));
        }
    }
    for dim in 0..3 {
        // Counted from the chunk; of a dimension along which there are none, nothing.
        let first = chunk.items.min()[dim];
        (min[dim], max[dim]) = match min[dim] < max[dim] {
            true => (min[dim] - first, max[dim] - first),
            false => (0, 0),
        };
    }
    (words(min), words(max))
}

/// Whether what belongs to items side by side along a dimension is one box in each buffer.
fn come_in_rows(kernel: &Description, dim: usize, accesses: &[AccessMemory]) -> bool {
    kernel.views.iter().zip(accesses).all(|(view, memory)| match (view.kind, &memory.mapping) {
        (ViewKind::OwnPart, Mapping::PerDimension { sides }) => !have_gaps_along(sides, dim),
        _ => true,
    })
}

/// Whether every row that the kernel sees may be taken in runs of so many items.
fn aligned(kernel: &Description, run: usize, chunk: &Chunk, accesses: &[AccessMemory]) -> bool {
    let Some(fastest) = kernel.dims.checked_sub(1) else { return false };
    let of_rows = |view: &ViewParameter| {
        matches!(view.kind, ViewKind::Own | ViewKind::Neighborhood | ViewKind::Periodic)
    };
    let mut rows = kernel.views.iter().zip(accesses).filter(|(view, _)| of_rows(view));
    rows.all(|(_, memory)| {
        let items = own(memory, chunk).unwrap_or(chunk.items);
        let start = items.min()[fastest] - memory.extent.min()[fastest];
        let strides = Layout::row_major(&memory.extent).strides();
        start.is_multiple_of(run)
            && strides[..fastest].iter().all(|stride| stride.is_multiple_of(run))
    })
}

/// As [`access_block`], of a view that does not reduce.
fn view_block(view: &ViewParameter, memory: &AccessMemory, chunk: &Chunk) -> AccessBlock {
    let mut block = access_block(view.kind, memory, chunk);
    if let (ViewKind::OwnPart, Mapping::PerDimension { sides }) = (view.kind, &memory.mapping) {
        block.set_sides(sides, chunk.items.min());
    }
    block
}

fn access_block(view: ViewKind, memory: &AccessMemory, chunk: &Chunk) -> AccessBlock {
    let (mut border, mut axes_only, mut detail) = ([0; 3], 0, 0);
    match memory.mapping {
        Mapping::Neighborhood { border: reach, axes_only: axes } => {
            (border, axes_only) = (reach, u32::from(axes));
        }
        Mapping::Periodic { border: reach, axes_only: axes, along } => {
            (border, axes_only) = (reach, u32::from(axes));
            detail = (0..3).map(|dim| u32::from(along[dim]) << dim).sum();
        }
        _ => {}
    }
    let (items, held) = (chunk.items.min(), memory.extent.min());
    let strides = Layout::row_major(&memory.extent).strides();
    let beginning = match (view, memory.mapping) {
        (ViewKind::Own, _) => own(memory, chunk).unwrap_or(chunk.items).min(),
        (_, Mapping::OneToOne | Mapping::Neighborhood { .. } | Mapping::Periodic { .. }) => items,
        _ if memory.part.is_empty() => held,
        _ => memory.part.min(),
    };
    let along = |dim: usize| beginning[dim].wrapping_sub(held[dim]).wrapping_mul(strides[dim]);
    AccessBlock {
        first: (0..3).fold(0, |first: usize, dim| first.wrapping_add(along(dim))) as u64,
        origin: words(held),
        strides: words(strides),
        part_min: words(memory.part.min()),
        part_max: words(memory.part.max()),
        buffer: words(memory.buffer),
        border: words(border),
        below: items.map(|first| first.min(AccessBlock::FAR as usize) as u32),
        above: [0, 1, 2].map(|dim| {
            let above = memory.buffer[dim].saturating_sub(items[dim] + 1);
            u32::try_from(above).unwrap_or(u32::MAX)
        }),
        axes_only,
        detail,
    }
}

/// Sizes along x, y and z of those in the order of the dimensions.
pub(super) fn along_axes(dims: usize, sizes: [u64; 3]) -> [u64; 3] {
    [1, 2, 3].map(|back| dims.checked_sub(back).map_or(1, |dim| sizes[dim]))
}

pub(super) fn words(coordinates: [usize; 3]) -> [u64; 3] {
    coordinates.map(|coordinate| coordinate as u64)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::GroupError;
    use super::super::sides::PartSide;
    use super::*;

    const fn view(kind: ViewKind, writes: bool) -> ViewParameter {
        ViewParameter { kind, writes, dims: 2, size: 4, align: 4 }
    }

    fn kernel(form: Form, views: &'static [ViewParameter]) -> Description {
        Description::unnamed(form, 2, views)
    }

    const STENCIL: &[ViewParameter] =
        &[view(ViewKind::Own, true), view(ViewKind::Neighborhood, false)];

    const AROUND: Mapping = Mapping::Neighborhood { border: [1, 2, 0], axes_only: true };

    fn memory(extent: Bounds<3>, mapping: Mapping) -> AccessMemory {
        AccessMemory { address: 4096, extent, part: extent, buffer: [64, 64, 1], mapping }
    }

    /// Items 16 to 32 of rows 8 to 24.
    const CHUNK: Chunk = Chunk {
        items: Bounds::new([8, 16, 0], [24, 32, 1]),
        global: [64, 64, 1],
        group: [4, 8, 1],
        tiles: None,
        block: None,
        entry_kind: EntryKind::Plain,
    };

    fn write(
        kernel: &Description,
        accesses: &[AccessMemory],
    ) -> Result<(Geometry, Vec<u64>), LaunchError> {
        let mut bytes = Vec::new();
        let geometry = write_parameters(kernel, 0, &CHUNK, accesses, &mut |piece, alignment| {
            assert_eq!(bytes.len() % alignment, 0);
            bytes.extend_from_slice(piece);
        })?;
        let words = bytes.chunks_exact(8);
        Ok((geometry, words.map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()))
    }

    fn whole() -> Bounds<3> {
        Bounds::from_range([64, 64, 1])
    }

    #[test]
    fn parameters_are_in_the_order_of_the_calling_convention() {
        let accesses = [memory(whole(), Mapping::OneToOne), memory(whole(), AROUND)];
        let (geometry, words) = write(&kernel(Form::Item, STENCIL), &accesses).unwrap();
        assert_eq!(geometry, Geometry { grid: [1, 1, 1], block: [4, 16, 1], shared_bytes: 0 });
        assert_eq!(words[..9], [8, 16, 0, 16, 16, 1, 64, 64, 1]);
        // All of the chunk is inside. Rows are aligned for runs, though not along the buffer's edges.
        assert_eq!(words[9..15], [0, 0, 0, 16, 16, 1]);
        assert_eq!(words[15], 4 | 1 << 16 | 1 << 24 | 1 << 32);
        let neighborhood = &words[16 + 24..];
        assert_eq!(neighborhood[0], 4096);
        assert_eq!(neighborhood[1..8], [8 * 64 + 16, 0, 0, 0, 64, 1, 1]);
        assert_eq!(neighborhood[8..14], [0, 0, 0, 64, 64, 1]);
        assert_eq!(neighborhood[14..20], [64, 64, 1, 1, 2, 0]);
        // Elements before and behind.
        assert_eq!(neighborhood[20..], [8 | 16 << 32, 55 << 32, 47, 1]);
    }

    #[test]
    fn tiles_are_the_blocks_of_a_launch_that_reduces() {
        const COMMUTES: ViewKind = ViewKind::Reducer { commutes: true };
        const EXACT: ViewKind = ViewKind::ArrayReducer { exact: true, commutes: true };
        const VIEWS: &[ViewParameter] =
            &[view(COMMUTES, true), view(EXACT, true), view(EXACT, true)];
        let tiles = Tiles { origin: [0; 3], tile: [8, 8, 1], grid: [8, 8, 1], slowest: 0 };
        let chunk = Chunk { tiles: Some(tiles), ..CHUNK };
        let partials = memory(Bounds::new([8, 0, 0], [24, 1, 1]), Mapping::Tiles);
        let reduced = |elements| AccessMemory { buffer: [elements, 1, 1], ..partials };
        let accesses = [reduced(1), reduced(100), reduced(20_000)];
        let (mut bytes, item) = (Vec::new(), kernel(Form::Item, VIEWS));
        let mut append = |piece: &[u8], _| bytes.extend_from_slice(piece);
        let shape = write_parameters(&item, 0, &chunk, &accesses, &mut append).unwrap();
        // 64 accumulators of a tile; room for values of 256 threads.
        assert_eq!((shape.grid, shape.block), ([4, 1, 1], [64, 1, 1]));
        assert_eq!((item.scratch_bytes(), shape.shared_bytes), (1024, 1024 + 400));
        assert_eq!(bytes.len(), 128 + 80 + 3 * 192);
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        // The chunk begins with tile [1, 2] of 8 × 8.
        assert_eq!(word(128 + 72), 10);
        let array = |nth: usize| {
            let block = 128 + 80 + 192 * nth + 8;
            (word(block + 32), (word(block + 176) >> 32) as u32)
        };
        assert_eq!(array(1), (100, 1024));
        assert_eq!(array(2), (20_000, AccessBlock::IN_GLOBAL));

        let groups = kernel(Form::Group, VIEWS);
        let shape = write_parameters(&groups, 0, &chunk, &accesses, &mut |_, _| ()).unwrap();
        assert_eq!((shape.grid, shape.block), ([4, 1, 1], [8, 4, 1]));
        let cut = Chunk { items: Bounds::new([8, 20, 0], [24, 32, 1]), ..chunk };
        for chunk in [cut, CHUNK] {
            let error = write_parameters(&item, 0, &chunk, &accesses, &mut |_, _| ()).unwrap_err();
            assert_eq!(error, LaunchError::Tiles { items: chunk.items });
        }
        let all = [memory(whole(), Mapping::All), accesses[1], accesses[2]];
        let error = write_parameters(&item, 0, &chunk, &all, &mut |_, _| ()).unwrap_err();
        assert!(matches!(error, LaunchError::Mapping { access: 0, .. }), "{error}");
    }

    #[test]
    fn groups_are_the_blocks_of_a_launch() {
        const OWN: &[ViewParameter] = &[view(ViewKind::Own, true)];
        let (kernel, accesses) = (kernel(Form::Group, OWN), [memory(whole(), Mapping::OneToOne)]);
        let (geometry, _) = write(&kernel, &accesses).unwrap();
        assert_eq!(geometry, Geometry { grid: [2, 4, 1], block: [8, 4, 1], shared_bytes: 0 });
        let odd = Chunk { group: [4, 5, 1], ..CHUNK };
        let error = write_parameters(&kernel, 0, &odd, &accesses, &mut |_, _| ()).unwrap_err();
        let expected = GroupError::Remainder { dim: 1 };
        assert_eq!(error, LaunchError::Groups { group: [4, 5, 1], error: expected });
    }

    #[test]
    fn rows_are_taken_in_runs_only_where_memory_is_aligned_for_it() {
        let run = |first: usize, second: usize, width: usize| {
            let extent = |x| Bounds::new([7, x, 0], [40, x + width, 1]);
            let accesses =
                [memory(extent(first), Mapping::OneToOne), memory(extent(second), AROUND)];
            let (geometry, words) = write(&kernel(Form::Row, STENCIL), &accesses).unwrap();
            let run = words[15] & 0xffff;
            assert_eq!(u64::from(geometry.block[0] * geometry.grid[0]), 16 / run);
            run
        };
        assert_eq!(run(8, 12, 32), 4);
        // The second row begins at another place, or rows have an odd stride.
        assert_eq!(run(8, 14, 32), 1);
        assert_eq!(run(8, 12, 30), 1);
    }

    /// Of elements that are only counted.
    #[test]
    fn the_task_decides_which_entry_point_is_launched() {
        const BOX: Mapping = Mapping::Neighborhood { border: [1, 1, 0], axes_only: false };
        let of = |views, row: usize, around: Mapping, updates: bool| {
            let buffer = [64, row, 1];
            let own = AccessKind { mapping: Mapping::OneToOne, buffer, updates };
            let around = AccessKind { mapping: around, buffer, updates: false };
            let kernel = kernel(Form::Row, views);
            kernel.entry_kind(&Bounds::from_range(buffer), [own, around])
        };
        let wide = 2 * NARROW;
        assert_eq!(of(STENCIL, wide, BOX, false), EntryKind::Stacked);
        // Rows that are no whole runs, elements that are read and written, far sides, stars.
        assert_eq!(of(STENCIL, wide + 1, BOX, false), EntryKind::Plain);
        assert_eq!(of(STENCIL, wide, BOX, true), EntryKind::Plain);
        let far = Mapping::Neighborhood { border: [1, 2, 0], axes_only: false };
        let flat = Mapping::Neighborhood { border: [0, 1, 0], axes_only: false };
        let star = Mapping::Neighborhood { border: [1, 1, 0], axes_only: true };
        let round =
            |axes_only| Mapping::Periodic { border: [1, 1, 0], axes_only, along: [true; 3] };
        assert_eq!(of(STENCIL, wide, round(false), false), EntryKind::Stacked);
        for other in [far, flat, star, round(true)] {
            assert_eq!(of(STENCIL, wide, other, false), EntryKind::Plain, "{other:?}");
        }
        // Few runs, whether edges are near or not.
        assert_eq!(of(STENCIL, NARROW, BOX, false), EntryKind::Narrow);
        assert_eq!(of(STENCIL, NARROW, star, true), EntryKind::Narrow);
        assert_eq!(of(STENCIL, NARROW, far, false), EntryKind::Plain);
        // Kernels that have no other entry point.
        const OWN: &[ViewParameter] = &[view(ViewKind::Own, true), view(ViewKind::Own, false)];
        assert_eq!(of(OWN, NARROW, Mapping::OneToOne, false), EntryKind::Plain);
    }

    #[test]
    fn places_far_apart_have_as_much_around_them_as_there_is() {
        const FEW: u64 = 3;
        let (rows, far) = (3_000_000_000_usize, AccessBlock::FAR as usize);
        for first in [0, 5, far + 7, 1_000_000_000] {
            let items = Bounds::new([first, 0, 0], [rows - 4, 4, 1]);
            let chunk = Chunk { items, global: [rows, 4, 1], ..CHUNK };
            let memory = AccessMemory { buffer: [rows, 4, 1], ..memory(items, AROUND) };
            assert!(counts_in_32_bits(&chunk, &[memory]));
            let block = access_block(ViewKind::Neighborhood, &memory, &chunk);
            for row in [first, first + 2, first + far, rows - 5] {
                let ([below, _], [above, _]) = block.room([row - first, 0]);
                let near = |room: u32, exact: usize| {
                    assert_eq!(
                        u64::from(room).min(FEW),
                        (exact as u64).min(FEW),
                        "{row} from {first}"
                    );
                };
                near(below, row);
                near(above, rows - 1 - row);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_names_the_access() {
        let own = memory(whole(), Mapping::OneToOne);
        let cases = [
            (memory(whole(), Mapping::All), "access 1 maps All"),
            // Two columns to the left and right are declared, one is there.
            (memory(Bounds::new([7, 15, 0], [25, 33, 1]), AROUND), "does not hold"),
            (AccessMemory { address: 8, ..memory(whole(), AROUND) }, "aligned to 16"),
        ];
        for (memory, expected) in cases {
            let error = write(&kernel(Form::Item, STENCIL), &[own, memory]).unwrap_err();
            assert!(std::format!("{error}").contains(expected), "{error}");
        }
        let missing = write(&kernel(Form::Item, STENCIL), &[own]).unwrap_err();
        assert_eq!(missing, LaunchError::AccessCount { views: 2, given: 1 });
    }

    #[test]
    fn parts_of_items_come_from_what_is_said_of_each_dimension() {
        const OWN_PART: &[ViewParameter] = &[view(ViewKind::OwnPart, true)];
        let kernel = kernel(Form::Row, OWN_PART);
        let own = |columns: PartSide| {
            let sides = [PartSide::block(0, 1), columns, PartSide::ALL_OF_NONE];
            write(&kernel, &[memory(whole(), Mapping::PerDimension { sides })])
        };
        let of_row = own(PartSide::constant(0..64)).unwrap().1;
        // From row 8 and column 0 on, a row and no column apart, of a row and 64 columns.
        assert_eq!(of_row[16 + 8..16 + 14], [8, 0, 0, 1, 0, 0]);
        assert_eq!(of_row[16 + 17..16 + 20], [1, 64, 1]);
        let share = PartSide::Share { from: 1, first: 0, count: 64, granule: 2 };
        let shares = own(share).unwrap().1;
        // The second side goes along dimension 1, and is a share, one of 64 that there are of 32 granules.
        assert_eq!(shares.last(), Some(&(1 << 2 << 32)));
        assert_eq!((shares[16 + 9], shares[16 + 12], shares[16 + 18]), (16, 32, 2));
        assert_eq!(shares[16 + 22] as u32, 64);
        // Runs only where what belongs to items side by side is one box.
        let gapped = PartSide::Window { from: 1, stride: 2, first: 0, width: 1 };
        let window = |width| PartSide::Window { from: 1, stride: 1, first: 0, width };
        let run = |side| own(side).unwrap().1[15] as u16;
        assert_eq!([run(window(1)), run(share), run(gapped)], [4, 4, 1]);
        // What is not there, and what is no number of a device's.
        let narrow = memory(Bounds::new([8, 16, 0], [24, 31, 1]), Mapping::Opaque);
        let sides = [PartSide::block(0, 1), PartSide::block(1, 1), PartSide::ALL_OF_NONE];
        let narrow = AccessMemory { mapping: Mapping::PerDimension { sides }, ..narrow };
        assert_eq!(write(&kernel, &[narrow]), Err(LaunchError::Incomplete { access: 0 }));
        let beyond = PartSide::Window { from: 1, stride: usize::MAX, first: 0, width: 1 };
        assert_eq!(own(beyond).unwrap_err(), LaunchError::Unknown { access: 0 });
        let error = write(&kernel, &[memory(whole(), Mapping::Opaque)]).unwrap_err();
        assert!(std::format!("{error}").contains("only the host can evaluate"), "{error}");
    }

    #[test]
    fn a_whole_view_takes_the_whole_buffer() {
        const WHOLE: &[ViewParameter] = &[view(ViewKind::Whole, false)];
        let kernel = kernel(Form::Item, WHOLE);
        assert!(write(&kernel, &[memory(whole(), Mapping::All)]).is_ok());
        let part = memory(Bounds::from_range([64, 63, 1]), Mapping::All);
        assert_eq!(write(&kernel, &[part]), Err(LaunchError::Incomplete { access: 0 }));
    }
}
