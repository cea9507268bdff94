//! The workspace as `cargo metadata` describes it, reduced to what the commands here need.
//!
//! Owns the parsing of Cargo's JSON; no other module sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;

/// The workspace that this program was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where Cargo puts build results; honours `CARGO_TARGET_DIR`.
    pub(crate) target_dir: PathBuf,
    /// All members, in Cargo's order.
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Its name in the manifest.
    pub(crate) name: String,
    /// Names of what it is built from: its normal and build dependencies. Development
    /// dependencies are left out, because tests may look anywhere.
    pub(crate) dependencies: Vec<String>,
    /// The oldest Rust that its manifest promises to be enough: `1.88`, say.
    pub(crate) rust_version: Option<String>,
    /// Whether it is meant to be published: its manifest does not say `publish = false`.
    pub(crate) is_published: bool,
    /// Its libraries, programs, tests, examples and benchmarks.
    pub(crate) targets: Vec<BuildTarget>,
}

/// One thing that Cargo builds from a package.
#[derive(Clone, Debug)]
pub(crate) struct BuildTarget {
    /// Its name.
    pub(crate) name: String,
    /// Cargo's word for its kind: `lib`, `bin`, `test`, `example`, `bench`, …
    pub(crate) kind: String,
    /// Its root source file.
    pub(crate) source: PathBuf,
    /// Whether `cargo test` runs the unit tests in it.
    pub(crate) tested: bool,
}

impl Workspace {
    /// Asks Cargo about the workspace that contains this crate.
    ///
    /// # Errors
    /// [`Error::Start`] without Cargo, [`Error::Metadata`] when a manifest is broken.
    pub(crate) fn load() -> Result<Self, Error> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(manifest)
            .output()
            .map_err(|source| Error::Start { program: "cargo metadata".into(), source })?;
        if !output.status.success() {
            let what = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Metadata { what });
        }
        let json = serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::Metadata { what: error.to_string() })?;
        Self::from_metadata(&json)
    }

    fn from_metadata(json: &Value) -> Result<Self, Error> {
        Ok(Self {
            root: text(json, "workspace_root")?.into(),
            target_dir: text(json, "target_directory")?.into(),
            packages: list(json, "packages")?.iter().map(package).collect::<Result<_, _>>()?,
        })
    }

    /// `path` as seen from the root of the workspace, with `/` between its parts.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/")
    }
}

/// Cargo itself: the one that runs us, if one does.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn package(json: &Value) -> Result<Package, Error> {
    let dependencies = list(json, "dependencies")?
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| text(dependency, "name"))
        .collect::<Result<_, _>>()?;
    let targets = list(json, "targets")?.iter().map(target).collect::<Result<_, _>>()?;
    // Cargo's words: a list of registries, which `publish = false` leaves empty, or null for any.
    let is_published = json["publish"].as_array().is_none_or(|registries| !registries.is_empty());
    let rust_version = json["rust_version"].as_str().map(str::to_owned);
    Ok(Package { name: text(json, "name")?, dependencies, rust_version, is_published, targets })
}

fn target(json: &Value) -> Result<BuildTarget, Error> {
    let kind = list(json, "kind")?.first().and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(BuildTarget {
        name: text(json, "name")?,
        kind,
        source: text(json, "src_path")?.into(),
        tested: json["test"].as_bool().unwrap_or(false),
    })
}

fn text(json: &Value, key: &str) -> Result<String, Error> {
    json[key].as_str().map(str::to_owned).ok_or_else(|| missing(key, "text"))
}

fn list<'a>(json: &'a Value, key: &str) -> Result<&'a Vec<Value>, Error> {
    json[key].as_array().ok_or_else(|| missing(key, "a list"))
}

fn missing(key: &str, expected: &str) -> Error {
    Error::Metadata { what: format!("`{key}` is absent or is not {expected}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Workspace;

    #[test]
    fn development_dependencies_are_left_out() {
        let workspace = Workspace::from_metadata(&json!({
            "workspace_root": "/w",
            "target_directory": "/w/target",
            "packages": [{
                "name": "a",
                "dependencies": [
                    {"name": "normal", "kind": null},
                    {"name": "build", "kind": "build"},
                    {"name": "development", "kind": "dev"},
                ],
                "targets": [],
            }],
        }))
        .unwrap();
        assert_eq!(workspace.packages[0].dependencies, ["normal", "build"]);
        assert_eq!(workspace.relative("/w/a/src/lib.rs".as_ref()), "a/src/lib.rs");
    }

    #[test]
    fn what_no_registry_may_have_is_not_published() {
        let package =
            |publish| json!({"name": "a", "dependencies": [], "targets": [], "publish": publish});
        let packages = [json!([]), json!(null), json!(["own"])].map(package);
        let workspace = Workspace::from_metadata(&json!({
            "workspace_root": "/w", "target_directory": "/w/target", "packages": packages,
        }));
        let published = workspace.unwrap().packages.into_iter().map(|package| package.is_published);
        assert_eq!(published.collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn missing_metadata_is_named() {
        let error = Workspace::from_metadata(&json!({"workspace_root": "/w"})).unwrap_err();
        assert!(error.to_string().contains("`target_directory`"), "{error}");
    }

    #[test]
    fn this_workspace_contains_this_crate() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.packages.iter().any(|package| package.name == env!("CARGO_PKG_NAME")));
    }
}
