//! The command `celerity`: reads its arguments, and says what it has made.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use celerity_new::{Celerity, Name, make};

const USAGE: &str = "\
Makes a project to begin with: a program and its kernels, for CPUs and GPUs.

Usage: celerity new NAME [--celerity FOLDER]

  NAME                 what the project and its folder are called
  --celerity FOLDER    depend on Celerity's repository in this folder, instead of its published version
  --help, --version    say this, or the version, which is that of Celerity in the project
";

/// What the command is to do.
#[derive(Debug, PartialEq)]
enum Command {
    New { name: String, celerity: Celerity },
    Help,
    Version,
}

fn main() -> ExitCode {
    let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    match understood(arguments) {
        Ok(Command::Help) => print!("{USAGE}"),
        Ok(Command::Version) => println!("celerity {}", env!("CARGO_PKG_VERSION")),
        Ok(Command::New { name, celerity }) => match new(name, &celerity) {
            Ok(folder) => println!(
                "made the project {name}:\n  cd {name}\n  cargo run --release",
                name = folder.display()
            ),
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        },
        Err(wrong) => {
            eprintln!("error: {wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// A project in the folder that the command was started in.
fn new(name: String, celerity: &Celerity) -> Result<PathBuf, Box<dyn Error>> {
    Ok(make(&Name::new(name)?, Path::new(""), celerity)?)
}

/// What the arguments ask for, or what is wrong with them.
fn understood(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut words, mut celerity) = (Vec::new(), Celerity::Published);
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "-V" | "--version" => return Ok(Command::Version),
            "--celerity" => match arguments.next() {
                Some(folder) => celerity = Celerity::Repository(folder.into()),
                None => return Err("`--celerity` takes a folder".to_owned()),
            },
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}"));
            }
            _ => words.push(argument),
        }
    }
    let command = words.first().map(String::as_str);
    match (command, words.len()) {
        (None, _) => Ok(Command::Help),
        (Some("new"), 2) => Ok(Command::New { name: words.remove(1), celerity }),
        (Some("new"), 1) => Err("`celerity new` takes the name of the project".to_owned()),
        (Some("new"), _) => Err(format!("`celerity new` takes one name, not {}", words.len() - 1)),
        (Some(other), _) => Err(format!("there is no command {other}; did you mean `new`?")),
    }
}

#[cfg(test)]
mod tests {
    use celerity_new::Celerity;

    use super::{Command, understood};

    fn of(line: &str) -> Result<Command, String> {
        understood(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_understood_in_any_order() {
        let new = |celerity| Ok(Command::New { name: "waves".to_owned(), celerity });
        assert_eq!(of("new waves"), new(Celerity::Published));
        let here = Celerity::Repository("clone".into());
        assert_eq!(of("new waves --celerity clone"), new(here.clone()));
        assert_eq!(of("--celerity clone new waves"), new(here));
        assert_eq!(of(""), Ok(Command::Help));
        assert_eq!(of("new --help"), Ok(Command::Help));
        assert_eq!(of("-V"), Ok(Command::Version));
    }

    #[test]
    fn what_is_wrong_with_arguments_is_said() {
        for (line, expected) in [
            ("new", "takes the name"),
            ("new a b", "one name, not 2"),
            ("new a --celerity", "takes a folder"),
            ("new a --force", "no option --force"),
            ("make a", "no command make"),
        ] {
            let wrong = of(line).unwrap_err();
            assert!(wrong.contains(expected), "{line}: {wrong}");
        }
    }
}
