//! Cluster files: those that are committed are complete, and gaps and mistakes are said with their line.

use std::path::{Path, PathBuf};

use celerity_cpd::{Movement, Pattern};
use celerity_predict::ClusterModel;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clusters")
}

#[test]
fn committed_files_are_complete() {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let read =
        files.map(|path| ClusterModel::read(&path).unwrap_or_else(|error| panic!("{error}")));
    assert!(read.count() >= 2);
}

/// By its file a cluster weighs as its simulation counts: an operation has few rounds, messages are many on many nodes,
/// and share the links of their hosts.
#[test]
fn collective_operations_are_weighed_by_the_clusters_constants() {
    let text = std::fs::read_to_string(folder().join("h200-infiniband.toml")).unwrap();
    let text = text.replace("per-host = 1", "per-host = 4");
    let model = ClusterModel::parse(&text, "c.toml".as_ref()).unwrap();
    let weights = model.weights(1024);
    let network = model.network;
    assert_eq!(weights.messages.once, network.between_hosts.latency_ns);
    assert_eq!(weights.messages.step, network.message_ns);
    assert_eq!(weights.messages.byte as f64, 4.0 * network.between_hosts.byte_ps);
    assert_eq!(weights.to_string().parse(), Ok(weights));
    let gathered = |nodes: usize| {
        let (pattern, bytes) = (Pattern::AllGather, 32 << 20);
        let movement = Movement { pattern, nodes, from: nodes, to: nodes, bytes };
        let estimate = model.weights(nodes).estimate(&movement);
        let (rounds, sent) = (u64::from(nodes.ilog2()), bytes - bytes / nodes as u64);
        // Rounded otherwise.
        let simulated = network.collective(rounds, sent);
        assert!(estimate.collective.abs_diff(simulated) <= 1, "{simulated}: {estimate:?}");
        estimate.is_collective()
    };
    assert!(gathered(1024) && gathered(64));
    let (within, between) = (model.weights(4).messages, model.weights(5).messages);
    assert_eq!(within.byte as f64, network.same_host.byte_ps);
    assert!(between.byte as f64 == 4.0 * network.between_hosts.byte_ps);
}

fn error(from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(folder().join("free.toml")).unwrap();
    assert!(text.contains(from));
    let text = text.replacen(from, to, 1);
    ClusterModel::parse(&text, "c.toml".as_ref()).unwrap_err().to_string()
}

#[test]
fn gaps_and_mistakes_are_named_with_their_line() {
    let line = |needle: &str| {
        let text = std::fs::read_to_string(folder().join("free.toml")).unwrap();
        1 + text.lines().position(|line| line.contains(needle)).unwrap()
    };
    let gap = error("launch-ns = 0\n", "");
    assert!(
        gap.starts_with(&format!("c.toml:{}: missing field `launch-ns`", line("[device]"))),
        "{gap}"
    );
    let unknown = error("round-ns", "rounds-ns");
    assert!(
        unknown.starts_with(&format!("c.toml:{}: unknown field", line("round-ns"))),
        "{unknown}"
    );
    let text = std::fs::read_to_string(folder().join("free.toml")).unwrap();
    let (before, _) = text.split_once("[network]").unwrap();
    let table = ClusterModel::parse(before, "c.toml".as_ref()).unwrap_err().to_string();
    assert!(table.starts_with("c.toml:1: missing field `network`"), "{table}");
    let below = error("launch-ns = 0", "launch-ns = -1");
    assert!(below.starts_with(&format!("c.toml:{}: ", line("launch-ns"))), "{below}");
    let text = error("eager-bytes = ", "eager-bytes = 'many' # ");
    assert!(text.starts_with(&format!("c.toml:{}: ", line("eager-bytes"))), "{text}");
    let word = error("processor = \"own\"", "processor = \"none\"");
    assert!(word.contains("unknown variant `none`"), "{word}");
    let hosts = error("per-host = 1", "per-host = 0");
    assert!(hosts.contains("`per-host` is 0, but a host has at least one node"), "{hosts}");
    let negative = error("collective-byte-ps = 0", "collective-byte-ps = -1");
    let expected =
        format!("c.toml:{}: `collective-byte-ps` is negative", line("collective-byte-ps"));
    assert!(negative.starts_with(&expected), "{negative}");
    let comment = "# collective-byte-ps is no rate of same-host\n[network]";
    let text = std::fs::read_to_string(folder().join("free.toml")).unwrap();
    let text = text.replace("[network]", comment).replace("byte-ps = 0\n", "byte-ps = nan\n");
    let said = ClusterModel::parse(&text, "c.toml".as_ref()).unwrap_err().to_string();
    let expected =
        format!("c.toml:{}: `collective-byte-ps` is negative", 1 + line("collective-byte-ps"));
    assert!(said.starts_with(&expected), "{said}");
    let broken = error("[nodes]", "[nodes");
    assert!(broken.starts_with(&format!("c.toml:{}: ", line("[nodes]"))), "{broken}");
}
