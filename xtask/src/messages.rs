//! What Cargo says in JSON while it builds: where it has put things.
//!
//! Owns the running of such builds and the reading of their lines; what is built, and what for, is
//! up to the callers.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::runner::output;

/// A program that Cargo has linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkedProgram {
    pub(crate) name: String,
    /// Its root source file.
    pub(crate) source: PathBuf,
    pub(crate) path: PathBuf,
}

/// Runs one of Cargo's builds, shows what the compiler says, and returns Cargo's messages; `None`
/// if the build fails.
///
/// # Errors
/// If Cargo cannot be run.
pub(crate) fn of_build(build: &mut Command) -> Result<Option<String>, Error> {
    output(build.args(["--message-format", "json-render-diagnostics"]))
}

/// The messages in a text, line by line; what is none is left out.
pub(crate) fn read(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The programs that messages tell of.
pub(crate) fn programs(text: &str) -> Vec<LinkedProgram> {
    let program = |message: Value| {
        let target = &message["target"];
        Some(LinkedProgram {
            name: target["name"].as_str()?.to_owned(),
            source: target["src_path"].as_str()?.into(),
            path: message["executable"].as_str()?.into(),
        })
    };
    read(text).filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::{LinkedProgram, programs};

    #[test]
    fn programs_are_what_cargo_has_linked() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"a","src_path":"/a.rs"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"name":"wave","src_path":"/wave.rs"},"executable":"/t/wave-1f"}
{"reason":"build-finished","success":true}"#;
        let (source, path) = ("/wave.rs".into(), "/t/wave-1f".into());
        assert_eq!(programs(messages), [LinkedProgram { name: "wave".to_owned(), source, path }]);
    }
}
