//! Users' code that does not return: what is running says for how long and where; and a run that
//! has failed, or that somebody wants to interrupt, says what it waits for, also where no thread
//! of the runtime could say it.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use celerity::Result;
use celerity::prelude::*;

use crate::process::{Alone, alone};
use crate::{CLUSTERS, assert_says, cluster};

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(1000);

const SIGINT: i32 = 2;

/// Where a program stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StuckAt {
    Kernel,
    HostTask,
    /// Where the node schedules.
    Mapper,
    /// Where the program submits.
    OwnMapper,
    /// A kernel that was short before, so that the node runs it itself.
    ShortKernel,
    /// What a kernel owned, when it is dropped.
    End,
    Program,
}

const ALL: [StuckAt; 7] = [
    StuckAt::Kernel,
    StuckAt::HostTask,
    StuckAt::Mapper,
    StuckAt::OwnMapper,
    StuckAt::ShortKernel,
    StuckAt::End,
    StuckAt::Program,
];

fn stay() {
    eprintln!("at the place");
    std::thread::sleep(LONG);
}

/// Stays when it is dropped, on the node that is asked.
struct Sticky;

impl Drop for Sticky {
    fn drop(&mut self) {
        stay();
    }
}

/// A mapper that stays when it is asked for the `nth` time, on node 0.
fn sticky(queue: &Queue, nth: usize) -> celerity::CustomMapper<1, 1> {
    let (asked, here) = (AtomicUsize::new(0), queue.is_root());
    mapper("sticky", move |chunk: Chunk<1>, _: [usize; 1]| {
        if here && asked.fetch_add(1, Ordering::Relaxed) == nth {
            stay();
        }
        Subrange { offset: chunk.offset, range: chunk.range }
    })
}

/// A program that stays somewhere on node 0, in a task that is called "slow".
fn stay_in(queue: &Queue, place: StuckAt) -> Result<()> {
    let (here, items) = (queue.is_root(), queue.nodes());
    let task = || queue.task("slow");
    match place {
        StuckAt::Kernel => task().parallel_for(items, (), move |item, ()| {
            if item.id() == [0] {
                stay();
            }
        })?,
        StuckAt::HostTask => queue.host_task("slow").once((), |()| stay())?,
        StuckAt::Mapper | StuckAt::OwnMapper => {
            let a = queue.buffer_from(64, vec![1_u32; 64])?;
            let map = sticky(queue, usize::from(place == StuckAt::Mapper));
            task().parallel_for(64, a.read(map), |_, _| ())?
        }
        StuckAt::ShortKernel => {
            let nth = AtomicUsize::new(0);
            let count = move || nth.fetch_add(1, Ordering::Relaxed) == 200;
            let kernel = std::sync::Arc::new(move |item: Item<1>| {
                if item.id() == [0] && count() {
                    stay();
                }
            });
            for _ in 0..300 {
                let kernel = kernel.clone();
                task().parallel_for(items, (), move |item, ()| kernel(item))?;
                queue.barrier()?;
            }
            return Ok(());
        }
        StuckAt::End => {
            let sticky = here.then(|| Sticky);
            task().parallel_for(items, (), move |_, ()| _ = &sticky)?
        }
        StuckAt::Program => {
            if here {
                stay();
            }
            return Ok(());
        }
    };
    queue.barrier()
}

/// What is said of a run that is interrupted there.
fn said_at_the_end(place: StuckAt) -> &'static [&'static str] {
    match place {
        StuckAt::Kernel => &[
            "; N0 waits for kernel of T1 \"slow\" at ",
            "on D0, which has been running for ",
            "s on thread celerity-",
        ],
        StuckAt::HostTask => &[
            "; N0 waits for host function of T1 \"slow\" at ",
            "which has been running for ",
            " on thread celerity-host",
        ],
        StuckAt::Mapper => &["; N0 has been in a range mapper of T1 \"slow\" at ", "schedule"],
        StuckAt::OwnMapper => {
            &["; N0 has been in a range mapper of task \"slow\" at ", ", which its program submits"]
        }
        // If the machine was slow, it was not short, and others have run it.
        StuckAt::ShortKernel => &["; N0 ", "kernel of T", "\"slow\" at ", " for "],
        StuckAt::End => &["; N0 has been in the end of what T1 \"slow\" at ", "owned for "],
        StuckAt::Program => &["; N0 waits for its program, which has not returned"],
    }
}

