//! The rule that a name of a type means one thing in all crates that programs are built from.
//!
//! Looked at are types, traits and aliases that are `pub` or `pub(crate)`: whoever works on several
//! crates at once meets those. What a module keeps to itself is explained by the module, and
//! programs, examples and tests have names of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::sources::SourceFile;
use super::tokens::{Token, tokens};

/// A name that is defined more than once, and means the same wherever it is.
struct Shared {
    name: &'static str,
    /// The folders of the crates that define it, and no others.
    crates: &'static [&'static str],
    /// What it means in all of them.
    meaning: &'static str,
}

/// What one layer has of something, and another has of the same thing. A name that is no longer
/// shared breaks the rule as well.
const SHARED: [Shared; 18] = [
    Shared { name: "Boxes", crates: &["checker", "idag"], meaning: "a list of boxes" },
    Shared {
        name: "Broken",
        crates: &["cdag", "idag", "regions", "tdag"],
        meaning: "a promise of a layer that its `verify` finds broken",
    },
    Shared {
        name: "BufferState",
        crates: &["cdag", "idag", "tdag"],
        meaning: "what a generator keeps of a buffer",
    },
    Shared {
        name: "Buffers",
        crates: &["checker", "idag"],
        meaning: "the buffers that live, by id",
    },
    Shared {
        name: "Chunk",
        crates: &["kernel", "regions"],
        meaning: "a part of an index space; kernels get it in words, by an ABI",
    },
    Shared {
        name: "Diagnostic",
        crates: &["cdag", "idag"],
        meaning: "a mistake of the user's that a generator notices",
    },
    Shared {
        name: "EntryKind",
        crates: &["kernel", "kernel-macros"],
        meaning: "how threads go through items by an entry point; a macro depends on none of ours",
    },
    Shared {
        name: "Error",
        crates: &["celerity", "kernel-build"],
        meaning: "all that can go wrong in what a crate is for",
    },
    Shared {
        name: "Form",
        crates: &["kernel", "kernel-macros"],
        meaning: "what a kernel is called for; a macro depends on none of ours",
    },
    Shared {
        name: "GroupKernel",
        crates: &["celerity", "kernel"],
        meaning: "a kernel that is called with items in groups: the user's, and as it is launched",
    },
    Shared {
        name: "ItemKernel",
        crates: &["celerity", "kernel"],
        meaning: "a kernel that is called with items: the user's, and as it is launched",
    },
    Shared {
        name: "PerDimension",
        crates: &["celerity", "tdag"],
        meaning: "a range mapper that looks at each dimension by itself",
    },
    Shared {
        name: "PlainData",
        crates: &["kernel"],
        meaning: "types of plain data, with what a host checks of them and without",
    },
    Shared {
        name: "RowKernel",
        crates: &["celerity", "kernel"],
        meaning: "a kernel that is called with rows: the user's, and as it is launched",
    },
    Shared {
        name: "Sealed",
        crates: &["celerity", "kernel"],
        meaning: "what a trait asks for so that nobody else implements it",
    },
    Shared {
        name: "Side",
        crates: &["celerity", "tdag"],
        meaning: "what is touched along one dimension: as users build it, and as graphs have it",
    },
    Shared {
        name: "ThreadId",
        crates: &["executor"],
        meaning: "a thread as the system knows it, on systems that can pin it and on others",
    },
    Shared {
        name: "Violation",
        crates: &["checker", "testkit"],
        meaning: "what an oracle finds wrong with a graph; the two share no code",
    },
];

/// Finds names that have several definitions.
pub(super) fn mean_one_thing(files: &[SourceFile]) -> Vec<Violation> {
    against(&SHARED, files)
}

fn against(shared: &[Shared], files: &[SourceFile]) -> Vec<Violation> {
    let mut defined = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for file in files {
        let Some(name) = crate_of(&file.path) else { continue };
        for definition in definitions(&tokens(&file.text)) {
            defined.entry(definition).or_default().push((name, &file.path));
        }
    }
    let unlisted = defined.iter().filter(|(_, places)| places.len() > 1).filter_map(|(name, places)| {
        let crates: BTreeSet<_> = places.iter().map(|(crate_name, _)| *crate_name).collect();
        let listed = shared.iter().find(|shared| shared.name == *name);
        (!listed.is_some_and(|shared| crates.iter().all(|one| shared.crates.contains(one)))).then(|| {
            let advice = format!(
                "`{name}` is defined in {} places; if it means several things, rename all but \
                 one, or else say what it means in xtask/src/tidy/names.rs",
                places.len(),
            );
            let paths: Vec<_> = places.iter().map(|(_, path)| *path).collect();
            Violation::new(paths.join(", "), advice)
        })
    });
    let mut violations: Vec<_> = unlisted.collect();
    violations.extend(shared.iter().filter(|shared| !is_shared(shared, &defined)).map(|shared| {
        let Shared { name, crates, meaning } = shared;
        let crates = crates.join(", ");
        let advice = format!("`{name}` ({meaning}) is not shared by {crates}; mend the list");
        Violation::new("xtask/src/tidy/names.rs", advice)
    }));
    violations
}

