//! Memory of the host that there is none of.

use celerity::prelude::*;
use celerity::{Error, Result};

use crate::process::alone;
#[cfg(target_os = "linux")]
use crate::scarcity::limit_memory;
use crate::{CLUSTERS, assert_says, cluster};

/// Elements of a buffer: 64 MiB.
const MANY: usize = 8 << 20;

/// The copy does not fit; what the program does next may.
fn take_too_much(queue: &Queue) -> Result<u64> {
    let field = queue.buffer::<u64, 1>(MANY).named("field");
    let write = field.write(one_to_one());
    queue.task("fill").parallel_for(MANY, write, |_, element| *element = 1)?;
    // From now on all of it is in the memory of each host.
    assert_eq!(queue.fence(&field)?.wait()?.as_slice().len(), MANY);
    queue.barrier()?;
    #[cfg(target_os = "linux")]
    if queue.is_root() {
        limit_memory();
    }
    queue.barrier()?;
    // Not `expect_err`, which would print all that there is memory for.
    let Err(error) = queue.fence(&field)?.wait() else { panic!("there is memory") };
    assert!(matches!(error, Error::FenceMemory { .. }), "{error}");
    eprintln!("N{}: {error}", queue.node());
    // What a node frees at its end, the copies of slower ones would find.
    queue.barrier()?;
    let part = Subrange { offset: [MANY - 10], range: [10] };
    Ok(queue.fence_part(&field, part)?.wait()?.as_slice().iter().sum())
}

#[test]
#[cfg(target_os = "linux")]
fn a_fence_without_memory_for_its_copy_is_an_error_and_the_run_goes_on() {
    let test = "memory::a_fence_without_memory_for_its_copy_is_an_error_and_the_run_goes_on";
    let program = |case| assert_eq!(cluster(case).run(take_too_much).unwrap(), 10);
    alone(test, CLUSTERS, program, |(nodes, _), child| {
        let (status, said) = child.end();
        assert!(status.success(), "{status}: {said}");
        let last = format!("N{}: there is no memory", nodes - 1);
        let parts = ["N0: there is no memory", &last, "[0..8388608] of buffer \"field\""];
        assert_says(&said, &parts);
        assert_says(&said, &["67108864 bytes", "`fence_part`"]);
    });
}
