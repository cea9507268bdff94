//! Where kernels that `#[kernel]` has made leave word of a panic: a record for
//! each module and GPU, in host memory that the GPU writes to. So a look at it
//! costs a load, and the GPU nothing.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use celerity_kernel::abi::{DevicePanic, PanicRecord};

use crate::address::pointer;
use crate::driver::{AddressSpace, Driver, DriverError, ModuleHandle, Transfer};

/// The variable of a module that points to its record.
const VARIABLE: &str = "celerity_record";

/// The record of a module on one GPU.
pub(crate) struct GpuPanics {
    driver: Arc<dyn Driver>,
    /// Of the record, and behind it of the pointer that the module was given.
    address: u64,
    /// What was taken last.
    last: Mutex<Option<String>>,
}

impl GpuPanics {
    /// A record for a module, if its kernels can panic; no kernel of it runs yet.
    pub(crate) fn install(
        driver: &Arc<dyn Driver>,
        module: ModuleHandle,
    ) -> Result<Option<Arc<Self>>, DriverError> {
        let Some((variable, POINTER_BYTES)) = driver.variable(module, VARIABLE)? else {
            return Ok(None);
        };
        let address = driver.alloc_host(RECORD_BYTES + POINTER_BYTES)?;
        let record = Self { driver: driver.clone(), address, last: Mutex::default() };
        // SAFETY: so many bytes were just allocated, aligned to a page.
        unsafe {
            pointer(address).write_bytes(0, PanicRecord::SIZE);
            pointer(address + RECORD_BYTES).cast::<u64>().write(address);
        }
        record.point(module, variable)?;
        Ok(Some(Arc::new(record)))
    }

    /// Lets the module's variable point here.
    fn point(&self, module: ModuleHandle, variable: u64) -> Result<(), DriverError> {
        let pointer = (AddressSpace::Host, self.address + RECORD_BYTES);
        let variable = (AddressSpace::Gpu(module.gpu), variable);
        let transfer = Transfer::flat(pointer, variable, POINTER_BYTES);
        let stream = self.driver.create_stream(module.gpu)?;
        // SAFETY: the variable has these bytes, and nothing runs that reads it;
        // the source lives longer than the stream.
        let copied = unsafe { self.driver.copy(stream, &transfer) };
        let copied = copied.and_then(|()| self.driver.synchronize(stream));
        // SAFETY: it was made here, and this is its last use.
        unsafe { self.driver.destroy_stream(stream) };
        copied
    }

    /// Whether a kernel that has ended has panicked.
    pub(crate) fn is_set(&self) -> bool {
        self.state().load(Ordering::Acquire) != 0
    }

    /// The panic, which is forgotten. No kernel of the module runs that this node has launched. One of
    /// another node that shares the GPU may be writing it: it is waited for, which takes microseconds. If that node has taken it
    /// since it was seen, it is told once more: kernels of both may have panicked, of which the first alone is recorded.
    pub(crate) fn take(&self) -> Option<String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_set() {
            return last.clone();
        }
        let end = Instant::now() + LONGEST_WRITE;
        while PanicRecord::is_being_written(self.state().load(Ordering::Acquire))
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_micros(20));
        }
        // SAFETY: the record is there, and who has claimed it is done with it.
        let bytes = unsafe { pointer(self.address).cast::<[u8; PanicRecord::SIZE]>().read() };
        // SAFETY: these bytes are what is behind the state. Kernels, also those of other nodes that share
        // the GPU, write there when they have claimed the record, which the store below allows.
        unsafe { pointer(self.address + 4).write_bytes(0, PanicRecord::SIZE - 4) };
        self.state().store(0, Ordering::Release);
        *last = PanicRecord::read(&bytes).as_ref().map(DevicePanic::to_string);
        last.clone()
    }

    /// What a kernel that panics writes first and last.
    fn state(&self) -> &AtomicU32 {
        // SAFETY: the record begins with it, is aligned to a page, and lives as
        // long as `self`.
        unsafe { AtomicU32::from_ptr(pointer(self.address).cast()) }
    }
}

impl fmt::Debug for GpuPanics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuPanics").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for GpuPanics {
    fn drop(&mut self) {
        // SAFETY: it came from there. Jobs that may panic hold on to the record,
        // and whoever else does launches nothing any more.
        unsafe { self.driver.free_host(self.address) };
    }
}

const RECORD_BYTES: u64 = PanicRecord::SIZE.next_multiple_of(8) as u64;
const POINTER_BYTES: u64 = 8;

/// How long a thread of a GPU may take for a record before it is given up.
const LONGEST_WRITE: Duration = Duration::from_secs(1);

#[cfg(test)]
pub(crate) mod tests;
