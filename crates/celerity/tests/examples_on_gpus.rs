//! Examples are one text for CPUs and GPUs: what they launch are compiled kernels, not closures, which
//! only CPUs can run.

use std::fs;
use std::path::{Path, PathBuf};

/// Compares a compiled kernel with a closure, on a CPU.
const WITH_A_CLOSURE: [&str; 1] = ["reduce_cost"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn no_example_has_a_kernel_that_only_cpus_can_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let (mut launches, mut closures) = (0, Vec::new());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        launches += text.matches(".launch").count();
        let example = path.strip_prefix(&folder).unwrap();
        if text.contains(".parallel_for")
            && !WITH_A_CLOSURE.iter().any(|it| example.starts_with(it))
        {
            closures.push(example.to_owned());
        }
    }
    assert!(launches > 40, "{launches} launches: are these the examples?");
    assert!(closures.is_empty(), "GPUs cannot run kernels of {closures:?}: write `#[kernel]`s");
}
