//! Memory of a GPU that other processes of the host map, too: CUDA IPC. Not that of pools, and not what is
//! put behind reserved addresses, neither of which can be exported like this.
#![allow(unsafe_code)]

use cudarc::driver::sys;

use super::result::check;
use super::{DriverError, MemoryHandle, bytes_of};

/// Memory of the current context's GPU.
pub(super) fn alloc(bytes: u64) -> Result<u64, DriverError> {
    let mut address = 0;
    // SAFETY: `address` outlives the call.
    let result = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes_of(bytes)) };
    check("cuMemAlloc", result)?;
    Ok(address)
}

/// Gives it back.
///
/// # Safety
/// It came from [`alloc`] in this context, and nobody uses it.
pub(super) unsafe fn free(address: u64) {
    // SAFETY: the caller's promise.
    let _: sys::CUresult = unsafe { sys::cuMemFree_v2(address) };
}

/// The name of memory that came from [`alloc`].
pub(super) fn export(address: u64) -> Result<MemoryHandle, DriverError> {
    let mut handle = sys::CUipcMemHandle_st { reserved: [0; 64] };
    // SAFETY: `handle` outlives the call, which refuses other addresses.
    let result = unsafe { sys::cuIpcGetMemHandle(&raw mut handle, address) };
    check("cuIpcGetMemHandle", result)?;
    Ok(handle.reserved.map(|byte| byte.to_ne_bytes()[0]))
}

/// Maps memory of another process for the current context's GPU.
pub(super) fn import(handle: &MemoryHandle) -> Result<u64, DriverError> {
    let reserved = handle.map(|byte| std::ffi::c_char::from_ne_bytes([byte]));
    let (mut address, handle) = (0, sys::CUipcMemHandle_st { reserved });
    let flags = sys::CUipcMem_flags_enum::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
    // SAFETY: `address` outlives the call, which refuses what is no handle.
    let result = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, handle, flags) };
    check("cuIpcOpenMemHandle", result)?;
    Ok(address)
}

/// Gives up memory of another process.
///
/// # Safety
/// It came from [`import`] in this context, and this process does not use it.
pub(super) unsafe fn forget(address: u64) {
    // SAFETY: the caller's promise.
    let _: sys::CUresult = unsafe { sys::cuIpcCloseMemHandle(address) };
}
