//! Random programs: raw numbers that [proptest] makes and shrinks, and their
//! translation into lawful statements. Whatever raw statement cannot be made
//! lawful is left out, so that any shrunk input is a lawful program, too.

mod raw;

use celerity_regions::Box3;
use celerity_tdag::{AccessMode, BufferId, IndexSpace, ObjectAccess, ObjectId};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use raw::{
    RawAccess, RawAxis, RawBuffer, RawInterval, RawMapper, RawOp, RawPlace, RawSide, RawSpace,
    RawVisit, raw_buffer, raw_op, raw_visit,
};

use super::{
    AccessSpec, Axis, BufferSpec, Flaw, MapperSpec, Program, ProgramBuilder, SideSpec, TaskKind,
    TaskOp,
};

/// How large random programs get, and what they do.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Buffers created at the start; at least 1.
    pub buffers: usize,
    /// Statements after that, before the fences that observe the result.
    pub ops: usize,
    /// Elements per dimension, by number of dimensions.
    pub extents: [u64; 4],
    /// Host objects; with none, there are no side effects.
    pub objects: usize,
}

impl Sizes {
    /// The same, and host tasks and fences in between with side effects on three objects.
    #[must_use]
    pub fn with_objects(self) -> Self {
        Self { objects: 3, ..self }
    }
}

impl Default for Sizes {
    /// Small enough for hundreds of programs per second, large enough for
    /// every dimension to be split over several nodes and devices.
    fn default() -> Self {
        Self { buffers: 4, ops: 16, extents: [1, 24, 7, 4], objects: 0 }
    }
}

/// Lawful programs.
pub fn any_program(sizes: Sizes) -> impl Strategy<Value = Program> {
    let visits = if sizes.objects == 0 { 0 } else { sizes.ops };
    // The last to be drawn, so that programs without objects are those that they have always been.
    let visits = vec(raw_visit(), 0..=visits);
    let ops = vec(raw_op(), 1..=sizes.ops);
    (vec(raw_buffer(), 1..=sizes.buffers), ops, visits)
        .prop_map(move |(buffers, ops, visits)| assemble(&sizes, &buffers, &ops, &visits))
}

/// The program that belongs to a seed: the same on every machine.
#[must_use]
pub fn seeded(sizes: Sizes, seed: u64) -> Program {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = any_program(sizes).new_tree(&mut runner);
    tree.expect("programs are generated without rejection").current()
}

fn assemble(sizes: &Sizes, buffers: &[RawBuffer], ops: &[RawOp], visits: &[RawVisit]) -> Program {
    let mut program = ProgramBuilder::default();
    for buffer in buffers {
        program.create(buffer_spec(sizes, buffer));
    }
    for (index, op) in ops.iter().enumerate() {
        translate(sizes, &mut program, &format!("k{index}"), op);
        let here = visits.iter().enumerate().filter(|(_, visit)| visit.at % ops.len() == index);
        for (nth, visit) in here {
            self::visit(sizes, &mut program, &format!("v{nth}"), visit);
        }
    }
    program.finish()
}

/// A host task or a fence with side effects; a fence reads nothing else.
fn visit(sizes: &Sizes, program: &mut ProgramBuilder, name: &str, raw: &RawVisit) {
    let mut effects: Vec<ObjectAccess> = Vec::new();
    for &(object, order) in &raw.effects {
        let object = ObjectId::from_index((object % sizes.objects) as u64);
        if effects.iter().all(|known| known.object != object) {
            effects.push(ObjectAccess { object, order });
        }
    }
    let kind = match &raw.place {
        RawPlace::Once { node } => TaskKind::HostOnce { node: *node },
        RawPlace::Split { space, group } => {
            let Some(anchor) = pick(program, space.anchor) else { return };
            let space = index_space(program.spec(anchor), space);
            TaskKind::HostSplit { space, group: *group }
        }
        RawPlace::Everywhere => TaskKind::Fence,
    };
    let mut accesses = Vec::new();
    for access in raw.accesses.iter().filter(|_| kind != TaskKind::Fence) {
        accesses.extend(lawful_access(program, &accesses, access, &kind));
    }
    let task = TaskOp { name: name.into(), kind, accesses, effects };
    program.try_task(task).expect("each access has been checked");
}

