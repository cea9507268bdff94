//! What a program prints on standard error when it fails: text for people, whatever the type of
//! error that `main` returns.

use std::process::Output;

use crate::programs::Programs;

const PROGRAMS: &[(&str, &str)] = &[
    (
        "undeclared",
        "fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer::<f32, 1>(8).named(\"u\");
        queue.fence(&u)?.wait()?;
        Ok(())
    })
}",
    ),
    (
        "any_error",
        "fn main() -> Result<(), Box<dyn std::error::Error>> {
    celerity::run(|queue| {
        let u = queue.buffer_from(4, vec![0.0_f32; 3])?;
        queue.fence(&u)?.wait()?;
        Ok(())
    })?;
    Ok(())
}",
    ),
    (
        "configuration",
        "fn main() -> Result<(), celerity::ConfigError> {
    let config = celerity::Config::from_env()?;
    println!(\"{config:?}\");
    Ok(())
}",
    ),
    (
        "host_task",
        "#[derive(Debug)]
struct Unsaved(std::io::Error);
impl std::fmt::Display for Unsaved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(\"the picture was not saved\")
    }
}
impl std::error::Error for Unsaved {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        queue.host_task(\"save\").once((), |()| {
            Err(Unsaved(std::io::Error::other(\"the disk is full\")))?;
            Ok(())
        })?;
        Ok(())
    })
}",
    ),
    (
        "panics",
        "use celerity::prelude::*;
fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let u = queue.buffer_from(8, vec![0.0_f32; 8])?;
        queue.task(\"step\").parallel_for(8, u.read_write(one_to_one()), |item, u| {
            assert!(item[0] != 5, \"five is bad\");
            *u += 1.0;
        })?;
        Ok(())
    })
}",
    ),
    (
        "interrupted_fence",
        "fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let fence = celerity::run(|queue| {
        let u = queue.buffer_from(2, vec![1, 2])?.named(\"u\");
        queue.fence(&u)
    })?;
    assert_eq!(fence.wait()?.as_slice(), [1, 2]);
    Err(celerity::Error::FenceAbandoned { buffer: \"u\".into() })?
}",
    ),
];

#[test]
fn a_program_that_fails_prints_what_people_read() {
    let programs = Programs::new("printed", PROGRAMS);
    let one = [("CELERITY_PLATFORM", "cpu"), ("CELERITY_LOG_LEVEL", "warn")];
    let several = [&one[..], &[("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "2")]].concat();
    for variables in [&one[..], &several] {
        let fails = |program, expected: &str| {
            let said = failed(&programs.run(program, variables));
            assert_eq!(said, format!("Error: {expected}\n"), "{program}");
        };
        fails(
            "undeclared",
            "T1 \"fence on u\" at src/bin/undeclared.rs:4 reads {[0..8]} of buffer \"u\", which \
             nothing has written yet; write it in an earlier task, create the buffer from host \
             data, or set CELERITY_UNINITIALIZED_READ=warn to read zeroes",
        );
        fails(
            "any_error",
            "a buffer of range [4] has 4 elements, but its initial data has 3; provide one value \
             per element, row-major",
        );
        fails(
            "host_task",
            "task T1 \"save\" at src/bin/host_task.rs:15 failed on N0: the picture was not saved\n\
             caused by: the disk is full",
        );
        fails("interrupted_fence", "the run ended before the fence on buffer \"u\" was reached");
    }
    let wrong = [("CELERITY_NODE", "2")];
    let expected = "Error: there is no environment variable CELERITY_NODE; did you mean \
                    CELERITY_NODES?\n";
    assert_eq!(failed(&programs.run("configuration", &wrong)), expected);
    assert_eq!(failed(&programs.run("undeclared", &wrong)), expected);
    a_panic_is_told_without_the_runtime(&programs);
}

/// The place of the panic first, a few frames of the backtrace that somebody has asked for, and
/// last the error with the task and the item.
fn a_panic_is_told_without_the_runtime(programs: &Programs) {
    for backtrace in ["0", "1"] {
        let variables = [("CELERITY_PLATFORM", "cpu"), ("RUST_BACKTRACE", backtrace)];
        let said = failed(&programs.run("panics", &variables));
        assert!(said.contains("panicked at src/bin/panics.rs:6:13:\nfive is bad\n"), "{said}");
        let last = said.lines().last();
        let expected = "Error: task T1 \"step\" at src/bin/panics.rs:5 panicked on N0, D0: item \
                        [5]: five is bad";
        assert_eq!(last, Some(expected), "{said}");
        let frames = said.lines().filter(|line| line.trim_start().starts_with("at ")).count();
        assert!(frames <= 6 && said.lines().count() <= 20, "{said}");
        assert!(!said.contains("celerity_executor"), "{said}");
    }
}

/// What a program says that fails.
#[track_caller]
fn failed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}
