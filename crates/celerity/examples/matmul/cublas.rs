//! Products by cuBLAS: calls on the devices, in the types of `cudarc`. Knows nothing of what is
//! measured.
#![allow(unsafe_code)]

#[cfg(not(feature = "cublas"))]
pub(crate) use absent::Cublas;
#[cfg(feature = "cublas")]
pub(crate) use linked::Cublas;

#[cfg(not(feature = "cublas"))]
mod absent {
    use celerity::{Result, TaskBuilder, prelude::*};

    /// Says that there is none.
    #[derive(Debug, Default)]
    pub(crate) struct Cublas(());

    impl Cublas {
        pub(crate) fn check() -> Result<()> {
            let what = "this program was built without cuBLAS; build it with feature `cublas`: \
                        cargo run --release --features cublas --example matmul -- --cublas";
            Err(celerity::Error::user(what))
        }

        #[expect(clippy::unused_self, reason = "with feature `cublas` it is used")]
        pub(crate) fn product(
            &self,
            _: TaskBuilder<'_>,
            _: &Buffer<f32, 2>,
            _: &Buffer<f32, 2>,
            _: &Buffer<f32, 2>,
        ) -> Result<()> {
            Self::check()
        }
    }
}

#[cfg(feature = "cublas")]
mod linked {
    use std::collections::HashMap;
    use std::error::Error;
    use std::sync::{Arc, Mutex, PoisonError};

    use celerity::cuda::cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys};
    use celerity::cuda::cudarc::driver::CudaStream;
    use celerity::{DeviceCall, DeviceView, DeviceViewMut, Result, TaskBuilder, prelude::*};

    type Outcome<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

    /// What a program needs to call cuBLAS, on one node.
    #[derive(Debug, Default)]
    pub(crate) struct Cublas {
        handles: Arc<Handles>,
    }

    impl Cublas {
        /// Whether there is a cuBLAS.
        pub(crate) fn check() -> Result<()> {
            // SAFETY: to load the library runs its initialisers, which is what it is made for.
            if unsafe { sys::is_culib_present() } {
                return Ok(());
            }
            let what = "`libcublas.so` cannot be loaded: install CUDA's cuBLAS, and add its folder \
                        to LD_LIBRARY_PATH";
            Err(celerity::Error::user(what))
        }

        /// `next = a x`, by this task: as for the kernels, rows of `next` need rows of `a`, and columns the same of `x`.
        pub(crate) fn product(
            &self,
            task: TaskBuilder<'_>,
            next: &Buffer<f32, 2>,
            a: &Buffer<f32, 2>,
            x: &Buffer<f32, 2>,
        ) -> Result<()> {
            let handles = self.handles.clone();
            let accesses = (next.write(one_to_one()), a.read(slice(1)), x.read(slice(0)));
            task.device_call(next.range(), accesses, move |call, views| {
                handles.multiply(call, views)
            })?;
            Ok(())
        }
    }

    /// cuBLAS handles, each for one stream: it has memory of its own that work on one stream uses
    /// at a time.
    #[derive(Debug, Default)]
    struct Handles(Mutex<HashMap<usize, Handle>>);

    #[derive(Debug)]
    struct Handle {
        stream: Arc<CudaStream>,
        blas: CudaBlas,
    }

    impl Handles {
        fn multiply(
            &self,
            call: DeviceCall<2>,
            (mut next, a, x): (
                DeviceViewMut<'_, f32, 2>,
                DeviceView<'_, f32, 2>,
                DeviceView<'_, f32, 2>,
            ),
        ) -> Outcome<()> {
            let key = call.stream()?.stream.addr();
            let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Handle { stream, blas } = match handles.entry(key) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => {
                    // SAFETY: the handle is used in calls alone, which end before the run does.
                    let stream = unsafe { call.cudarc()? };
                    let blas = CudaBlas::new(stream.clone())?;
                    new.insert(Handle { stream, blas })
                }
            };
            let [rows, columns] = next.subrange().range.map(i32::try_from);
            // cuBLAS goes by columns, and takes ours for the transposed: nextᵀ = xᵀ aᵀ.
            let config = GemmConfig {
                transa: sys::cublasOperation_t::CUBLAS_OP_N,
                transb: sys::cublasOperation_t::CUBLAS_OP_N,
                m: columns?,
                n: rows?,
                k: i32::try_from(a.subrange().range[1])?,
                alpha: 1.0,
                lda: i32::try_from(x.strides()[0])?,
                ldb: i32::try_from(a.strides()[0])?,
                beta: 0.0,
                ldc: i32::try_from(next.strides()[0])?,
            };
            // SAFETY: all three are of this call, and used on its stream; sizes and leading
            // dimensions are those of the views, so nothing between their rows is used.
            unsafe {
                let (a, x) = (a.cudarc(stream), x.cudarc(stream));
                let mut next = next.cudarc_mut(stream);
                blas.gemm(config, &x.view(), &a.view(), &mut next.view_mut())?;
            }
            Ok(())
        }
    }

    impl Drop for Handles {
        /// Each is given back in the context that it was made in.
        fn drop(&mut self) {
            let handles = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
            for (_, Handle { stream, blas }) in handles.drain() {
                // If it fails, so has the GPU.
                let _ = stream.context().bind_to_thread();
                drop(blas);
            }
        }
    }
}
