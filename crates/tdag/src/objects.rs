//! The host objects of a program: their names, and what a task must not do with them. Knows
//! neither dependencies nor values.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::declare::describe;
use crate::error::DeclareError;
use crate::id::{ObjectId, TaskId};
use crate::task::TaskSpec;

/// Names of so many ended objects are remembered, for who still names one in a task.
const REMEMBERED: usize = 64;

/// The host objects of a program: their names, by id.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    created: u64,
    names: BTreeMap<ObjectId, Arc<str>>,
    /// Those that have ended last, the oldest first.
    ended: VecDeque<(ObjectId, Arc<str>)>,
}

impl Objects {
    /// Adds an object; it is called by its id if it has no name.
    pub(crate) fn create(&mut self, name: Option<Arc<str>>) -> ObjectId {
        let id = ObjectId::from_index(self.created);
        self.created += 1;
        self.names.insert(id, name.unwrap_or_else(|| id.to_string().into()));
        id
    }

    pub(crate) fn rename(&mut self, object: ObjectId, name: Arc<str>) {
        if let Some(known) = self.names.get_mut(&object) {
            *known = name;
        }
    }

    pub(crate) fn name(&self, object: ObjectId) -> Option<&Arc<str>> {
        self.names.get(&object)
    }

    pub(crate) fn end(&mut self, object: ObjectId) {
        let Some(name) = self.names.remove(&object) else { return };
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((object, name));
    }

    /// What an object was called that does not exist: its id, if that is long ago or it never did.
    fn former_name(&self, object: ObjectId) -> Arc<str> {
        let former = self.ended.iter().find(|(id, _)| *id == object);
        former.map_or_else(|| object.to_string().into(), |(_, name)| name.clone())
    }

    /// Whether a task may have its side effects: on objects that exist, one on each, and on the
    /// host. O(effects · log objects + effects²).
    pub(crate) fn check(&self, spec: &TaskSpec, next: TaskId) -> Result<(), DeclareError> {
        for (position, effect) in spec.side_effects().enumerate() {
            let (task, access) = (|| describe(spec, next), effect.to_string());
            let Some(object) = self.name(effect.object).cloned() else {
                return Err(DeclareError::UnknownObject {
                    task: task(),
                    object: self.former_name(effect.object),
                    access,
                });
            };
            if !spec.work.is_on_host() {
                return Err(DeclareError::ObjectOnDevice { task: task(), object, access });
            }
            let mut earlier = spec.side_effects().take(position);
            if let Some(other) = earlier.find(|other| other.object == effect.object) {
                let accesses = [other.to_string(), access];
                return Err(DeclareError::RepeatedObject { task: task(), object, accesses });
            }
        }
        Ok(())
    }
}
