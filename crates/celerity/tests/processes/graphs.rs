//! The graphs of processes: each writes a file of its own, with its node's. If one of them
//! cannot, none of them runs.

use std::fs;
use std::path::PathBuf;

use celerity::{Error, RunError};

use crate::program::{STEPS, calm, steps};

/// Each process looks at its file when its run has returned.
pub(crate) fn run() {
    let path = path();
    let outcome = celerity::run(|queue| {
        steps(queue, STEPS, calm)?;
        Ok((queue.node(), queue.nodes()))
    });
    let (node, nodes) = outcome.unwrap_or_else(|error| panic!("{error}"));
    let own = match nodes {
        1 => path.clone(),
        _ => path.with_extension(format!("N{node}.txt")),
    };
    let text = fs::read_to_string(&own).unwrap_or_else(|error| panic!("{own:?}: {error}"));
    let heading = |line: &&str| line.ends_with(':');
    let headings: Vec<_> = text.lines().filter(heading).collect();
    let expected = [
        "task graph:".to_owned(),
        format!("command graph of N{node}:"),
        format!("instruction graph of N{node}:"),
    ];
    assert_eq!(headings, expected);
    assert!(text.contains(" mix ") && text.contains("T0 epoch init"), "{text}");
    assert_eq!(path.exists(), nodes == 1, "no process of several writes to the path itself");
    if node == 0 {
        crate::passed();
    }
}

/// Where the file of node 1 should be, there is a folder: all processes end with its error.
pub(crate) fn unwritable() {
    let path = path();
    fs::create_dir_all(path.with_extension("N1.txt")).expect("a folder");
    let outcome = celerity::run(|queue| steps(queue, STEPS, calm));
    let Err(Error::Run(error)) = outcome else { panic!("there is a run") };
    assert!(matches!(*error, RunError::NotStarted { .. }), "{error}");
    println!("{error}");
}

fn path() -> PathBuf {
    PathBuf::from(std::env::var_os("CELERITY_PRINT_GRAPHS").expect("a path"))
}
