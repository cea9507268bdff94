//! Packages as others use them: by name and version, from a registry.
//!
//! The registry is a folder: our packages, unpacked, beside those of everybody else that the workspace
//! needs (`cargo vendor`). Of it, the command `celerity` is installed, makes a project, and that
//! project runs; and the examples are compiled, as programs that depend on versions instead of folders.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use super::tar;
use crate::error::Error;
use crate::files::{read, remove, write};
use crate::runner::{self, describe};
use crate::workspace::cargo;

/// What the project prints begins so.
const PRINTS: &str = "in the middle: ";

/// Folders and programs of one check.
struct Check<'a> {
    clone: &'a Path,
    home: &'a Path,
    registry: PathBuf,
    /// What is compiled here; no build of an earlier run is there.
    target: PathBuf,
}

/// Uses the packages `order`, which lie in `built`, as programs of others would. Returns whether all is
/// well. The clone's manifest is another one afterwards.
///
/// # Errors
/// If a program cannot be run, or a file not written.
pub(super) fn check(
    folder: &Path,
    clone: &Path,
    built: &Path,
    home: &Path,
    order: &[String],
) -> Result<bool, Error> {
    let (registry, target) = (folder.join("registry"), folder.join("by-versions"));
    remove(&registry)?;
    remove(&target)?;
    let check = Check { clone, home, registry, target };
    let mut vendor = check.cargo("vendor", clone);
    vendor.args(["--locked", "--versioned-dirs"]).arg(&check.registry);
    // It prints what to write into settings, which is nobody's business here.
    let vendored = vendor.output();
    let vendored =
        vendored.map_err(|source| Error::Start { program: describe(&vendor), source })?;
    if !vendored.status.success() {
        eprint!("{}", String::from_utf8_lossy(&vendored.stderr));
        return Ok(false);
    }
    for name in order {
        check.unpack(&built.join("package").join(format!("{name}.crate")), name)?;
    }
    Ok(check.project()? && check.examples()?)
}

impl Check<'_> {
    /// Cargo in `folder`, without what our own settings say.
    fn cargo(&self, command: &str, folder: &Path) -> Command {
        let mut cargo = cargo();
        cargo.arg(command).current_dir(folder).env("CARGO_HOME", self.home);
        cargo.env("CARGO_TERM_COLOR", "never").env_remove("RUSTFLAGS");
        cargo
    }

    /// Lets Cargo take packages from this registry alone, below `folder`: also where a build script calls
    /// it, as those of kernels do.
    fn settle(&self, folder: &Path) -> Result<(), Error> {
        let registry = self.registry.display().to_string();
        let settings = format!(
            "[net]\noffline = true\n\n[source.crates-io]\nreplace-with = \"packages\"\n\n\
             [source.packages]\ndirectory = {registry:?}\n"
        );
        let path = folder.join(".cargo").join("config.toml");
        fs::create_dir_all(folder.join(".cargo"))
            .and_then(|()| fs::write(&path, settings))
            .map_err(|source| Error::Write { path, source })
    }

    /// Cargo below a folder that is settled, building where all is new.
    fn by_versions(&self, command: &str, folder: &Path) -> Command {
        let mut cargo = self.cargo(command, folder);
        cargo.arg("--quiet").arg("--target-dir").arg(&self.target);
        cargo
    }

    /// A package of ours as one of the registry's. It has no list of checksums: it was made just now.
    fn unpack(&self, archive: &Path, name: &str) -> Result<(), Error> {
        let into = self.registry.display().to_string();
        tar(&["--extract", "--gzip", "--directory", &into, "--file"], archive, &[])?;
        let list = self.registry.join(name).join(".cargo-checksum.json");
        write(&list, r#"{"files":{}}"#)
    }

    /// Installs `celerity-new`, lets it make a project outside of the workspace, and runs that.
    fn project(&self) -> Result<bool, Error> {
        let place = env::temp_dir().join(format!("celerity-by-versions-{}", process::id()));
        remove(&place)?;
        self.settle(&place)?;
        let outcome = self.project_in(&place);
        remove(&place)?;
        outcome
    }

    fn project_in(&self, place: &Path) -> Result<bool, Error> {
        println!("=== a project by versions");
        let mut install = self.by_versions("install", place);
        install.args(["celerity-new", "--debug", "--root"]).arg(place);
        // It looks at no settings of the folder that it is started in.
        install.arg("--config").arg(place.join(".cargo").join("config.toml"));
        if !runner::stream(&mut install, |_| ())?.success() {
            return Ok(false);
        }
        let mut new = Command::new(place.join("bin").join("celerity"));
        new.current_dir(place).args(["new", "waves"]);
        if !runner::stream(&mut new, |_| ())?.success() {
            return Ok(false);
        }
        let mut run = self.by_versions("run", &place.join("waves"));
        run.env("CELERITY_PLATFORM", "cpu").env("CELERITY_NODES", "2");
        let output = run.output();
        let output = output.map_err(|source| Error::Start { program: describe(&run), source })?;
        let printed = String::from_utf8_lossy(&output.stdout);
        print!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.status.success() && printed.starts_with(PRINTS))
    }

    /// Compiles the examples in the clone, with dependencies of ours by version.
    fn examples(&self) -> Result<bool, Error> {
        println!("=== examples by versions");
        let workspace = self.clone.join("Cargo.toml");
        write(&workspace, &workspace_by_versions(&read(&workspace)?))?;
        let facade = self.clone.join("crates/celerity");
        let manifest = facade.join("Cargo.toml");
        write(&manifest, &examples_manifest(&read(&manifest)?))?;
        // No library beside them, which they could be compiled with.
        remove(&facade.join("src"))?;
        self.settle(self.clone)?;
        let lock = self.clone.join("Cargo.lock");
        fs::remove_file(&lock).map_err(|source| Error::Write { path: lock, source })?;
        let mut compile = self.by_versions("check", &facade);
        compile.arg("--examples");
        // For hosts alone: that kernels are compiled for devices by version, the project has shown.
        compile.env("CELERITY_DEVICE_RUST_SRC", self.home.join("none"));
        Ok(runner::stream(&mut compile, |_| ())?.success())
    }
}