/// Whether a name is defined more than once, and in all crates that the list says.
fn is_shared(shared: &Shared, defined: &BTreeMap<&str, Vec<(&str, &str)>>) -> bool {
    defined.get(shared.name).is_some_and(|places| {
        let is_in = |one: &&str| places.iter().any(|(name, _)| name == one);
        places.len() > 1 && shared.crates.iter().all(is_in)
    })
}

/// The folder of the crate whose production code a file is.
fn crate_of(path: &str) -> Option<&str> {
    let (name, below) = path.strip_prefix("crates/")?.split_once('/')?;
    let source = below.strip_prefix("src/")?.strip_suffix(".rs")?;
    let is_other = |part: &str| ["bin", "tests"].contains(&part);
    (!source.split('/').any(is_other)).then_some(name)
}

/// The names that a file defines for its crate, or for all.
fn definitions<'t>(tokens: &[Token<'t>]) -> Vec<&'t str> {
    let begin = |at: usize| match tokens[at..] {
        [Token::Word("pub"), Token::Sign('('), Token::Word("crate"), Token::Sign(')'), ..] => {
            Some(at + 4)
        }
        [Token::Word("pub"), ..] => Some(at + 1),
        _ => None,
    };
    (0..tokens.len()).filter_map(begin).filter_map(|at| defined(&tokens[at..])).collect()
}

/// The name that an item defines, if it is a type.
fn defined<'t>(item: &[Token<'t>]) -> Option<&'t str> {
    match item {
        [Token::Word("unsafe"), rest @ ..] => defined(rest),
        [Token::Word("struct" | "enum" | "union" | "trait" | "type"), Token::Word(name), ..] => {
            Some(name)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::assert_kept;
    use crate::tidy::sources::load;
    use crate::workspace::Workspace;

    const LIST: [Shared; 1] = [Shared { name: "Same", crates: &["a", "b"], meaning: "one thing" }];

    /// What a workspace of these files breaks, by name.
    fn broken(list: &[Shared], sources: &[(&str, &str)]) -> Vec<String> {
        let file =
            |&(path, text): &(&str, &str)| SourceFile { path: path.into(), text: text.into() };
        let violations = against(list, &sources.iter().map(file).collect::<Vec<_>>());
        let named = |one: Violation| one.advice.split('`').nth(1).unwrap().to_owned();
        violations.into_iter().map(named).collect()
    }

    #[test]
    fn names_of_this_workspace_mean_one_thing() {
        let workspace = Workspace::load().unwrap();
        assert_kept(&mean_one_thing(&load(&workspace.root).unwrap()));
    }

    #[test]
    fn a_name_with_two_definitions_is_noticed_however_they_are_written() {
        for twin in [
            "pub struct Twin;",
            "pub(crate) enum Twin {}",
            "pub unsafe trait Twin {}",
            "pub union Twin { a: u8 }",
            "pub type Twin = u8;",
            "mod inner { pub(crate) struct Twin<'a, T>(&'a T); }",
        ] {
            let other = ("crates/b/src/c/d.rs", "pub struct Twin { a: u8 }");
            assert_eq!(broken(&[], &[("crates/a/src/lib.rs", twin), other]), ["Twin"], "{twin}");
            assert_eq!(broken(&[], &[("crates/b/src/lib.rs", twin), other]), ["Twin"], "{twin}");
        }
    }

    #[test]
    fn what_a_module_keeps_to_itself_and_what_is_no_library_is_free() {
        let one = ("crates/a/src/lib.rs", "pub struct Twin;");
        for text in
            ["struct Twin;", "pub(super) struct Twin;", "// pub struct Twin;", "pub fn twin() {}"]
        {
            assert!(broken(&[], &[one, ("crates/b/src/lib.rs", text)]).is_empty(), "{text}");
        }
        for path in [
            "crates/b/tests/all.rs",
            "crates/b/src/tests.rs",
            "crates/b/src/c/tests/d.rs",
            "crates/b/src/bin/c.rs",
            "crates/b/examples/c.rs",
            "crates/b/kernels/src/lib.rs",
            "xtask/src/main.rs",
        ] {
            assert!(broken(&[], &[one, (path, "pub struct Twin;")]).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_listed_name_is_free_in_its_crates_alone_and_while_it_is_shared() {
        let of = |name| (name, "pub struct Same;");
        let (a, b) = (of("crates/a/src/lib.rs"), of("crates/b/src/lib.rs"));
        assert!(broken(&LIST, &[a, b]).is_empty());
        assert_eq!(broken(&LIST, &[a, b, of("crates/c/src/lib.rs")]), ["Same"]);
        assert_eq!(broken(&LIST, &[a]), ["Same"]);
        assert_eq!(broken(&LIST, &[a, of("crates/a/src/c.rs")]), ["Same"]);
    }
}
