//! Rules about packages: their manifests, their front pages, their examples.

use super::Violation;
use super::sources::SourceFile;
use crate::workspace::{Package, Workspace};

/// Every member takes its lints from the workspace.
pub(super) fn lints_inherited(files: &[SourceFile]) -> Vec<Violation> {
    member_manifests(files)
        .filter(|manifest| !inherits_lints(&manifest.text))
        .map(|manifest| Violation::new(&manifest.path, "add `[lints]` with `workspace = true`"))
        .collect()
}

/// Every crate that others may use by itself has a front page.
pub(super) fn readmes_present(files: &[SourceFile]) -> Vec<Violation> {
    member_manifests(files)
        .filter_map(|manifest| manifest.path.strip_suffix("/Cargo.toml"))
        .filter(|folder| folder.starts_with("crates/"))
        .map(|folder| format!("{folder}/README.md"))
        .filter(|readme| !files.iter().any(|file| file.path == *readme))
        .map(|readme| Violation::new(readme, "is missing: say what the crate is for"))
        .collect()
}

/// A unit test inside an example runs only if the manifest asks for it, one inside a program unless the
/// manifest asks for the opposite; either is lost silently otherwise.
pub(super) fn tests_of_programs_run(workspace: &Workspace, files: &[SourceFile]) -> Vec<Violation> {
    let untested = workspace
        .packages
        .iter()
        .flat_map(|package| &package.targets)
        .filter(|target| ["example", "bin"].contains(&&*target.kind) && !target.tested);
    let has_tests = |root: &String| {
        // A program of several files has a folder of its own.
        let folder = root.strip_suffix("main.rs").unwrap_or(root);
        let mut parts = files.iter().filter(|file| file.path.starts_with(folder));
        parts.any(|file| file.path.ends_with(".rs") && file.text.contains("#[test]"))
    };
    untested
        .map(|target| workspace.relative(&target.source))
        .filter(has_tests)
        .map(|path| Violation::new(path, "has tests that never run: set `test = true` for it"))
        .collect()
}

/// What others can get must not need what they cannot. Development dependencies may be private, as long
/// as they have no version: Cargo leaves them out of packages.
pub(super) fn published_with_dependencies(packages: &[Package]) -> Vec<Violation> {
    let is_private = |name: &&String| {
        packages.iter().any(|package| package.name == **name && !package.is_published)
    };
    let published = packages.iter().filter(|package| package.is_published);
    let needs = |package: &Package, private: &String| {
        let advice = format!("is published, but `{private}`, which it needs, is not");
        Violation::new(&package.name, advice)
    };
    published
        .flat_map(|package| {
            let private = package.dependencies.iter().filter(is_private);
            private.map(move |private| needs(package, private))
        })
        .collect()
}

/// The manifests of packages, without those of other workspaces below this one.
fn member_manifests(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    let manifests = || files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let others: Vec<_> = manifests()
        .filter(|manifest| manifest.text.lines().any(|line| line.trim() == "[workspace]"))
        .filter_map(|manifest| manifest.path.strip_suffix("Cargo.toml"))
        .collect();
    manifests().filter(move |manifest| !others.iter().any(|it| manifest.path.starts_with(it)))
}

fn inherits_lints(manifest: &str) -> bool {
    let mut in_lints = false;
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        }
        line == "lints.workspace = true" || (in_lints && line == "workspace = true")
    })
}

#[cfg(test)]
mod tests {
    use super::{
        lints_inherited, published_with_dependencies, readmes_present, tests_of_programs_run,
    };
    use crate::tidy::assert_kept;
    use crate::tidy::sources::{SourceFile, load};
    use crate::workspace::{BuildTarget, Package, Workspace};

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn members_of_this_workspace_inherit_lints() {
        assert_kept(&lints_inherited(&load(&Workspace::load().unwrap().root).unwrap()));
    }

    #[test]
    fn crates_of_this_workspace_have_front_pages() {
        assert_kept(&readmes_present(&load(&Workspace::load().unwrap().root).unwrap()));
    }

    #[test]
    fn tests_of_programs_of_this_workspace_run() {
        let workspace = Workspace::load().unwrap();
        assert_kept(&tests_of_programs_run(&workspace, &load(&workspace.root).unwrap()));
    }

    #[test]
    fn published_crates_of_this_workspace_need_no_private_ones() {
        assert_kept(&published_with_dependencies(&Workspace::load().unwrap().packages));
    }

    #[test]
    fn a_private_dependency_of_a_published_crate_is_noticed() {
        let package = |name: &str, is_published, dependencies: &[&str]| Package {
            name: name.into(),
            dependencies: dependencies.iter().map(|&name| name.into()).collect(),
            rust_version: None,
            is_published,
            targets: Vec::new(),
        };
        let packages = [
            package("facade", true, &["layer", "kit", "serde"]),
            package("layer", true, &[]),
            package("kit", false, &["layer", "other-kit"]),
            package("other-kit", false, &[]),
        ];
        let violations = published_with_dependencies(&packages);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "facade");
        assert!(violations[0].advice.contains("`kit`"));
    }

    #[test]
    fn own_lints_are_noticed() {
        let manifests = [
            file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"),
            file("crates/b/Cargo.toml", "[dependencies]\nworkspace = true\n[lints.rust]\n"),
            file("elsewhere/Cargo.toml", "[package]\n\n[workspace]\nmembers = [\"inner\"]\n"),
            file("elsewhere/inner/Cargo.toml", "[package]\n"),
        ];
        let places: Vec<_> =
            lints_inherited(&manifests).into_iter().map(|violation| violation.place).collect();
        assert_eq!(places, ["crates/b/Cargo.toml"]);
    }

    #[test]
    fn a_missing_front_page_is_noticed() {
        let files = [
            file("crates/a/Cargo.toml", ""),
            file("crates/a/README.md", ""),
            file("crates/b/Cargo.toml", ""),
            file("benches/Cargo.toml", ""),
        ];
        assert_eq!(readmes_present(&files)[0].place, "crates/b/README.md");
        assert_eq!(readmes_present(&files).len(), 1);
    }

    #[test]
    fn a_lost_test_of_a_program_is_noticed() {
        let workspace = |kind: &str, source: &str, tested| Workspace {
            root: "/w".into(),
            target_dir: "/w/target".into(),
            packages: vec![Package {
                name: "a".into(),
                dependencies: Vec::new(),
                rust_version: None,
                is_published: false,
                targets: vec![BuildTarget {
                    name: "e".into(),
                    kind: kind.into(),
                    source: source.into(),
                    tested,
                }],
            }],
        };
        let test = "#[test]\nfn t() {}\n";
        let files = [file("a/examples/e.rs", test), file("a/src/bin/b/part.rs", test)];
        for (kind, source) in [("example", "/w/a/examples/e.rs"), ("bin", "/w/a/src/bin/b/main.rs")]
        {
            let found = |tested| tests_of_programs_run(&workspace(kind, source, tested), &files);
            assert_eq!(found(false).len(), 1, "{source}");
            assert_eq!(found(true).len(), 0, "{source}");
        }
    }
}
