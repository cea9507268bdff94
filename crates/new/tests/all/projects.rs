//! The files of a project.

use std::fs;
use std::path::{Path, PathBuf};

use celerity_new::{Celerity, Name, NewError, make};

use crate::scratch::Scratch;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder, with what is in them.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), fs::read_to_string(path).unwrap())),
        }
    }
    found
}

#[test]
fn a_project_goes_by_its_own_name_and_by_versions() {
    let scratch = Scratch::new("versions");
    let folder =
        make(&Name::new("my-waves").unwrap(), scratch.path(), &Celerity::Published).unwrap();
    assert_eq!(folder, scratch.path().join("my-waves"));
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let program = text("Cargo.toml");
    assert!(program.contains("name = \"my-waves\""), "{program}");
    assert!(program.contains(&format!("\ncelerity = \"{version}\"\n")), "{program}");
    assert!(program.contains("\nmy-waves-kernels = { path = \"kernels\" }\n"), "{program}");
    let kernels = text("kernels/Cargo.toml");
    assert!(kernels.contains(&format!("\ncelerity-kernel = \"{version}\"\n")), "{kernels}");
    assert!(kernels.contains(&format!("\ncelerity-kernel-build = \"{version}\"\n")), "{kernels}");
    assert!(text("src/main.rs").contains("use my_waves_kernels::"));
    for (path, text) in files(&folder) {
        assert!(!text.contains("ripples") && !text.contains("../"), "{}: {text}", path.display());
    }
}

/// A file of the template that no project gets would be missed by whoever copies the folder.
#[test]
fn a_project_has_all_files_of_the_template() {
    let scratch = Scratch::new("all-files");
    let made = make(&Name::new("waves").unwrap(), scratch.path(), &Celerity::Published).unwrap();
    let template = repository().join("template");
    let kept =
        |path: &Path| !path.starts_with(template.join("target")) && !path.ends_with("Cargo.lock");
    for (path, _) in files(&template).into_iter().filter(|(path, _)| kept(path)) {
        let path = made.join(path.strip_prefix(&template).unwrap());
        assert!(path.is_file(), "{}", path.display());
    }
}

#[test]
fn a_repository_is_found_from_wherever_the_project_is() {
    let scratch = Scratch::new("repository");
    let celerity = Celerity::Repository(repository());
    let folder = make(&Name::new("waves").unwrap(), scratch.path(), &celerity).unwrap();
    let manifest = fs::read_to_string(folder.join("kernels/Cargo.toml")).unwrap();
    let crates = repository().canonicalize().unwrap().join("crates");
    let expected = format!("celerity-kernel = {{ path = {:?} }}", crates.join("kernel"));
    assert!(manifest.contains(&expected), "{manifest}");
}

#[test]
fn what_exists_is_left_alone() {
    let scratch = Scratch::new("exists");
    let (name, folder) = (Name::new("waves").unwrap(), scratch.path().join("waves"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    let error = make(&name, scratch.path(), &Celerity::Published).unwrap_err();
    assert!(matches!(&error, NewError::Exists { path } if *path == folder), "{error}");
    assert_eq!(files(&folder), [(folder.join("notes"), "mine".to_owned())]);
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let scratch = Scratch::new("nothing");
    let name = Name::new("waves").unwrap();
    let nowhere = Celerity::Repository(scratch.path().join("nowhere"));
    let error = make(&name, scratch.path(), &nowhere).unwrap_err();
    assert!(matches!(&error, NewError::NoCelerity { .. }), "{error}");
    let error = make(&name, &scratch.path().join("absent"), &Celerity::Published).unwrap_err();
    assert!(matches!(&error, NewError::Write { .. }), "{error}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