/// The same of one that nobody interrupts. Of what a program does by itself, nothing is said.
fn said_meanwhile(place: StuckAt) -> &'static [&'static str] {
    match place {
        StuckAt::Kernel => {
            &["(kernel of T1 \"slow\" at ", "on D0) has been running for ", " on thread celerity-"]
        }
        StuckAt::HostTask => {
            &["(host function of T1 \"slow\" at ", ") has been running for ", "celerity-host"]
        }
        StuckAt::Mapper => &["N0 has been in a range mapper of T1 \"slow\" at ", "; meanwhile N0"],
        StuckAt::OwnMapper => &["N0 has been in a range mapper of task \"slow\" at ", "submits"],
        StuckAt::ShortKernel => &["kernel of T", "\"slow\" at ", " for "],
        StuckAt::End => &["N0 has been in the end of what T1 \"slow\" at ", "; meanwhile N0"],
        StuckAt::Program => &["N1 has made no progress for "],
    }
}

/// Patience of tests.
const PERIOD: Duration = Duration::from_millis(200);

type Case = (StuckAt, (usize, usize));

fn cases() -> impl Iterator<Item = Case> {
    let clusters = [(1, 1), (2, 2)].into_iter();
    clusters.flat_map(|cluster| ALL.into_iter().map(move |place| (place, cluster)))
}

fn run((place, case): Case) {
    let config = cluster(case).watchdog(PERIOD).interruptible(true);
    let outcome = config.run(|queue| stay_in(queue, place));
    panic!("{outcome:?}");
}

/// Interrupts the run where it stays, looks at what is said, and does it again.
fn interrupt((place, _): Case, mut child: Alone) {
    child.wait_for("at the place");
    child.signal("INT");
    let parts = said_at_the_end(place);
    let line = child.wait_for(&format!("celerity: interrupted by SIGINT{}", parts[0]));
    assert_says(&line, parts);
    assert!(line.ends_with("; interrupt again to end at once"), "{line}");
    child.signal("INT");
    let (status, said) = child.end();
    assert_eq!(status.signal(), Some(SIGINT), "{status}: {said}");
}

#[test]
fn a_run_that_is_interrupted_says_what_it_waits_for_and_ends_at_once_if_told_again() {
    let test =
        "silence::a_run_that_is_interrupted_says_what_it_waits_for_and_ends_at_once_if_told_again";
    alone(test, cases(), run, interrupt);
}

