//! `cargo xtask baselines`: the programs by hand in CUDA C++ compile, as strict and as default ones.
//!
//! Owns where a compiler for them comes from. What they compute and how fast, a GPU tells: the bundle's
//! `compare.sh`, whose `compile.sh` makes programs of them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::files;
use crate::runner::{self, describe};
use crate::skip;
use crate::toolchain::complete;
use crate::workspace::Workspace;

/// Where the programs are, from the root.
const FOLDER: &str = "benches/baselines/cuda";

/// NVIDIA's compiler, and what it needs, as Python packages of one toolkit.
const PACKAGES: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
];

/// How long their installation may take: some 100 MB are fetched.
const PATIENCE: Duration = Duration::from_secs(300);

/// The two ways in which a program is measured, as in `compile.sh`.
const FORMS: [(&str, &[&str]); 2] = [("strict", &["-fmad=false", "-DSTRICT"]), ("default", &[])];

/// How the check is run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where nvcc is not here and cannot be installed, print `SKIPPED baselines: reason` and succeed
    #[arg(long)]
    or_skip: bool,
}

/// Compiles all programs, up to the assembly of devices. Returns whether they compile.
///
/// # Errors
/// If the folder cannot be read, or nvcc not be started.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, Error> {
    let nvcc = match provide(workspace) {
        Ok(nvcc) => nvcc,
        Err(reason) => {
            let reason = format!("nvcc is not here and cannot be installed: {reason}");
            println!("{}", skip::line("baselines", options.or_skip, &reason));
            return Ok(options.or_skip);
        }
    };
    let (mut compiled, mut failed) = (0, 0);
    for source in sources(&workspace.root)? {
        if needs_nccl(&source)? && !has_header(&nvcc, "nccl.h") {
            println!("{}: left out, as nccl.h is not here", source.display());
            continue;
        }
        for (form, flags) in FORMS {
            let mut compile = Command::new(&nvcc);
            // Not on disk: only whether it can be made counts.
            compile.args(["-std=c++17", "-arch=sm_90", "-ptx", "-o", "/dev/null"]);
            if runner::stream(compile.args(flags).arg(&source), |_| ())?.success() {
                compiled += 1;
            } else {
                println!("FAILED {}, {form}", source.display());
                failed += 1;
            }
        }
    }
    println!("{compiled} programs by hand compile, {failed} do not");
    Ok(failed == 0)
}

/// All programs, by name.
fn sources(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = root.join(FOLDER);
    let read = |source| Error::Read { path: folder.clone(), source };
    let mut sources = Vec::new();
    for entry in fs::read_dir(&folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            sources.push(path);
        }
    }
    sources.sort_unstable();
    Ok(sources)
}

/// Whether a program includes the header of NVIDIA's library of collective operations.
fn needs_nccl(source: &Path) -> Result<bool, Error> {
    Ok(files::read(source)?.contains("#include <nccl.h>"))
}

/// Whether the compiler finds a header.
fn has_header(nvcc: &Path, header: &str) -> bool {
    let mut look = Command::new(nvcc);
    // Included before an empty program.
    look.args(["-x", "cu", "-E", "-include", header, "/dev/null"]);
    complete(&mut look, PATIENCE).is_ok()
}

/// The compiler: `NVCC`, or that on the path, or one that is installed into the target directory if need be.
///
/// # Errors
/// Why it cannot be had, in a line.
fn provide(workspace: &Workspace) -> Result<PathBuf, String> {
    let given = std::env::var_os("NVCC").unwrap_or_else(|| OsString::from("nvcc"));
    let folder = workspace.target_dir.join("nvcc");
    let installed = folder.join("nvidia/cu13/bin/nvcc");
    let is_here = |nvcc: &PathBuf| complete(Command::new(nvcc).arg("--version"), PATIENCE).is_ok();
    if let Some(nvcc) = [PathBuf::from(given), installed.clone()].into_iter().find(is_here) {
        return Ok(nvcc);
    }
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&folder).args(PACKAGES);
    println!("=== {}", describe(&install));
    complete(&mut install, PATIENCE)?;
    is_here(&installed).then_some(installed).ok_or_else(|| "what was installed does not run".into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FOLDER, sources};
    use crate::workspace::Workspace;

    #[test]
    fn all_programs_are_measured() {
        let root = Workspace::load().unwrap().root;
        let script = fs::read_to_string(root.join(FOLDER).join("compile.sh")).unwrap();
        let words: Vec<_> = script.split(|it: char| !(it.is_alphanumeric() || it == '_')).collect();
        let sources = sources(&root).unwrap();
        assert!(sources.len() > 15);
        for source in sources {
            let name = source.file_stem().unwrap().to_str().unwrap();
            assert!(words.contains(&name), "compile.sh makes no program of {name}.cu");
        }
    }
}
