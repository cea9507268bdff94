//! `core` for devices, compiled once for each compiler and architecture, and kept.
//! Nothing else of the standard library: devices have no more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TARGET;
use crate::attempts::Attempt;
use crate::error::Error;
use crate::toolchain::Toolchain;

/// Flags for everything that devices run, without that for jumps.
///
/// There is no linker for devices, so a crate of kernels must hold all the code
/// that its kernels call: every function of every crate stays available for
/// inlining (`always-encode-mir`, `cross-crate-inline-threshold`), and a single
/// unit of code comes out.
///
/// Threads of a warp must come to the same barrier, not to copies of it. LLVM keeps to that; rustc's own pass
/// `JumpThreading` does not, and copied a barrier between two branches with one condition into both ways
/// (rust-lang/rust#137086). Later versions than 1.96 leave it out for GPUs themselves. What it did for iterators
/// is partly made up for by inlining more of them (`inline-mir-hint-threshold`), and kernels that keep an array in memory
/// without it are compiled [with it](Attempt::Threaded) if none of their threads wait for each other.
///
/// LLVM threads no jumps for GPUs either. Where an iterator's `next` says `None` on one way and its caller asks on the
/// next, a selection has to take the place of the branch, which must then be worth more than the address of each of
/// the slices that are zipped: up to five with this `phi-node-folding-threshold`, two without. Else a loop over a run
/// of four items is not unrolled, and loads each element by itself.
///
/// A loop of which LLVM does not know how often it is gone through is unrolled if it is small, but not if it can be left
/// in the middle as well, as by an index that is not there. `unroll-runtime-multi-exit` unrolls those too: a row of a sparse matrix
/// had a third of the rate, as each load of its columns waited for the one before.
const FLAGS: [&str; 13] = [
    "-Cpanic=abort",
    "-Copt-level=3",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=no",
    "-Coverflow-checks=no",
    "-Cembed-bitcode=no",
    "-Zunstable-options",
    "-Zalways-encode-mir",
    "-Zcross-crate-inline-threshold=always",
    "-Zinline-mir-hint-threshold=200",
    "-Cllvm-args=-phi-node-folding-threshold=8",
    "-Cllvm-args=-unroll-runtime-multi-exit",
    "--emit=asm,llvm-ir",
];

/// Flags for everything that devices run.
pub(crate) fn flags(attempt: Attempt) -> impl Iterator<Item = &'static str> {
    let jumps = match attempt {
        Attempt::Usual | Attempt::Unrolled => "-Zmir-enable-passes=-JumpThreading",
        Attempt::Threaded => "-Zmir-enable-passes=+JumpThreading",
    };
    FLAGS.into_iter().chain([jumps])
}

/// The compiler expects a crate of this name. Devices need none of what it holds
/// elsewhere: they divide and multiply in hardware.
const COMPILER_BUILTINS: &str = "#![feature(compiler_builtins)]\n\
                                 #![no_std]\n\
                                 #![compiler_builtins]\n\
                                 //! Nothing.\n";

/// A folder that the compiler takes `core` from.
pub(crate) struct Sysroot {
    pub(crate) path: PathBuf,
}

impl Sysroot {
    /// Where the crates are, and their data as assembly.
    pub(crate) fn libraries(&self) -> PathBuf {
        self.path.join("lib/rustlib").join(TARGET).join("lib")
    }
}

/// The flag for a compute capability, such as 80. All code that runs together needs the
/// same one: from version 1.98 on, the compiler refuses to mix them.
pub(crate) fn target_cpu(architecture: u32) -> String {
    format!("-Ctarget-cpu=sm_{architecture}")
}

/// The folder for `toolchain`, `architecture` and `attempt`, below `shared`; compiled if it is not
/// there.
///
/// # Errors
/// If `core` does not compile, or a file cannot be written.
pub(crate) fn prepare(
    toolchain: &Toolchain,
    architecture: u32,
    attempt: Attempt,
    shared: &Path,
) -> Result<Sysroot, Error> {
    let mut flags: Vec<_> = flags(attempt).map(str::to_owned).collect();
    flags.push(target_cpu(architecture));
    let path = shared.join(format!("sysroot-{:016x}", key(toolchain, &flags)));
    let finished = Sysroot { path: path.clone() };
    if path.is_dir() {
        return Ok(finished);
    }
    // Built aside and moved into place, so that nobody sees half of it.
    let aside = Sysroot { path: shared.join(format!("sysroot-{}", std::process::id())) };
    let libraries = aside.libraries();
    fs::create_dir_all(&libraries).map_err(Error::file(&libraries))?;
    compile(toolchain, &flags, &aside, "core", &toolchain.library.join("core/src/lib.rs"))?;
    let builtins = aside.path.join("compiler_builtins.rs");
    fs::write(&builtins, COMPILER_BUILTINS).map_err(Error::file(&builtins))?;
    compile(toolchain, &flags, &aside, "compiler_builtins", &builtins)?;
    match fs::rename(&aside.path, &path) {
        Err(_) if path.is_dir() => {
            // Somebody else was faster.
            fs::remove_dir_all(&aside.path).map_err(Error::file(&aside.path))?;
        }
        moved => moved.map_err(Error::file(&path))?,
    }
    Ok(finished)
}

fn compile(
    toolchain: &Toolchain,
    flags: &[String],
    sysroot: &Sysroot,
    name: &str,
    root: &Path,
) -> Result<(), Error> {
    let mut command = Command::new(&toolchain.rustc);
    command
        .args(["--crate-name", name, "--crate-type", "rlib", "--edition", "2024"])
        .args(["--target", TARGET, "--cap-lints", "allow", "-Zforce-unstable-if-unmarked"])
        .args(flags)
        .args(["--emit=link", "-Cmetadata=celerity"])
        .arg("--sysroot")
        .arg(&sysroot.path)
        .arg("--out-dir")
        .arg(sysroot.libraries())
        .arg(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("LD_LIBRARY_PATH");
    let output = command
        .output()
        .map_err(|source| Error::Start { program: toolchain.rustc.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Core {
        rustc: toolchain.rustc.clone(),
        source_folder: toolchain.library.clone(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// What the contents of the folder depend on, as a number (FNV-1a).
fn key(toolchain: &Toolchain, flags: &[String]) -> u64 {
    let library = toolchain.library.to_string_lossy();
    let parts = [toolchain.verbose_version.as_str(), &library, env!("CARGO_PKG_VERSION")];
    let parts = parts.into_iter().chain(flags.iter().map(String::as_str));
    let bytes = parts.flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_compiler_source_or_architecture_has_a_folder_of_its_own() {
        let toolchain = |version: &str, library: &str| Toolchain {
            rustc: "rustc".into(),
            library: library.into(),
            verbose_version: version.into(),
        };
        let key_of =
            |version, library, flag: &str| key(&toolchain(version, library), &[flag.to_owned()]);
        let one = key_of("1.96.0", "/library", "80");
        assert_eq!(one, key_of("1.96.0", "/library", "80"));
        assert_ne!(one, key_of("1.97.0", "/library", "80"));
        assert_ne!(one, key_of("1.96.0", "/other", "80"));
        assert_ne!(one, key_of("1.96.0", "/library", "90"));
        assert_ne!(key_of("a", "b", "80"), key_of("ab", "", "80"));
    }
}
