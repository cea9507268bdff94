//! A trace of all processes: one file in the end, in which each node has its tracks,
//! and arrows lead from one to the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::faults::{ENDED, survive};
use crate::program::{STEPS, calm, steps};

/// Node 0 looks at the file when its run has returned.
pub(crate) fn run() {
    let path = PathBuf::from(std::env::var_os("CELERITY_TRACE").expect("CELERITY_TRACE"));
    let outcome = celerity::run(|queue| {
        steps(queue, STEPS, calm)?;
        Ok((queue.node(), queue.nodes()))
    });
    let (node, nodes) = outcome.unwrap_or_else(|error| panic!("{error}"));
    if node == 0 {
        check(&path, nodes);
        crate::passed();
    }
}

/// The last node is killed, and what the others have recorded is one trace all the same.
pub(crate) fn killed() -> ExitCode {
    let path = PathBuf::from(std::env::var_os("CELERITY_TRACE").expect("CELERITY_TRACE"));
    if survive() == 0 {
        let text = whole(&path);
        for node in 0..2 {
            let mut of_node = text.lines().filter(|line| number(line, "pid") == Some(node));
            assert!(of_node.any(|line| line.contains("\"mix\"")), "N{node} has recorded no kernel");
        }
        println!("N0: one trace of all that live");
    }
    ExitCode::from(ENDED)
}

/// The trace at `path`, of which no parts are left.
fn whole(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("the trace");
    let whole = text.starts_with("[\n{") && text.ends_with("}\n]\n");
    assert!(whole, "no closed list of events: {path:?}");
    let folder = path.parent().expect("a file lies in a folder");
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let left = fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.file_name());
    let parts: Vec<_> = left.filter(|file| file.to_string_lossy().starts_with(&name)).collect();
    assert_eq!(parts.len(), 1, "parts are left: {parts:?}");
    text
}

fn check(path: &Path, nodes: usize) {
    let text = whole(path);
    for node in 0..nodes {
        let of_node = || text.lines().filter(|line| number(line, "pid") == Some(node));
        for part in ["\"mix\"", "\"send\"", "\"receive\"", "scheduler"] {
            assert!(of_node().any(|line| line.contains(part)), "N{node} has no {part}");
        }
    }
    let arrows: Vec<_> = text.lines().filter(|line| line.contains("\"cat\":\"message\"")).collect();
    let ends = |phase: &str| -> BTreeSet<(usize, usize)> {
        let of_phase = arrows.iter().filter(|line| line.contains(phase));
        of_phase.filter_map(|line| Some((number(line, "id")?, number(line, "pid")?))).collect()
    };
    let (from, to) = (ends("\"ph\":\"s\""), ends("\"ph\":\"f\""));
    let crossing = from
        .iter()
        .filter(|(id, from)| to.range((*id, 0)..=(*id, usize::MAX)).any(|(_, to)| to != from));
    let crossing = crossing.count();
    assert!(nodes == 1 || crossing >= STEPS, "{crossing} arrows between nodes");
}

/// The number behind a key.
fn number(line: &str, key: &str) -> Option<usize> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    let rest = rest.trim_start_matches('"');
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
