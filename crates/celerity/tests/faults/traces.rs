//! Traces of processes that die: what was recorded is there.

use std::fs;
use std::time::{Duration, Instant};

use celerity::prelude::*;

use crate::process::{LONG, alone};

/// Few and short kernels, and then one that never ends.
fn endless(_: ()) {
    let path = std::env::temp_dir().join(format!("celerity-killed-{}.json", std::process::id()));
    eprintln!("the trace is {}", path.display());
    let outcome = Config::default().nodes(2).trace(path).run(|queue| {
        let a = queue.buffer::<i32, 1>(16);
        for _ in 0..3 {
            queue.task("short").parallel_for(16, a.write(one_to_one()), |_, a| *a = 5)?;
        }
        queue.barrier()?;
        queue.task("endless").parallel_for(1, (), |_, ()| {
            loop {
                std::thread::park();
            }
        })?;
        queue.barrier()
    });
    panic!("it ends: {outcome:?}");
}

#[test]
#[cfg(unix)]
fn a_process_that_is_killed_leaves_what_it_has_recorded() {
    use std::os::unix::process::ExitStatusExt;

    let test = "traces::a_process_that_is_killed_leaves_what_it_has_recorded";
    alone(test, [()], endless, |(), mut child| {
        let line = child.wait_for("the trace is ");
        let path = line.split_once("the trace is ").expect("it says so").1;
        // There may be no file yet.
        let now = || fs::read_to_string(path).unwrap_or_default();
        let kernels = || now().lines().filter(|line| is_kernel(line)).count();
        let start = Instant::now();
        while kernels() < 6 {
            assert!(start.elapsed() < LONG, "not all that has ended:\n{}", now());
            std::thread::sleep(Duration::from_millis(5));
        }
        child.signal("KILL");
        let (status, said) = child.end();
        assert_eq!(status.signal(), Some(9), "{said}");
        assert!(now().starts_with("[\n{\"name\":\"celerity_clock\""), "{}", now());
        assert_eq!(kernels(), 6);
        fs::remove_file(path).unwrap();
    });
}

fn is_kernel(line: &str) -> bool {
    line.contains("\"name\":\"short\",\"cat\":\"kernel\"")
}
