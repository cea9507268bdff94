//! Programs that may take their process with them: each is a test of this file's program, which
//! starts itself again and looks at what becomes of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CHILD: &str = "FAULTS_CHILD";

/// How long anything that must come may take on a machine that others use as well.
pub(crate) const LONG: Duration = Duration::from_secs(100);

/// A process that runs the program of a test.
pub(crate) struct Alone {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

/// Runs `program` with each of `cases` in a process of its own, and then `judge` on what has
/// become of it. In those processes, this test is called a second time, with its case.
#[track_caller]
pub(crate) fn alone<C: Copy + std::fmt::Debug>(
    test: &str,
    cases: impl IntoIterator<Item = C>,
    program: impl Fn(C),
    judge: impl Fn(C, Alone),
) {
    let running = std::env::var(CHILD).ok();
    for case in cases {
        let name = format!("{test} {case:?}");
        match &running {
            None => judge(case, start(test, &name)),
            Some(child) if *child == name => program(case),
            Some(_) => {}
        }
    }
}

/// Runs `program` in a process of its own whose standard error is `sink`; returns how it ended,
/// and nothing in that process.
pub(crate) fn said_into(test: &str, sink: Stdio, program: impl FnOnce()) -> Option<ExitStatus> {
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        program();
        return None;
    }
    Some(command(test, test).stderr(sink).status().expect("a program that runs can be started"))
}

fn command(test: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("tests are programs"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, name).env("RUST_BACKTRACE", "0");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CELERITY_") {
            command.env_remove(name);
        }
    }
    command.stdout(Stdio::null());
    command
}

fn start(test: &str, name: &str) -> Alone {
    let mut command = command(test, name);
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.expect("a program that runs can be started");
    let (tell, lines) = channel();
    let output = BufReader::new(child.stderr.take().expect("it is piped"));
    std::thread::spawn(move || {
        output.lines().map_while(std::io::Result::ok).for_each(|line| drop(tell.send(line)));
    });
    Alone { child, lines, said: String::new() }
}

impl Alone {
    /// Waits until it says `text` on standard error, and returns the line.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no \"{text}\" in:\n{}", self.said));
            self.said += &format!("{line}\n");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends it a signal, as in `INT`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &process]).status();
        assert!(status.expect("there is `kill`").success(), "kill -s {name}");
    }

    /// Waits until it has ended; returns how, and all that it has said on standard error.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => self.said += &format!("{line}\n"),
                // It has closed its end.
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    drop(self.child.kill());
                    panic!("it does not end:\n{}", self.said);
                }
            }
        }
        (self.child.wait().expect("it is ours"), std::mem::take(&mut self.said))
    }
}

impl Drop for Alone {
    /// Of a test that has failed.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
