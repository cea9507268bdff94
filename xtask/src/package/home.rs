//! A home for Cargo in which nothing lies about that an earlier run has unpacked.
//!
//! Cargo unpacks a package once per registry and version, into `registry/src` of its home, and takes what
//! lies there ever after. Packages of ours change without a new version, so what it would find there are
//! the sources of an earlier run, and errors about functions that are there for everybody to see.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::remove;

/// Parts of a home that are downloaded, and can be shared: indices and packages.
const SHARED: [&str; 2] = ["index", "cache"];

/// Makes a home in `folder`: settings, locks and downloads are those of the user's home, which is left
/// as it is; unpacked sources are its own, and there are none yet. Where links cannot be made as they are
/// on Unix, it is the user's home.
///
/// # Errors
/// If it cannot be made.
pub(super) fn provide(folder: &Path) -> Result<PathBuf, Error> {
    let Some(theirs) = of_the_user() else { return Ok(folder.join("home")) };
    match cfg!(unix) {
        true => beside(&theirs, folder.join("home")),
        false => Ok(theirs),
    }
}

/// The home that Cargo would use.
fn of_the_user() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// A home that has what is in `theirs`, but for unpacked sources, and for what lets one publish.
fn beside(theirs: &Path, ours: PathBuf) -> Result<PathBuf, Error> {
    remove(&ours)?;
    let registry = ours.join("registry");
    create(&registry)?;
    for part in SHARED {
        let shared = theirs.join("registry").join(part);
        create(&shared)?;
        link(&shared, &registry.join(part))?;
    }
    let unreadable = |source| Error::Read { path: theirs.to_owned(), source };
    for entry in fs::read_dir(theirs).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let text = name.to_string_lossy();
        if text != "registry" && !text.starts_with("credentials") {
            link(&theirs.join(&name), &ours.join(&name))?;
        }
    }
    Ok(ours)
}

fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> Result<(), Error> {
    std::os::unix::fs::symlink(to, at)
        .map_err(|source| Error::Write { path: at.to_owned(), source })
}

#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::beside;
    use crate::files::remove;

    fn write(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "theirs").unwrap();
    }

    #[test]
    fn sources_of_an_earlier_run_are_not_there_and_theirs_stay() {
        let place = std::env::temp_dir().join(format!("xtask-home-{}", std::process::id()));
        let (theirs, ours) = (place.join("theirs"), place.join("ours"));
        let stale = "registry/src/-0123/celerity-regions-0.1.0/src/lib.rs";
        for file in ["config.toml", "credentials.toml", "registry/cache/a.crate", stale] {
            write(&theirs.join(file));
        }
        for _ in 0..2 {
            let home = beside(&theirs, ours.clone()).unwrap();
            assert!(home.join("config.toml").is_file());
            assert!(home.join("registry/cache/a.crate").is_file());
            assert!(home.join("registry/index").is_dir());
            assert!(!home.join("registry/src").exists() && !home.join("credentials.toml").exists());
            write(&home.join(stale));
        }
        assert_eq!(fs::read_to_string(theirs.join(stale)).unwrap(), "theirs");
        remove(&place).unwrap();
    }
}