fn translate(sizes: &Sizes, program: &mut ProgramBuilder, name: &str, op: &RawOp) {
    match op {
        RawOp::Device { space, accesses } => {
            let Some(anchor) = pick(program, space.anchor) else { return };
            let kind = TaskKind::Device(index_space(program.spec(anchor), space));
            task(program, name, kind, accesses);
        }
        RawOp::HostOnce { node, accesses } => {
            task(program, name, TaskKind::HostOnce { node: *node }, accesses);
        }
        RawOp::Combine { accesses } => task(program, name, TaskKind::Combine, accesses),
        RawOp::HostSplit { space, group, accesses } => {
            let Some(anchor) = pick(program, space.anchor) else { return };
            let space = index_space(program.spec(anchor), space);
            task(program, name, TaskKind::HostSplit { space, group: *group }, accesses);
        }
        RawOp::Fence { buffer, part } => {
            let Some(buffer) = pick(program, *buffer) else { return };
            fence(program, buffer, part.as_ref());
        }
        RawOp::Repeat { tasks, times } => {
            for _ in 0..*times {
                program.repeat(*tasks);
            }
        }
        RawOp::Create(buffer) => {
            program.create(buffer_spec(sizes, buffer));
        }
        RawOp::Drop { buffer } => {
            if let Some(buffer) = pick(program, *buffer) {
                program.drop_buffer(buffer);
            }
        }
        RawOp::Barrier => program.barrier(),
    }
}

fn buffer_spec(sizes: &Sizes, raw: &RawBuffer) -> BufferSpec {
    let most = sizes.extents[usize::from(raw.dims)];
    let mut max = [1; 3];
    for (side, &range) in max.iter_mut().zip(&raw.range).take(usize::from(raw.dims)) {
        *side = if range == 0 { 0 } else { 1 + (range - 1) % most };
    }
    BufferSpec {
        dims: raw.dims,
        extent: Box3::new([0; 3], max),
        words: raw.words,
        host_initialized: raw.host_initialized,
    }
}

fn index_space(anchor: &BufferSpec, raw: &RawSpace) -> IndexSpace {
    let whole = match raw.empty {
        true => Box3::EMPTY,
        false => anchor.extent,
    };
    let extent = raw.part.as_ref().map_or(whole, |part| part_of(&whole, part));
    let extent = raw.thin.map_or(extent, |dim| thinned(&extent, usize::from(dim)));
    let granularity = match anchor.dims {
        0 => [1, 1, 1],
        1 => [raw.granularity[0], 1, 1],
        _ => [raw.granularity[0], raw.granularity[1], 1],
    };
    let RawSpace { split, oversubscription, .. } = *raw;
    IndexSpace { granularity, split, oversubscription, ..IndexSpace::new(anchor.dims, extent) }
}

fn thinned(extent: &Box3, dim: usize) -> Box3 {
    let (min, mut max) = (extent.min(), extent.max());
    max[dim] = max[dim].min(min[dim] + 1);
    Box3::new(min, max)
}

fn task(program: &mut ProgramBuilder, name: &str, kind: TaskKind, raw: &[RawAccess]) {
    let mut accesses = Vec::new();
    for raw in raw {
        accesses.extend(lawful_access(program, &accesses, raw, &kind));
    }
    let task = TaskOp { name: name.into(), kind, accesses, effects: Vec::new() };
    program.try_task(task).expect("each access has been checked");
}

fn fence(program: &mut ProgramBuilder, buffer: BufferId, part: Option<&[RawInterval; 3]>) {
    let everything = program.written_part(buffer);
    let whole = program.spec(buffer).extent;
    let mapper = part.map(|part| MapperSpec::Fixed(vec![part_of(&whole, part)]));
    let access = |mapper| AccessSpec { buffer, mode: AccessMode::Read, mapper };
    let fence = |mapper| TaskOp {
        name: "fence".into(),
        kind: TaskKind::Fence,
        accesses: vec![access(mapper)],
        effects: Vec::new(),
    };
    let chosen = mapper.map(|mapper| program.try_task(fence(mapper)));
    if !matches!(chosen, Some(Ok(()))) {
        program.try_task(fence(everything)).expect("what has been written can be read");
    }
}

