//! Names of projects: what Cargo takes for a package whose program can be built.

use std::fmt;

/// The longest name, in characters: registries take up to 64, and the kernels' crate adds `-kernels`.
const LONGEST: usize = 56;

/// Folders in Cargo's target directory: it builds no programs of these names.
const FOLDERS: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Crates of Rust itself, and `test`, which Cargo keeps for itself.
const CRATES: [&str; 5] = ["alloc", "core", "proc-macro", "std", "test"];

/// Words of the language that name no crate.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The name of a project: 1 to 56 ASCII letters, digits, `-` and `_`, beginning with a letter.
///
/// ```
/// use celerity_new::{Name, NameError, NameFlaw};
///
/// assert_eq!(Name::new("shallow-water")?.as_str(), "shallow-water");
/// assert_eq!(Name::new("2d").unwrap_err().flaw, NameFlaw::Beginning('2'));
/// # Ok::<(), NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

/// A name that no project can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a project cannot be called \"{name}\": {flaw}")]
#[non_exhaustive]
pub struct NameError {
    /// The name that was asked for.
    pub name: String,
    /// Why it cannot be.
    pub flaw: NameFlaw,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameFlaw {
    /// It has no characters.
    Empty,
    /// It has so many characters, more than 56.
    Long(usize),
    /// It begins with this character, which is no letter of ASCII.
    Beginning(char),
    /// It has this character, which is no letter or digit of ASCII, `-` or `_`.
    Character(char),
    /// It is a word of Rust's, a crate of Rust's own, or the name of a folder in Cargo's target
    /// directory.
    Reserved,
    /// It is `celerity` or begins with `celerity-`, as the names of the crates that a project depends
    /// on do.
    Celerity,
}

impl Name {
    /// The name of a project, if Cargo takes it.
    ///
    /// # Errors
    /// [`NameError`] with the first flaw.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        match flaw(&name) {
            Some(flaw) => Err(NameError { name, flaw }),
            None => Ok(Self(name)),
        }
    }

    /// As it was given, and as the package is called.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As Rust's sources spell it: with `_` for `-`.
    pub(crate) fn as_crate(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn flaw(name: &str) -> Option<NameFlaw> {
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || ['-', '_'].contains(c);
    let Some(first) = name.chars().next() else { return Some(NameFlaw::Empty) };
    if let Some(other) = name.chars().find(|c| !is_allowed(c)) {
        return Some(NameFlaw::Character(other));
    }
    if !first.is_ascii_alphabetic() {
        return Some(NameFlaw::Beginning(first));
    }
    if name.len() > LONGEST {
        return Some(NameFlaw::Long(name.len()));
    }
    let plain = name.to_ascii_lowercase().replace('_', "-");
    if plain == "celerity" || plain.starts_with("celerity-") {
        return Some(NameFlaw::Celerity);
    }
    let reserved = [&FOLDERS[..], &CRATES, &KEYWORDS];
    reserved.iter().any(|names| names.contains(&plain.as_str())).then_some(NameFlaw::Reserved)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for NameFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name has at least one letter"),
            Self::Long(length) => {
                write!(f, "it has {length} characters, and {LONGEST} are the most")
            }
            Self::Beginning(c) => {
                write!(f, "it begins with {c:?}; begin with a letter from a to z")
            }
            Self::Character(c) => {
                write!(f, "it has {c:?}; use letters from a to z, digits, `-` and `_`")
            }
            Self::Reserved => {
                f.write_str("Rust or Cargo uses that name itself; choose another one")
            }
            Self::Celerity => {
                f.write_str("crates of Celerity's are called so; choose a name of your own")
            }
        }
    }
}
