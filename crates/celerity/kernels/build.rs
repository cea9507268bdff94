//! Compiles the kernels for devices.

fn main() {
    celerity_kernel_build::build();
}
