//! The GPUs that a process uses: one driver, and the code that has been loaded.
//! Shared by the nodes of a process, and by whoever wants to know early whether
//! a kernel will run.

use std::sync::Arc;

use celerity_executor::DeviceCode;
use celerity_idag::DeviceId;

use crate::code::{CodeError, CodeLoader, Compiler};
use crate::driver::{Driver, DriverError, Gpu, GpuInfo};
use crate::memory::PagePool;
use crate::nccl::{FindNccl, Nccl};

/// See the [crate documentation](crate).
pub struct Gpus {
    driver: Arc<dyn Driver>,
    infos: Vec<GpuInfo>,
    /// By GPU.
    pages: Vec<Arc<PagePool>>,
    code: CodeLoader,
    nccl: FindNccl,
}

/// Between which devices of a node memory is copied directly: by device, then
/// device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerAccess(Vec<Vec<bool>>);

impl PeerAccess {
    /// The GPUs that reach the memory of a device, but for its own.
    pub(crate) fn users_of(&self, device: usize, devices: &[Gpu]) -> Vec<Gpu> {
        let others = devices.iter().zip(&self.0[device]);
        let own = devices[device];
        let mut users: Vec<Gpu> =
            others.filter(|&(&gpu, linked)| *linked && gpu != own).map(|(&gpu, _)| gpu).collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// Whether all devices of the node reach each other.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.iter().flatten().all(|linked| *linked)
    }

    pub(crate) fn has(&self, from: DeviceId, to: DeviceId) -> bool {
        let slot = |device: DeviceId| usize::try_from(device.index()).expect("few devices");
        self.0[slot(from)][slot(to)]
    }
}

impl Gpus {
    /// All GPUs of a driver. `compiler` is for kernels in CUDA C++; without one,
    /// each of these is an error.
    ///
    /// # Errors
    /// What the driver says of its GPUs; [`DriverError::Missing`] if it has none.
    pub fn new(
        driver: Arc<dyn Driver>,
        compiler: Option<Arc<dyn Compiler>>,
    ) -> Result<Arc<Self>, DriverError> {
        Self::with_nccl(driver, compiler, Arc::new(|| Err("it looks for no NCCL".to_owned())))
    }

    /// As [`new`](Self::new), with a library of collective operations, which is looked for when a run wants it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_nccl(
        driver: Arc<dyn Driver>,
        compiler: Option<Arc<dyn Compiler>>,
        nccl: FindNccl,
    ) -> Result<Arc<Self>, DriverError> {
        let slots = u16::try_from(driver.gpus()).expect("a host has few GPUs");
        if slots == 0 {
            let reason = "the driver sees no GPU".to_owned();
            return Err(DriverError::Missing { reason });
        }
        let infos = (0..slots).map(|slot| driver.info(Gpu::from_slot(slot)));
        let infos: Vec<_> = infos.collect::<Result<_, _>>()?;
        let capabilities = infos.iter().map(|info| info.capability).collect();
        let code = CodeLoader::new(driver.clone(), compiler, capabilities);
        let pages = infos.iter().map(|_| Arc::new(PagePool::new(&driver))).collect();
        Ok(Arc::new(Self { driver, infos, pages, code, nccl }))
    }

    /// What they are, in the driver's order.
    #[must_use]
    pub fn infos(&self) -> &[GpuInfo] {
        &self.infos
    }

    /// Compiles and loads a kernel's code for some GPUs, and compares what it
    /// takes with what it will be given for a task of so many accesses. Takes
    /// long the first time and nearly nothing later; meant for when a task is
    /// submitted.
    ///
    /// # Errors
    /// [`CodeError`] names the module and what is wrong.
    pub fn check(
        &self,
        gpus: &[Gpu],
        code: &dyn DeviceCode,
        accesses: usize,
    ) -> Result<(), CodeError> {
        gpus.iter().try_for_each(|&gpu| {
            self.check_shared(gpu, code)?;
            self.code.check(gpu, code, accesses)
        })
    }

    fn check_shared(&self, gpu: Gpu, code: &dyn DeviceCode) -> Result<(), CodeError> {
        let (needed, limit) = (code.shared_bytes(), self.info(gpu).shared_memory);
        if needed <= limit {
            return Ok(());
        }
        let (module, entry) = (code.module().name().to_owned(), code.entry().to_owned());
        Err(CodeError::SharedMemory { module, entry, gpu, needed, limit })
    }

    /// Opens paths between devices' memories, where that is wanted and possible.
    pub(crate) fn connect(&self, devices: &[Gpu], wanted: bool) -> Result<PeerAccess, DriverError> {
        let link = |from: Gpu, to: Gpu| match wanted && from != to {
            // A copy needs one side to reach the other; a kernel that moves many pieces may run on either.
            true => Ok(self.driver.connect(from, to)? && self.driver.connect(to, from)?),
            false => Ok(from == to),
        };
        let row = |&from: &Gpu| devices.iter().map(|&to| link(from, to)).collect();
        devices.iter().map(row).collect::<Result<_, _>>().map(PeerAccess)
    }

    /// Whether memory can be put behind addresses on all of these.
    pub(crate) fn can_reserve(&self, gpus: &[Gpu]) -> bool {
        gpus.iter().all(|&gpu| self.driver.piece(gpu).is_ok())
    }

    /// The library of collective operations.
    pub(crate) fn nccl(&self) -> Result<Arc<dyn Nccl>, String> {
        (self.nccl)()
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// Memory of a GPU that was behind addresses.
    pub(crate) fn pages(&self, gpu: Gpu) -> &Arc<PagePool> {
        &self.pages[gpu.slot()]
    }

    pub(crate) fn code(&self) -> &CodeLoader {
        &self.code
    }

    pub(crate) fn info(&self, gpu: Gpu) -> &GpuInfo {
        &self.infos[gpu.slot()]
    }
}
