//! What the workspace's README quotes is there: the project to begin with. Its other programs are
//! doc tests.

const README: &str = include_str!("../../../README.md");
const KERNELS: &str = include_str!("../../../template/kernels/src/lib.rs");
const PROGRAM: &str = include_str!("../../../template/src/main.rs");

#[test]
fn the_quoted_code_is_in_the_project_to_begin_with() {
    let quoted: Vec<_> = README.split("```rs\n").skip(1).map(until_the_end).collect();
    assert_eq!(quoted.len(), 2, "the README quotes a kernel and a program");
    for (quoted, whole) in quoted.into_iter().zip([KERNELS, PROGRAM]) {
        assert!(whole.contains(quoted), "this is not in the project:\n{quoted}");
    }
}

fn until_the_end(block: &str) -> &str {
    block.split_once("```").expect("a block of code ends").0
}
