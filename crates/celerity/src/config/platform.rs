//! What kernels run on, as a program asks for it.

/// What kernels run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// GPUs, if the program was built with feature `cuda` and there are some; CPUs
    /// otherwise.
    #[default]
    Auto,
    /// Threads of the host's CPUs, also where there are GPUs.
    Cpu,
    /// NVIDIA GPUs. The run does not start where there are none, or without feature `cuda`.
    Cuda,
}
