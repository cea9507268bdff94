//! The entry points that a GPU's thread has launched, found without a lock: whoever
//! submits kernels looks into the shared table at the same time.

use std::sync::Arc;

use celerity_executor::{CodeModule, DeviceCode};

use crate::code::LoadedEntry;
use crate::driver::Gpu;
use crate::gpus::Gpus;

/// A program has few: looking through them is faster than a map.
#[derive(Default)]
pub(super) struct Entries(Vec<Known>);

struct Known {
    module: Arc<CodeModule>,
    name: Box<str>,
    entry: LoadedEntry,
}

impl Entries {
    /// What to launch, by its name.
    ///
    /// # Errors
    /// As the shared table says.
    pub(super) fn get(
        &mut self,
        gpus: &Gpus,
        gpu: Gpu,
        (code, name): (&dyn DeviceCode, &str),
    ) -> Result<LoadedEntry, String> {
        let module = code.module();
        let is_wanted = |known: &&Known| Arc::ptr_eq(&known.module, module) && *known.name == *name;
        if let Some(known) = self.0.iter().find(is_wanted) {
            return Ok(known.entry.clone());
        }
        let entry = gpus.code().entry(gpu, (code, name)).map_err(|error| error.to_string())?;
        self.0.push(Known { module: module.clone(), name: name.into(), entry: entry.clone() });
        Ok(entry)
    }
}
