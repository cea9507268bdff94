//! Calls on GPUs in the types of `cudarc`: the stream as a [`CudaStream`], parts of buffers as
//! [`CudaView`]s. Owns nothing on the GPU.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DriverError};

use crate::access::{DeviceView, DeviceViewMut};
use crate::buffer::Element;
use crate::device_call::{DeviceCall, DeviceCallError};

impl<const K: usize> DeviceCall<K> {
    /// The stream as `cudarc` knows it, for its libraries: `CudaBlas::new`, `CudaFft`, launches of
    /// its `CudaFunction`s. To make one takes about a microsecond.
    ///
    /// `cudarc` does not track, by events of its own, who uses the [views](DeviceView::cudarc) of
    /// this stream: the graph orders that.
    ///
    /// # Errors
    /// [`DeviceCallError`], on a device that is made of CPU threads, or if the driver refuses.
    ///
    /// # Safety
    /// As [`TaskBuilder::device_call`](crate::TaskBuilder::device_call) says of all that is put on
    /// the stream. What holds on to the stream, such as a handle of a library, does nothing with it
    /// after the run.
    pub unsafe fn cudarc(&self) -> Result<Arc<CudaStream>, DeviceCallError> {
        let stream = self.stream()?;
        let context = CudaContext::new(stream.ordinal).map_err(refused)?;
        if context.cu_ctx().cast() != stream.context {
            let what = "the context of the stream is not the GPU's primary one";
            return Err(DeviceCallError::Driver(what.to_owned()));
        }
        // SAFETY: what is used on several streams is ordered by the graph, as this function's
        // caller promises.
        unsafe { context.disable_event_tracking() };
        // SAFETY: the stream belongs to the context, as seen above, and lives as long as the run.
        Ok(unsafe { context.wrap_borrowed_stream(stream.stream.cast()) })
    }
}

/// A part of a buffer that `cudarc` takes for a slice of the GPU's memory; what
/// [`DeviceView::cudarc`] returns.
#[derive(Debug)]
pub struct CudarcView<'v, T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    part: PhantomData<&'v [T]>,
}

/// The same of a part that is written; what [`DeviceViewMut::cudarc_mut`] returns.
#[derive(Debug)]
pub struct CudarcViewMut<'v, T> {
    view: CudarcView<'v, T>,
    exclusive: PhantomData<&'v mut [T]>,
}

impl<'v, T> CudarcView<'v, T> {
    /// # Safety
    /// So many elements from `address` on are live memory of the stream's GPU during `'v`.
    unsafe fn new(stream: &Arc<CudaStream>, address: *const T, len: usize) -> Self {
        // SAFETY: passed on; `slice` is never dropped, which would free the memory.
        let slice = unsafe { stream.upgrade_device_ptr(address as u64, len) };
        Self { slice: ManuallyDrop::new(slice), part: PhantomData }
    }

    /// The elements as a view of `cudarc`'s, to read: what its launches and libraries take.
    #[must_use]
    pub fn view(&self) -> CudaView<'_, T> {
        self.slice.as_view()
    }
}

impl<T> CudarcViewMut<'_, T> {
    /// The elements, to read.
    #[must_use]
    pub fn view(&self) -> CudaView<'_, T> {
        self.view.view()
    }

    /// The elements, to write.
    #[must_use]
    pub fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.view.slice.as_view_mut()
    }
}

impl<T> Drop for CudarcView<'_, T> {
    /// Lets go of the stream, and leaves the memory to the runtime.
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        let _: u64 = slice.leak();
    }
}

impl<T: Element, const D: usize> DeviceView<'_, T, D> {
    /// The part for `cudarc`: [`span`](Self::span) elements from [`as_ptr`](Self::as_ptr) on. They
    /// are the part itself if it [is contiguous](Self::is_contiguous); otherwise elements lie
    /// between its rows that are not to be touched.
    ///
    /// # Safety
    /// `stream` is the [call's](DeviceCall::cudarc), and all work with the view is put on it. Of
    /// what lies between rows nothing is used.
    #[must_use]
    pub unsafe fn cudarc(&self, stream: &Arc<CudaStream>) -> CudarcView<'_, T> {
        // SAFETY: the part is live memory of the GPU until the call's work has ended.
        unsafe { CudarcView::new(stream, self.as_ptr(), self.span()) }
    }
}

impl<T: Element, const D: usize> DeviceViewMut<'_, T, D> {
    /// As [`DeviceView::cudarc`], to write.
    ///
    /// # Safety
    /// As [`DeviceView::cudarc`].
    #[must_use]
    pub unsafe fn cudarc_mut(&mut self, stream: &Arc<CudaStream>) -> CudarcViewMut<'_, T> {
        let (address, span) = (self.as_mut_ptr(), self.span());
        // SAFETY: the part is live memory of the GPU, and nobody else's, until the call's work has
        // ended.
        let view = unsafe { CudarcView::new(stream, address, span) };
        CudarcViewMut { view, exclusive: PhantomData }
    }
}

fn refused(error: DriverError) -> DeviceCallError {
    DeviceCallError::Driver(error.to_string())
}
