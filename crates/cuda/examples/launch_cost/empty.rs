//! A kernel that does nothing, with the parameters of one that updates a buffer.
#![allow(unsafe_code)]

use std::error::Error;
use std::sync::Arc;

use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::Box3;

pub(crate) const ENTRY: &str = "empty";

pub(crate) const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry empty(.param .u64 count, .param .u64 base) { ret; }
.visible .entry nothing() { ret; }
";

/// The kernel, as a task's payload.
pub(crate) struct Empty {
    module: Arc<CodeModule>,
}

impl Empty {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { module: CodeModule::new("empty.ptx", CodeSource::Ptx(PTX.into())) })
    }
}

// SAFETY: the code does nothing.
unsafe impl DeviceCode for Empty {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &str {
        ENTRY
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let mut parameters = Parameters::default();
        parameters.push(chunk.volume());
        memory.iter().for_each(|memory| parameters.push_address(memory.base()));
        Ok(Launch { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0, parameters })
    }
}

impl DeviceKernel for Empty {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {}

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}
