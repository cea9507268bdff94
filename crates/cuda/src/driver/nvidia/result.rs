//! From result codes to errors.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::null;

use cudarc::driver::sys::{self, CUresult};

use crate::driver::{DriverError, Failure};

/// The outcome of a call.
pub(super) fn check(call: &'static str, result: CUresult) -> Result<(), DriverError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let failure = match result {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Failure::OutOfMemory,
        CUresult::CUDA_ERROR_NOT_FOUND => Failure::NotFound,
        _ => Failure::Other,
    };
    let (mut code, mut meaning) = (null(), null());
    // SAFETY: both outlive the calls, which set them to text that lives as long
    // as the process, or to null.
    let (code, meaning) = unsafe {
        let _: CUresult = sys::cuGetErrorName(result, &raw mut code);
        let _: CUresult = sys::cuGetErrorString(result, &raw mut meaning);
        (text(code), text(meaning))
    };
    Err(DriverError::Failed { call, code, meaning, failure })
}

/// # Safety
/// `text` is null, or points to text that ends with a NUL.
unsafe fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return "an unknown error".to_owned();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
