//! Whether a program that comes from outside is one that [`ProgramBuilder`] could have made, small
//! enough for element-by-element models. Owns the limits; what a flaw is, the builder knows.

use celerity_regions::Box3;
use celerity_tdag::{IndexSpace, Split};

use crate::check::Configuration;
use crate::program::{
    AccessSpec, Axis, BufferSpec, Flaw, MapperSpec, Op, Program, ProgramBuilder, SideSpec,
    TaskKind, TaskOp, buffer_slot,
};

/// Statements of a program.
const STATEMENTS: u64 = 1 << 10;
/// Elements of a buffer, and items of a task.
const ELEMENTS: u64 = 1 << 10;
/// Words of an element.
const WORDS: u64 = 16;
/// Accesses of a task.
const ACCESSES: u64 = 16;
/// Collective groups.
const GROUPS: u64 = 64;
/// Boxes of a fixed mapper.
const BOXES: u64 = 256;
/// Strides, seeds and other numbers whose products must not overflow.
const NUMBER: u64 = 1 << 20;
/// Chunks per device.
const OVERSUBSCRIPTION: u64 = 16;
/// Pairs of an item and an element that have to be looked at, in the whole program.
const PAIRS: u64 = 1 << 24;
/// Nodes of a cluster.
const NODES: u64 = 16;
/// Devices of a node.
const DEVICES: u64 = 16;

/// Why a program or a configuration is not accepted from outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlawful {
    /// A statement that a correct program could not have.
    #[error("statement {op}: {flaw}")]
    Flawed {
        /// The statement.
        op: usize,
        /// The rule that it breaks.
        flaw: Flaw,
    },
    /// A statement that contradicts itself.
    #[error("statement {op}: {what}")]
    Malformed {
        /// The statement.
        op: usize,
        /// What is wrong with it: the rest of the message's sentence.
        what: &'static str,
    },
    /// More of something than tests are made for.
    #[error("statement {op}: {found} {what}; the most is {most}")]
    TooLarge {
        /// The statement.
        op: usize,
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much is accepted.
        most: u64,
    },
    /// A cluster that tests are not made for.
    #[error("a configuration has {found} {what}; it must be 1 to {most}")]
    Configuration {
        /// Of what.
        what: &'static str,
        /// How much.
        found: u64,
        /// How much is accepted.
        most: u64,
    },
}

/// Whether the configuration is one that tests are made for.
///
/// # Errors
/// [`Unlawful::Configuration`] names the first value that is not.
pub fn check_configuration(configuration: &Configuration) -> Result<(), Unlawful> {
    let Configuration { nodes, devices, horizon_step, horizon_max_parallelism, .. } =
        *configuration;
    let limits = [
        ("nodes", nodes as u64, NODES),
        ("devices", devices as u64, DEVICES),
        ("tasks between horizons", horizon_step, u64::MAX),
        ("parallel tasks between horizons", horizon_max_parallelism, u64::MAX),
    ];
    match limits.into_iter().find(|&(_, found, most)| !(1..=most).contains(&found)) {
        Some((what, found, most)) => Err(Unlawful::Configuration { what, found, most }),
        None => Ok(()),
    }
}

/// Whether the program is lawful, but for fences at its end: what has been cut out of a lawful
/// program need not observe everything. O(items · elements), after all sizes have been looked at.
///
/// # Errors
/// [`Unlawful`] names the first statement that is not.
pub fn check_program(program: &Program) -> Result<(), Unlawful> {
    at_most(program.ops.len(), "statements", program.ops.len() as u64, STATEMENTS)?;
    let mut replay = Replay::default();
    program.ops.iter().enumerate().try_for_each(|(op, content)| replay.statement(op, content))
}

/// The program so far, once more.
#[derive(Default)]
struct Replay {
    builder: ProgramBuilder,
    buffers: Vec<BufferSpec>,
    /// See [`PAIRS`].
    pairs: u64,
}

impl Replay {
    fn statement(&mut self, op: usize, content: &Op) -> Result<(), Unlawful> {
        match content {
            Op::Create(spec) => {
                check_buffer(op, spec)?;
                self.builder.create(*spec);
                self.buffers.push(*spec);
            }
            Op::Task(task) => {
                self.check_task(op, task)?;
                let built = self.builder.try_task(task.clone());
                built.map_err(|flaw| Unlawful::Flawed { op, flaw })?;
            }
            Op::Drop(buffer) if self.builder.alive().contains(buffer) => {
                self.builder.drop_buffer(*buffer);
            }
            Op::Drop(_) => return Err(Unlawful::Flawed { op, flaw: Flaw::DeadBuffer }),
            Op::Barrier => self.builder.barrier(),
        }
        Ok(())
    }

