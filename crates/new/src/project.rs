//! The files of a project, and what they say of its name and of where Celerity is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::NewError;
use crate::name::Name;

/// What the template is called, wherever its files name it.
const TEMPLATE: &str = "ripples";

/// Paths in the project, and what the template has there.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../template/program.toml")),
    ("README.md", include_str!("../template/README.md")),
    ("src/main.rs", include_str!("../template/main.rs")),
    ("kernels/Cargo.toml", include_str!("../template/kernels.toml")),
    ("kernels/build.rs", include_str!("../template/build.rs")),
    ("kernels/src/lib.rs", include_str!("../template/kernels.rs")),
    (".gitignore", "/target\n"),
];

/// Where a project finds Celerity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Celerity {
    /// In the registry, in the version of this crate.
    Published,
    /// In a copy of its repository: the folder of that.
    Repository(PathBuf),
}

/// Makes a project of this name: a folder of the same name in `parent`, which exists. Returns the
/// folder.
///
/// # Errors
/// [`NewError`]; nothing new is left behind then, and nothing that was there is touched.
pub fn make(name: &Name, parent: &Path, celerity: &Celerity) -> Result<PathBuf, NewError> {
    let celerity = &found(celerity)?;
    let folder = parent.join(name.as_str());
    fs::create_dir(&folder).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => NewError::Exists { path: folder.clone() },
        _ => NewError::Write { path: folder.clone(), source },
    })?;
    let written = FILES.iter().try_for_each(|(file, text)| {
        let path = folder.join(file);
        let inside = path.parent().expect("it is in the folder");
        let write = fs::create_dir_all(inside)
            .and_then(|()| fs::write(&path, adapted(file, text, name, celerity)));
        write.map_err(|source| NewError::Write { path, source })
    });
    if written.is_err() {
        // What is told is why it could not be written.
        let _ = fs::remove_dir_all(&folder);
    }
    written.map(|()| folder)
}

/// With an absolute path: the project's manifests are read in another folder.
fn found(celerity: &Celerity) -> Result<Celerity, NewError> {
    let Celerity::Repository(folder) = celerity else { return Ok(celerity.clone()) };
    let manifest = folder.join("crates/celerity/Cargo.toml");
    match folder.canonicalize() {
        Ok(folder) if manifest.is_file() => Ok(Celerity::Repository(folder)),
        _ => Err(NewError::NoCelerity { path: manifest }),
    }
}

/// A file of the template as one of the project.
fn adapted(file: &str, text: &str, name: &Name, celerity: &Celerity) -> String {
    let packages = file.ends_with(".toml") || file.ends_with(".md");
    let own = if packages { name.as_str().to_owned() } else { name.as_crate() };
    let adapt = |line: &str| {
        let line = line.replace(TEMPLATE, &own);
        if file.ends_with(".toml") { dependency(&line, celerity) } else { line }
    };
    text.lines().map(adapt).map(|line| line + "\n").collect()
}

/// A line of a manifest: in the template, crates of Celerity's are found by paths that lead out of it.
fn dependency(line: &str, celerity: &Celerity) -> String {
    let (package, path) = match line.split_once(" = { path = \"../") {
        Some((package, path)) => (package, path.trim_start_matches("../")),
        None => return line.to_owned(),
    };
    match celerity {
        Celerity::Published => format!("{package} = \"{}\"", env!("CARGO_PKG_VERSION")),
        Celerity::Repository(folder) => {
            let path = folder.join(path.trim_end_matches("\" }"));
            format!("{package} = {{ path = {:?} }}", path.display().to_string())
        }
    }
}
