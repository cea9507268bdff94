//! Calls on devices: functions that put work of their own on a device's stream, such as calls of a
//! library. Plain data and a trait; knows no driver.
#![allow(unsafe_code)]

use std::ffi::c_void;

use celerity_regions::Box3;

use crate::bound::BoundMemory;
use crate::error::TaskError;

/// The stream of a device, as libraries of the device's vendor know it. Plain data: whoever puts
/// work on the stream does so by `unsafe` code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceStream {
    /// The number by which the vendor's libraries know the device, from 0: the ordinal of a
    /// `CUdevice`.
    pub ordinal: usize,
    /// The stream: a `CUstream`.
    pub stream: *mut c_void,
    /// The context that the stream belongs to, which is the calling thread's current one: the
    /// device's primary `CUcontext`.
    pub context: *mut c_void,
}

/// What a device that is no CPU calls for a chunk of a kernel, instead of launching code.
///
/// # Safety
/// All that [`enqueue`](Self::enqueue) does on the device is put on the stream that it is given,
/// and touches nothing but memory of its own and what `memory` [allows](BoundMemory), if that is
/// what the accesses of the task are bound to for the chunk. Nothing of it is still to be put there
/// when `enqueue` returns, whatever it returns, or panics. That the task has the accesses which the
/// function was written for is seen to as for a [kernel](crate::DeviceKernel).
pub unsafe trait EnqueuedCall: Send + Sync {
    /// Puts the work for `chunk` on `stream`. Called on the device's own thread, which starts
    /// nothing else meanwhile, with the stream's context current. The bases of `memory` are
    /// addresses on the device: they must not be followed here. The backend sees by an event of
    /// its own when the work has ended.
    ///
    /// # Safety
    /// `chunk` and `memory` are as for [`DeviceKernel::run`](crate::DeviceKernel::run), and the
    /// stream is alive.
    ///
    /// # Errors
    /// Of the function, as a host task's. It ends the run, as a panic does.
    unsafe fn enqueue(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        stream: DeviceStream,
    ) -> Result<(), TaskError>;
}
