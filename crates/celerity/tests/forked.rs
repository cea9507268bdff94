//! A process that was forked from one that has had runs: it has none of their threads.
#![cfg(unix)]
#![allow(unsafe_code)]

use celerity::prelude::*;

fn run() -> celerity::Result<u32> {
    Config::default().run(|queue| {
        let u = queue.buffer::<u32, 1>(100);
        queue.task("fill").parallel_for(100, u.write(one_to_one()), |_, u| *u = 1)?;
        Ok(queue.fence(&u)?.wait()?.as_slice().iter().sum())
    })
}

#[test]
fn a_forked_process_says_that_it_cannot_run() {
    assert_eq!(run().unwrap(), 100);
    // SAFETY: the child calls nothing but what follows, and ends without the parent's handlers.
    match unsafe { libc::fork() } {
        0 => {
            let says =
                run().is_err_and(|error| error.to_string().contains("was forked from process"));
            // SAFETY: ends the child, whatever it has from its parent.
            unsafe { libc::_exit(i32::from(!says)) };
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child of above.
            let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert!(ended == child && status == 0, "{status}");
        }
    }
    assert_eq!(run().unwrap(), 100);
}
