//! Makes the pictures of the book, and the graphs that it prints, from real graphs.
//!
//! Owns which files there are; [`cluster`] runs the generators, [`mappers`] draws, [`follow`] prints.

mod cluster;
mod follow;
mod mappers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use celerity_views::to_svg;

fn main() -> ExitCode {
    for (name, text) in files() {
        let path = folder().join(name);
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("error: cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("{}", path.display());
    }
    ExitCode::SUCCESS
}

/// Where the files are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/figures")
}

/// All files by their names.
fn files() -> Vec<(&'static str, String)> {
    let [tasks, commands, instructions] = follow::pictures();
    vec![
        ("mappers.svg", mappers::draw()),
        ("step-tasks.svg", to_svg(&[tasks])),
        ("step-commands.svg", to_svg(&[commands])),
        ("step-instructions.svg", to_svg(&[instructions])),
        ("follow.txt", follow::print()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_book_are_those_of_the_graphs() {
        for (name, text) in files() {
            let path = folder().join(name);
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            let advice = "`cargo run -p celerity-book --bin book-figures` makes it anew";
            assert!(committed == text, "{} is out of date: {advice}", path.display());
        }
    }

    /// The chapter quotes what is printed, line by line.
    #[test]
    fn what_the_chapter_quotes_has_been_printed() {
        let chapter = folder().join("../inside.md");
        let chapter = std::fs::read_to_string(chapter).unwrap();
        let printed = follow::print();
        let quotes: Vec<_> = chapter.split("```text\n").skip(1).collect();
        assert!(quotes.len() >= 4, "there are {} quotes", quotes.len());
        for quote in quotes {
            let (quote, _) = quote.split_once("```").unwrap();
            assert!(printed.contains(quote), "this has not been printed:\n{quote}");
        }
    }
}
