//! Toolchains beside the one that runs us, such as the one that has Miri: their commands, and how they get here.
//!
//! Owns what is run by rustup. Nothing here waits for ever, nor fails the caller: a machine without rustup, or
//! without a way to its servers, is told of in a line.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::runner::describe;
use crate::workspace::Workspace;

/// As rustup calls the one that has Miri.
const NIGHTLY: &str = "nightly";

/// How long a step of the installation may take: far longer than any does that gets somewhere.
const PATIENCE: Duration = Duration::from_secs(300);

/// Installs Miri if it is not here, and the source of the standard library, which it interprets as well.
///
/// # Errors
/// Why Miri cannot be had, in a line.
pub(crate) fn provide_miri() -> Result<(), String> {
    if set_up().is_ok() {
        return Ok(());
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
    install.args(["--component", "miri", "--component", "rust-src"]);
    println!("=== {}", describe(&install));
    complete(&mut install, PATIENCE)?;
    set_up()
}

/// Cargo under Miri.
pub(crate) fn miri(workspace: &Workspace) -> Command {
    let mut command = nightly("cargo");
    command.arg("miri").current_dir(&workspace.root);
    // Colours would hide the summary lines from the tally.
    command.env("CARGO_TERM_COLOR", "never");
    command
}

/// Compiles the standard library for Miri, if that has not been done yet.
fn set_up() -> Result<(), String> {
    let mut setup = nightly("cargo");
    complete(setup.args(["miri", "setup"]), PATIENCE)
}

/// A program of the nightly toolchain, whichever runs us.
pub(crate) fn nightly(program: &str) -> Command {
    of(NIGHTLY, program)
}

/// A program of a toolchain, whichever runs us.
pub(crate) fn of(toolchain: &str, program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, program]);
    for of_ours in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(of_ours);
    }
    command
}

/// Installs the compiler and Cargo of a version, if they are not here.
///
/// # Errors
/// Why they cannot be had, in a line.
pub(crate) fn provide(version: &str) -> Result<(), String> {
    if complete(of(version, "cargo").arg("--version"), PATIENCE).is_ok() {
        return Ok(());
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", version, "--profile", "minimal"]);
    println!("=== {}", describe(&install));
    complete(&mut install, PATIENCE)
}

/// Runs a command to its end, or ends it when it takes longer than `patience`. The error is a line: the
/// last that the command wrote.
pub(crate) fn complete(command: &mut Command, patience: Duration) -> Result<(), String> {
    let name = describe(command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let (status, said) = match end_of(&mut child, patience) {
        Ok(Some(end)) => end,
        Ok(None) => {
            let _ = child.kill().and_then(|()| child.wait());
            return Err(format!("{name}: not done after {} s", patience.as_secs()));
        }
        Err(error) => return Err(format!("{name}: {error}")),
    };
    if status.success() {
        return Ok(());
    }
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(format!("{name}: {}", last.unwrap_or(&status.to_string())))
}

/// How a program ends, and what it writes until then; nothing if it takes longer.
fn end_of(child: &mut Child, patience: Duration) -> std::io::Result<Option<(ExitStatus, String)>> {
    let mut errors = child.stderr.take().expect("it is piped");
    let (tell, told) = channel();
    // Its end closes the pipe.
    thread::spawn(move || {
        let mut said = Vec::new();
        let read = errors.read_to_end(&mut said);
        tell.send(read.map(|_| String::from_utf8_lossy(&said).into_owned()))
    });
    match told.recv_timeout(patience) {
        Ok(said) => Ok(Some((child.wait()?, said?))),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::complete;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn why_a_step_fails_is_a_line() {
        let mut cargo = crate::workspace::cargo();
        assert_eq!(complete(cargo.arg("--version"), LONG), Ok(()));
        let reason = complete(Command::new("no-such-program-anywhere").arg("now"), LONG);
        assert!(reason.unwrap_err().starts_with("no-such-program-anywhere now: "));
        let reason = complete(crate::workspace::cargo().arg("no-such-command"), LONG).unwrap_err();
        assert!(reason.starts_with("cargo no-such-command: ") && reason.lines().count() == 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_step_that_gets_nowhere_is_ended() {
        let mut asleep = Command::new("sleep");
        let reason = complete(asleep.arg("1000"), Duration::from_millis(1)).unwrap_err();
        assert_eq!(reason, "sleep 1000: not done after 0 s");
    }
}
