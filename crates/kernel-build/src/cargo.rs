//! Runs Cargo once more, for the device: it finds and builds what the kernels
//! depend on, as it would for a host, and passes the compiler's words through.

use std::env;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::attempts::Attempt;
use crate::error::Error;
use crate::hints;
use crate::places::SourceLocations;
use crate::sysroot::{Sysroot, flags, target_cpu};
use crate::toolchain::Toolchain;
use crate::{Script, TARGET};

/// Features that generated code needs. They stay inside of this crate: a crate of
/// kernels names none.
const FEATURES: [&str; 3] = ["abi_ptx", "asm_experimental_arch", "stmt_expr_attributes"];

/// Contraction, and divisions and roots of `f32` that are off by 2 units in the last place; and what
/// `celerity_kernel::math` knows it by.
const FAST: [&str; 4] = [
    "--cfg=celerity_fast",
    "-Cllvm-args=--nvptx-fma-level=2",
    "-Cllvm-args=--nvptx-prec-divf32=1",
    "-Cllvm-args=--nvptx-prec-sqrtf32=0",
];

/// Devices have no `std`, whether a crate of kernels says that it needs none or not.
const NO_STD: &str = "no_std";

/// How entry points are told whether they are among some that are compiled alone: words that are no mistakes wherever kernels are.
const SELECTION: [&str; 2] =
    ["--check-cfg=cfg(celerity_some)", "--check-cfg=cfg(celerity_entry, values(any()))"];

/// For the kernels that are embedded, and for those that are looked at to find lines in the source.
const NO_DEBUGINFO: &str = "-Cdebuginfo=0";
const DEBUGINFO: &str = "-Cdebuginfo=2";

/// What the compiler's intermediate code has for its extension.
const IR: &str = "ll";

/// One compilation.
pub(crate) struct Nested<'a> {
    pub(crate) script: &'a Script,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) sysroot: &'a Sysroot,
    pub(crate) architecture: u32,
    /// Whether it is for the kernels that are marked as fast, or for the others.
    pub(crate) fast: bool,
    pub(crate) attempt: Attempt,
    /// The entry points that are compiled. If there are none, all.
    pub(crate) entries: &'a [String],
}

/// What came out.
pub(crate) struct Compiled {
    /// The kernels, as the compiler wrote them.
    pub(crate) ptx: String,
    /// The same before they became assembly.
    pub(crate) ir: String,
    /// Folders with the data of libraries, as assembly.
    pub(crate) libraries: Vec<PathBuf>,
    /// Everything that was read.
    pub(crate) sources: Vec<PathBuf>,
}

impl Nested<'_> {
    /// # Errors
    /// If the kernels do not compile; the compiler has said why on standard error.
    pub(crate) fn run(&self) -> Result<Compiled, Error> {
        let (script, architecture) = (self.script, self.architecture);
        let output = explained(&mut self.command(NO_DEBUGINFO))
            .map_err(|source| Error::Start { program: script.cargo.clone(), source })?;
        let crate_name = script.package.replace('-', "_");
        let messages = String::from_utf8_lossy(&output.stdout);
        let ptx = assembly(&messages, &crate_name);
        let (true, Some(ptx)) = (output.status.success(), ptx) else {
            return Err(Error::Kernels { package: script.package.clone(), architecture });
        };
        let built = self.target_dir().join(TARGET).join("release");
        let ir = ptx.with_extension(IR);
        Ok(Compiled {
            ptx: fs::read_to_string(&ptx).map_err(Error::file(&ptx))?,
            ir: fs::read_to_string(&ir).map_err(Error::file(&ir))?,
            sources: sources(&built, &crate_name)?,
            libraries: vec![self.sysroot.libraries(), built.join("deps")],
        })
    }

    /// Where functions and variables of the kernels stand in the source, as far as that can be
    /// found out: for words about an error that is known already. Compiles the kernels once more.
    pub(crate) fn places(&self) -> SourceLocations {
        let output = self.command(DEBUGINFO).stderr(Stdio::null()).output();
        let messages = output.map(|output| output.stdout).unwrap_or_default();
        let crate_name = self.script.package.replace('-', "_");
        let ptx = assembly(&String::from_utf8_lossy(&messages), &crate_name);
        let ir = ptx.and_then(|ptx| fs::read_to_string(ptx.with_extension(IR)).ok());
        ir.map(|ir| SourceLocations::read(&ir)).unwrap_or_default()
    }

    /// One for all architectures and kinds of arithmetic, so that what runs on the host, macros and
    /// build scripts, is compiled once. Code for devices differs in its flags, by which Cargo keeps it apart.
    fn target_dir(&self) -> PathBuf {
        self.script.shared.join("target")
    }

    fn command(&self, debuginfo: &str) -> Command {
        let mut command = Command::new(&self.script.cargo);
        // The outer run's settings are for hosts.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_for_hosts) {
                command.env_remove(name);
            }
        }
        command
            .args(["rustc", "--locked", "--release", "--lib", "--target", TARGET])
            .arg("--manifest-path")
            .arg(self.script.manifest.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(self.target_dir())
            // The compiler's words on standard error, as they are for people.
            .arg("--message-format=json-render-diagnostics")
            .arg("--")
            .args(FEATURES.map(|feature| format!("-Zcrate-attr=feature({feature})")))
            .args(self.lacks_no_std().then(|| format!("-Zcrate-attr={NO_STD}")))
            .args(self.selected())
            .arg(debuginfo)
            .env("RUSTC", &self.toolchain.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags())
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .stdin(Stdio::null());
        command
    }

    /// Whether the crate's root is where roots are, and does not say that it needs no `std`: the compiler warns of
    /// what is said twice.
    fn lacks_no_std(&self) -> bool {
        let root = fs::read_to_string(self.script.manifest.join("src/lib.rs"));
        root.is_ok_and(|text| !says_no_std(&text))
    }

    /// Which kernels are compiled, and how, if not all as usual.
    fn selected(&self) -> Vec<String> {
        let one = |name: &String| ["--cfg".to_owned(), format!("celerity_entry=\"{name}\"")];
        let mut flags: Vec<String> = self.entries.iter().flat_map(one).collect();
        if !flags.is_empty() {
            flags.push("--cfg=celerity_some".to_owned());
        }
        flags.extend(self.attempt.flags().iter().map(|&flag| flag.to_owned()));
        flags
    }

    /// Flags for the kernels and all that they depend on.
    fn flags(&self) -> String {
        let mut flags: Vec<String> = flags(self.attempt).map(str::to_owned).collect();
        flags.extend(SELECTION.map(str::to_owned));
        flags.push(target_cpu(self.architecture));
        flags.push(format!("--sysroot={}", self.sysroot.path.display()));
        if self.fast {
            flags.extend(FAST.map(str::to_owned));
        }
        // What Cargo separates flags by.
        flags.join("\x1f")
    }
}

