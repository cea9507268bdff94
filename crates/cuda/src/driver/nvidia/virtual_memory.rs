//! Addresses, and memory behind them.
#![allow(unsafe_code)]

use std::ptr::null_mut;

use cudarc::driver::sys;

use super::gpu::location;
use super::result::check;
use super::{DriverError, bytes_of};

/// Memory of a GPU, as it is put behind addresses.
fn properties(device: sys::CUdevice) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32HandleMetaData: null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Bytes in whose multiples memory is put behind addresses.
pub(super) fn piece(device: sys::CUdevice) -> Result<u64, DriverError> {
    let (mut piece, properties) = (0, properties(device));
    let recommended = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    // SAFETY: both outlive the call.
    let result = unsafe {
        sys::cuMemGetAllocationGranularity(&raw mut piece, &raw const properties, recommended)
    };
    check("cuMemGetAllocationGranularity", result)?;
    Ok(piece as u64)
}

/// Addresses without memory.
pub(super) fn reserve(bytes: u64) -> Result<u64, DriverError> {
    let mut address = 0;
    // SAFETY: `address` outlives the call; 0 leaves place and alignment to the driver.
    let result = unsafe { sys::cuMemAddressReserve(&raw mut address, bytes_of(bytes), 0, 0, 0) };
    check("cuMemAddressReserve", result)?;
    Ok(address)
}

/// Puts memory of `device` behind addresses, for it and for others to use.
///
/// # Safety
/// They are whole pieces of what was reserved, and there is no memory yet.
pub(super) unsafe fn map(
    device: sys::CUdevice,
    address: u64,
    bytes: u64,
    users: &[sys::CUdevice],
) -> Result<(), DriverError> {
    let (mut memory, properties, bytes) = (0, properties(device), bytes_of(bytes));
    // SAFETY: `memory` and the properties outlive the call.
    let result = unsafe { sys::cuMemCreate(&raw mut memory, bytes, &raw const properties, 0) };
    check("cuMemCreate", result)?;
    // SAFETY: the caller's promise; the memory was just made. It lives as long
    // as it is mapped, so its name can be given back at once.
    let mapped = unsafe {
        let mapped = sys::cuMemMap(address, bytes, 0, memory, 0);
        let _: sys::CUresult = sys::cuMemRelease(memory);
        mapped
    };
    check("cuMemMap", mapped)?;
    let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    let access: Vec<_> = users
        .iter()
        .map(|&user| sys::CUmemAccessDesc { location: location(user), flags })
        .collect();
    // SAFETY: there are so many descriptions, which outlive the call.
    let allowed = unsafe { sys::cuMemSetAccess(address, bytes, access.as_ptr(), access.len()) };
    check("cuMemSetAccess", allowed).inspect_err(|_| {
        // SAFETY: it was just mapped, and nobody knows of it.
        let _: sys::CUresult = unsafe { sys::cuMemUnmap(address, bytes) };
    })
}

/// Takes the memory behind addresses away.
///
/// # Safety
/// They are those of one [`map`], and nobody uses them.
pub(super) unsafe fn unmap(address: u64, bytes: u64) {
    // SAFETY: the caller's promise.
    let _: sys::CUresult = unsafe { sys::cuMemUnmap(address, bytes_of(bytes)) };
}

/// Gives addresses back.
///
/// # Safety
/// They are those of one [`reserve`], and there is no memory behind them.
pub(super) unsafe fn release(address: u64, bytes: u64) {
    // SAFETY: the caller's promise.
    let _: sys::CUresult = unsafe { sys::cuMemAddressFree(address, bytes_of(bytes)) };
}
