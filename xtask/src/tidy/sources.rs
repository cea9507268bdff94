//! Rules about the text of files, and how files are found.
//!
//! Forbidden words are assembled from pieces here, so that this file keeps its own rules.

use std::fs;
use std::path::Path;

use super::Violation;
use crate::error::Error;

/// The longest a file written by hand may be. The models this project follows have a median of
/// 120 to 350 lines.
const MAX_LINES: usize = 900;

/// A text file of the repository.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// From the root of the workspace, with `/` between its parts.
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file below `root`, sorted by path, without version control's own files and build
/// results. Walks the folder instead of asking git, so that an unpacked archive works too.
///
/// # Errors
/// If a folder or file cannot be read.
pub(super) fn load(root: &Path) -> Result<Vec<SourceFile>, Error> {
    let mut files = Vec::new();
    visit(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn visit(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> Result<(), Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(unreadable)?;
        let path = format!("{prefix}{name}");
        if prefix.is_empty() && is_generated(&name) {
            continue;
        }
        if kind.is_dir() {
            visit(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path())
                .map_err(|source| Error::Read { path: entry.path(), source })?;
            // What is not UTF-8 is a picture or another binary file.
            files.extend(String::from_utf8(bytes).ok().map(|text| SourceFile { path, text }));
        }
    }
    Ok(())
}

/// Whether no person writes what bears this name. In a second working tree, `.git` is a file.
fn is_generated(name: &str) -> bool {
    name == ".git" || name.starts_with("target")
}

/// Every module opens with what it owns.
pub(super) fn modules_documented(files: &[SourceFile]) -> Vec<Violation> {
    files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && file.path.contains("/src/"))
        .filter(|file| !opens_with_docs(&file.text))
        .map(|file| Violation::new(&file.path, "open with `//!`: what the module owns"))
        .collect()
}

/// Whether documentation comes before any item. A crate may take it from its front page, and may
/// have other attributes of the whole module above it.
fn opens_with_docs(text: &str) -> bool {
    let is_docs = |line: &str| line.starts_with("//!") || line.starts_with("#![doc = include_str!");
    let mut lines = text
        .lines()
        .skip_while(|line| !is_docs(line) && (line.starts_with("#![") || line.is_empty()));
    lines.next().is_some_and(is_docs)
}

/// No file is longer than [`MAX_LINES`], data and generated files aside.
pub(super) fn short_enough(files: &[SourceFile]) -> Vec<Violation> {
    let by_hand = |path: &str| {
        [".rs", ".md", ".toml", ".yml", ".ci/run"].iter().any(|end| path.ends_with(end))
    };
    files
        .iter()
        .filter(|file| by_hand(&file.path))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| {
            Violation::new(&file.path, format!("has {lines} lines; split it below {MAX_LINES}"))
        })
        .collect()
}

/// No Rust file contains code that is missing, or a test that does not run; nor does a page, whose
/// examples may be tests as well.
pub(super) fn nothing_unfinished(files: &[SourceFile]) -> Vec<Violation> {
    let words = [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("#[ig", "nore")];
    let written = |ends: &'static [&str]| {
        files.iter().filter(move |file| ends.iter().any(|end| file.path.ends_with(end)))
    };
    let mut violations =
        lines_with(written(&[".rs"]), |line| words.into_iter().find(|word| line.contains(word)));
    violations.extend(lines_with(written(&[".rs", ".md"]), ignored_example));
    violations
}

/// The word in the head of an example that keeps it from being compiled.
fn ignored_example(line: &str) -> Option<&'static str> {
    let word = concat!("ig", "nore");
    let head = line.trim_start_matches([' ', '/', '!', '*']).strip_prefix("```")?;
    head.split(',').any(|part| part.trim() == word).then_some(word)
}

/// No file names a package registry's host (where packages come from is the user's configuration)
/// or a path of the machine it was written on.
pub(super) fn no_private_names(files: &[SourceFile]) -> Vec<Violation> {
    lines_with(files, |line| private_host(line).or_else(|| private_path(line)))
}

fn private_host(line: &str) -> Option<&'static str> {
    // Cargo writes this source into Cargo.lock whatever registry it is configured to ask.
    let line =
        line.replace(concat!("registry+https://github.com/rust-lang/crates", ".io-index"), "");
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
        concat!("npmjs", ".com"),
        concat!("docker", ".io"),
        concat!("deb.", "debian.org"),
        concat!("archive.", "ubuntu.com"),
        concat!("artif", "actory"),
    ];
    hosts.into_iter().find(|host| line.contains(host))
}

