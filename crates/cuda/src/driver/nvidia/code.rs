//! Modules, functions and launches. The context of all that is named is current.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{self, CUjit_option, CUresult};

use super::result::check;
use super::{DriverError, Image, LaunchSize, c_name};

/// Bytes of what the driver's compiler may say.
const LOG: usize = 8 << 10;

/// Loads code.
pub(super) fn load(image: Image<'_>) -> Result<sys::CUmodule, DriverError> {
    let image = image_words(image);
    let mut log = vec![0_u8; LOG];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let size = std::ptr::without_provenance_mut::<c_void>(LOG);
    let mut values = [log.as_mut_ptr().cast::<c_void>(), size];
    let mut module = null_mut();
    // SAFETY: the image is a whole one, text that ends with a NUL or a binary
    // that knows its length; there are two options with a value each.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    check("cuModuleLoadDataEx", result).map_err(|error| match log_text(&log) {
        Some(log) => DriverError::Rejected { log: format!("{error}: {log}") },
        None if error.is_out_of_memory() => error,
        None => DriverError::Rejected { log: error.to_string() },
    })?;
    Ok(module)
}

/// The image at the alignment that binaries need, with a NUL behind it.
fn image_words(image: Image<'_>) -> Vec<u64> {
    let bytes = match image {
        Image::Ptx(text) => text.as_bytes(),
        Image::Binary(code) => code,
    };
    let mut words = vec![0_u64; bytes.len() / 8 + 1];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

fn log_text(log: &[u8]) -> Option<String> {
    let text = log.split(|&byte| byte == 0).next()?;
    let text = String::from_utf8_lossy(text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// An entry point.
pub(super) fn function(module: sys::CUmodule, name: &str) -> Result<sys::CUfunction, DriverError> {
    let (mut function, name) = (null_mut(), c_name(name));
    // SAFETY: `function` outlives the call, and the name ends with a NUL.
    check("cuModuleGetFunction", unsafe {
        sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr())
    })?;
    Ok(function)
}

/// A variable's address and size, if there is one of that name.
pub(super) fn variable(
    module: sys::CUmodule,
    name: &str,
) -> Result<Option<(u64, u64)>, DriverError> {
    let (mut address, mut bytes, name) = (0, 0, c_name(name));
    // SAFETY: both outlive the call, and the name ends with a NUL.
    let result = unsafe {
        sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, name.as_ptr())
    };
    match check("cuModuleGetGlobal", result) {
        Ok(()) => Ok(Some((address, bytes as u64))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// From this version on, functions can be asked for their parameters.
const TELLS_PARAMETERS: u32 = 12_040;

/// Bytes of all parameters.
pub(super) fn parameter_bytes(
    function: sys::CUfunction,
    version: u32,
) -> Result<Option<u64>, DriverError> {
    if version < TELLS_PARAMETERS {
        return Ok(None);
    }
    let mut end = 0;
    for index in 0.. {
        let (mut offset, mut size) = (0_usize, 0_usize);
        // SAFETY: both outlive the call.
        let result =
            unsafe { sys::cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut size) };
        if result == CUresult::CUDA_ERROR_INVALID_VALUE {
            break;
        }
        check("cuFuncGetParamInfo", result)?;
        end = offset + size;
    }
    Ok(Some(end as u64))
}

/// How many threads a block of a function can have.
pub(super) fn most_threads(function: sys::CUfunction) -> Result<u32, DriverError> {
    let threads =
        attribute(function, sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    Ok(u32::try_from(threads).unwrap_or(u32::MAX))
}

fn attribute(
    function: sys::CUfunction,
    attribute: sys::CUfunction_attribute,
) -> Result<i32, DriverError> {
    let mut value = 0;
    // SAFETY: the function is alive, and the number outlives the call.
    let result = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) };
    check("cuFuncGetAttribute", result)?;
    Ok(value)
}

/// More dynamic shared memory than this has to be asked for. The limit is 48 KiB
/// together with what a module has of its own, which is some bytes.
const SHARED_WITHOUT_ASKING: u32 = 47 << 10;

/// Launches.
///
/// # Safety
/// As for [`Driver::launch`](crate::driver::Driver::launch).
pub(super) unsafe fn launch(
    stream: sys::CUstream,
    function: sys::CUfunction,
    size: LaunchSize,
    parameters: &[u8],
) -> Result<(), DriverError> {
    let LaunchSize { grid, block, shared_bytes } = size;
    if shared_bytes > SHARED_WITHOUT_ASKING {
        allow_shared(function, shared_bytes)?;
    }
    let mut length = parameters.len();
    let marker = |value: u32| std::ptr::without_provenance_mut::<c_void>(value as usize);
    let mut extra = [
        marker(sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
        parameters.as_ptr().cast_mut().cast(),
        marker(sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT),
        (&raw mut length).cast(),
        marker(sys::CU_LAUNCH_PARAM_END_AS_INT),
    ];
    // SAFETY: the list names a block of parameters and its length, both of which
    // outlive the call; the rest is the caller's promise.
    let result = unsafe {
        let [x, y, z] = grid;
        let [tx, ty, tz] = block;
        let extra = extra.as_mut_ptr();
        sys::cuLaunchKernel(function, x, y, z, tx, ty, tz, shared_bytes, stream, null_mut(), extra)
    };
    check("cuLaunchKernel", result)
}

/// Lets a function have so much dynamic shared memory from now on. What it may have never shrinks: other
/// threads launch it as well, and may be about to with more.
fn allow_shared(function: sys::CUfunction, bytes: u32) -> Result<(), DriverError> {
    static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    let _turn = ONE_AFTER_THE_OTHER.lock().unwrap_or_else(PoisonError::into_inner);
    if self::attribute(function, attribute)? >= bytes {
        return Ok(());
    }
    // SAFETY: the function is alive.
    check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function, attribute, bytes) })
}
