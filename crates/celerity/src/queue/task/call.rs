//! Calls on devices as a program spells them.

use std::marker::PhantomData;
use std::sync::Arc;

use celerity_executor::Payload;
use celerity_tdag::{TaskId, Work};

use super::TaskBuilder;
use crate::access::{CallAccesses, Lowered, Lowering};
use crate::device_call::DeviceCall;
use crate::error::Result;
use crate::host::HostOutcome;
use crate::launch::CallKernel;
use crate::queue::LoweredTask;
use crate::range::{IntoRange, check_dimensions};

impl TaskBuilder<'_> {
    /// Submits a function that is called once for each chunk of the index space `range`, on the
    /// device that owns the chunk, and puts work on the device's stream: calls of cuBLAS or cuFFT,
    /// or kernels of any origin, join the graph like kernels of Celerity's.
    ///
    /// The function gets the chunk with its stream, and for each of `accesses`, in order, where its
    /// part lies in the device's memory ([`DeviceView`], [`DeviceViewMut`]). What it reads is
    /// current when the stream gets there. The task has ended when all is done that the stream
    /// held when the function returned; nobody waits for it on the host. The function must own what
    /// it captures, and is called from several threads at a time: one per GPU.
    ///
    /// On devices that are made of CPU threads there is no stream, and the views are the host's
    /// ([`DeviceView::on_host`]). The function runs on a thread of the pool then, on which `rayon`
    /// calls spread, and its work is done when it returns.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let doubled = Config::default().nodes(2).run(|queue| {
    ///     let x = queue.buffer_from(8, (0..8).collect::<Vec<i32>>())?;
    ///     let task = queue.task("double");
    ///     task.device_call(8, x.read_write(one_to_one()), |call, mut x| {
    ///         if let Ok(stream) = call.stream() {
    ///             // `stream.stream` is the `CUstream`, and the part begins at `x.as_mut_ptr()`.
    ///             // Of a matrix, `x.strides()` says how far rows are from each other.
    ///             return Err(format!("no kernel for GPU {}", stream.ordinal).into());
    ///         }
    ///         for x in x.on_host_mut()?.as_relative_mut_slice() {
    ///             *x *= 2;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(queue.fence(&x)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(doubled, [0, 2, 4, 6, 8, 10, 12, 14]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # On GPUs
    ///
    /// The function runs on the thread that starts all work of its GPU, with the stream's context,
    /// the GPU's primary one, current. It should put work on the stream and return, and not wait
    /// for it: nothing else is started meanwhile. A GPU has several streams, and which one a call
    /// gets is not specified. So what belongs to a stream, such as a handle of a library, is kept
    /// by [`ordinal`](crate::DeviceStream::ordinal) and [`stream`](crate::DeviceStream::stream), or
    /// set to the stream in each call.
    ///
    /// # Safety of what is called
    ///
    /// The function is given addresses, and to call a library with them is `unsafe` there. Who
    /// does so promises that
    /// * all work goes to the call's stream, or is ordered before its end by events, and is put
    ///   there before the function ends, whether by returning or by a panic;
    /// * it reads and writes nothing of buffers but the views' [boxes](crate::DeviceView::boxes), and
    ///   writes only those of [`DeviceViewMut`];
    /// * neither addresses nor the stream are used after the run;
    /// * what else the work touches lives until it has ended.
    ///
    /// A view does not leave its call:
    ///
    /// ```compile_fail
    /// # use celerity::prelude::*;
    /// # use std::sync::Mutex;
    /// # celerity::run(|queue| {
    /// let x = queue.buffer_from(4, vec![1; 4])?;
    /// let kept = Mutex::new(Vec::new());
    /// queue.task("keep").device_call(4, x.read(one_to_one()), move |_, x| {
    ///     kept.lock().unwrap().push(x);
    /// })?;
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`parallel_for`](Self::parallel_for). An error that the function returns ends the run on
    /// all nodes with [`RunError::TaskFailed`](crate::RunError::TaskFailed), and a panic with
    /// [`RunError::TaskPanicked`](crate::RunError::TaskPanicked): both name task, source line,
    /// node, device and chunk. An empty index space is no task.
    ///
    /// [`DeviceView`]: crate::DeviceView
    /// [`DeviceView::on_host`]: crate::DeviceView::on_host
    /// [`DeviceViewMut`]: crate::DeviceViewMut
    pub fn device_call<A, F, R, const K: usize>(
        self,
        range: impl IntoRange<K>,
        accesses: A,
        function: F,
    ) -> Result<TaskId>
    where
        A: CallAccesses<K> + 'static,
        F: for<'a> Fn(DeviceCall<K>, A::Views<'a>) -> R + Send + Sync + 'static,
        R: HostOutcome + 'static,
    {
        const { check_dimensions(K) };
        let range = range.into_range();
        let offset = self.beginning(range)?;
        let space = self.index_space(offset, range)?;
        let mut lowering = Lowering::new(&self.origin).over(space);
        accesses.lower(&mut lowering)?;
        let Lowered { accesses, settling, .. } = lowering.finish();
        let kernel: CallKernel<A, F, K> =
            CallKernel { function, global: space.extent, accesses: PhantomData };
        let payload = Payload::Kernel(Arc::new(kernel));
        let work = Work::Device(space);
        LoweredTask { origin: self.origin, work, accesses, settling }.submit(payload)
    }
}
