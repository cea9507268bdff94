//! What front pages quote is there. Their other programs are doc tests.

const KERNELS: &str = include_str!("../../../../template/kernels/src/lib.rs");
const PROGRAM: &str = include_str!("../../../../template/src/main.rs");
const WAVE: &str = include_str!("../../../celerity/kernels/src/wave.rs");

#[test]
fn the_workspace_quotes_the_project_to_begin_with() {
    assert_quotes(include_str!("../../../../README.md"), &[KERNELS, PROGRAM]);
}

#[test]
fn the_facade_quotes_a_kernel_of_the_examples() {
    assert_quotes(include_str!("../../../celerity/README.md"), &[WAVE]);
}

/// The page's quotations are parts of these sources, in order.
fn assert_quotes(page: &str, sources: &[&str]) {
    let quoted: Vec<_> = page.split("```rs\n").skip(1).map(until_the_end).collect();
    assert_eq!(quoted.len(), sources.len(), "the page quotes so many");
    for (quoted, source) in quoted.into_iter().zip(sources) {
        assert!(source.contains(quoted), "this is not in the source:\n{quoted}");
    }
}

fn until_the_end(block: &str) -> &str {
    block.split_once("```").expect("a block of code ends").0
}
