//! Rules about links between pages: a reader who follows one arrives.
//!
//! Owns what a link and a heading look like in Markdown, as far as pages here use it. Links to other
//! sites and to items of Rust are for others to check: rustdoc does the latter.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::sources::SourceFile;

/// Every link of a page leads to a file of the repository, and to a heading of it if it names one.
/// `exists` tells whether there is a file or folder of that path from the root.
pub(super) fn arrive(files: &[SourceFile], exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let pages = || files.iter().filter(|file| file.path.ends_with(".md"));
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages().map(|page| (&*page.path, headings(&page.text))).collect();
    let broken = |page: &SourceFile, (line, target): (usize, String)| {
        let place = format!("{}:{line}", page.path);
        let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
        let path = match path {
            "" => page.path.clone(),
            path => resolve(&page.path, path),
        };
        if !exists(&path) {
            return Some(Violation::new(place, format!("there is no `{path}`, to which it links")));
        }
        let known = headings.get(&*path).filter(|_| !heading.is_empty())?;
        let advice = || format!("`{path}` has no heading `#{heading}`, to which it links");
        (!known.contains(heading)).then(|| Violation::new(place, advice()))
    };
    pages()
        .flat_map(|page| links(&page.text).into_iter().filter_map(|link| broken(page, link)))
        .collect()
}

/// The lines of a page that are no code, with their numbers from 1, and without code within them.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let words = || line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!is_code && !is_fence).then(|| (index + 1, words()))
    })
}

/// What the links of a page name, with their lines: paths and headings, not other sites or items.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        let targets = words.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let paths = targets.map(|(target, _)| target).filter(|target| is_path(target));
        found.extend(paths.map(|path| (line, path.to_owned())));
    }
    found
}

pub(crate) fn is_path(target: &str) -> bool {
    let is_other = ["::", "@", "(", " "].iter().any(|mark| target.contains(mark));
    !is_other && !target.contains("://") && target.contains(['.', '/', '#'])
}

/// The headings of a page, as links name them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let titles = text.lines().filter_map(|line| {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        (!is_code && line.starts_with('#') && title.starts_with(' ')).then(|| title.trim())
    });
    titles.map(name_of).collect()
}

/// How links name a heading: in small letters, blanks as hyphens, other marks left out. Of a link
/// in it, what it shows.
fn name_of(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((text, behind)) = link.split_once("](") else { break };
        shown.push_str(before);
        shown.push_str(text);
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    shown.push_str(rest);
    let linked = |mark: char| match mark {
        ' ' => Some('-'),
        '-' | '_' => Some(mark),
        mark => mark.is_alphanumeric().then_some(mark),
    };
    shown.to_lowercase().chars().filter_map(linked).collect()
}

/// A path that a page names, from the root of the repository.
pub(crate) fn resolve(page: &str, path: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::assert_kept;
    use crate::workspace::Workspace;

    #[test]
    fn links_of_this_repository_arrive() {
        let workspace = Workspace::load().unwrap();
        let files = super::super::sources::load(&workspace.root).unwrap();
        assert_kept(&arrive(&files, |path| workspace.root.join(path).exists()));
    }

    fn page(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_to_nowhere_are_found() {
        let other = "# One [link](x) & `two` words\n```\n# no heading\n```\n## More_than that\n";
        let text = "[a](other.md) [b](other.md#one-link--two-words) [c](#here)\n\n# Here\n\
                    `[d](gone.md)`\n```\n[e](gone.md)\n```\n[f](https://far.away/x.md)\n\
                    [g](crate::Item) [h](derive@Thing) [i](../docs/) [j](other.md#more_than-that)\n\
                    [k](gone.md) [l](other.md#no-heading)\n[m](#there)\n";
        let files = [page("docs/a.md", text), page("docs/other.md", other)];
        let known = ["docs", "docs/a.md", "docs/other.md"];
        let found = arrive(&files, |path| known.contains(&path));
        let places: Vec<_> = found.iter().map(|one| &*one.place).collect();
        assert_eq!(places, ["docs/a.md:10", "docs/a.md:10", "docs/a.md:11"]);
        assert!(found[0].advice.contains("docs/gone.md") && found[1].advice.contains("no-heading"));
    }
}
