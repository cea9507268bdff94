//! Threads stay on the cores that a run is told, and go where they like once it has ended.
#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{Error, Pinning, RunError};

/// The cores that the calling thread may run on, as the system writes them: `0-3,8`.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// Where a kernel and a host task may run.
fn seen(pinning: Pinning) -> [String; 2] {
    let seen = Arc::new(Mutex::new([String::new(), String::new()]));
    let config = Config::default().pinning(pinning);
    let run = config.run(|queue| {
        let (kernel, host) = (seen.clone(), seen.clone());
        let numbers = queue.buffer::<u32, 1>([1]);
        queue.task("write").parallel_for([1], numbers.write(one_to_one()), move |_, number| {
            *number = 1;
            kernel.lock().unwrap()[0] = allowed();
        })?;
        queue.host_task("read").once(numbers.read(all()), move |_| {
            host.lock().unwrap()[1] = allowed();
        })?;
        queue.barrier()
    });
    run.unwrap();
    seen.lock().unwrap().clone()
}

#[test]
fn kernels_stay_where_they_are_told_and_host_tasks_do_not() {
    let everywhere = allowed();
    let last = everywhere.rsplit([',', '-']).next().unwrap().to_owned();
    let pinned = seen(Pinning::Cores(vec![last.parse().unwrap()]));
    assert_eq!(pinned, [last, everywhere.clone()]);
    assert_eq!(seen(Pinning::Off), [everywhere.clone(), everywhere.clone()]);
    assert_eq!(allowed(), everywhere, "the program's own thread is its own");
    let error = Config::default().pinning(Pinning::Cores(vec![1 << 20])).run(|_| Ok(()));
    let error = error.unwrap_err();
    let is_start = |error: &Error| match error {
        Error::Run(error) => matches!(**error, RunError::Start { .. }),
        _ => false,
    };
    assert!(is_start(&error), "{error}");
    assert!(error.to_string().contains("cannot stay on 1048576"), "{error}");
}
