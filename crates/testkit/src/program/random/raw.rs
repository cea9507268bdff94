//! The raw numbers of which random programs are made, and their strategies.
//! Knows nothing of what is lawful.

use celerity_regions::Coord3;
use celerity_tdag::{AccessMode, NeighborhoodShape, SideEffectOrder, Split};
use proptest::collection::vec;
use proptest::prelude::*;

/// Numbers are taken modulo what is possible; the first variant of each enum
/// is the simplest, which is what shrinking tends to.
#[derive(Clone, Debug)]
pub(super) struct RawBuffer {
    pub(super) dims: u8,
    pub(super) range: [u64; 3],
    pub(super) words: usize,
    pub(super) host_initialized: bool,
}

#[derive(Clone, Debug)]
pub(super) enum RawOp {
    Device { space: RawSpace, accesses: Vec<RawAccess> },
    HostOnce { node: u64, accesses: Vec<RawAccess> },
    HostSplit { space: RawSpace, group: Option<usize>, accesses: Vec<RawAccess> },
    Combine { accesses: Vec<RawAccess> },
    Fence { buffer: usize, part: Option<[RawInterval; 3]> },
    Repeat { tasks: usize, times: usize },
    Create(RawBuffer),
    Drop { buffer: usize },
    Barrier,
}

/// A task with side effects behind one of the statements.
#[derive(Clone, Debug)]
pub(super) struct RawVisit {
    pub(super) at: usize,
    pub(super) place: RawPlace,
    pub(super) effects: Vec<(usize, SideEffectOrder)>,
    pub(super) accesses: Vec<RawAccess>,
}

/// Where a task with side effects runs.
#[derive(Clone, Debug)]
pub(super) enum RawPlace {
    Once { node: u64 },
    Split { space: RawSpace, group: Option<usize> },
    Everywhere,
}

/// An index space that fits into a buffer, so that one-to-one accesses work.
#[derive(Clone, Debug)]
pub(super) struct RawSpace {
    pub(super) anchor: usize,
    pub(super) part: Option<[RawInterval; 3]>,
    /// One item wide along this dimension, so that slices can be written.
    pub(super) thin: Option<u8>,
    pub(super) granularity: [u64; 2],
    pub(super) split: Split,
    pub(super) oversubscription: u32,
    pub(super) empty: bool,
}

#[derive(Clone, Debug)]
pub(super) struct RawAccess {
    pub(super) buffer: usize,
    pub(super) mode: AccessMode,
    pub(super) mapper: RawMapper,
}

#[derive(Clone, Debug)]
pub(super) enum RawMapper {
    OneToOne,
    All,
    Neighborhood { border: Coord3, shape: NeighborhoodShape },
    Slice { dim: u8 },
    Periodic { border: Coord3, shape: NeighborhoodShape, along: [bool; 3] },
    PerDimension([RawSide; 3]),
    Fixed { boxes: Vec<[RawInterval; 3]> },
    Affine([RawAxis; 3]),
    Scatter { seed: u64 },
}

#[derive(Clone, Debug)]
pub(super) enum RawSide {
    Windows { from: u8, stride: u64, first: i64, width: u64, clamped: bool },
    Share { from: u8, granularity: u64 },
    Only(RawInterval),
    All,
}

#[derive(Clone, Debug)]
pub(super) enum RawAxis {
    Along { from: u8, start: u64, stride: u64, extra: u64, mirrored: bool },
    Constant(RawInterval),
}

/// Two numbers of which an interval inside any range is made.
pub(super) type RawInterval = (u64, u64);

pub(super) fn raw_buffer() -> impl Strategy<Value = RawBuffer> {
    let dims = prop_oneof![4 => Just(1u8), 4 => Just(2), 2 => Just(3), 1 => Just(0)];
    // A range of 0 is rare: most programs should have something to do.
    let range = [0..48u64, 0..48, 0..48];
    (dims, range, prop_oneof![4 => Just(1usize), 1 => 2..4usize], any::<bool>()).prop_map(
        |(dims, range, words, host_initialized)| RawBuffer { dims, range, words, host_initialized },
    )
}

pub(super) fn raw_op() -> impl Strategy<Value = RawOp> {
    let buffer = || 0..16usize;
    prop_oneof![
        12 => (raw_space(), vec(raw_access(), 0..5))
            .prop_map(|(space, accesses)| RawOp::Device { space, accesses }),
        3 => (prop_oneof![1 => Just(0u64), 1 => 1..8u64], vec(raw_access(), 0..4))
            .prop_map(|(node, accesses)| RawOp::HostOnce { node, accesses }),
        2 => (raw_space(), proptest::option::of(0..3usize), vec(raw_access(), 0..3))
            .prop_map(|(space, group, accesses)| RawOp::HostSplit { space, group, accesses }),
        1 => vec(raw_access(), 0..4).prop_map(|accesses| RawOp::Combine { accesses }),
        2 => (buffer(), proptest::option::of(raw_box()))
            .prop_map(|(buffer, part)| RawOp::Fence { buffer, part }),
        2 => (1..4usize, 1..4usize).prop_map(|(tasks, times)| RawOp::Repeat { tasks, times }),
        1 => raw_buffer().prop_map(RawOp::Create),
        1 => buffer().prop_map(|buffer| RawOp::Drop { buffer }),
        1 => Just(RawOp::Barrier),
    ]
}

