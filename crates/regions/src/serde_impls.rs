//! Serialisation of boxes and regions, and what makes their data valid.
//!
//! Owns the invariants of the data at rest: a value that breaks one is an error of deserialisation.
//! Refuses to know any format.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::box3::{Box3, Coord3};
use crate::region::Region;

impl Serialize for Box3 {
    /// `min`, then `max`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.corners().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Box3 {
    /// # Errors
    /// If the corners are not those of a box: an empty one is all zero.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let corners = <(Coord3, Coord3)>::deserialize(deserializer)?;
        let made = Box3::new(corners.0, corners.1);
        match made.corners() == corners {
            true => Ok(made),
            false => {
                let (min, max) = corners;
                Err(D::Error::custom(format_args!("{min:?} to {max:?} is no box")))
            }
        }
    }
}

impl Serialize for Region {
    /// The boxes, in the canonical order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.boxes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Region {
    /// O(n·w): every pair of boxes that share a coordinate of the slowest dimension is looked at.
    ///
    /// # Errors
    /// If the boxes are not the canonical form of any region.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let boxes = Vec::<Box3>::deserialize(deserializer)?;
        disjoint_and_sorted(&boxes).map_err(D::Error::custom)?;
        let made = Region::from_boxes(boxes.iter().copied());
        match made.boxes() == boxes {
            true => Ok(made),
            false => Err(D::Error::custom(format_args!(
                "{} boxes are not the canonical form of a region, which has {}",
                boxes.len(),
                made.boxes().len()
            ))),
        }
    }
}

/// What makes the union of `boxes` cheap to build: overlapping boxes can have a canonical form that
/// is far larger than they are.
fn disjoint_and_sorted(boxes: &[Box3]) -> Result<(), String> {
    if boxes.iter().any(Box3::is_empty) {
        return Err("a region holds an empty box".to_owned());
    }
    for (nth, first) in boxes.iter().enumerate() {
        for second in &boxes[nth + 1..] {
            if second.min() <= first.min() {
                return Err(format!("{second} follows {first} in a region"));
            }
            if second.min()[0] >= first.max()[0] {
                break;
            }
            if second.intersects(first) {
                return Err(format!("{first} and {second} overlap in a region"));
            }
        }
    }
    Ok(())
}