/// The manifest of the workspace, with the examples as its only member, and with versions alone where
/// there are a path and a version.
fn workspace_by_versions(manifest: &str) -> String {
    let mut text = String::new();
    let mut in_members = false;
    for line in manifest.lines() {
        in_members |= line.starts_with("members = [");
        let is_member = in_members;
        in_members &= line != "]";
        match (is_member, line.split_once(" = { path = \"")) {
            (true, _) if !in_members => text += "members = [\"crates/celerity\"]\n",
            (true, _) => {}
            (false, Some((name, rest))) => match rest.split_once("version = \"") {
                Some((_, version)) => {
                    text += &format!("{name} = \"{}\n", version.trim_end_matches(" }"));
                }
                None => text += &format!("{line}\n"),
            },
            (false, None) => text += &format!("{line}\n"),
        }
    }
    text
}

/// The facade's manifest as one of a package that has its examples and nothing else. Examples see what the
/// facade depends on, as well as what is for them.
fn examples_manifest(manifest: &str) -> String {
    let mut text = String::from(
        "[package]\nname = \"examples\"\nversion = \"0.0.0\"\nedition.workspace = true\n\
         autotests = false\n\n[features]\ncuda = []\ncublas = []\nmpi = []\n\n",
    );
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let is_used = match section {
            "[dependencies]" => !line.contains("optional = true"),
            other => other == "[dev-dependencies]",
        };
        if is_used {
            text += &line.replace("celerity = { path = \".\",", "celerity = { workspace = true,");
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{examples_manifest, workspace_by_versions};

    #[test]
    fn what_has_a_version_loses_its_path() {
        let manifest = "[workspace]\nmembers = [\n    \"crates/a\",\n    \"xtask\",\n]\n\
                        [workspace.dependencies]\na = { path = \"crates/a\", version = \"0.1.0\" }\n\
                        b = { path = \"b\" }\nclap = { version = \"4\" }\n";
        let expected = "[workspace]\nmembers = [\"crates/celerity\"]\n[workspace.dependencies]\n\
                        a = \"0.1.0\"\nb = { path = \"b\" }\nclap = { version = \"4\" }\n";
        assert_eq!(workspace_by_versions(manifest), expected);
    }

    #[test]
    fn examples_depend_on_the_facade_like_anybody() {
        let manifest = "[package]\nname = \"celerity\"\n[dependencies]\nrayon = \"1\"\n\
                        mpi = { version = \"1\", optional = true }\n[dev-dependencies]\ncelerity = { path = \".\", features = [\"npy\"] }\n\
                        clap = { workspace = true }\n[lints]\nworkspace = true\n";
        let text = examples_manifest(manifest);
        let dependencies = "[dependencies]\nrayon = \"1\"\n[dev-dependencies]\n\
                            celerity = { workspace = true, features = [\"npy\"] }\n\
                            clap = { workspace = true }\n";
        assert!(text.ends_with(dependencies) && text.contains("name = \"examples\""), "{text}");
    }
}
