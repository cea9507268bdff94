//! `cargo xtask book`: the pages of the repository as one book, built by mdBook, with every link followed.
//!
//! The pages stay where they are: `docs/SUMMARY.md` lists them, and they are read on any forge as they lie.
//! Owns where mdBook comes from and what a built book must keep; [`staging`] lays pages out for mdBook,
//! [`rendered`] follows the links of what it writes, [`neighbours`] tries the programs in other languages.

mod neighbours;
mod rendered;
mod staging;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::runner::{self, describe};
use crate::skip;
use crate::workspace::{Workspace, cargo};

/// The version of mdBook, and its features beside none: what serves and watches is left out.
const VERSION: &str = "0.4.52";
const FEATURES: &str = "search";

/// How the book is built.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where mdBook is not here and cannot be installed, print `SKIPPED book: reason` and succeed
    #[arg(long)]
    or_skip: bool,
}

/// Builds the book into `book/html` in the target directory. Returns whether it could be built and each of
/// its links arrives.
///
/// # Errors
/// If a page cannot be read, a file not be written, or a program not be started.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let folder = workspace.target_dir.join("book");
    let staged = staging::stage(&workspace.root, &folder)?;
    let mdbook = match provide(workspace)? {
        Ok(mdbook) => mdbook,
        Err(reason) => {
            println!("{}", skip::line("book", options.or_skip, &reason));
            return Ok(options.or_skip);
        }
    };
    let mut build = Command::new(mdbook);
    build.arg("build").arg(&folder);
    if !runner::stream(&mut build, |_| ())?.success() {
        return Ok(false);
    }
    let html = folder.join("html");
    let broken = rendered::broken_links(&html)?;
    for link in &broken {
        println!("{link}");
    }
    let failures = neighbours::try_all(&workspace.root, &folder);
    for failure in &failures {
        println!("FAILED {failure}");
    }
    println!("{staged} pages, {} broken links, in {}", broken.len(), html.display());
    Ok(broken.is_empty() && failures.is_empty())
}

/// mdBook, installed if need be; or why it cannot be had.
fn provide(workspace: &Workspace) -> Result<Result<PathBuf, String>, Error> {
    let tools = workspace.target_dir.join("tools");
    let mdbook = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if is_wanted(&mdbook) {
        return Ok(Ok(mdbook));
    }
    let mut install = cargo();
    install.args(["install", "--locked", "--force", "mdbook", "--version", VERSION]);
    install.args(["--no-default-features", "--features", FEATURES, "--root"]).arg(&tools);
    // Not optimised: a book of ours is built in seconds, and mdBook itself takes minutes.
    install.arg("--debug");
    // Beside the workspace's own units, which then stay as they are.
    install.env("CARGO_TARGET_DIR", tools.join("build"));
    println!("=== {}", describe(&install));
    let installed = runner::stream(&mut install, |_| ())?.success();
    // A gigabyte that nobody needs again.
    let _ = fs::remove_dir_all(tools.join("build"));
    let failed = || format!("mdBook {VERSION} is not here, and `{}` failed", describe(&install));
    Ok(if installed && is_wanted(&mdbook) { Ok(mdbook) } else { Err(failed()) })
}

/// Whether this is mdBook in the wanted version.
fn is_wanted(mdbook: &Path) -> bool {
    let said = Command::new(mdbook).arg("--version").output();
    said.is_ok_and(|said| {
        String::from_utf8_lossy(&said.stdout).trim() == format!("mdbook v{VERSION}")
    })
}