/// Whether the text of a crate's root has an attribute by which it needs no `std`.
fn says_no_std(root: &str) -> bool {
    root.lines().map(str::trim_start).any(|line| !line.starts_with("//") && line.contains(NO_STD))
}

/// Runs a command whose words on standard error go to ours, with help where we have some.
fn explained(command: &mut Command) -> io::Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let words = child.stderr.take().map(BufReader::new);
    // Beside the standard output: a pipe that nobody reads stops the compiler.
    let forwarder = thread::spawn(move || words.map(|words| hints::forward(words, io::stderr())));
    let output = child.wait_with_output();
    // Words that cannot be written are for nobody; whether it went well is in `output`.
    let _ = forwarder.join();
    output
}

/// Whether an environment variable would change how the device's code is built.
fn is_for_hosts(name: &str) -> bool {
    let set_by_cargo =
        ["CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_BUILD_"];
    let exact = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "CLIPPY_ARGS",
        "LD_LIBRARY_PATH",
        "OUT_DIR",
        "TARGET",
    ];
    set_by_cargo.iter().any(|prefix| name.starts_with(prefix)) || exact.contains(&name)
}

/// The assembly of a library, from Cargo's messages: it lies beside the metadata.
fn assembly(messages: &str, crate_name: &str) -> Option<PathBuf> {
    let start = format!("lib{crate_name}-");
    let paths = messages.split('"').filter(|text| text.ends_with(".rmeta"));
    let metadata = paths.map(Path::new).find(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&start))
    })?;
    let name = metadata.file_stem()?.to_str()?.strip_prefix("lib")?;
    Some(metadata.with_file_name(format!("{name}.s")))
}

/// Everything that the compilation has read, from the list that Cargo leaves.
fn sources(built: &Path, crate_name: &str) -> Result<Vec<PathBuf>, Error> {
    let list = built.join(format!("lib{crate_name}.d"));
    let text = fs::read_to_string(&list).map_err(Error::file(&list))?;
    Ok(dependencies(&text))
}

/// The paths behind the colon of a rule as `make` reads it, where spaces in names
/// follow a backslash.
fn dependencies(rule: &str) -> Vec<PathBuf> {
    let Some((_, list)) = rule.split_once(": ") else { return Vec::new() };
    let (mut paths, mut path, mut escaped) = (Vec::new(), String::new(), false);
    for character in list.trim_end().chars().chain([' ']) {
        match character {
            '\\' if !escaped => escaped = true,
            ' ' if !escaped => {
                if !path.is_empty() {
                    paths.push(PathBuf::from(std::mem::take(&mut path)));
                }
            }
            _ => {
                path.push(character);
                escaped = false;
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_rule_may_hold_spaces() {
        let paths = dependencies("/t/libk.rlib: /k/src/lib.rs /k/my\\ file.rs\n");
        assert_eq!(paths, [Path::new("/k/src/lib.rs"), Path::new("/k/my file.rs")]);
    }

    #[test]
    fn assembly_lies_beside_the_metadata_of_the_right_crate() {
        let messages = r#"{"filenames":["/t/deps/libm-01.rmeta"]}
            {"filenames":["/t/libwaves.rlib","/t/deps/libwaves-23.rmeta"]}"#;
        assert_eq!(assembly(messages, "waves"), Some("/t/deps/waves-23.s".into()));
        assert_eq!(assembly(messages, "tides"), None);
    }

    #[test]
    fn roots_that_need_no_std_say_so_outside_of_comments() {
        assert!(says_no_std("//! Kernels.\n#![cfg_attr(not(test), no_std)]\n"));
        assert!(says_no_std("#![forbid(unsafe_code)]\n #![no_std]\n"));
        assert!(!says_no_std("//! A crate without `#![no_std]`.\ncelerity_kernel::module!();\n"));
    }

    #[test]
    fn settings_for_hosts_do_not_reach_devices() {
        for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"] {
            assert!(is_for_hosts(name), "{name}");
        }
        for name in ["PATH", "HOME", "CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE"] {
            assert!(!is_for_hosts(name), "{name}");
        }
    }
}
