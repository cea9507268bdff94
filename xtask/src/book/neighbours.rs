//! The programs of the book in other languages: compiled, and run, where their tools are installed.
//!
//! Owns which tools they need. A program whose tool is not here is left out and listed: none of them is needed
//! to build the book.

use std::path::Path;
use std::process::{Command, Output};

/// Where the programs are, from the root of the repository.
const FOLDER: &str = "docs/book/coming-from";

/// What each of them prints, as the program for Celerity in the same chapter does.
const RESULT: &str = "0.112139";

/// A program, and how it is tried.
struct Neighbour {
    file: &'static str,
    /// Succeeds if the tools are here.
    probe: &'static str,
    /// Compiles it. `$FILE` is the program, `$OUT` what to make of it.
    compile: &'static str,
    /// Runs it, if this machine can; it prints [`RESULT`].
    run: Option<&'static str>,
}

const NEIGHBOURS: [Neighbour; 4] = [
    Neighbour {
        file: "heat.cu",
        probe: "nvcc --version && mpicxx --version",
        compile: "nvcc -ccbin mpicxx \"$FILE\" -o \"$OUT\"",
        run: None,
    },
    Neighbour {
        file: "heat_kokkos.cpp",
        probe: "g++ --version && test -f /usr/include/trilinos/Kokkos_Core.hpp",
        compile: "g++ -std=c++17 -O1 -fopenmp -I/usr/include/trilinos \"$FILE\" -o \"$OUT\" \
                  -ltrilinos_kokkoscore -ldl",
        run: Some("OMP_NUM_THREADS=2 \"$OUT\""),
    },
    Neighbour {
        file: "heat_celerity.cpp",
        probe: "acpp --version && test -n \"$CELERITY_CPP_PREFIX\"",
        compile: "acpp -std=c++20 -I\"$CELERITY_CPP_PREFIX/include\" -c \"$FILE\" -o \"$OUT\"",
        run: None,
    },
    Neighbour {
        file: "heat_jax.py",
        probe: "python3 -c 'import jax'",
        compile: "true",
        run: Some("python3 \"$FILE\""),
    },
];

/// Tries each program, with results in a folder; says what was left out and why, and returns what has
/// failed.
pub(super) fn try_all(root: &Path, folder: &Path) -> Vec<String> {
    let tried = NEIGHBOURS.iter().map(|one| (one, one.attempt(root, folder)));
    let mut failures = Vec::new();
    for (Neighbour { file, .. }, attempt) in tried {
        match attempt {
            Attempt::Done(how) => println!("{file}: {how}"),
            Attempt::LeftOut(tool) => println!("{file}: left out, as this fails here: {tool}"),
            Attempt::Failed(said) => failures.push(format!("{file}: {said}")),
        }
    }
    failures
}

/// What has become of a program.
#[derive(Debug, PartialEq)]
enum Attempt {
    Done(&'static str),
    LeftOut(&'static str),
    Failed(String),
}

impl Neighbour {
    fn attempt(&self, root: &Path, folder: &Path) -> Attempt {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).env("FILE", root.join(FOLDER).join(self.file));
            command.env("OUT", folder.join(self.file).with_extension("out"));
            command.output()
        };
        if !shell(self.probe).is_ok_and(|output| output.status.success()) {
            return Attempt::LeftOut(self.probe);
        }
        let failed = |output: Output| {
            let said = [output.stdout, output.stderr].concat();
            Attempt::Failed(String::from_utf8_lossy(&said).into_owned())
        };
        match shell(self.compile) {
            Ok(output) if !output.status.success() => return failed(output),
            Ok(_) => {}
            Err(error) => return Attempt::Failed(error.to_string()),
        }
        match self.run.map(shell) {
            None => Attempt::Done("compiles"),
            Some(Ok(output)) if String::from_utf8_lossy(&output.stdout).trim() == RESULT => {
                Attempt::Done("prints what Celerity does")
            }
            Some(Ok(output)) => failed(output),
            Some(Err(error)) => Attempt::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace::Workspace;

    fn neighbour(probe: &'static str, compile: &'static str, run: &'static str) -> Attempt {
        let one = Neighbour { file: "heat.cu", probe, compile, run: Some(run) };
        one.attempt(&Workspace::load().unwrap().root, &std::env::temp_dir())
    }

    #[cfg(unix)]
    #[test]
    fn what_has_become_of_a_program_is_told() {
        assert_eq!(neighbour("false", "true", "true"), Attempt::LeftOut("false"));
        assert_eq!(neighbour("true", "echo no; false", "true"), Attempt::Failed("no\n".to_owned()));
        assert_eq!(neighbour("true", "true", "echo 1"), Attempt::Failed("1\n".to_owned()));
        let same = neighbour("true", "test -f \"$FILE\"", "echo 0.112139");
        assert_eq!(same, Attempt::Done("prints what Celerity does"));
    }

    #[test]
    fn each_program_of_the_chapter_is_tried_and_compared() {
        let root = Workspace::load().unwrap().root;
        let files = std::fs::read_dir(root.join(FOLDER)).unwrap();
        let files: BTreeSet<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let known: BTreeSet<_> = NEIGHBOURS.iter().map(|one| one.file.to_owned()).collect();
        assert_eq!(files, known);
        let chapter = std::fs::read_to_string(root.join("docs/book/coming-from.md")).unwrap();
        let result = format!("\"{RESULT}\"");
        assert_eq!(chapter.matches(&result).count(), 2, "both programs in Rust print {result}");
    }
}