fn private_path(line: &str) -> Option<&'static str> {
    let folders = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/Us", "ers/"),
        concat!("\\Us", "ers\\"),
    ];
    folders.into_iter().find(|folder| {
        // Behind a name it is the middle of a relative path or of an address.
        let absolute =
            |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~".contains(c));
        line.match_indices(folder).any(|(at, _)| absolute(at))
    })
}

/// One violation for each line in which `find` finds something forbidden.
fn lines_with<'a>(
    files: impl IntoIterator<Item = &'a SourceFile>,
    find: impl Fn(&str) -> Option<&'static str>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(word) = find(line) {
                let place = format!("{}:{}", file.path, index + 1);
                violations.push(Violation::new(place, format!("remove `{word}`")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::assert_kept;
    use crate::workspace::Workspace;

    fn workspace_files() -> Vec<SourceFile> {
        load(&Workspace::load().unwrap().root).unwrap()
    }

    /// Places of the violations that `rule` finds in a file `path` containing `text`.
    fn places(rule: fn(&[SourceFile]) -> Vec<Violation>, path: &str, text: &str) -> Vec<String> {
        let file = SourceFile { path: path.into(), text: text.into() };
        rule(&[file]).into_iter().map(|violation| violation.place).collect()
    }

    #[test]
    fn modules_of_this_workspace_are_documented() {
        assert_kept(&modules_documented(&workspace_files()));
    }

    #[test]
    fn files_of_this_workspace_are_short_enough() {
        assert_kept(&short_enough(&workspace_files()));
    }

    #[test]
    fn nothing_in_this_workspace_is_unfinished() {
        assert_kept(&nothing_unfinished(&workspace_files()));
    }

    #[test]
    fn this_workspace_names_nothing_private() {
        assert_kept(&no_private_names(&workspace_files()));
    }

    #[test]
    fn this_file_is_found_and_build_results_are_not() {
        let files = workspace_files();
        assert!(files.iter().any(|file| file.path == "xtask/src/tidy/sources.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target")));
    }

    #[test]
    fn an_undocumented_module_is_noticed() {
        assert_eq!(places(modules_documented, "crates/a/src/b.rs", "use c;\n").len(), 1);
        assert_eq!(places(modules_documented, "crates/a/src/b.rs", "//! B.\n").len(), 0);
        assert_eq!(places(modules_documented, "crates/a/tests/b.rs", "use c;\n").len(), 0);
    }

    #[test]
    fn a_front_page_documents_its_crate() {
        let front_page = "#![no_std]\n\n#![doc = include_str!(\"../README.md\")]\n";
        assert_eq!(places(modules_documented, "crates/a/src/lib.rs", front_page).len(), 0);
        let attribute_only = "#![no_std]\n\nuse b;\n//! Late.\n";
        assert_eq!(places(modules_documented, "crates/a/src/lib.rs", attribute_only).len(), 1);
    }

    #[test]
    fn a_long_file_is_noticed_unless_it_is_data() {
        let text = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(places(short_enough, "a.rs", &text).len(), 1);
        assert_eq!(places(short_enough, "a.csv", &text).len(), 0);
        assert_eq!(places(short_enough, "a.rs", &"x\n".repeat(MAX_LINES)).len(), 0);
    }

    #[test]
    fn unfinished_code_is_noticed() {
        for word in [concat!("to", "do!()"), concat!("#[ig", "nore = \"slow\"]")] {
            assert_eq!(places(nothing_unfinished, "a.rs", &format!("a\n{word}\n")), ["a.rs:2"]);
        }
    }

    #[test]
    fn an_example_that_is_not_compiled_is_noticed() {
        let head = concat!("``", "`rust,ig", "nore");
        assert_eq!(places(nothing_unfinished, "a.md", head), ["a.md:1"]);
        assert_eq!(places(nothing_unfinished, "a.rs", &format!("    /// {head}")), ["a.rs:1"]);
        assert_eq!(places(nothing_unfinished, "a.md", "```rust,no_run").len(), 0);
    }

    #[test]
    fn private_names_are_noticed() {
        for word in [
            concat!("https://crates", ".io/crates/a"),
            concat!("in /ho", "me/someone/x"),
            concat!("\"/wo", "rk/x\""),
            concat!("C:\\Us", "ers\\x"),
        ] {
            assert_eq!(places(no_private_names, "a.md", word).len(), 1, "{word}");
        }
    }

    #[test]
    fn relative_paths_and_lock_files_are_not_private() {
        for word in [
            concat!("see docs/wo", "rk/x"),
            concat!("https://a.b/ho", "me/x"),
            concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\""),
        ] {
            assert_eq!(places(no_private_names, "Cargo.lock", word).len(), 0, "{word}");
        }
    }
}
