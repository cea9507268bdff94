//! Serialisation of buffers and tasks, and what makes their data valid.
//!
//! Owns the invariants of the data at rest: a value that breaks one is an error of deserialisation.
//! Refuses to know any format.

use serde::de::Error;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::apart::shared;
use crate::collective::CollectiveGroup;
use crate::dependency::{Dependencies, Dependency};
use crate::forward::flaw;
use crate::id::{GraphId, TaskId};
use crate::mapper::{Mapper, PerDimension, Side, UserMapper};
use crate::space::IndexSpace;
use crate::task::{BufferInfo, Task};

/// Serialises an id as its index.
#[doc(hidden)]
#[macro_export]
macro_rules! __serde_id {
    ($name:ident) => {
        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__serde::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::__serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::__serde::Deserialize::deserialize(deserializer).map(Self)
            }
        }
    };
}

/// Serialises a type that derives the traits with `serde(remote = "Self")` as they say, and passes
/// what was deserialised to `$check`, a `fn(&$name) -> Result<(), String>`.
#[doc(hidden)]
#[macro_export]
macro_rules! __serde_checked {
    ($name:ident, $check:expr) => {
        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }

        impl<'de> $crate::__serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let made = $name::deserialize(deserializer)?;
                let check: fn(&$name) -> ::core::result::Result<(), ::std::string::String> = $check;
                check(&made).map_err(<D::Error as $crate::__serde::de::Error>::custom)?;
                ::core::result::Result::Ok(made)
            }
        }
    };
}

__serde_checked!(BufferInfo, crate::graph::check_buffer);
__serde_checked!(CollectiveGroup, check_group);
__serde_checked!(IndexSpace, check_space);
__serde_checked!(Mapper, check_mapper);
__serde_checked!(Task, check_task);

fn check_space(space: &IndexSpace) -> Result<(), String> {
    match space.flaw() {
        None => Ok(()),
        Some(flaw) => Err(format!("an index space {flaw}")),
    }
}

fn check_group(group: &CollectiveGroup) -> Result<(), String> {
    match usize::from(group.number()) < CollectiveGroup::MOST {
        true => Ok(()),
        false => Err(format!("there is no collective group {}", group.number())),
    }
}

fn check_mapper(mapper: &Mapper) -> Result<(), String> {
    match mapper {
        Mapper::Slice { dim: dim @ 3.. } => Err(format!("a slice runs along dimension {dim}")),
        Mapper::PerDimension(mapper) => check_per_dimension(mapper),
        _ => Ok(()),
    }
}

fn check_per_dimension(mapper: &PerDimension) -> Result<(), String> {
    if !mapper.is_well_formed() {
        return Err("a mapper describes more dimensions than there are".to_owned());
    }
    match mapper.sides().iter().filter_map(Side::from).find(|&from| from > 2) {
        Some(from) => Err(format!("a mapper follows dimension {from}")),
        None => Ok(()),
    }
}

/// A user's mapper is a closure; a recording that left it out would mean something else.
pub(crate) fn refuse<S: Serializer>(mapper: &UserMapper, _: S) -> Result<S::Ok, S::Error> {
    Err(S::Error::custom(format_args!(
        "{mapper:?} is a function; user mappers cannot be recorded, use fixed or another built-in \
         mapper"
    )))
}

fn check_task(task: &Task) -> Result<(), String> {
    let id = task.id;
    if let Some(dependency) = task.dependencies.iter().find(|dependency| dependency.on >= id) {
        return Err(format!("{id} waits for {}, which is not older", dependency.on));
    }
    let start = TaskId::from_index(0);
    if let Some((with, why)) = task.conflicts.broken(id, start, &task.dependencies) {
        return Err(format!("{id} conflicts with {with}, {why}"));
    }
    if !task.work.is_on_host() && task.side_effects().next().is_some() {
        return Err(format!("{id} does not run on the host and has side effects"));
    }
    if task.work.space().is_some_and(|space| space.extent.is_empty()) {
        return Err(format!("{id} has no items"));
    }
    if let Some(why) = flaw(task) {
        return Err(format!("{id} is a forward or has one, and {why}"));
    }
    match shared(&task.accesses, &task.work.extent()) {
        Some(buffer) => {
            Err(format!("{id} writes {buffer} and accesses the same elements once more"))
        }
        None => Ok(()),
    }
}

impl<I: Copy + PartialEq + Serialize> Serialize for Dependencies<I> {
    /// A list, in order of discovery.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, I: GraphId + Deserialize<'de>> Deserialize<'de> for Dependencies<I> {
    /// O(edges · log edges).
    ///
    /// # Errors
    /// If two edges lead to the same node.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let edges = Vec::<Dependency<I>>::deserialize(deserializer)?;
        let mut targets: Vec<I> = edges.iter().map(|edge| edge.on).collect();
        targets.sort_unstable();
        match targets.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(D::Error::custom(format_args!("two edges lead to {}", pair[0]))),
            None => Ok(Self::from_distinct(edges)),
        }
    }
}
