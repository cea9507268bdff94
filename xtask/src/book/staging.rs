//! Lays the pages of the book out for mdBook, which wants them all in one folder.
//!
//! Owns what is copied where: pages keep their paths from the root of the repository, so that links between
//! them hold. Links that mean nothing in a book, those to folders and to items of Rust, become plain text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::files::{read, remove};
use crate::tidy::links;

/// The table of contents. Its links are from its own folder, as everywhere.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

const SETTINGS: &str = "docs/book.toml";

/// Copies what the book is made of into `folder`, and returns of how many pages.
///
/// # Errors
/// If a file cannot be read or written, or a page links to a page that is not in the book.
pub(super) fn stage(root: &Path, folder: &Path) -> Result<usize, Error> {
    let source = folder.join("src");
    remove(&source)?;
    write(&folder.join("book.toml"), read(&root.join(SETTINGS))?.as_bytes())?;
    let summary = read(&root.join(SUMMARY))?;
    let pages: BTreeSet<String> = listed(&summary).collect();
    write(&source.join("SUMMARY.md"), from_root(&summary).as_bytes())?;
    let mut others = BTreeSet::new();
    for page in &pages {
        let text = read(&root.join(page))?;
        for (line, target) in links::links(&text) {
            let (path, _) = target.split_once('#').unwrap_or((&target, ""));
            let path = links::resolve(page, path);
            if path.ends_with(".md")
                && !path.is_empty()
                && !pages.contains(&path)
                && path != SUMMARY
            {
                let what = format!("line {line} links to {path}, which is not in {SUMMARY}");
                return Err(Error::Malformed { path: root.join(page), what });
            }
            others.insert(path);
        }
        let means_something = |target: &str| {
            target.contains("://")
                || links::is_path(target) && {
                    let (path, _) = target.split_once('#').unwrap_or((target, ""));
                    let file = links::resolve(page, path);
                    path.is_empty() || file != SUMMARY && root.join(file).is_file()
                }
        };
        write(&source.join(page), unlinked(&text, means_something).as_bytes())?;
    }
    for path in others.difference(&pages).filter(|path| root.join(path).is_file()) {
        let from = root.join(path);
        let bytes = fs::read(&from).map_err(|error| Error::Read { path: from, source: error })?;
        write(&source.join(path), &bytes)?;
    }
    Ok(pages.len())
}

/// The pages of a table of contents, by their paths from the root.
pub(super) fn listed(summary: &str) -> impl Iterator<Item = String> {
    links::links(summary).into_iter().map(|(_, target)| links::resolve(SUMMARY, &target))
}

/// A table of contents whose paths are from the root.
fn from_root(summary: &str) -> String {
    let mut lines = String::new();
    for line in summary.lines() {
        match line.split_once("](").and_then(|(title, rest)| Some((title, rest.split_once(')')?))) {
            Some((title, (target, rest))) => {
                let path = links::resolve(SUMMARY, target);
                lines.push_str(&format!("{title}]({path}){rest}"));
            }
            None => lines.push_str(line),
        }
        lines.push('\n');
    }
    lines
}

/// A page whose links are those that mean something; of others, what they show.
fn unlinked(text: &str, means_something: impl Fn(&str) -> bool) -> String {
    let code = code(text);
    let mut left = String::with_capacity(text.len());
    let mut copied = 0;
    for (middle, _) in text.match_indices("](") {
        let Some(target) = (!code[middle]).then(|| in_brackets(&text[middle + 1..])).flatten()
        else {
            continue;
        };
        let begin = text[..middle].rfind('[').filter(|begin| *begin >= copied && !code[*begin]);
        let Some(begin) = begin else { continue };
        if !means_something(target) {
            left.push_str(&text[copied..begin]);
            left.push_str(&text[begin + 1..middle]);
            copied = middle + 1 + target.len() + 2;
        }
    }
    left.push_str(&text[copied..]);
    left
}

/// What is in the brackets that a text begins with.
fn in_brackets(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, mark) in text.char_indices() {
        match mark {
            '(' => depth += 1,
            ')' => depth -= 1,
            '\n' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[1..at]);
        }
    }
    None
}

/// For each byte of a page, whether it is code.
fn code(text: &str) -> Vec<bool> {
    let mut code = Vec::with_capacity(text.len());
    let (mut is_block, mut is_span) = (false, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        is_span &= !line.trim().is_empty() && !is_fence;
        for byte in line.bytes() {
            is_span ^= byte == b'`' && !is_block && !is_fence;
            code.push(is_block || is_fence || is_span);
        }
    }
    code
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().expect("a file is in a folder");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn links_that_mean_nothing_become_what_they_show() {
        let text = "[`a`](Item::a) and [b](b.md), ![c](c.svg)\n[d](mapper()), `[e](e)`\n```\n[f](f)\n```\n";
        let left = unlinked(text, |target| target.contains('.'));
        let expected = "`a` and [b](b.md), ![c](c.svg)\nd, `[e](e)`\n```\n[f](f)\n```\n";
        assert_eq!(left, expected);
    }

    #[test]
    fn the_table_of_contents_names_paths_from_the_root() {
        let summary = "# Contents\n[One](../README.md)\n- [Two](book/two.md)\n";
        let expected = "# Contents\n[One](README.md)\n- [Two](docs/book/two.md)\n";
        assert_eq!(from_root(summary), expected);
    }

    /// Needs no mdBook: the book has all pages that its pages lead to, and all of `docs`.
    #[test]
    fn the_book_of_this_repository_is_complete() {
        let workspace = Workspace::load().unwrap();
        let folder = workspace.target_dir.join("book-of-a-test");
        let pages = stage(&workspace.root, &folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let summary = read(&workspace.root.join(SUMMARY)).unwrap();
        let pages_listed: BTreeSet<String> = listed(&summary).collect();
        assert_eq!(pages, pages_listed.len());
        for folder in ["docs", "docs/book"] {
            for file in fs::read_dir(workspace.root.join(folder)).unwrap() {
                let path = workspace.relative(&file.unwrap().path());
                let is_page = path.ends_with(".md") && path != SUMMARY;
                assert!(!is_page || pages_listed.contains(&path), "{path} is not in {SUMMARY}");
            }
        }
    }
}
