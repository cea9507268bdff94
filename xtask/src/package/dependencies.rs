//! What the workspace may depend on: under which terms, from where and in which versions, as `deny.toml` says.
//!
//! Owns who judges that: `cargo deny`, or `licences` where it is not installed. Advisories are not asked for: their
//! database is downloaded, and changes when no commit does.

use std::path::Path;
use std::process::Command;

use super::licences;
use crate::error::Error;
use crate::runner::{self, describe};
use crate::workspace::cargo;

/// What `cargo deny` needs no database for.
const PARTS: [&str; 3] = ["licenses", "bans", "sources"];

/// Whether the dependencies of the workspace in `clone` are as its `deny.toml` says. Prints what is not.
///
/// # Errors
/// If Cargo cannot be run, or `deny.toml` not be read.
pub(super) fn check(clone: &Path, home: &Path) -> Result<bool, Error> {
    if deny(clone, home).arg("--version").output().is_ok_and(|output| output.status.success()) {
        let mut check = deny(clone, home);
        check.args(["--locked", "--all-features", "check"]).args(PARTS);
        println!("=== dependencies: {}", describe(&check));
        return Ok(runner::stream(&mut check, |_| ())?.success());
    }
    println!(
        "of deny.toml, only the licences are checked: cargo-deny is not here (cargo install cargo-deny --locked)"
    );
    let faults = licences::faults(clone, home)?;
    faults.iter().for_each(|fault| println!("{fault}"));
    Ok(faults.is_empty())
}

fn deny(clone: &Path, home: &Path) -> Command {
    let mut deny = cargo();
    deny.arg("deny").current_dir(clone).env("CARGO_HOME", home);
    deny
}
