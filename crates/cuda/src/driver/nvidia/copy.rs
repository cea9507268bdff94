//! Copies, by the simplest call that does them.
#![allow(unsafe_code)]

use std::ptr::{null, null_mut};

use cudarc::driver::sys::{self, CUmemorytype};

use super::result::check;
use super::{AddressSpace, DriverError, Transfer, bytes_of, host_pointer};
use crate::driver::TransferEnd;

/// Copies.
///
/// # Safety
/// As for [`Driver::copy`](crate::driver::Driver::copy); `contexts` are those of
/// source and target, null for the host.
pub(super) unsafe fn copy(
    stream: sys::CUstream,
    transfer: &Transfer,
    contexts: [sys::CUcontext; 2],
) -> Result<(), DriverError> {
    let between_gpus = match (transfer.source.place, transfer.target.place) {
        (AddressSpace::Gpu(source), AddressSpace::Gpu(target)) => source != target,
        _ => false,
    };
    // SAFETY: passed on.
    unsafe {
        match (transfer.rows * transfer.planes == 1, between_gpus) {
            (true, false) => run(stream, transfer),
            (true, true) => run_between(stream, transfer, contexts),
            (false, false) => strided(stream, transfer),
            (false, true) => strided_between(stream, transfer, contexts),
        }
    }
}

unsafe fn run(stream: sys::CUstream, transfer: &Transfer) -> Result<(), DriverError> {
    let (source, target) = (transfer.source.address, transfer.target.address);
    // SAFETY: the caller's promise; the driver tells memories by address.
    let result = unsafe { sys::cuMemcpyAsync(target, source, bytes_of(transfer.row), stream) };
    check("cuMemcpyAsync", result)
}

unsafe fn run_between(
    stream: sys::CUstream,
    transfer: &Transfer,
    [from, to]: [sys::CUcontext; 2],
) -> Result<(), DriverError> {
    let (source, target) = (transfer.source.address, transfer.target.address);
    let bytes = bytes_of(transfer.row);
    // SAFETY: the caller's promise.
    let result = unsafe { sys::cuMemcpyPeerAsync(target, to, source, from, bytes, stream) };
    check("cuMemcpyPeerAsync", result)
}

unsafe fn strided(stream: sys::CUstream, transfer: &Transfer) -> Result<(), DriverError> {
    let (source, target) = (&transfer.source, &transfer.target);
    // Written out, since a zeroed memory type is none that exists.
    let parameters = sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: memory_type(source),
        srcHost: host_address(source),
        srcDevice: gpu_address(source),
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: bytes_of(source.pitch),
        srcHeight: bytes_of(source.rows_per_plane),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: memory_type(target),
        dstHost: host_address(target).cast_mut(),
        dstDevice: gpu_address(target),
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: bytes_of(target.pitch),
        dstHeight: bytes_of(target.rows_per_plane),
        WidthInBytes: bytes_of(transfer.row),
        Height: bytes_of(transfer.rows),
        Depth: bytes_of(transfer.planes),
    };
    // SAFETY: the caller's promise; the parameters outlive the call.
    let result = unsafe { sys::cuMemcpy3DAsync_v2(&raw const parameters, stream) };
    check("cuMemcpy3DAsync", result)
}

unsafe fn strided_between(
    stream: sys::CUstream,
    transfer: &Transfer,
    [from, to]: [sys::CUcontext; 2],
) -> Result<(), DriverError> {
    let (source, target) = (&transfer.source, &transfer.target);
    let parameters = sys::CUDA_MEMCPY3D_PEER {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: memory_type(source),
        srcHost: host_address(source),
        srcDevice: gpu_address(source),
        srcArray: null_mut(),
        srcContext: from,
        srcPitch: bytes_of(source.pitch),
        srcHeight: bytes_of(source.rows_per_plane),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: memory_type(target),
        dstHost: host_address(target).cast_mut(),
        dstDevice: gpu_address(target),
        dstArray: null_mut(),
        dstContext: to,
        dstPitch: bytes_of(target.pitch),
        dstHeight: bytes_of(target.rows_per_plane),
        WidthInBytes: bytes_of(transfer.row),
        Height: bytes_of(transfer.rows),
        Depth: bytes_of(transfer.planes),
    };
    // SAFETY: the caller's promise; the parameters outlive the call.
    let result = unsafe { sys::cuMemcpy3DPeerAsync(&raw const parameters, stream) };
    check("cuMemcpy3DPeerAsync", result)
}

/// Whether the driver knows an address of the host, so that GPUs reach it.
pub(super) fn is_pinned(address: u64) -> bool {
    let mut kind = 0_u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the attribute's value is a 32-bit number, which outlives the call; an address is not followed.
    let known = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) };
    known == sys::CUresult::CUDA_SUCCESS && kind == CUmemorytype::CU_MEMORYTYPE_HOST as u32
}

fn memory_type(side: &TransferEnd) -> CUmemorytype {
    match side.place {
        AddressSpace::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        AddressSpace::Gpu(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    }
}

fn host_address(side: &TransferEnd) -> *const std::ffi::c_void {
    match side.place {
        AddressSpace::Host => host_pointer(side.address),
        AddressSpace::Gpu(_) => null(),
    }
}

fn gpu_address(side: &TransferEnd) -> u64 {
    match side.place {
        AddressSpace::Host => 0,
        AddressSpace::Gpu(_) => side.address,
    }
}
