//! Addresses, and memory behind them.
#![allow(unsafe_code)]

use std::ptr::null_mut;

use cudarc::driver::sys;

use super::gpu::location;
use super::result::check;
use super::{DriverError, bytes_of};

/// How the driver names memory without addresses.
pub(super) type Pages = sys::CUmemGenericAllocationHandle;

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

/// Memory of `device` without addresses.
pub(super) fn create(device: sys::CUdevice, bytes: u64) -> Result<Pages, DriverError> {
    let (mut pages, properties) = (0, properties(device));
    // SAFETY: `pages` and the properties outlive the call.
    let result =
        unsafe { sys::cuMemCreate(&raw mut pages, bytes_of(bytes), &raw const properties, 0) };
    check("cuMemCreate", result)?;
    Ok(pages)
}

/// Gives memory back.
///
/// # Safety
/// It is mapped nowhere, and named in no later call.
pub(super) unsafe fn destroy(pages: Pages) {
    // SAFETY: the caller's promise.
    let _: sys::CUresult = unsafe { sys::cuMemRelease(pages) };
}

/// Puts memory behind addresses, one after the other, for `users` to use; all or
/// nothing.
///
/// # Safety
/// The addresses were reserved, and there is no memory yet; what is put there has so
/// many bytes and is mapped nowhere else.
pub(super) unsafe fn map(
    address: u64,
    pages: impl IntoIterator<Item = (Pages, u64)>,
    users: &[sys::CUdevice],
) -> Result<(), DriverError> {
    let mut end = address;
    let mapped = pages.into_iter().try_for_each(|(pages, bytes)| {
        // SAFETY: the caller's promise.
        let result = unsafe { sys::cuMemMap(end, bytes_of(bytes), 0, pages, 0) };
        check("cuMemMap", result)?;
        end += bytes;
        Ok(())
    });
    mapped.and_then(|()| allow(address, end - address, users)).inspect_err(|_| {
        if end > address {
            // SAFETY: so much was just mapped, and nobody knows of it.
            unsafe { unmap(address, end - address) };
        }
    })
}

/// Lets `users` read and write what is mapped.
fn allow(address: u64, bytes: u64, users: &[sys::CUdevice]) -> Result<(), DriverError> {
    let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    let access: Vec<_> = users
        .iter()
        .map(|&user| sys::CUmemAccessDesc { location: location(user), flags })
        .collect();
    // SAFETY: there are so many descriptions, which outlive the call.
    let result =
        unsafe { sys::cuMemSetAccess(address, bytes_of(bytes), access.as_ptr(), access.len()) };
    check("cuMemSetAccess", result)
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
