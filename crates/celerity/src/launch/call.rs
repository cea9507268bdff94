//! Calls on devices as the executor makes them: with the views of a chunk, on a GPU's own thread or
//! on one of the pool. Knows nothing of queues and buffers.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::panic::resume_unwind;

use celerity_executor::contain::caught;
use celerity_executor::{BoundMemory, DeviceKernel, DeviceStream, EnqueuedCall, TaskError};
use celerity_regions::Box3;

use crate::access::CallAccesses;
use crate::backtrace::__rust_begin_short_backtrace;
use crate::device_call::{DeviceCall, DeviceCallFailed};
use crate::host::HostOutcome;

/// A function that is called once per chunk, beside what it was submitted over.
pub(crate) struct CallKernel<A, F, const K: usize> {
    pub(crate) function: F,
    /// The whole index space.
    pub(crate) global: Box3,
    pub(crate) accesses: PhantomData<fn() -> A>,
}

impl<A, F, R, const K: usize> CallKernel<A, F, K>
where
    A: CallAccesses<K>,
    F: for<'a> Fn(DeviceCall<K>, A::Views<'a>) -> R,
    R: HostOutcome,
{
    /// # Safety
    /// As [`DeviceKernel::run`]; with a stream, as [`EnqueuedCall::enqueue`].
    unsafe fn call(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        stream: Option<DeviceStream>,
    ) -> Result<(), TaskError> {
        let call = DeviceCall::new(chunk, &self.global, stream);
        let outcome = caught(|| {
            __rust_begin_short_backtrace(|| {
                // SAFETY: passed on; without a stream, the device is made of CPU threads.
                let views = unsafe { A::views(&mut memory.iter(), stream.is_none()) };
                (self.function)(call, views).into_result()
            })
        });
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(TaskError::new(DeviceCallFailed { chunk: *chunk, error })),
            Err(said) => resume_unwind(Box::new(format!("chunk {chunk}: {said}"))),
        }
    }
}

impl<A, F, R, const K: usize> DeviceKernel for CallKernel<A, F, K>
where
    A: CallAccesses<K> + 'static,
    F: for<'a> Fn(DeviceCall<K>, A::Views<'a>) -> R + Send + Sync + 'static,
    R: HostOutcome + 'static,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: passed on.
        if let Err(error) = unsafe { self.try_run(chunk, memory) } {
            panic!("{error}");
        }
    }

    unsafe fn try_run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) -> Result<(), TaskError> {
        // SAFETY: passed on.
        unsafe { self.call(chunk, memory, None) }
    }

    fn device_call(&self) -> Option<&dyn EnqueuedCall> {
        Some(self)
    }
}

// SAFETY: the function is safe code, or vouches for what it does by `unsafe` of its own, as
// `TaskBuilder::device_call` asks; its views are those of the accesses that it is submitted with,
// since it is made there alone.
unsafe impl<A, F, R, const K: usize> EnqueuedCall for CallKernel<A, F, K>
where
    A: CallAccesses<K> + 'static,
    F: for<'a> Fn(DeviceCall<K>, A::Views<'a>) -> R + Send + Sync + 'static,
    R: HostOutcome + 'static,
{
    unsafe fn enqueue(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        stream: DeviceStream,
    ) -> Result<(), TaskError> {
        // SAFETY: passed on.
        unsafe { self.call(chunk, memory, Some(stream)) }
    }
}
