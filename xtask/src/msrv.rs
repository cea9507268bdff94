//! `cargo xtask msrv`: what is published compiles with the oldest Rust that its manifests promise.

use crate::error::Error;
use crate::package::{FEATURES, published};
use crate::runner;
use crate::skip;
use crate::toolchain;
use crate::workspace::Workspace;

/// How the check is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where that Rust cannot be installed, print `SKIPPED msrv: reason` and succeed
    #[arg(long)]
    or_skip: bool,
}

/// Compiles all published crates with the Rust that their manifests name, which is installed if it is
/// not here. Returns whether they compile.
///
/// # Errors
/// If Cargo cannot be run, or published crates promise different versions, or none.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let version = promised(workspace)?;
    if let Err(reason) = toolchain::provide(version) {
        let reason = format!("Rust {version} cannot be installed: {reason}");
        println!("{}", skip::line("msrv", options.or_skip, &reason));
        return Ok(options.or_skip);
    }
    let mut check = toolchain::of(version, "cargo");
    check.current_dir(&workspace.root).args(["check", "--locked", "--features", FEATURES]);
    check.arg("--target-dir").arg(workspace.target_dir.join("msrv"));
    for package in published(workspace) {
        check.args(["--package", &package.name]);
    }
    let compiles = runner::stream(&mut check, |_| ())?.success();
    if compiles {
        println!("what is published compiles with Rust {version}");
    }
    Ok(compiles)
}

/// The version that all published crates promise.
fn promised(workspace: &Workspace) -> Result<&str, Error> {
    let mut versions: Vec<_> =
        published(workspace).map(|package| package.rust_version.as_deref()).collect();
    versions.sort_unstable();
    versions.dedup();
    match versions[..] {
        [Some(version)] => Ok(version),
        _ => {
            let what = format!("published crates promise one `rust-version`, not {versions:?}");
            Err(Error::Metadata { what })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::promised;
    use crate::workspace::Workspace;

    #[test]
    fn all_crates_promise_the_same() {
        let mut workspace = Workspace::load().unwrap();
        assert!(promised(&workspace).unwrap().starts_with("1."));
        let one = workspace.packages.iter_mut().find(|package| package.is_published).unwrap();
        one.rust_version = Some("1.0".to_owned());
        let error = promised(&workspace).unwrap_err();
        assert!(error.to_string().contains("\"1.0\""), "{error}");
    }
}
