//! What users call buffers, for labels. Knows nothing else of a buffer.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use celerity_tdag::{BufferId, BufferInfo};

/// The names of buffers, as far as they have some.
///
/// ```
/// use celerity_regions::Box3;
/// use celerity_tdag::{BufferId, BufferInfo};
/// use celerity_views::BufferNames;
///
/// let [u, v] = [0, 1].map(BufferId::from_index);
/// let extent = Box3::from_range([8]);
/// let info = |id, name: &str| BufferInfo {
///     id, name: name.into(), dims: 1, extent, elem_size: 4, elem_align: 4, host_initialized: false,
/// };
/// let mut names = BufferNames::default();
/// names.insert(&info(u, "water"));
/// names.insert(&info(v, "B1")); // has no name, and so its id
/// assert_eq!(names.show(u).to_string(), "B0 \"water\"");
/// assert_eq!(names.show(v).to_string(), "B1");
/// ```
#[derive(Clone, Debug, Default)]
pub struct BufferNames(BTreeMap<BufferId, Arc<str>>);

impl BufferNames {
    /// Takes notice of a buffer's name, or of a new one.
    pub fn insert(&mut self, info: &BufferInfo) {
        if *info.name != *info.id.to_string() {
            self.0.insert(info.id, info.name.clone());
        }
    }

    /// A buffer, as labels show it: `B0 "water"`, or `B0` if it has no name.
    pub fn show(&self, buffer: BufferId) -> impl Display + '_ {
        Named { buffer, name: self.0.get(&buffer) }
    }
}

struct Named<'a> {
    buffer: BufferId,
    name: Option<&'a Arc<str>>,
}

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{} \"{name}\"", self.buffer),
            None => write!(f, "{}", self.buffer),
        }
    }
}
