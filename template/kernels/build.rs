//! Compiles the kernels for GPUs as well.

fn main() {
    celerity_kernel_build::build();
}
