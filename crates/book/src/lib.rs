#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::path::Path;

/// Makes sure that a chapter of `docs/book` quotes a message, word by word. How its lines are broken makes no
/// difference, nor does the source line: `at src/main.rs:7` may be anywhere.
///
/// # Panics
/// If the chapter does not quote the message, or cannot be read.
#[track_caller]
pub fn quoted(chapter: &str, message: &dyn Display) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book").join(chapter);
    let text = std::fs::read_to_string(&path).expect("the chapter can be read");
    let message = message.to_string();
    assert!(words(&text).contains(&words(&message)), "{chapter} does not quote:\n{message}");
}

/// As [`quoted`], for a part of the message: where chance decides which node or item the rest of it names.
///
/// # Panics
/// If the chapter does not quote that part, or the message does not say it.
#[track_caller]
pub fn quoted_part(chapter: &str, message: &dyn Display, part: &str) {
    let message = message.to_string();
    assert!(words(&message).contains(&words(part)), "this does not say \"{part}\":\n{message}");
    quoted(chapter, &part);
}

/// The words of a text with one blank between them, without source lines.
fn words(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let is_line = |word: &str| {
            let place = word.trim_end_matches([',', ';', ':']).rsplit_once(':');
            place.is_some_and(|(file, line)| file.contains('/') && line.parse::<u32>().is_ok())
        };
        if is_line(word) && kept.last() == Some(&"at") {
            kept.pop();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// The chapters, so that their programs are compiled and run.
#[cfg(doctest)]
mod chapters {
    #[doc = include_str!("../../../docs/book/fifteen-minutes.md")]
    mod fifteen_minutes {}
    #[doc = include_str!("../../../docs/book/chunks-and-mappers.md")]
    mod chunks_and_mappers {}
    #[doc = include_str!("../../../docs/book/pitfalls.md")]
    mod pitfalls {}
    #[doc = include_str!("../../../docs/book/coming-from.md")]
    mod coming_from {}
    #[doc = include_str!("../../../docs/book/reuse.md")]
    mod reuse {}
    #[doc = include_str!("../../../docs/book/inside.md")]
    mod inside {}
    #[doc = include_str!("../../../docs/book/several-nodes.md")]
    mod several_nodes {}
    #[doc = include_str!("../../../docs/book/errors.md")]
    mod errors {}
    #[doc = include_str!("../../../docs/book/data-decides.md")]
    mod data_decides {}
    #[doc = include_str!("../../../docs/book/memory.md")]
    mod memory {}
    #[doc = include_str!("../../../docs/book/testing.md")]
    mod testing {}
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{quoted, words};

    /// What the compiler says is compared, whole, by tests of `celerity`: the chapter quotes the headlines.
    #[test]
    fn headlines_of_the_compiler_are_those_that_tests_compare() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let cases = std::fs::read_dir(root.join("crates/celerity/tests/compile_errors")).unwrap();
        let mut known: String = cases.map(|case| read(&case.unwrap().path())).collect();
        known += &read(&root.join("crates/celerity/tests/outside_project/refused.rs"));
        let chapter = read(&root.join("docs/book/pitfalls.md"));
        let headlines = chapter.lines().filter_map(|line| line.strip_prefix("error[E0"));
        let mut found = 0;
        for headline in headlines {
            // Types depend on the program.
            let (_, said) = headline.split_once("]: ").unwrap();
            let said = said.split('`').next().unwrap();
            assert!(known.contains(said), "no test compares: {said}");
            found += 1;
        }
        assert!(found >= 6, "{found} headlines");
    }

    #[test]
    fn lines_of_sources_are_no_part_of_a_quote() {
        let said = "T1 \"step\" at src/main.rs:7 reads\n  {[0..8]}";
        assert_eq!(words(said), words("T1 \"step\" at crates/x.rs:12 reads {[0..8]}"));
        assert_ne!(words(said), words("T1 \"step\" at crates/x.rs:12 reads {[0..9]}"));
    }

    #[test]
    #[should_panic(expected = "does not quote")]
    fn what_no_chapter_says_is_noticed() {
        quoted("pitfalls.md", &"nobody has ever seen this message");
    }
}
