//! A rule about programs of tests that have a module per topic: each file is a module.
//!
//! A file that no module names is not compiled, and its tests are not run; neither compiler nor test runner
//! says so.

use super::Violation;
use super::sources::SourceFile;

/// Every Rust file in a folder of a program of tests is a module of that program: the file at the root of
/// its folder declares it, or some file names its path. One with a `main` of its own is none: a program that
/// a test compiles, say to see how that fails.
pub(super) fn declared(files: &[SourceFile]) -> Vec<Violation> {
    let lines = files.iter().flat_map(|file| file.text.lines().map(str::trim));
    let paths: Vec<_> = lines.filter(|line| line.starts_with("#[path = ")).collect();
    let undeclared = |file: &&SourceFile| {
        let Some(module) = Module::of(&file.path) else { return false };
        let is_program = || file.text.lines().any(|line| line.starts_with("fn main()"));
        let is_declared = || files.iter().any(|other| module.is_declared_by(other));
        !paths.iter().any(|path| module.is_named_by(path)) && !is_declared() && !is_program()
    };
    files
        .iter()
        .filter(undeclared)
        .map(|file| {
            Violation::new(&file.path, "declare it as a module, else its tests are not run")
        })
        .collect()
}

/// A file below a folder of `tests`. Files beside that folder are programs of their own.
struct Module<'a> {
    /// The folder of the module that it belongs into.
    folder: &'a str,
    name: &'a str,
}

impl<'a> Module<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let (_, inside) = path.split_once("/tests/").filter(|_| !path.contains("/src/"))?;
        let stem = path.strip_suffix(".rs").filter(|_| inside.contains('/'))?;
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        let (folder, name) = stem.rsplit_once('/')?;
        (name != "main" && !folder.ends_with("/tests")).then_some(Self { folder, name })
    }

    /// Whether an attribute `path` leads to it, as far as its last part tells.
    fn is_named_by(&self, attribute: &str) -> bool {
        attribute.ends_with(&format!("{}.rs\"]", self.name))
    }

    /// Whether a file is the root of its folder, and declares it.
    fn is_declared_by(&self, other: &SourceFile) -> bool {
        let roots = ["/main.rs", "/mod.rs", ".rs"];
        let is_root = roots.iter().any(|root| other.path.strip_suffix(root) == Some(self.folder));
        let declaration = format!("mod {};", self.name);
        is_root && other.text.lines().any(|line| line.trim().ends_with(&declaration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{assert_kept, sources};
    use crate::workspace::Workspace;

    /// Where the rule is broken by files of these paths and texts.
    fn places(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let files: Vec<_> = files.iter().map(file).collect();
        declared(&files).into_iter().map(|violation| violation.place).collect()
    }

    #[test]
    fn all_modules_of_tests_of_this_workspace_are_declared() {
        assert_kept(&declared(&sources::load(&Workspace::load().unwrap().root).unwrap()));
    }

    #[test]
    fn a_file_that_no_module_names_is_noticed() {
        let main = ("crates/a/tests/all/main.rs", "mod b;\nmod deep;\n");
        let deep = ("crates/a/tests/all/deep/mod.rs", "mod e;\n");
        let files = ["b", "c", "deep/e", "deep/f", "other/g"];
        let paths = files.map(|file| format!("crates/a/tests/all/{file}.rs"));
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.extend([main, deep]);
        let expected = ["c", "deep/f", "other/g"];
        assert_eq!(places(&files), expected.map(|file| format!("crates/a/tests/all/{file}.rs")));
    }

    #[test]
    fn programs_of_their_own_and_files_named_by_their_path_are_left_alone() {
        let alone = ("crates/a/tests/alone.rs", "#[path = \"doubles/quiet.rs\"]\nmod quiet;\n");
        let double = ("crates/a/tests/doubles/quiet.rs", "");
        let inside = ("crates/a/src/backend/tests/joins.rs", "");
        let compiled = ("crates/a/tests/errors/borrowed.rs", "use b::c;\n\nfn main() {\n}\n");
        assert_eq!(places(&[alone, double, inside, compiled]), [""; 0]);
        assert_eq!(places(&[double]), ["crates/a/tests/doubles/quiet.rs"]);
    }
}
