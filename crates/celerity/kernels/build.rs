//! Compiles the kernels for devices.

fn main() {
    let build = celerity_kernel_build::Build::new();
    match std::env::var_os("CARGO_FEATURE_FAST") {
        Some(_) => build.fast().run(),
        None => build.run(),
    }
}
