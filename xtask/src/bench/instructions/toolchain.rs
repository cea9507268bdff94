//! What counts depend on: the compiler, the C library and valgrind. Owns their names; knows
//! no counts.

use std::fmt;
use std::process::Command;

use crate::error::Error;
use crate::runner;

/// The versions of what instructions are made and counted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedWith {
    /// The compiler, and what it compiles for.
    pub(crate) rustc: String,
    /// The C library.
    pub(crate) libc: String,
    /// Valgrind.
    pub(crate) valgrind: String,
}

impl CountedWith {
    /// That of this machine, or what it lacks.
    ///
    /// # Errors
    /// If the compiler cannot be asked.
    pub(crate) fn here() -> Result<Result<Self, String>, Error> {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let output = command
            .arg("-vV")
            .output()
            .map_err(|source| Error::Start { program: runner::describe(&command), source })?;
        let rustc = compiler(&String::from_utf8_lossy(&output.stdout));
        let first = |program: &str, argument: &str| {
            let output = Command::new(program).arg(argument).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            (output.status.success() && !text.is_empty()).then_some(text)
        };
        let Some(valgrind) = first("valgrind", "--version") else {
            return Ok(Err("valgrind is not installed".to_owned()));
        };
        let Some(libc) = first("getconf", "GNU_LIBC_VERSION") else {
            return Ok(Err("the C library is not that of GNU".to_owned()));
        };
        Ok(Ok(Self { rustc, libc, valgrind }))
    }
}

/// The lines `rustc …` and `host: …` of `rustc -vV` as one.
fn compiler(text: &str) -> String {
    let version = text.lines().next().unwrap_or_default();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    format!("{version} for {}", host.unwrap_or_default())
}

impl fmt::Display for CountedWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rustc, libc, valgrind } = self;
        write!(f, "{rustc}, {libc}, {valgrind}")
    }
}

#[cfg(test)]
mod tests {
    use super::compiler;

    #[test]
    fn the_compiler_is_named_with_what_it_compiles_for() {
        let text =
            "rustc 1.95.0 (5980 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(compiler(text), "rustc 1.95.0 (5980 2026-04-14) for x86_64-unknown-linux-gnu");
    }
}
