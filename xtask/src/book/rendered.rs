//! Follows the links of a book that has been built: each leads to a file, and to a place in it if it names one.
//!
//! Owns what a link looks like in the HTML that mdBook writes. Other sites are not asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A page of its own kind, whose links are from the root of a site that nobody knows.
const NOT_FOUND: &str = "404.html";

/// The links of all pages in a folder that lead nowhere: `page: target`.
///
/// # Errors
/// If a page cannot be read.
pub(super) fn broken_links(folder: &Path) -> Result<Vec<String>, Error> {
    let mut pages = BTreeMap::new();
    read_pages(folder, folder, &mut pages)?;
    let places: BTreeMap<_, _> = pages.iter().map(|(path, text)| (path, places(text))).collect();
    let arrives = |page: &PathBuf, target: &str| {
        let (path, place) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { page.clone() } else { join(page, path) };
        match places.get(&path) {
            Some(known) => place.is_empty() || known.contains(place),
            None => folder.join(&path).is_file(),
        }
    };
    let broken = |(page, text): (&PathBuf, &String)| {
        let targets = attributes(text, &["href", "src"]);
        let nowhere = targets.filter(|target| is_inside(target) && !arrives(page, target));
        nowhere.map(|target| format!("{}: {target}", page.display())).collect::<BTreeSet<_>>()
    };
    Ok(pages.iter().flat_map(broken).collect())
}

/// All pages by their paths in `root`.
fn read_pages(
    root: &Path,
    folder: &Path,
    pages: &mut BTreeMap<PathBuf, String>,
) -> Result<(), Error> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        |source| Error::Read { path, source }
    };
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let name = path.strip_prefix(root).expect("it is in the folder");
        if path.is_dir() {
            read_pages(root, &path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") && name != Path::new(NOT_FOUND)
        {
            pages.insert(name.to_owned(), fs::read_to_string(&path).map_err(unreadable(&path))?);
        }
    }
    Ok(())
}

/// The places of a page that links can name.
fn places(text: &str) -> BTreeSet<String> {
    attributes(text, &["id", "name"]).map(str::to_owned).collect()
}

/// What the attributes of these names say.
fn attributes<'a>(text: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    names.iter().flat_map(move |name| {
        let begins = text.match_indices(*name).map(|(at, _)| (at, at + name.len()));
        begins.filter_map(move |(begin, end)| {
            let is_whole = text[..begin].ends_with([' ', '\n']);
            let value = text[end..].strip_prefix("=\"").filter(|_| is_whole)?;
            Some(value.split_once('"')?.0)
        })
    })
}

fn is_inside(target: &str) -> bool {
    let other = ["http:", "https:", "mailto:", "data:", "javascript:", "/"];
    !target.is_empty() && !other.iter().any(|start| target.starts_with(start))
}

/// A path that a page names, in the book.
fn join(page: &Path, path: &str) -> PathBuf {
    let mut joined = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(joined.pop()),
            part => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let folder = Workspace::load().unwrap().target_dir.join("rendered-of-a-test");
        fs::create_dir_all(folder.join("in")).unwrap();
        let page = "<a href=\"in/b.html#there\"><a href=\"in/b.html#gone\"><img src=\"gone.svg\">\
                    <a href=\"#here\"><h1 id=\"here\"><a href=\"https://far.away/x.html\">";
        fs::write(folder.join("a.html"), page).unwrap();
        fs::write(
            folder.join("in/b.html"),
            "<h2 id=\"there\"><a href=\"../a.html\"><a href=\"c.txt\">",
        )
        .unwrap();
        fs::write(folder.join("in/c.txt"), "text").unwrap();
        let broken = broken_links(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(broken, ["a.html: gone.svg", "a.html: in/b.html#gone"]);
    }
}