pub(super) fn raw_visit() -> impl Strategy<Value = RawVisit> {
    let order = prop_oneof![
        1 => Just(SideEffectOrder::Sequential),
        3 => Just(SideEffectOrder::Exclusive),
        2 => Just(SideEffectOrder::Relaxed),
    ];
    let place = prop_oneof![
        3 => (0..4u64).prop_map(|node| RawPlace::Once { node }),
        3 => (raw_space(), proptest::option::of(0..3usize))
            .prop_map(|(space, group)| RawPlace::Split { space, group }),
        2 => Just(RawPlace::Everywhere),
    ];
    let accesses = prop_oneof![2 => Just(Vec::new()), 1 => vec(raw_access(), 1..3)];
    (0..16usize, place, vec((0..16usize, order), 1..3), accesses)
        .prop_map(|(at, place, effects, accesses)| RawVisit { at, place, effects, accesses })
}

fn raw_space() -> impl Strategy<Value = RawSpace> {
    let part = proptest::option::weighted(0.3, raw_box());
    let granularity = prop_oneof![3 => Just([1, 1]), 1 => [1..4u64, 1..4]];
    let thin = proptest::option::weighted(0.15, 0..3u8);
    let split = prop_oneof![
        3 => Just(Split::OneDimensional),
        3 => Just(Split::Tiled),
        1 => (0..3u8).prop_map(Split::Along),
    ];
    let oversubscription = prop_oneof![3 => Just(1u32), 1 => 2..4u32];
    let empty = proptest::bool::weighted(0.03);
    (0..16usize, part, thin, granularity, split, oversubscription, empty).prop_map(
        |(anchor, part, thin, granularity, split, oversubscription, empty)| RawSpace {
            anchor,
            part,
            thin,
            granularity,
            split,
            oversubscription,
            empty,
        },
    )
}

fn raw_access() -> impl Strategy<Value = RawAccess> {
    let mode = prop_oneof![
        5 => Just(AccessMode::Read),
        3 => Just(AccessMode::Write),
        2 => Just(AccessMode::ReadWrite),
        1 => Just(AccessMode::Update),
    ];
    (0..16usize, mode, raw_mapper()).prop_map(|(buffer, mode, mapper)| RawAccess {
        buffer,
        mode,
        mapper,
    })
}

fn raw_mapper() -> impl Strategy<Value = RawMapper> {
    let shape =
        || prop_oneof![Just(NeighborhoodShape::BoundingBox), Just(NeighborhoodShape::AlongAxes)];
    let along = [any::<bool>(), any::<bool>(), any::<bool>()];
    prop_oneof![
        4 => Just(RawMapper::OneToOne),
        2 => Just(RawMapper::All),
        3 => ([0..3u64, 0..3, 0..3], shape())
            .prop_map(|(border, shape)| RawMapper::Neighborhood { border, shape }),
        2 => ([0..4u64, 0..3, 0..3], shape(), along)
            .prop_map(|(border, shape, along)| RawMapper::Periodic { border, shape, along }),
        3 => [raw_side(), raw_side(), raw_side()].prop_map(RawMapper::PerDimension),
        2 => (0..3u8).prop_map(|dim| RawMapper::Slice { dim }),
        2 => vec(raw_box(), 0..4).prop_map(|boxes| RawMapper::Fixed { boxes }),
        3 => [raw_axis(), raw_axis(), raw_axis()].prop_map(RawMapper::Affine),
        2 => (0..1000u64).prop_map(|seed| RawMapper::Scatter { seed }),
    ]
}

fn raw_side() -> impl Strategy<Value = RawSide> {
    let windows = |strides, firsts, widths, clamped| {
        (0..3u8, strides, firsts, widths, clamped).prop_map(
            |(from, stride, first, width, clamped)| RawSide::Windows {
                from,
                stride,
                first,
                width,
                clamped,
            },
        )
    };
    prop_oneof![
        3 => windows(1..2u64, 0..1i64, 1..2u64, any::<bool>()),
        3 => windows(0..4u64, -3..4i64, 1..5u64, any::<bool>()),
        2 => (0..3u8, 1..4u64)
            .prop_map(|(from, granularity)| RawSide::Share { from, granularity }),
        1 => raw_interval().prop_map(RawSide::Only),
        1 => Just(RawSide::All),
    ]
}

fn raw_axis() -> impl Strategy<Value = RawAxis> {
    prop_oneof![
        3 => (0..3u8, 0..4u64, 1..4u64, 0..3u64, any::<bool>()).prop_map(
            |(from, start, stride, extra, mirrored)| RawAxis::Along {
                from,
                start,
                stride,
                extra,
                mirrored,
            },
        ),
        1 => raw_interval().prop_map(RawAxis::Constant),
    ]
}

fn raw_box() -> impl Strategy<Value = [RawInterval; 3]> {
    [raw_interval(), raw_interval(), raw_interval()]
}

fn raw_interval() -> impl Strategy<Value = RawInterval> {
    (0..64u64, 0..64u64)
}
