//! The terms under which dependencies may be used, held against the list in `deny.toml`.
//!
//! Owns the little of SPDX expressions that packages use: names joined by `OR`, `AND`, `WITH` and `/`, in
//! parentheses. All else that the file says is the business of `cargo deny`.

use std::path::Path;

use serde_json::Value;

use crate::error::Error;
use crate::files::read;
use crate::runner::describe;
use crate::workspace::cargo;

/// Dependencies of the workspace in `clone` whose terms its `deny.toml` does not allow: a line for each.
///
/// # Errors
/// If Cargo cannot be run, or `deny.toml` not be read.
pub(super) fn faults(clone: &Path, home: &Path) -> Result<Vec<String>, Error> {
    let path = clone.join("deny.toml");
    let text = read(&path)?;
    let allowed = allowed(&text).ok_or_else(|| Error::Malformed {
        path,
        what: "there is no list `allow = [ .. ]`".to_owned(),
    })?;
    let mut command = cargo();
    command.current_dir(clone).env("CARGO_HOME", home);
    command.args(["metadata", "--locked", "--all-features", "--format-version", "1"]);
    let output = command.output();
    let output = output.map_err(|source| Error::Start { program: describe(&command), source })?;
    let json: Value = serde_json::from_slice(&output.stdout).map_err(|_| Error::Metadata {
        what: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })?;
    let packages = json["packages"].as_array().into_iter().flatten();
    Ok(packages.filter_map(|package| fault(package, &allowed)).collect())
}

/// What is wrong with the terms of a package.
fn fault(package: &Value, allowed: &[&str]) -> Option<String> {
    let terms = package["license"].as_str();
    let Some(terms) = terms else { return Some(format!("{} names no licence", package["name"])) };
    (!may_use(terms, allowed)).then(|| {
        format!("{} is licensed under {terms}, which deny.toml does not allow", package["name"])
    })
}

/// The list `allow` of `deny.toml`.
fn allowed(deny: &str) -> Option<Vec<&str>> {
    let (_, list) = deny.split_once("\nallow = [")?;
    let (list, _) = list.split_once(']')?;
    // What is between quotation marks.
    Some(list.split('"').skip(1).step_by(2).collect())
}

/// Whether an SPDX expression allows use under some of these terms.
fn may_use(terms: &str, allowed: &[&str]) -> bool {
    let spaced = terms.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let (may, rest) = alternatives(&words, allowed);
    may && rest.is_empty()
}

/// `a OR b …`, and the words behind it.
fn alternatives<'w>(words: &'w [&'w str], allowed: &[&str]) -> (bool, &'w [&'w str]) {
    let (mut may, mut rest) = together(words, allowed);
    while let [word, others @ ..] = rest
        && word.eq_ignore_ascii_case("or")
    {
        let (other, behind) = together(others, allowed);
        (may, rest) = (may | other, behind);
    }
    (may, rest)
}

/// `a AND b …`, which binds closer.
fn together<'w>(words: &'w [&'w str], allowed: &[&str]) -> (bool, &'w [&'w str]) {
    let (mut may, mut rest) = single(words, allowed);
    while let [word, others @ ..] = rest
        && word.eq_ignore_ascii_case("and")
    {
        let (other, behind) = single(others, allowed);
        (may, rest) = (may & other, behind);
    }
    (may, rest)
}

/// A name, a name `WITH` an exception, or what is in parentheses.
fn single<'w>(words: &'w [&'w str], allowed: &[&str]) -> (bool, &'w [&'w str]) {
    match words {
        ["(", inner @ ..] => match alternatives(inner, allowed) {
            (may, [")", rest @ ..]) => (may, rest),
            (_, rest) => (false, rest),
        },
        [name, with, exception, rest @ ..] if with.eq_ignore_ascii_case("with") => {
            (allowed.contains(&format!("{name} WITH {exception}").as_str()), rest)
        }
        [name, rest @ ..] => (allowed.contains(name), rest),
        [] => (false, words),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{allowed, fault, may_use};

    const DENY: &str = "[licenses]\nallow = [\n    \"MIT\",\n    \"Zlib\",\n    \"Apache-2.0 WITH \
                        LLVM-exception\",\n]\n";

    #[test]
    fn one_of_several_is_enough_and_all_of_a_sum_are_needed() {
        let allowed = allowed(DENY).unwrap();
        for terms in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "(GPL-3.0 OR MIT) AND Zlib",
            "GPL-3.0 AND X OR MIT AND Zlib",
            "((MIT))",
        ] {
            assert!(may_use(terms, &allowed), "{terms}");
        }
        for terms in [
            "",
            "GPL-3.0",
            "Apache-2.0",
            "MIT AND GPL-3.0",
            "MIT WITH Nothing",
            "(MIT OR GPL-3.0) AND GPL-3.0",
            "(MIT",
            "MIT)",
            "MIT Zlib",
        ] {
            assert!(!may_use(terms, &allowed), "{terms}");
        }
    }

    #[test]
    fn a_package_without_terms_and_one_with_others_are_named() {
        let allowed = allowed(DENY).unwrap();
        let said = |package| fault(&package, &allowed);
        assert_eq!(said(json!({"name": "a", "license": "MIT OR X"})), None);
        let other = said(json!({"name": "a", "license": "X"})).unwrap();
        assert_eq!(other, "\"a\" is licensed under X, which deny.toml does not allow");
        assert_eq!(said(json!({"name": "a", "license": null})).unwrap(), "\"a\" names no licence");
    }

    #[test]
    fn the_list_is_that_of_the_repository() {
        let deny = include_str!("../../../deny.toml");
        let allowed = allowed(deny).unwrap();
        assert!(allowed.contains(&"MIT") && !allowed.contains(&"GPL-3.0-only"), "{allowed:?}");
        assert_eq!(super::allowed("[licenses]\n"), None);
    }
}
