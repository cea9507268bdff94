//! The program as a shell sees it.

use std::process::{Command, Output};

use crate::scratch::Scratch;

fn celerity(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_celerity"));
    command.args(arguments).current_dir(scratch.path()).output().unwrap()
}

#[test]
fn a_project_is_made_once() {
    let scratch = Scratch::new("command");
    let first = celerity(&scratch, &["new", "waves"]);
    let said = String::from_utf8_lossy(&first.stdout).into_owned();
    assert_eq!(said, "made the project waves:\n  cd waves\n  cargo run --release\n");
    assert!(first.status.success() && scratch.path().join("waves/Cargo.toml").is_file());
    let second = celerity(&scratch, &["new", "waves"]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(said, "error: waves exists already: choose another name, or remove it\n");
}

#[test]
fn wrong_arguments_print_the_usage() {
    let scratch = Scratch::new("usage");
    let output = celerity(&scratch, &["old", "waves"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("error: there is no command old") && said.contains("Usage:"),
        "{said}"
    );
    let help = celerity(&scratch, &["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Usage:"));
}
