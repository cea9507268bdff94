#![doc = include_str!("../README.md")]

mod address;
mod backend;
mod checked;
mod code;
#[cfg(test)]
mod coded;
mod collectives;
mod devices;
mod driver;
#[cfg(feature = "cuda")]
mod dynamic;
mod gpus;
mod kernel;
mod memory;
mod nccl;
#[cfg(feature = "cuda")]
mod nvrtc;
mod ordered;
mod panics;
mod transfer;
mod windows;

pub use backend::{CudaBackend, CudaConfig};
pub use code::{CodeError, CompileError, Compiler};
pub use devices::{CudaDevices, DealError};
#[cfg(feature = "cuda")]
pub use driver::NvidiaDriver;
pub use driver::{
    AddressSpace, Driver, DriverError, Event, EventKind, Failure, FakeCounts, FakeDriver,
    FakeLaunch, FakeNccl, Function, FunctionKind, Gpu, GpuInfo, Handle, HostedKernels, Image,
    LaunchSize, MemoryHandle, ModuleHandle, ModuleKind, Pages, PagesKind, Stream, StreamKind,
    Transfer, TransferEnd,
};
pub use gpus::Gpus;
pub use kernel::{CudaKernel, HEADER};
#[cfg(feature = "cuda")]
pub use nccl::load_nccl;
pub use nccl::{FindNccl, Joined, JoiningId, Nccl, NcclCall};
#[cfg(feature = "cuda")]
pub use nvrtc::{LazyNvrtc, Nvrtc, NvrtcConfig};
pub use windows::WindowConfig;