/// A program that has all it wanted of the run when it is interrupted, and that would go on.
fn go_on_when_all_is_done(case: (usize, usize)) {
    let outcome = cluster(case).interruptible(true).run(|queue| {
        queue.finish(())?;
        if queue.is_root() {
            eprintln!("at the place");
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    });
    eprintln!("goes on with {outcome:?}");
}

#[test]
fn an_interrupt_that_is_too_late_for_a_run_ends_the_process() {
    let test = "silence::an_interrupt_that_is_too_late_for_a_run_ends_the_process";
    alone(test, [(1, 1), (2, 2)], go_on_when_all_is_done, |case, mut child| {
        child.wait_for("at the place");
        child.signal("INT");
        let (status, said) = child.end();
        assert_eq!(status.signal(), Some(SIGINT), "{case:?}: {status}: {said}");
        assert!(!said.contains("goes on"), "{said}");
    });
}

/// Run after run, each of which does nothing.
fn run_for_ever(_: u64) {
    eprintln!("at the place");
    loop {
        let outcome = Config::default().interruptible(true).run(Queue::barrier);
        if let Err(error) = outcome {
            return eprintln!("ends with {error}");
        }
    }
}

/// Between them, too.
#[test]
fn an_interrupt_is_heard_whenever_it_comes() {
    let test = "silence::an_interrupt_is_heard_whenever_it_comes";
    alone(test, 0..20_u64, run_for_ever, |n, mut child| {
        child.wait_for("at the place");
        std::thread::sleep(Duration::from_micros(7919 * n % 40_000));
        child.signal("INT");
        let (status, said) = child.end();
        let is_ended = status.signal() == Some(SIGINT) || said.contains("ends with");
        assert!(is_ended, "{status}: {said}");
    });
}

#[test]
fn what_does_not_return_says_for_how_long_and_where() {
    let test = "silence::what_does_not_return_says_for_how_long_and_where";
    let cases = cases().filter(|(place, (nodes, _))| *place != StuckAt::Program || *nodes > 1);
    alone(test, cases, run, |(place, _), mut child| {
        child.wait_for("at the place");
        let parts = said_meanwhile(place);
        let line = child.wait_for(parts[0]);
        assert_says(&line, parts);
    });
}

/// Where a program stays, it is known for how long before it is interrupted.
#[test]
fn how_long_something_has_run_counts_from_when_it_began() {
    let test = "silence::how_long_something_has_run_counts_from_when_it_began";
    alone(test, [(StuckAt::Kernel, (1, 1)), (StuckAt::HostTask, (2, 1))], run, |_, mut child| {
        child.wait_for("at the place");
        // Said at doubling intervals: after 200, 400 and 800 ms.
        for _ in 0..2 {
            child.wait_for("has been running for ");
        }
        let line = child.wait_for("has been running for ");
        let (_, rest) = line.split_once("has been running for ").expect("it was waited for");
        let (lasting, _) = rest.split_once(" on thread ").expect("a thread");
        let millis = match lasting.strip_suffix("ms") {
            Some(millis) => millis.parse::<f64>().expect("a number"),
            None => 1e3 * lasting.trim_end_matches('s').parse::<f64>().expect("a number"),
        };
        assert!(millis >= 750.0, "{line}");
    });
}

/// One task stays, and another one fails.
fn fail(case: (usize, usize)) {
    let config = cluster(case).watchdog(PERIOD).interruptible(true);
    let outcome = config.run(|queue| {
        queue.host_task("slow").once((), |()| stay())?;
        let nodes = queue.nodes();
        queue.task("bad").parallel_for(nodes, (), move |item, ()| {
            std::thread::sleep(PERIOD / 2);
            assert!(item.id() != [nodes - 1], "bad luck");
        })?;
        queue.barrier()
    });
    panic!("{outcome:?}");
}

#[test]
fn a_run_that_has_failed_says_why_and_what_it_waits_for() {
    let test = "silence::a_run_that_has_failed_says_why_and_what_it_waits_for";
    alone(test, CLUSTERS, fail, |(nodes, _), mut child| {
        child.wait_for("at the place");
        let bad = format!("panicked on N{}, D0: item [{}]: bad luck", nodes - 1, nodes - 1);
        let parts = [
            "celerity: the run has failed: task T2 \"bad\" at ",
            &bad,
            "; N0 waits for host function of T1 \"slow\" at ",
            "which has been running for ",
        ];
        let line = child.wait_for(parts[0]);
        assert_says(&line, &parts);
        // And goes on saying it.
        assert_says(&child.wait_for(parts[0]), &parts);
    });
}

#[test]
fn who_ends_in_time_says_nothing_of_the_end() {
    for case in CLUSTERS {
        let outcome = cluster(case).watchdog(Duration::from_secs(1000)).run(|queue| {
            queue.task("bad").parallel_for(8, (), |_, ()| panic!("bad luck"))?;
            queue.barrier()
        });
        assert!(outcome.is_err());
    }
}

/// A mapper that comes back after all, later than the watchdog has patience: kernels have ended
/// meanwhile, and nobody has overslept that.
#[test]
fn what_returns_after_all_is_blamed_on_nobody() {
    let test = "silence::what_returns_after_all_is_blamed_on_nobody";
    let program = |case| {
        let sum = cluster(case).watchdog(PERIOD / 4).run(|queue| {
            let (a, b) = (queue.buffer_from(64, vec![1_u32; 64])?, queue.buffer::<u32, 1>(64));
            let slow = |_, b: &mut u32| {
                std::thread::sleep(PERIOD / 1000);
                *b = 1;
            };
            queue.task("slow").parallel_for(64, b.write(one_to_one()), slow)?;
            let asked = AtomicUsize::new(0);
            let late = mapper("late", move |chunk: Chunk<1>, _: [usize; 1]| {
                if asked.fetch_add(1, Ordering::Relaxed) == 1 {
                    std::thread::sleep(2 * PERIOD);
                }
                Subrange { offset: chunk.offset, range: chunk.range }
            });
            let accesses = (b.read_write(one_to_one()), a.read(late));
            queue.task("late").parallel_for(64, accesses, |item, (b, a)| *b += a[item[0]])?;
            Ok(queue.fence(&b)?.wait()?.as_slice().iter().sum::<u32>())
        });
        assert_eq!(sum.unwrap(), 128);
    };
    alone(test, CLUSTERS, program, |_, child| {
        let (status, said) = child.end();
        assert!(status.success(), "{said}");
        assert_says(&said, &["has been in a range mapper of T2 \"late\" at "]);
        assert!(!said.contains("nothing woke"), "{said}");
    });
}
