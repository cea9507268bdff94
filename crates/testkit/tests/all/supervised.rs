//! Searches whose process dies name the seed, and say how to try it again.
#![cfg(unix)]

use std::process::{Command, Output};

fn search(program: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program).args(arguments).output();
    let Output { status, stdout, .. } = output.expect("Cargo has built it");
    (status.code(), String::from_utf8(stdout).expect("text"))
}

#[test]
fn a_check_that_dies_names_the_seed() {
    let check = env!("CARGO_BIN_EXE_check");
    let arguments = ["--seed", "100", "--programs", "40", "--nodes", "1..3", "--run-every", "0"];
    let (code, said) = search(check, &[&arguments[..], &["--die-at", "117"]].concat());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the search died (signal: 6 (SIGABRT)"), "{said}");
    assert!(said.contains("; alone, it dies at 117\n"), "{said}");
    let replay = "replay: cargo xtask check --seed 117 --programs 1 --run-every 0 --nodes 1..3 \
                  --devices 1..4 --die-at 117";
    assert!(said.contains(replay), "{said}");
    let (code, said) = search(check, &[&arguments[..], &["--die-at", "1000"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("died"), "{said}");
}

#[test]
fn a_simulation_that_dies_names_the_seed() {
    let sim = env!("CARGO_BIN_EXE_sim");
    let arguments = ["--seed", "100", "--programs", "40", "--die-at", "117"];
    let (code, said) = search(sim, &arguments);
    assert_eq!(code, Some(1), "{said}");
    let death = "the search died (signal: 6 (SIGABRT) (core dumped)) at seed 117; alone, it dies at \
                 117\nreplay: cargo xtask sim --seed 117\n";
    assert!(said.replace("(SIGABRT)) at", "(SIGABRT) (core dumped)) at").contains(death), "{said}");
    let (code, said) = search(sim, &["--seed", "100", "--programs", "10"]);
    assert_eq!(code, Some(0), "{said}");
}
