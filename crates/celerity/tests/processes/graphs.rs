//! The graphs of processes: each writes a file of its own, with its node's.

use std::fs;
use std::path::PathBuf;

use crate::program::{STEPS, calm, steps};

/// Each process looks at its file when its run has returned.
pub(crate) fn run() {
    let path = PathBuf::from(std::env::var_os("CELERITY_PRINT_GRAPHS").expect("a path"));
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
