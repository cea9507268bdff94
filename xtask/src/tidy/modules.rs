//! The modules of a crate, and which of them name which others: as much of Rust as that takes.
//!
//! Reads paths that begin with `crate`, `super` or `self`, wherever they stand, and imports, and
//! follows names that a module on the way has imported from another. Code for tests is left out,
//! since tests may look anywhere. What comes through a method call or a glob is not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::SourceFile;
use super::tokens::{Token, tokens};

/// A path from the root of a crate, which has none.
pub(super) type Path = Vec<String>;

/// The modules of one crate.
#[derive(Debug, Default)]
pub(super) struct Modules(BTreeMap<Path, Module>);

#[derive(Debug, Default)]
struct Module {
    /// What it names.
    named: BTreeSet<Path>,
    /// The names that it has imported, or exports again, with where they come from.
    imported: BTreeMap<String, Path>,
}

/// Imports that lead to imports: more in a row than this lead nowhere.
const MOST_IMPORTS: usize = 8;

impl Modules {
    /// The modules of the crate whose root is the file `root`.
    pub(super) fn of(root: &str, files: &[SourceFile]) -> Self {
        let mut modules = Self::default();
        let folder = root.rsplit_once('/').map_or(".", |(folder, _)| folder);
        modules.add(&Path::new(), root, folder, files);
        modules
    }

    /// Pairs of a module and what it names in a module, its own among them.
    pub(super) fn arrows(&self) -> impl Iterator<Item = (&Path, Path)> {
        self.0.iter().flat_map(move |(from, module)| {
            module.named.iter().map(move |named| (from, self.home(named, MOST_IMPORTS).to_vec()))
        })
    }

    /// Adds the module of a file, and those below it, whose files are in `folder`.
    fn add(&mut self, path: &Path, file: &str, folder: &str, files: &[SourceFile]) {
        let Some(source) = files.iter().find(|source| source.path == file) else { return };
        let tokens = tokens(&source.text);
        let mut reader = Reader { tokens: &tokens, modules: self, inner: Vec::new() };
        reader.read(path);
        for below in reader.inner {
            let folder = format!("{folder}/{}", below[path.len()..].join("/"));
            let beside = format!("{folder}.rs");
            let inside = format!("{folder}/mod.rs");
            let is_beside = files.iter().any(|source| source.path == beside);
            self.add(&below, if is_beside { &beside } else { &inside }, &folder, files);
        }
    }

    /// The module that holds what a path names.
    fn home(&self, path: &[String], imports: usize) -> Path {
        for length in 0..path.len() {
            let (at, name) = (&path[..length], &path[length]);
            if self.0.contains_key(&path[..=length]) {
                continue;
            }
            return match self.0.get(at).and_then(|module| module.imported.get(name)) {
                Some(origin) if imports > 0 => {
                    self.home(&[origin, &path[length + 1..]].concat(), imports - 1)
                }
                _ => at.to_vec(),
            };
        }
        path.to_vec()
    }
}

/// Reads one file.
struct Reader<'r> {
    tokens: &'r [Token<'r>],
    modules: &'r mut Modules,
    /// Modules below that have files of their own.
    inner: Vec<Path>,
}

const CFG_TEST: [Token<'_>; 7] = [
    Token::Sign('#'),
    Token::Sign('['),
    Token::Word("cfg"),
    Token::Sign('('),
    Token::Word("test"),
    Token::Sign(')'),
    Token::Sign(']'),
];