    /// Everything that the builder takes for granted.
    fn check_task(&mut self, op: usize, task: &TaskOp) -> Result<(), Unlawful> {
        at_most(op, "accesses", task.accesses.len() as u64, ACCESSES)?;
        match &task.kind {
            TaskKind::Device(space) => check_space(op, space)?,
            TaskKind::HostSplit { space, group } => {
                check_space(op, space)?;
                at_most(op, "collective groups", group.map_or(0, |one| one as u64 + 1), GROUPS)?;
            }
            TaskKind::Fence if task.accesses.iter().any(|access| access.mode.writes()) => {
                return Err(Unlawful::Malformed { op, what: "a fence only reads" });
            }
            // `Work` counts nodes modulo those that there are.
            TaskKind::HostOnce { .. } | TaskKind::Fence | TaskKind::Combine => {}
        }
        for AccessSpec { buffer, mapper, .. } in &task.accesses {
            let dead = Unlawful::Flawed { op, flaw: Flaw::DeadBuffer };
            let spec = *self.buffers.get(buffer_slot(*buffer)).ok_or(dead)?;
            check_mapper(op, mapper, &spec)?;
            self.pairs += task.space().volume() * spec.extent.volume();
            at_most(op, "pairs of items and elements", self.pairs, PAIRS)?;
        }
        Ok(())
    }
}

fn check_buffer(op: usize, spec: &BufferSpec) -> Result<(), Unlawful> {
    check_extent(op, spec.dims, &spec.extent)?;
    if spec.extent.min() != [0; 3] {
        return Err(Unlawful::Malformed { op, what: "a buffer begins at the origin" });
    }
    if spec.words == 0 {
        return Err(Unlawful::Malformed { op, what: "an element has at least one word" });
    }
    at_most(op, "words per element", spec.words as u64, WORDS)
}

fn check_space(op: usize, space: &IndexSpace) -> Result<(), Unlawful> {
    check_extent(op, space.dims, &space.extent)?;
    if matches!(space.split, Split::Along(3..)) {
        return Err(Unlawful::Malformed { op, what: "a task is split along dimension 0, 1 or 2" });
    }
    if space.granularity.contains(&0) || space.oversubscription == 0 {
        return Err(Unlawful::Malformed { op, what: "a chunk has items" });
    }
    at_most(op, "chunks per device", space.oversubscription.into(), OVERSUBSCRIPTION)
}

fn check_extent(op: usize, dims: u8, extent: &Box3) -> Result<(), Unlawful> {
    if dims > 3 || extent.effective_dims() > usize::from(dims) {
        return Err(Unlawful::Malformed { op, what: "an extent has more dimensions than it may" });
    }
    at_most(op, "elements or items", extent.volume(), ELEMENTS)?;
    // Coordinates are added up and multiplied, too.
    at_most(op, "as a coordinate", extent.max().into_iter().fold(0, u64::max), NUMBER)
}

fn check_mapper(op: usize, mapper: &MapperSpec, buffer: &BufferSpec) -> Result<(), Unlawful> {
    match mapper {
        MapperSpec::Fixed(boxes) => at_most(op, "boxes of a mapper", boxes.len() as u64, BOXES),
        MapperSpec::Slice { dim } if *dim >= buffer.dims => {
            Err(Unlawful::Flawed { op, flaw: Flaw::Dimensions })
        }
        MapperSpec::Scatter { seed } => at_most(op, "as the seed of a mapper", *seed, NUMBER),
        MapperSpec::Affine(axes) => axes.iter().try_for_each(|axis| check_axis(op, axis)),
        MapperSpec::PerDimension(sides) => sides.iter().try_for_each(|side| check_side(op, side)),
        MapperSpec::OneToOne
        | MapperSpec::All
        | MapperSpec::Slice { .. }
        | MapperSpec::Neighborhood { .. }
        | MapperSpec::Periodic { .. } => Ok(()),
    }
}

fn check_side(op: usize, side: &SideSpec) -> Result<(), Unlawful> {
    if side.from().is_some_and(|from| from > 2) {
        return Err(Unlawful::Malformed { op, what: "a mapper follows dimension 0, 1 or 2" });
    }
    let most = match *side {
        SideSpec::All => 0,
        SideSpec::Only { min, max } => min.max(max),
        SideSpec::Windows { stride, first, width, .. } => {
            stride.max(width).max(first.unsigned_abs())
        }
        SideSpec::Share { granularity: 0, .. } => {
            return Err(Unlawful::Malformed { op, what: "a granule has an element at least" });
        }
        SideSpec::Share { granularity, .. } => granularity,
    };
    at_most(op, "as a parameter of a mapper", most, NUMBER)
}

fn check_axis(op: usize, axis: &Axis) -> Result<(), Unlawful> {
    let Axis::Along { from, start, stride, width, .. } = *axis else { return Ok(()) };
    if from > 2 {
        return Err(Unlawful::Malformed { op, what: "a mapper follows dimension 0, 1 or 2" });
    }
    let most = start.max(stride).max(width);
    at_most(op, "as a parameter of a mapper", most, NUMBER)
}