/// The access that comes closest to what was asked for, if any does.
fn lawful_access(
    program: &ProgramBuilder,
    earlier: &[AccessSpec],
    raw: &RawAccess,
    kind: &TaskKind,
) -> Option<AccessSpec> {
    let buffer = pick(program, raw.buffer)?;
    let spec = program.spec(buffer);
    let wanted =
        AccessSpec { buffer, mode: raw.mode, mapper: mapper_spec(spec, kind, &raw.mapper) };
    let with = |mode, mapper: &MapperSpec| AccessSpec { buffer, mode, mapper: mapper.clone() };
    let scatter = MapperSpec::Scatter { seed: raw.buffer as u64 };
    let (write, read) = (AccessMode::Write, AccessMode::Read);
    let beside = Beside::of(raw.buffer, kind);
    let some_of_rest = |mode| match beside {
        Beside::Rest { boxes } => {
            let mut rest = program.rest_of(buffer, mode, earlier, &kind.space())?;
            rest.truncate(boxes);
            Some(with(mode, &MapperSpec::Fixed(rest)))
        }
        Beside::Behind | Beside::Nothing => None,
    };
    let mut candidates = vec![wanted.clone()];
    candidates.extend(clamped(&wanted.mapper).map(|mapper| with(raw.mode, &mapper)));
    if raw.mode.writes() {
        let slices = (0..spec.dims).map(|dim| MapperSpec::Slice { dim });
        // Along a slice, items of one chunk meet.
        if matches!(raw.mapper, RawMapper::Slice { .. }) || raw.mode == AccessMode::Update {
            candidates.extend(slices.map(|slice| with(raw.mode, &slice)));
        }
        candidates.push(with(write, &wanted.mapper));
        candidates.extend([raw.mode, write].map(|mode| with(mode, &MapperSpec::OneToOne)));
        candidates.extend([raw.mode, write].map(|mode| with(mode, &scatter)));
        // What runs once may write any part.
        candidates.extend(some_of_rest(write));
    } else {
        let is_written = |other: &AccessSpec| other.buffer == buffer && other.mode.writes();
        if matches!(beside, Beside::Behind) && earlier.iter().any(is_written) {
            candidates.push(with(read, &behind(spec, &kind.space())));
        }
        candidates.push(with(read, &program.written_part(buffer)));
        candidates.extend(some_of_rest(read));
    }
    candidates.into_iter().find(|access| {
        let checked: Result<(), Flaw> = program.check_access(earlier, access, kind);
        checked.is_ok()
    })
}

/// What becomes of an access that shares elements with an earlier one, of which one writes:
/// nothing more often than not, or most tasks would touch all of a buffer.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// So many boxes that are left.
    Rest {
        boxes: usize,
    },
    /// Elements [`behind`] those of the index space.
    Behind,
}

impl Beside {
    fn of(raw: usize, kind: &TaskKind) -> Self {
        match (raw % 5, kind) {
            (0, _) | (_, TaskKind::HostOnce { .. } | TaskKind::Combine) => {
                Self::Rest { boxes: 1 + raw / 5 }
            }
            (1, _) => Self::Behind,
            _ => Self::Nothing,
        }
    }
}

/// A user's mapper that follows the items, to elements behind those of the index space, or to
/// the first ones if there are none.
fn behind(buffer: &BufferSpec, space: &Box3) -> MapperSpec {
    let along =
        |dim: u8, start| Axis::Along { from: dim, start, stride: 1, width: 1, mirrored: false };
    let [first, second, third] = space.min();
    let end = space.max()[0];
    let start = if end > first && end < buffer.extent.max()[0] { end } else { 0 };
    MapperSpec::Affine([along(0, start), along(1, second), along(2, third)])
}

/// The same mapper, that stays in the buffer.
fn clamped(mapper: &MapperSpec) -> Option<MapperSpec> {
    let MapperSpec::PerDimension(sides) = mapper else { return None };
    let mut sides = sides.clone();
    for side in &mut sides {
        if let SideSpec::Windows { clamped, .. } = side {
            *clamped = true;
        }
    }
    Some(MapperSpec::PerDimension(sides))
}

