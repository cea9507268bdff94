//! Kernels for CPUs on a fake driver's GPUs, so that programs can be run there
//! as they are.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::{Box3, Region};

use super::{FakeDriver, FakeLaunch};

const ENTRY: &str = "hosted";

/// Makes kernels that a [`FakeDriver`] can run, from
/// [`FakeDriver::hosting_kernels`].
#[derive(Clone)]
pub struct HostedKernels {
    module: Arc<CodeModule>,
    calls: Arc<Mutex<Calls>>,
}

/// Launches that have not run. A launch's only parameter is its number.
#[derive(Default)]
struct Calls {
    next: u64,
    waiting: HashMap<u64, Call>,
}

struct Call {
    kernel: Arc<dyn DeviceKernel>,
    chunk: Box3,
    memory: Vec<(usize, Box3, Region)>,
}

impl FakeDriver {
    /// With the entry point that [`HostedKernels`] use.
    #[must_use]
    pub fn hosting_kernels(self) -> (Self, HostedKernels) {
        let calls = Arc::<Mutex<Calls>>::default();
        let to_run = calls.clone();
        let run = move |launch: &FakeLaunch| {
            let call = lock(&to_run).waiting.remove(&launch.parameter(0));
            call.ok_or_else(|| "launched twice".to_owned()).map(|call| call.run())
        };
        let module = CodeModule::new(ENTRY, CodeSource::Ptx(ENTRY.into()));
        (self.with_kernel(ENTRY, run), HostedKernels { module, calls })
    }
}

impl HostedKernels {
    /// The kernel, for GPUs of the fake driver.
    #[must_use]
    pub fn wrap(&self, kernel: Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel> {
        Arc::new(Hosted { kernels: self.clone(), kernel })
    }
}

struct Hosted {
    kernels: HostedKernels,
    kernel: Arc<dyn DeviceKernel>,
}

impl DeviceKernel for Hosted {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: passed on.
        unsafe { self.kernel.run(chunk, memory) }
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}

// SAFETY: the fake driver calls the kernel with the memory that it was launched with.
unsafe impl DeviceCode for Hosted {
    fn module(&self) -> &Arc<CodeModule> {
        &self.kernels.module
    }

    fn entry(&self) -> &str {
        ENTRY
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let owned = |it: &BoundMemory<'_>| {
            (it.base().expose_provenance(), *it.extent(), it.region().clone())
        };
        let memory = memory.iter().map(owned).collect();
        let mut calls = lock(&self.kernels.calls);
        let number = calls.next;
        calls.next += 1;
        calls.waiting.insert(number, Call { kernel: self.kernel.clone(), chunk: *chunk, memory });
        let mut parameters = Parameters::default();
        parameters.push(number);
        Ok(Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, parameters })
    }
}

impl Call {
    fn run(&self) {
        let memory: Vec<_> = self.memory.iter().map(bind).collect();
        // SAFETY: as for `bind`; the kernel is the task's own.
        unsafe { self.kernel.run(&self.chunk, &memory) }
    }
}

fn bind((base, extent, region): &(usize, Box3, Region)) -> BoundMemory<'_> {
    // SAFETY: what `DeviceCode::launch` was called with for this launch, which the fake driver runs
    // while the backend keeps the memory as it has promised for the job.
    unsafe { BoundMemory::new(std::ptr::with_exposed_provenance_mut(*base), *extent, region) }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}
