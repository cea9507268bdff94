//! Stacks that overflow: those of items in groups are small, and Rust does not know them.

use celerity::prelude::*;
use celerity::{NdItem, kernel};

use crate::process::alone;
use crate::{CLUSTERS, assert_says, cluster};

#[inline(never)]
fn recurse(depth: u32) -> u32 {
    let frame = std::hint::black_box([depth; 64]);
    if depth == 0 { frame[0] } else { recurse(depth - 1) + frame[3] }
}

/// Items that wait in functions have stacks.
fn wait(item: &NdItem<'_, 2>) {
    item.group().barrier();
}

/// One item goes too deep, while others wait for it.
#[kernel]
fn deep(item: NdItem<'_, 2>, out: &mut u32) {
    wait(&item);
    *out = recurse(if item.id() == [5, 3] { 1_000_000 } else { 3 });
    wait(&item);
}

/// As deep as a stack allows, and a bit less.
#[kernel]
fn shallow(item: NdItem<'_, 2>, out: &mut u32) {
    wait(&item);
    *out = recurse(200);
}

fn launch(case: (usize, usize)) {
    let outcome = cluster(case).run(|queue| {
        let out = queue.buffer::<u32, 2>([16, 8]);
        queue.task("fine").launch(nd_range([16, 8], [4, 4]), out.write(one_to_one()), shallow)?;
        queue.task("step").launch(nd_range([16, 8], [4, 4]), out.write(one_to_one()), deep)?;
        queue.barrier()
    });
    panic!("{outcome:?}");
}

#[test]
#[cfg(unix)]
fn an_item_whose_stack_overflows_is_named() {
    use std::os::unix::process::ExitStatusExt;

    const SIGABRT: i32 = 6;
    let test = "stacks::an_item_whose_stack_overflows_is_named";
    alone(test, CLUSTERS, launch, |_, child| {
        let (status, said) = child.end();
        assert_eq!(status.signal(), Some(SIGABRT), "{status}: {said}");
        let parts = ["item [5, 3]", "`deep`", "[16, 8] items in groups of [4, 4]", "256 KiB"];
        assert_says(&said, &parts);
    });
}

/// Not ours: Rust says whose stack it was.
#[test]
#[cfg(unix)]
fn other_overflows_are_told_as_before() {
    let program = |()| {
        let outcome = Config::default().run(|queue| {
            let out = queue.buffer::<u32, 2>([16, 8]);
            queue.task("fine").launch(
                nd_range([16, 8], [4, 4]),
                out.write(one_to_one()),
                shallow,
            )?;
            queue.barrier()?;
            queue.host_task("deep").once((), |()| _ = recurse(10_000_000))?;
            queue.barrier()
        });
        panic!("{outcome:?}");
    };
    alone("stacks::other_overflows_are_told_as_before", [()], program, |(), child| {
        let (status, said) = child.end();
        assert!(!status.success());
        assert_says(&said, &["'celerity-host'", "has overflowed its stack"]);
    });
}
