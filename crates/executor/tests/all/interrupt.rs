//! Ctrl-C in the middle of a run: every node ends, with an error that says why.
//! Signals go to a process of its own: this test program, started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use celerity_executor::{Run, RunError};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::{ProgramError, buffer_from, cluster, kernel, writes};

const CHILD: &str = "CELERITY_TEST_INTERRUPT";

/// Submits kernels for as long as the run goes on, on two nodes. What follows
/// happens in the child process only.
fn run_until_interrupted() {
    let outcome = Run::new(&cluster(2, 2)).interruptible(true).execute(|node| {
        let line = Box3::from_range([64]);
        let data = buffer_from(node, line, vec![0; 64]);
        println!("at work");
        loop {
            kernel(node, "step", line, vec![writes(data, Mapper::OneToOne)], |_, _| {})?;
        }
        #[expect(unreachable_code, reason = "the type of the outcome")]
        Ok::<(), ProgramError>(())
    });
    let Err(ProgramError::Run(RunError::Interrupted { signal })) = outcome else {
        panic!("{outcome:?}")
    };
    println!("interrupted by {signal}");
    // The next run is not disturbed, and an interrupt after it ends the process.
    let next = Run::new(&cluster(2, 1)).execute(|node| node.barrier().map_err(ProgramError::from));
    assert_eq!(next, Ok(()));
    println!("done");
    loop {
        std::thread::park();
    }
}

fn start_child() -> Child {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(this);
    child.args(["--exact", "interrupt::an_interrupt_ends_the_run", "--nocapture"]).env(CHILD, "1");
    child.stdout(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success(), "kill {signal}");
}

#[test]
fn an_interrupt_ends_the_run() {
    if std::env::var_os(CHILD).is_some() {
        return run_until_interrupted();
    }
    for signal in ["INT", "TERM"] {
        let mut child = start_child();
        let (tell, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            output.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let wait_for = |text: &str| loop {
            let line = lines.recv_timeout(Duration::from_secs(60)).expect("the child goes on");
            if line.contains(text) {
                break;
            }
        };
        wait_for("at work");
        interrupt(&child, &format!("-{signal}"));
        wait_for(&format!("interrupted by SIG{signal}"));
        wait_for("done");
        interrupt(&child, &format!("-{signal}"));
        assert!(!child.wait().unwrap().success(), "killed by the signal");
        reader.join().unwrap();
    }
}
