//! What must not compile does not, and what the compiler says helps. Each file of `compile_errors`
//! breaks one rule; the `.stderr` beside it is what rustc says of it, by way of `trybuild`.
//!
//! Other compilers, and other parts of ours, word what is around a message in other ways: which types
//! implement a trait, where a bound stands. So not all of the text is compared:
//!
//! * with the compiler that has written the files ([`WRITTEN_BY`]), of each error its headline, the
//!   lines of the program that it points to, with what it says there, and its notes;
//! * with others, of each error its code, the line of the program, and the headline where that is
//!   ours (E0277, a trait that is not implemented).
//!
//! After a wanted change look at the difference and bless it: `CELERITY_BLESS=1 cargo test -p celerity
//! --test compile_errors`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const WRITTEN_BY: &str = "rustc 1.95.0";

/// Where this program finds the cases when it is a child of itself.
const CASES: &str = "COMPILE_ERRORS_OF";

/// `trybuild` writes down what is said of copies of the cases, whatever it is.
#[test]
fn what_must_not_compile_says_why() {
    if let Some(cases) = env::var_os(CASES) {
        let cases = PathBuf::from(cases).join("*.rs");
        return trybuild::TestCases::new().compile_fail(cases);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_errors");
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_errors");
    let names = copy_cases(&here, &copies);
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "what_must_not_compile_says_why", "--nocapture"])
        .env(CASES, &copies)
        .env("TRYBUILD", "overwrite")
        // Nothing of it is ever run.
        .envs([("CARGO_PROFILE_DEV_DEBUG", "false"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "0")])
        // Nor on a device: without the source of `core`, kernels are compiled for hosts alone.
        .env("CELERITY_DEVICE_RUST_SRC", copies.join("none"))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&[child.stdout, child.stderr].concat()).into_owned();
    assert!(child.status.success(), "something compiles, or nothing could be built:\n{log}");
    let differing = names.iter().filter_map(|name| {
        let file = format!("{name}.stderr");
        let said = fs::read_to_string(copies.join(&file)).unwrap_or_else(|_| panic!("{log}"));
        let said = said.replace(&place_of(&said, name), &format!("tests/compile_errors/{name}.rs"));
        if env::var_os("CELERITY_BLESS").is_some() {
            fs::write(here.join(&file), &said).unwrap();
        }
        let expected = fs::read_to_string(here.join(&file)).unwrap_or_default();
        let (now, then) = (essence(&said), essence(&expected));
        (now != then)
            .then(|| format!("{name}: expected\n{expected}\nbut the compiler says\n{said}"))
    });
    let differing: Vec<_> = differing.collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Copies all cases into an empty folder. Their names, in order.
fn copy_cases(from: &Path, to: &Path) -> Vec<String> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    let files = fs::read_dir(from).unwrap().map(|file| file.unwrap().path());
    let cases = files.filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<_> =
        cases.map(|case| case.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert!(names.len() >= 20, "cases are missing: {names:?}");
    for name in names.iter().map(|name| format!("{name}.rs")) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
    names
}

/// How a text calls the file of a case.
fn place_of(said: &str, name: &str) -> String {
    let file = format!("{name}.rs");
    let mut words = said.split_whitespace().filter_map(|word| word.split_once(&file));
    let (folder, _) = words.next().unwrap_or_else(|| panic!("no error in {file}:\n{said}"));
    format!("{folder}{file}")
}

/// What is compared of a text.
fn essence(text: &str) -> Vec<String> {
    match is_known_compiler() {
        true => with_words(text),
        false => without_words(text),
    }
}

/// Headlines, what is said of lines of the case, and notes.
fn with_words(text: &str) -> Vec<String> {
    let (mut kept, mut is_of_case) = (Vec::new(), false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("--> ") {
            is_of_case = is_place(trimmed);
        } else if line.is_empty() || trimmed.starts_with('=') || trimmed.starts_with("note:") {
            is_of_case = false;
        }
        if is_of_case || is_headline(line) || trimmed.starts_with("= note:") {
            kept.push(trimmed.to_owned());
        }
    }
    kept
}

/// Codes and lines, and headlines that are ours.
fn without_words(text: &str) -> Vec<String> {
    let (mut kept, mut headline) = (Vec::new(), None);
    for line in text.lines() {
        if is_headline(line) {
            headline = Some(match line.split_once(':') {
                Some((code, _)) if !line.starts_with("error[E0277]") => code,
                _ => line,
            });
        } else if is_place(line.trim_start())
            && let Some(headline) = headline.take()
        {
            let line = line.rsplit(':').nth(1).unwrap_or_default();
            kept.push(format!("{headline} in line {line}"));
        }
    }
    kept
}

fn is_headline(line: &str) -> bool {
    line.starts_with("error")
}

fn is_place(trimmed: &str) -> bool {
    trimmed.starts_with("--> tests/compile_errors/")
}

fn is_known_compiler() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap();
    String::from_utf8_lossy(&version.stdout).starts_with(&format!("{WRITTEN_BY} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
error[E0277]: `And` does not combine values of type `f32`
 --> tests/compile_errors/case.rs:7:50
  |
7 |     bits.reduce(And)
  |          ------ ^^^ no operator for `f32`
  |
  = help: the trait `Operator<f32>` is not implemented for `And`
  = note: `Sum` combines numbers
note: required by a bound in `reduce`
 --> src/access/reduce.rs
  |
  |     pub fn reduce<O: Operator<T>>(
  |                      ^^^^^^^^^^^ required by this bound

error[E0373]: closure may outlive the current function
 --> tests/compile_errors/case.rs:9:5
  |
9 |     || factor
  |     ^^ may outlive
";

    #[test]
    fn words_that_are_not_ours_are_not_compared() {
        let other = TEXT.replace("src/access/reduce.rs", "src/elsewhere.rs");
        let other = other.replace("is not implemented", "is missing");
        assert_eq!(with_words(TEXT), with_words(&other));
        for (word, instead) in [("numbers", "floats"), ("no operator", "nothing"), (":9:", ":8:")] {
            assert_ne!(with_words(TEXT), with_words(&TEXT.replace(word, instead)), "{word}");
        }
    }

    #[test]
    fn of_other_compilers_codes_lines_and_our_headlines_count() {
        let lines = [
            "error[E0277]: `And` does not combine values of type `f32` in line 7",
            "error[E0373] in line 9",
        ];
        assert_eq!(without_words(TEXT), lines);
        let other = TEXT.replace("may outlive the current function", "lives on");
        assert_eq!(without_words(&other), lines);
    }
}