fn mapper_spec(buffer: &BufferSpec, kind: &TaskKind, raw: &RawMapper) -> MapperSpec {
    let dims = usize::from(buffer.dims);
    match raw {
        RawMapper::OneToOne => MapperSpec::OneToOne,
        RawMapper::All => MapperSpec::All,
        RawMapper::Neighborhood { border, shape } => {
            let mut border = *border;
            border[dims..].fill(0);
            MapperSpec::Neighborhood { border, shape: *shape }
        }
        RawMapper::Periodic { border, shape, along } => {
            let (mut border, mut along) = (*border, *along);
            border[dims..].fill(0);
            along[dims..].fill(false);
            MapperSpec::Periodic { border, shape: *shape, along }
        }
        RawMapper::PerDimension(sides) => {
            let mut free = (0..kind.dims()).collect();
            let sides = sides.iter().take(dims).enumerate();
            let side = |(dim, side)| side_spec(buffer.extent.max()[dim], &mut free, side);
            MapperSpec::PerDimension(sides.map(side).collect())
        }
        RawMapper::Slice { .. } if dims == 0 => MapperSpec::OneToOne,
        RawMapper::Slice { dim } => MapperSpec::Slice { dim: dim % buffer.dims },
        RawMapper::Fixed { boxes } => {
            MapperSpec::Fixed(boxes.iter().map(|part| part_of(&buffer.extent, part)).collect())
        }
        RawMapper::Affine(axes) => {
            let mut sides = [Axis::Constant { min: 0, max: 1 }; 3];
            for (dim, (side, axis)) in sides.iter_mut().zip(axes).take(dims).enumerate() {
                *side = axis_spec(buffer.extent.max()[dim], axis);
            }
            MapperSpec::Affine(sides)
        }
        RawMapper::Scatter { seed } => MapperSpec::Scatter { seed: *seed },
    }
}

/// A side of a mapper that follows one of the dimensions that no other side does.
fn side_spec(size: u64, free: &mut Vec<u8>, raw: &RawSide) -> SideSpec {
    let follow = |free: &mut Vec<u8>, from: u8| free.swap_remove(usize::from(from) % free.len());
    match *raw {
        RawSide::Only(ends) => {
            let (min, max) = interval_of(0, size, ends);
            SideSpec::Only { min, max }
        }
        _ if free.is_empty() => SideSpec::All,
        RawSide::All => SideSpec::All,
        RawSide::Windows { from, stride, first, width, clamped } => {
            SideSpec::Windows { from: follow(free, from), stride, first, width, clamped }
        }
        RawSide::Share { from, granularity } => {
            SideSpec::Share { from: follow(free, from), granularity }
        }
    }
}

fn axis_spec(size: u64, raw: &RawAxis) -> Axis {
    match *raw {
        RawAxis::Along { from, start, stride, extra, mirrored } => {
            let width = stride - 1 + extra;
            Axis::Along { from, start, stride, width: width.max(1), mirrored }
        }
        RawAxis::Constant(ends) => {
            let (min, max) = interval_of(0, size, ends);
            Axis::Constant { min, max }
        }
    }
}

fn pick(program: &ProgramBuilder, raw: usize) -> Option<BufferId> {
    let alive = program.alive();
    alive.get(raw % alive.len().max(1)).copied()
}

/// A box inside `whole`, not empty unless that is.
fn part_of(whole: &Box3, raw: &[RawInterval; 3]) -> Box3 {
    let (mut min, mut max) = (whole.min(), whole.max());
    for dim in 0..3 {
        (min[dim], max[dim]) = interval_of(min[dim], max[dim], raw[dim]);
    }
    Box3::new(min, max)
}

fn interval_of(min: u64, max: u64, (a, b): RawInterval) -> (u64, u64) {
    if min == max {
        return (min, max);
    }
    let (a, b) = (min + a % (max - min), min + b % (max - min));
    (a.min(b), a.max(b) + 1)
}
