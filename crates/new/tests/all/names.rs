//! What a project may be called.

use celerity_new::{Name, NameFlaw};

fn flaw(name: &str) -> Option<NameFlaw> {
    let error = Name::new(name).err()?;
    assert_eq!(error.name, name);
    Some(error.flaw)
}

#[test]
fn names_that_cargo_takes_are_taken() {
    let longest = "a".repeat(56);
    for name in ["waves", "a", "shallow-water_2d", "N-body", "tests", "celerityx", &longest] {
        assert_eq!(flaw(name), None, "{name}");
    }
}

#[test]
fn each_flaw_is_found() {
    for (name, expected) in [
        ("", NameFlaw::Empty),
        ("2d", NameFlaw::Beginning('2')),
        ("-waves", NameFlaw::Beginning('-')),
        ("../waves", NameFlaw::Character('.')),
        ("a b", NameFlaw::Character(' ')),
        ("wellen-über", NameFlaw::Character('ü')),
        ("fn", NameFlaw::Reserved),
        ("proc_macro", NameFlaw::Reserved),
        ("deps", NameFlaw::Reserved),
        ("Test", NameFlaw::Reserved),
        ("celerity", NameFlaw::Celerity),
        ("celerity_kernel", NameFlaw::Celerity),
    ] {
        assert_eq!(flaw(name), Some(expected), "{name}");
    }
    assert_eq!(flaw(&"a".repeat(57)), Some(NameFlaw::Long(57)));
}

#[test]
fn messages_say_what_to_do() {
    let said = |name: &str| Name::new(name).unwrap_err().to_string();
    assert_eq!(
        said("a b"),
        "a project cannot be called \"a b\": it has ' '; use letters from a to z, digits, `-` and `_`"
    );
    assert!(said("celerity").ends_with("choose a name of your own"));
}
