//! Serialisation of short lists, by way of a `Vec`, which does not believe what a list says of its
//! length before it has come. Knows nothing of what is in them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::{Array, SmallVec};

pub(crate) fn serialize<T: Serialize, S: Serializer>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    list.serialize(serializer)
}

pub(crate) fn deserialize<'de, A, D>(deserializer: D) -> Result<SmallVec<A>, D::Error>
where
    A: Array<Item: Deserialize<'de>>,
    D: Deserializer<'de>,
{
    Vec::deserialize(deserializer).map(SmallVec::from_vec)
}