fn at_most(op: usize, what: &'static str, found: u64, most: u64) -> Result<(), Unlawful> {
    match found <= most {
        true => Ok(()),
        false => Err(Unlawful::TooLarge { op, what, found, most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use crate::program::{Sizes, seeded};
    use celerity_tdag::{AccessMode, BufferId};

    fn with(change: impl FnOnce(&mut Vec<Op>)) -> Result<(), Unlawful> {
        let mut program = corpus::jacobi([5, 5], 2);
        change(&mut program.ops);
        check_program(&program)
    }

    /// Changes the first access of the first task.
    fn with_access(change: impl FnOnce(&mut AccessSpec)) -> Result<(), Unlawful> {
        with(|ops| {
            let mut tasks = ops.iter_mut().filter_map(|op| match op {
                Op::Task(task) => Some(task),
                _ => None,
            });
            change(&mut tasks.next().expect("there are tasks").accesses[0]);
        })
    }

    #[test]
    fn our_own_programs_are_lawful() {
        for (name, program) in corpus::all(3) {
            assert_eq!(check_program(&program), Ok(()), "{name}");
        }
        for seed in 0..200 {
            assert_eq!(check_program(&seeded(Sizes::default(), seed)), Ok(()), "seed {seed}");
        }
    }

    #[test]
    fn flaws_are_found() {
        let dead = Op::Drop(BufferId::from_index(77));
        let flawed = with(|ops| ops.insert(1, dead.clone()));
        assert_eq!(flawed, Err(Unlawful::Flawed { op: 1, flaw: Flaw::DeadBuffer }));
        let endless = BufferId::from_index(u64::MAX);
        let flawed = with_access(|access| access.buffer = endless);
        assert!(matches!(flawed, Err(Unlawful::Flawed { flaw: Flaw::DeadBuffer, .. })));
        let flawed = with_access(|access| access.mapper = MapperSpec::Slice { dim: 2 });
        assert!(matches!(flawed, Err(Unlawful::Flawed { flaw: Flaw::Dimensions, .. })));
    }

    #[test]
    fn a_fence_only_reads() {
        let flawed = with(|ops| {
            let Some(Op::Task(fence)) = ops.last_mut() else { panic!("programs end with fences") };
            fence.accesses[0].mode = AccessMode::Write;
        });
        assert!(matches!(flawed, Err(Unlawful::Malformed { .. })), "{flawed:?}");
    }

    #[test]
    fn hostile_sizes_are_refused_before_anything_is_made() {
        let huge = |extent| BufferSpec { dims: 3, extent, words: 1, host_initialized: true };
        for extent in [[1 << 60, 1, 1], [1 << 20; 3], [u64::MAX; 3], [1, 1, ELEMENTS + 1]] {
            let refused = with(|ops| ops[0] = Op::Create(huge(Box3::new([0; 3], extent))));
            assert!(matches!(refused, Err(Unlawful::TooLarge { op: 0, .. })), "{refused:?}");
        }
        let words = BufferSpec { words: usize::MAX, ..huge(Box3::UNIT) };
        assert!(matches!(with(|ops| ops[0] = Op::Create(words)), Err(Unlawful::TooLarge { .. })));
        let refused = with_access(|access| access.mapper = MapperSpec::Scatter { seed: u64::MAX });
        assert!(matches!(refused, Err(Unlawful::TooLarge { .. })), "{refused:?}");
        let long = with(|ops| ops.resize(1 << 11, Op::Barrier));
        assert!(matches!(long, Err(Unlawful::TooLarge { .. })));
    }

    #[test]
    fn many_small_tasks_are_too_many() {
        let refused = with(|ops| {
            let fence = ops.last().expect("programs end with fences").clone();
            let extent = Box3::from_range([32, 32]);
            ops.clear();
            ops.push(Op::Create(BufferSpec { dims: 2, extent, words: 1, host_initialized: true }));
            let Op::Task(TaskOp { accesses, name, .. }) = fence else { panic!("a fence") };
            let kind = TaskKind::Device(IndexSpace::new(2, extent));
            let access = AccessSpec { buffer: BufferId::from_index(0), ..accesses[0].clone() };
            let task = TaskOp { kind, accesses: vec![access], effects: Vec::new(), name };
            ops.extend(std::iter::repeat_n(Op::Task(task), 20));
        });
        let what = "pairs of items and elements";
        assert!(matches!(refused, Err(Unlawful::TooLarge { what: found, .. }) if found == what));
    }

    #[test]
    fn clusters_of_no_or_endless_nodes_are_refused() {
        let sound = Configuration::new(8, 4);
        assert_eq!(check_configuration(&sound), Ok(()));
        for nodes in [0, 17, usize::MAX] {
            assert!(check_configuration(&Configuration { nodes, ..sound }).is_err());
            assert!(check_configuration(&Configuration { devices: nodes, ..sound }).is_err());
        }
        assert!(check_configuration(&Configuration { horizon_step: 0, ..sound }).is_err());
    }
}
