//! The kernel that tests of this crate launch.
#![allow(unsafe_code)]

use std::error::Error;
use std::sync::Arc;

use celerity_executor::{
    BoundMemory, CodeModule, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::Box3;

/// A kernel of a fake driver: its parameters are the number of items and the
/// bases of its accesses.
pub(crate) struct Coded {
    pub(crate) module: Arc<CodeModule>,
    pub(crate) entry: &'static str,
}

// SAFETY: what the fake driver runs for it is in the tests.
unsafe impl DeviceCode for Coded {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &str {
        self.entry
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let mut parameters = Parameters::default();
        parameters.push(chunk.volume());
        memory.iter().for_each(|memory| parameters.push_address(memory.base()));
        Ok(Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, parameters })
    }
}

impl DeviceKernel for Coded {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
        unreachable!("there are no CPU devices here");
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}
