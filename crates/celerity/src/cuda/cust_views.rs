//! Calls on GPUs in the types of `cust`: parts of buffers as [`DeviceSlice`]s. Owns nothing on the
//! GPU.
#![allow(unsafe_code)]

use cust::memory::{DeviceCopy, DevicePointer, DeviceSlice};
use cust::sys::CUstream;

use crate::access::{DeviceView, DeviceViewMut};
use crate::buffer::Element;
use crate::device_call::{DeviceCall, DeviceCallError};

impl<const K: usize> DeviceCall<K> {
    /// The stream in the raw type of `cust`. A `cust::stream::Stream` cannot be made of it, as
    /// `cust` has none that it does not own: launch by `cust::sys::cuLaunchKernel`, with
    /// `Function::to_raw`.
    ///
    /// # Errors
    /// [`DeviceCallError`], on a device that is made of CPU threads.
    pub fn cust_stream(&self) -> Result<CUstream, DeviceCallError> {
        Ok(self.stream()?.stream.cast())
    }
}

impl<T: Element + DeviceCopy, const D: usize> DeviceView<'_, T, D> {
    /// The part for `cust`: [`span`](Self::span) elements from [`as_ptr`](Self::as_ptr) on. They
    /// are the part itself if it [is contiguous](Self::is_contiguous); otherwise elements lie
    /// between its rows that are not to be touched.
    ///
    /// # Safety
    /// All work with the slice, which must not write, is put on the call's stream before the
    /// function ends. Methods of `cust` that name no stream use another one, and those that wait
    /// wait for it.
    #[must_use]
    pub unsafe fn cust(&self) -> DeviceSlice<T> {
        let pointer = DevicePointer::from_raw(self.as_ptr() as u64);
        // SAFETY: the part is live memory of the GPU until the call's work has ended.
        unsafe { DeviceSlice::from_raw_parts(pointer, self.span()) }
    }
}

impl<T: Element + DeviceCopy, const D: usize> DeviceViewMut<'_, T, D> {
    /// As [`DeviceView::cust`], to write.
    ///
    /// # Safety
    /// As [`DeviceView::cust`], but that it may write; and nobody uses the slice while the view is
    /// used otherwise.
    #[must_use]
    pub unsafe fn cust_mut(&mut self) -> DeviceSlice<T> {
        let pointer = DevicePointer::from_raw(self.as_mut_ptr() as u64);
        // SAFETY: the part is live memory of the GPU, and nobody else's, until the call's work has
        // ended.
        unsafe { DeviceSlice::from_raw_parts_mut(pointer, self.span()) }
    }
}
