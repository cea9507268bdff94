//! One GPU: what it is, and what is made once it is used.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use super::result::check;
use super::{DriverError, Entered, Gpu, GpuInfo, pieces};

pub(super) struct NvidiaGpu {
    pub(super) device: sys::CUdevice,
    opened: OnceLock<Result<Opened, DriverError>>,
    /// The others whose memory its threads may touch, by slot.
    reach: AtomicU64,
}

/// A GPU in use.
pub(super) struct Opened {
    pub(super) context: sys::CUcontext,
    /// A pool of our own, so that nobody else's is reconfigured.
    pub(super) pool: sys::CUmemoryPool,
    /// The kernel that moves pieces, once it is wanted.
    mover: OnceLock<Result<sys::CUfunction, DriverError>>,
}

// SAFETY: the handles are names; the driver may be called with them from any
// thread.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl NvidiaGpu {
    pub(super) fn new(ordinal: c_int) -> Result<Self, DriverError> {
        let mut device = 0;
        // SAFETY: `device` outlives the call.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, ordinal) })?;
        Ok(Self { device, opened: OnceLock::new(), reach: AtomicU64::new(0) })
    }

    /// Notes that its threads may touch another's memory from now on.
    pub(super) fn note_reach(&self, owner: Gpu) {
        self.reach.fetch_or(bit_of(owner), Ordering::Relaxed);
    }

    /// Whether [that](Self::note_reach) is so.
    pub(super) fn reaches(&self, owner: Gpu) -> bool {
        self.reach.load(Ordering::Relaxed) & bit_of(owner) != 0
    }

    /// Starts to use the GPU, which takes some 100 ms the first time.
    pub(super) fn opened(&self) -> Result<&Opened, DriverError> {
        let opened = self.opened.get_or_init(|| Opened::new(self.device));
        opened.as_ref().map_err(Clone::clone)
    }

    pub(super) fn if_opened(&self) -> Option<&Opened> {
        self.opened.get()?.as_ref().ok()
    }

    pub(super) fn info(&self) -> Result<GpuInfo, DriverError> {
        let (mut name, mut memory) = ([0; 256], 0);
        // SAFETY: `name` has room for the length given.
        check("cuDeviceGetName", unsafe {
            sys::cuDeviceGetName(name.as_mut_ptr(), 256, self.device)
        })?;
        // SAFETY: `memory` outlives the call.
        let total = unsafe { sys::cuDeviceTotalMem_v2(&raw mut memory, self.device) };
        check("cuDeviceTotalMem", total)?;
        let name = name.iter().take_while(|&&byte| byte != 0).map(|&byte| byte.cast_unsigned());
        Ok(GpuInfo {
            name: String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned(),
            capability: (
                self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            memory: memory as u64,
            shared_memory: self
                .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
                .into(),
            max_pitch: self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?.into(),
        })
    }

    pub(super) fn can_reach(&self, other: &Self) -> Result<bool, DriverError> {
        let mut can = 0;
        // SAFETY: `can` outlives the call.
        check("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(&raw mut can, self.device, other.device)
        })?;
        Ok(can != 0)
    }

    fn attribute(&self, attribute: Attribute) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: `value` outlives the call.
        check("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&raw mut value, attribute, self.device)
        })?;
        Ok(value.unsigned_abs())
    }
}

/// None for GPUs that no host has so many of.
fn bit_of(gpu: Gpu) -> u64 {
    1_u64.checked_shl(gpu.slot() as u32).unwrap_or(0)
}

impl Drop for NvidiaGpu {
    fn drop(&mut self) {
        let Some(Opened { pool, .. }) = self.if_opened() else { return };
        // SAFETY: both were made here, and nobody can name them any more. Errors
        // are those of what ran, which have been reported.
        unsafe {
            let _: sys::CUresult = sys::cuMemPoolDestroy(*pool);
            let _: sys::CUresult = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

impl Opened {
    fn new(device: sys::CUdevice) -> Result<Self, DriverError> {
        let mut context = null_mut();
        // SAFETY: `context` outlives the call.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut context, device)
        })?;
        let _entered = Entered::new(context)?;
        let pool = new_pool(device)?;
        Ok(Self { context, pool, mover: OnceLock::new() })
    }

    /// The kernel that moves [pieces]. The context is current.
    pub(super) fn mover(&self) -> Result<sys::CUfunction, DriverError> {
        self.mover.get_or_init(pieces::load).clone()
    }

    /// Lets another GPU use the memory of this one's pool.
    pub(super) fn open_pool_to(&self, user: &NvidiaGpu) -> Result<(), DriverError> {
        let access = sys::CUmemAccessDesc {
            location: location(user.device),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: `access` is one description and outlives the call.
        let result = unsafe { sys::cuMemPoolSetAccess(self.pool, &raw const access, 1) };
        check("cuMemPoolSetAccess", result)
    }
}

/// A pool that keeps what it has got from the system.
fn new_pool(device: sys::CUdevice) -> Result<sys::CUmemoryPool, DriverError> {
    let properties = sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32SecurityAttributes: null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let mut pool = null_mut();
    // SAFETY: both outlive the call.
    let result = unsafe { sys::cuMemPoolCreate(&raw mut pool, &raw const properties) };
    check("cuMemPoolCreate", result)?;
    let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let mut all = u64::MAX;
    // SAFETY: the attribute's value is a 64-bit number, which outlives the call.
    let result = unsafe { sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut all).cast()) };
    check("cuMemPoolSetAttribute", result)?;
    Ok(pool)
}

pub(super) fn location(device: sys::CUdevice) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}