impl Reader<'_> {
    fn read(&mut self, path: &Path) {
        let mut at = 0;
        self.read_until_end(&mut at, path);
    }

    /// Reads from token `at` on, what belongs to one module, up to the brace that ends it.
    fn read_until_end(&mut self, at: &mut usize, path: &Path) {
        self.modules.0.entry(path.clone()).or_default();
        let mut depth = 0_usize;
        while let Some(&token) = self.tokens.get(*at) {
            if self.tokens[*at..].starts_with(&CFG_TEST) {
                *at += CFG_TEST.len();
                self.skip_item(at);
                continue;
            }
            *at += 1;
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') if depth == 0 => return,
                Token::Sign('}') => depth -= 1,
                Token::Word("mod") => self.module(at, path),
                Token::Word("use") => self.import(at, path, &mut Path::new()),
                Token::Word("crate" | "super" | "self") if self.begins_path(*at) => {
                    *at -= 1;
                    self.name(at, path);
                }
                _ => {}
            }
        }
    }

    /// Whether a path's first word is before token `at`.
    fn begins_path(&self, at: usize) -> bool {
        let is_first = at < 2 || self.tokens[at - 2] != Token::Colons;
        is_first && self.tokens.get(at) == Some(&Token::Colons)
    }

    fn module(&mut self, at: &mut usize, path: &Path) {
        let Some(Token::Word(name)) = self.tokens.get(*at) else { return };
        let below = [path.as_slice(), &[(*name).to_owned()]].concat();
        match self.tokens.get(*at + 1) {
            Some(Token::Sign(';')) => self.inner.push(below),
            Some(Token::Sign('{')) => {
                *at += 2;
                self.read_until_end(at, &below);
            }
            _ => {}
        }
    }

    /// A path in the midst of code.
    fn name(&mut self, at: &mut usize, path: &Path) {
        let mut words = Path::new();
        while let Some(Token::Word(word)) = self.tokens.get(*at) {
            words.push((*word).to_owned());
            *at += 1;
            if self.tokens.get(*at) != Some(&Token::Colons) {
                break;
            }
            *at += 1;
        }
        self.note(path, &words, None);
    }

    /// A tree of imports that begins with `words`, up to the sign that ends it.
    fn import(&mut self, at: &mut usize, path: &Path, words: &mut Path) {
        let before = words.len();
        let mut alias = None;
        while let Some(&token) = self.tokens.get(*at) {
            match token {
                Token::Word("as") => {
                    *at += 1;
                    let name = self.tokens.get(*at);
                    alias = name.and_then(|name| match name {
                        Token::Word(name) => Some((*name).to_owned()),
                        _ => None,
                    });
                }
                Token::Word("self") if !words.is_empty() => {}
                Token::Word(word) => words.push(word.to_owned()),
                Token::Sign('{') => {
                    self.imports(at, path, words);
                    words.truncate(before);
                    return;
                }
                Token::Colons | Token::Sign('*') => {}
                Token::Sign(_) => break,
            }
            *at += 1;
        }
        let name = alias.or_else(|| words.last().cloned());
        self.note(path, words, name);
        words.truncate(before);
    }

    /// Several trees of imports in braces.
    fn imports(&mut self, at: &mut usize, path: &Path, words: &mut Path) {
        *at += 1;
        while let Some(&token) = self.tokens.get(*at) {
            match token {
                Token::Sign('}') => {
                    *at += 1;
                    return;
                }
                Token::Sign(',') => *at += 1,
                _ => self.import(at, path, words),
            }
        }
    }

    /// Notes that the module `path` names something, under a name if it imports it.
    fn note(&mut self, path: &Path, words: &[String], name: Option<String>) {
        let mut from = path.clone();
        let mut words = words;
        while let [first, rest @ ..] = words {
            match first.as_str() {
                "crate" => from.clear(),
                "super" => _ = from.pop(),
                "self" => {}
                _ => break,
            }
            words = rest;
        }
        from.extend_from_slice(words);
        let module = self.modules.0.entry(path.clone()).or_default();
        if let Some(name) = name {
            module.imported.insert(name, from.clone());
        }
        module.named.insert(from);
    }

    /// Passes over an item and its other attributes.
    fn skip_item(&self, at: &mut usize) {
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(*at) {
            *at += 1;
            match token {
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}') if depth == 1 => return,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Sign(';') if depth == 0 => return,
                _ => {}
            }
        }
    }
}
