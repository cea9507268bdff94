//! `cargo xtask kernels`: compiles all kernels of the workspace for devices and checks them.
//!
//! Owns which packages have kernels and what is shown of them. How they are compiled is their build
//! scripts' business; what an entry point must look like is checked by their tests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;
use crate::messages;
use crate::runner::describe;
use crate::workspace::{Package, Workspace, cargo};

/// What the build scripts of packages with kernels depend on.
const COMPILER: &str = "celerity-kernel-build";

/// Compiled kernels of one package, for one architecture.
#[derive(Debug, PartialEq)]
struct Module {
    architecture: String,
    bytes: usize,
    entries: Vec<String>,
}

/// Compiles the kernels of every package that has some, prints their entry points, and runs the
/// package's tests, which compare each with what hosts write. Returns whether all is well.
///
/// # Errors
/// If Cargo cannot be run, or what it made cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, Error> {
    let with_kernels =
        |package: &&Package| package.dependencies.iter().any(|name| name == COMPILER);
    let mut well = true;
    for package in workspace.packages.iter().filter(with_kernels) {
        well &= check(&package.name)?;
    }
    Ok(well)
}

fn check(package: &str) -> Result<bool, Error> {
    let Some(out_dir) = compile(package)? else { return Ok(false) };
    let modules = modules(&out_dir)?;
    if modules.is_empty() {
        println!("{package}: nothing was compiled for devices; the warning above says why");
        return Ok(false);
    }
    for Module { architecture, bytes, entries } in &modules {
        println!("{package}, sm_{architecture}, {bytes} bytes: {}", entries.join(", "));
    }
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--package", package]);
    let status = tests.status();
    let status = status.map_err(|source| Error::Start { program: describe(&tests), source })?;
    Ok(status.success())
}

/// Builds a package, and says where its build script has put things; `None` if it does not build.
fn compile(package: &str) -> Result<Option<PathBuf>, Error> {
    let mut build = cargo();
    build.args(["build", "--package", package]);
    Ok(messages::of_build(&mut build)?.and_then(|text| out_dir(&text, package)))
}

/// Cargo's word for a build script's folder, from a run's messages.
fn out_dir(text: &str, package: &str) -> Option<PathBuf> {
    let of_script = |message: &Value| message["reason"] == "build-script-executed";
    let mut of_scripts = messages::read(text).filter(of_script);
    of_scripts
        .find(|message| message["package_id"].as_str().is_some_and(|id| names(id, package)))
        .and_then(|message| message["out_dir"].as_str().map(PathBuf::from))
}

/// Whether a package's id, `path+file:///folder/name#version` or `...#name@version`, is of `package`.
fn names(id: &str, package: &str) -> bool {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name == package,
        None => place.rsplit('/').next() == Some(package),
    }
}

/// The compiled modules in a folder, sorted.
fn modules(folder: &Path) -> Result<Vec<Module>, Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    let mut modules = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(architecture) =
            name.strip_prefix("kernels_").and_then(|name| name.strip_suffix(".ptx"))
        else {
            continue;
        };
        let text = fs::read_to_string(&path)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let (bytes, entries) = (text.len(), entries(&text));
        modules.push(Module { architecture: architecture.to_owned(), bytes, entries });
    }
    modules.sort_by(|a, b| a.architecture.cmp(&b.architecture));
    Ok(modules)
}

/// The names of a module's entry points, in order.
fn entries(ptx: &str) -> Vec<String> {
    let names = ptx.split(".entry ").skip(1).filter_map(|text| text.split_once('('));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{entries, names, out_dir};

    #[test]
    fn the_folder_of_the_right_build_script_is_found() {
        let messages = concat!(
            r#"{"reason":"build-script-executed","package_id":"x#libm@0.2.1","out_dir":"/a"}"#,
            "\n",
            r#"{"reason":"build-script-executed","package_id":"path+file:///w/k#waves@0.1.0","out_dir":"/b"}"#,
        );
        assert_eq!(out_dir(messages, "waves"), Some("/b".into()));
        assert_eq!(out_dir(messages, "tides"), None);
        assert!(names("path+file:///w/waves#0.1.0", "waves"));
    }

    #[test]
    fn entry_points_are_listed_in_order() {
        let ptx = ".func help()\n.visible .entry b(\n\t.param .u64 p\n)\n.visible .entry a()\n";
        assert_eq!(entries(ptx), ["b", "a"]);
    }
}
