//! Runs a program and lets us read its output while the user does.
//!
//! Owns threads and pipes; knows nothing of what the lines mean.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::error::Error;

/// Runs `command` to its end, passes both of its output streams through as they arrive, and shows
/// each line to `on_line`, which is called from two threads.
///
/// # Errors
/// [`Error::Start`] if the program cannot be started, [`Error::Output`] if its output or its exit
/// status is lost.
pub(crate) fn stream(
    command: &mut Command,
    on_line: impl Fn(&str) + Sync,
) -> Result<ExitStatus, Error> {
    let program = describe(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| Error::Start { program: program.clone(), source })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let pumped = thread::scope(|scope| {
        let errors = scope.spawn(|| pump(stderr, io::stderr(), &on_line));
        let outcome = pump(stdout, io::stdout(), &on_line);
        outcome.and(errors.join().expect("the closure given to `stream` does not panic"))
    });
    pumped.and_then(|()| child.wait()).map_err(|source| Error::Output { program, source })
}

/// Runs `command` to its end, and returns what it prints; `None` if it fails. What it has to say goes to standard
/// error, and that it has failed.
///
/// # Errors
/// [`Error::Start`] if the program cannot be started.
pub(crate) fn output(command: &mut Command) -> Result<Option<String>, Error> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| Error::Start { program: describe(command), source })?;
    if !output.status.success() {
        eprintln!("`{}` has failed: {}", describe(command), output.status);
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The command line of `command`, for messages.
pub(crate) fn describe(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn pump(
    from: Option<impl Read>,
    mut to: impl Write,
    on_line: &(impl Fn(&str) + Sync),
) -> io::Result<()> {
    let Some(from) = from else { return Ok(()) };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        // A reader that went away (`| head`) must not end the run, so its error is dropped.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        on_line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Mutex;

    use super::stream;
    use crate::error::Error;
    use crate::workspace::cargo;

    #[test]
    fn lines_of_both_streams_arrive() {
        let lines = Mutex::new(Vec::new());
        let collect = |line: &str| lines.lock().unwrap().push(line.to_owned());
        assert!(stream(cargo().arg("--version"), collect).unwrap().success());
        assert!(!stream(cargo().arg("no-such-command"), collect).unwrap().success());
        let lines = lines.into_inner().unwrap();
        assert!(lines.iter().any(|line| line.starts_with("cargo ")), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("error: no such command")), "{lines:?}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = stream(&mut Command::new("no-such-program-anywhere"), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Start { .. }));
        assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
    }
}
