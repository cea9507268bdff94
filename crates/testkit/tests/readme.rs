//! What the workspace's README quotes is there. Its programs are doc tests.

const README: &str = include_str!("../../../README.md");
const KERNELS: &str = include_str!("../../celerity/kernels/src/linear.rs");

#[test]
fn the_quoted_kernel_is_in_the_crate_of_kernels() {
    let (_, from) = README.split_once("```rs\n").expect("the README quotes a kernel");
    let (quoted, _) = from.split_once("```").unwrap();
    assert!(KERNELS.contains(quoted), "not in linear.rs:\n{quoted}");
}
