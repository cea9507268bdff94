//! The corpus's graphs as golden text files under `golden/`: a change of any
//! schedule shows in review. After a wanted change, bless the new graphs with
//! `CELERITY_BLESS=1 cargo test -p celerity-testkit --test golden`.

use std::fs;
use std::path::PathBuf;

use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::picture::{GraphLayer, picture};

/// What is shown of each program: few enough lines that somebody reads them.
const VIEWS: [(&str, GraphLayer, usize, usize, usize); 4] = [
    ("tdag", GraphLayer::Tasks, 1, 1, 0),
    ("cdag-2x1-node1", GraphLayer::Commands, 2, 1, 1),
    ("idag-1x2-node0", GraphLayer::Instructions, 1, 2, 0),
    ("idag-2x2-node1", GraphLayer::Instructions, 2, 2, 1),
];

#[test]
fn the_corpus_has_the_graphs_that_were_blessed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let bless = std::env::var_os("CELERITY_BLESS").is_some();
    let mut changed = Vec::new();
    for (program_name, program) in corpus::all(2) {
        for (view, layer, nodes, devices, node) in VIEWS {
            let configuration = Configuration::new(nodes, devices);
            let text = picture(&program, &configuration, layer, node).unwrap().to_text();
            let file = folder.join(format!("{program_name}-{view}.txt"));
            if bless {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, &text).unwrap();
            } else if fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                changed.push((file, text));
            }
        }
    }
    assert!(changed.is_empty(), "{}", describe(&changed));
}

/// The files that differ, and the first of them as it is now.
fn describe(changed: &[(PathBuf, String)]) -> String {
    let names: Vec<_> = changed.iter().map(|(file, _)| file.display().to_string()).collect();
    let first = changed.first().map_or("", |(_, text)| text);
    format!(
        "{} graphs differ from the blessed ones; look at each, then set CELERITY_BLESS=1:\n{}\n\
         the first is now\n{first}",
        changed.len(),
        names.join("\n")
    )
}
