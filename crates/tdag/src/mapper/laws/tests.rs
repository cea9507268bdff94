//! Mappers that keep the laws, and one for each law that breaks it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::mapper::{DimRelation, NeighborhoodShape, RangeMapper, Side, UserMapper, Windows};

/// Chunks at random, besides the plain ones.
const CASES: u32 = if cfg!(miri) { 3 } else { 300 };

fn tried(mapper: impl RangeMapper) -> Result<(), Box<MapperViolation>> {
    tried_as(&Mapper::User(UserMapper::new(mapper)))
}

fn tried_as(mapper: &Mapper) -> Result<(), Box<MapperViolation>> {
    let space = Box3::from_range([24, 10]);
    verify_mapper(mapper, (2, space), (2, space), CASES)
}

#[test]
fn built_in_mappers_keep_the_laws() {
    let (boxed, axes) = (NeighborhoodShape::BoundingBox, NeighborhoodShape::AlongAxes);
    let gaps = Windows { stride: 2, clamped: true, ..Windows::along(0) };
    let mappers = [
        Mapper::OneToOne,
        Mapper::All,
        Mapper::Slice { dim: 1 },
        Mapper::neighborhood([2, 1]),
        Mapper::periodic([2, 1], boxed, [true, true]),
        Mapper::periodic([24, 10], axes, [true, true]),
        Mapper::periodic([3, 2], axes, [false, true]),
        Mapper::per_dimension(&[Side::Windows(gaps), Side::along(1)]),
        Mapper::fixed(Box3::from_range([3, 3])),
    ];
    for mapper in mappers {
        assert_eq!(tried_as(&mapper), Ok(()), "{mapper}");
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let found = tried_as(&Mapper::per_dimension(&[Side::along(1), Side::along(1)]));
    assert!(matches!(*found.clone().unwrap_err(), MapperViolation::Unfit { .. }), "{found:?}");
}

#[test]
fn mappers_that_look_at_sizes_are_not_additive() {
    let found = tried(|input: &MapperInput| match input.chunk.range()[0] >= 7 {
        true => Region::from(input.chunk),
        false => Region::from(Box3::new(input.chunk.min(), input.chunk.max().map(|end| end - 1))),
    });
    let violation = found.unwrap_err();
    let MapperViolation::NotAdditive { chunk, parts, .. } = &*violation else {
        panic!("another law")
    };
    assert_eq!(parts[0].bounding(&parts[1]), *chunk);
    assert!(chunk.volume() <= 7, "{chunk}");
    let text = violation.to_string();
    assert!(text.contains("is not additive") && text.contains("r(A ∪ B)"), "{text}");
}

#[test]
fn mappers_that_leave_the_buffer_are_found_at_its_edge() {
    let found = tried(|input: &MapperInput| {
        let (min, mut max) = (input.chunk.min(), input.chunk.max());
        max[1] += 1;
        Box3::new(min, max).into()
    });
    let MapperViolation::OutOfBounds { chunk, .. } = *found.unwrap_err() else {
        panic!("another law")
    };
    assert_eq!(chunk, Box3::from_offset_range([0, 9], [1, 1]));
}

#[test]
fn mappers_that_do_not_keep_their_word_are_found() {
    let rows = |input: &MapperInput| {
        let (mut min, mut max) = (input.chunk.min(), input.chunk.max());
        (min[1], max[1]) = (0, 10);
        Region::from(Box3::new(min, max))
    };
    assert_eq!(tried(rows), Ok(()));
    let found = tried_as(&Mapper::User(UserMapper::disjoint(rows)));
    let MapperViolation::NotDisjoint { parts, .. } = *found.unwrap_err() else {
        panic!("another law")
    };
    assert!(parts.iter().all(|part| part.volume() == 1), "{parts:?}");
}

#[test]
fn mappers_that_panic_or_change_their_mind_are_found() {
    let found = tried(|input: &MapperInput| {
        assert!(!input.chunk.contains_point([5, 5, 0]), "not there");
        input.chunk.into()
    });
    let MapperViolation::Panics { chunk, said, .. } = *found.unwrap_err() else {
        panic!("another law")
    };
    assert_eq!((chunk.volume(), &*said), (1, ": not there"));
    let asked = AtomicU64::new(0);
    let found = tried(move |input: &MapperInput| match asked.fetch_add(1, Ordering::Relaxed) % 7 {
        6 => Region::empty(),
        _ => input.chunk.into(),
    });
    assert!(
        matches!(*found.clone().unwrap_err(), MapperViolation::ChangesItsMind { .. }),
        "{found:?}"
    );
}

/// A type that says more of itself than functions can.
#[derive(PartialEq)]
struct Said {
    border: u64,
    says: DimRelation,
    constant: bool,
}

impl RangeMapper for Said {
    fn map(&self, input: &MapperInput) -> Region {
        let border = [self.border as usize, 0];
        Mapper::periodic(border, NeighborhoodShape::BoundingBox, [true, false]).map(input)
    }

    fn name(&self) -> &str {
        "said"
    }

    fn relation(&self, dim: usize) -> DimRelation {
        if dim == 0 { self.says } else { DimRelation::Identity }
    }

    fn is_constant(&self) -> bool {
        self.constant
    }

    fn is_same(&self, other: &dyn RangeMapper) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

#[test]
fn types_are_held_to_what_they_say_of_themselves() {
    let says = |says, constant| tried(Said { border: 2, says, constant });
    assert_eq!(says(DimRelation::Periodic(2), false), Ok(()));
    let found = says(DimRelation::Padded(2), false);
    assert!(
        matches!(*found.clone().unwrap_err(), MapperViolation::OutsideRelation { dim: 0, .. }),
        "{found:?}"
    );
    let found = says(DimRelation::Opaque, true);
    assert!(
        matches!(*found.clone().unwrap_err(), MapperViolation::NotConstant { .. }),
        "{found:?}"
    );
}

#[test]
fn types_that_compare_are_equal_by_value() {
    let made =
        |border| UserMapper::new(Said { border, says: DimRelation::Opaque, constant: false });
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    let hash = |mapper: &UserMapper| {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(mapper, &mut hasher);
        std::hash::Hasher::finish(&hasher)
    };
    assert_eq!(hash(&made(1)), hash(&made(1)));
}
