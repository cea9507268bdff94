//! What programs take out at barriers, at their end, and at fences of host objects: values of all
//! kinds, on clusters of all shapes, and what a program is told that breaks a rule.

use std::cell::Cell;
use std::fs;
use std::sync::Mutex;

use celerity::prelude::*;
use celerity::{Collectives, DeclareError, Error, Max, Result, RunError, Sum};

fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (1, 3), (2, 1), (3, 2), (4, 1)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

/// Runs a program on all clusters, which looks at what it gets on every node.
fn on_all(program: impl Fn(&Queue) -> Result<()> + Sync) {
    for cluster in clusters() {
        cluster.run(&program).unwrap_or_else(|error| panic!("{cluster:?}: {error}"));
    }
}

/// A buffer whose elements are their positions, and a number.
fn counted<const D: usize>(queue: &Queue, range: [usize; D], first: u32) -> Result<Buffer<u32, D>> {
    let buffer = queue.buffer::<u32, D>(range).named("counted");
    queue.task("count").parallel_for(range, buffer.write(one_to_one()), move |item, element| {
        *element = first + item.linear_id() as u32;
    })?;
    Ok(buffer)
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in: {text}"));
}

fn is_ended<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Run(error)) if matches!(*error, RunError::Ended { .. }))
}

#[test]
fn a_tuple_of_all_kinds_and_as_many_as_there_can_be() {
    on_all(|queue| {
        let (line, plane) = (counted(queue, [7], 10)?, counted(queue, [4, 5], 20)?);
        let (space, number) = (counted(queue, [2, 3, 4], 30)?, counted(queue, [], 40)?);
        let log = queue.host_object(vec![queue.node()]).named("log");
        queue.host_task("note").everywhere(log.sequential(), |_, log| log.push(100))?;
        let part = Subrange { offset: [1, 2], range: [2, 2] };
        let (all, below, inside, line, one, own, none, again) = queue.barrier_with((
            plane.capture(),
            plane.capture_part(part),
            space.capture(),
            line.capture(),
            number.capture(),
            log.capture(),
            line.capture_part(Subrange { offset: [3], range: [0] }),
            plane.capture(),
        ))?;
        assert_eq!(all.as_slice(), (20..40).collect::<Vec<_>>());
        assert_eq!((below.part(), below.as_slice()), (part, &[27, 28, 32, 33][..]));
        assert_eq!((below[[1, 2]], below.get([0, 0])), (27, None));
        assert_eq!(inside.into_vec(), (30..54).collect::<Vec<_>>());
        assert_eq!((line[6], one[[]]), (16, 40));
        assert_eq!(own, [queue.node(), 100], "the object of this node");
        assert_eq!(none.as_slice(), []);
        assert_eq!(again, all);
        Ok(())
    });
}

#[test]
fn one_alone_comes_without_a_tuple_and_nothing_is_a_barrier() {
    on_all(|queue| {
        let line = counted(queue, [9], 0)?;
        assert_eq!(queue.barrier_with(line.capture())?[8], 8);
        let (alone,) = queue.barrier_with((line.capture(),))?;
        assert_eq!(alone.as_slice().len(), 9);
        let cell = queue.host_object(Cell::new(5));
        assert_eq!(queue.barrier_with(cell.capture())?.get(), 5, "not `Sync`");
        let () = queue.barrier_with(())?;
        let empty = queue.buffer::<f64, 2>([0, 4]);
        assert_eq!(queue.barrier_with(empty.capture())?.into_vec(), []);
        Ok(())
    });
}

#[test]
fn a_capture_is_as_of_its_barrier_and_nothing_ends_with_it() {
    on_all(|queue| {
        let line = counted(queue, [5], 0)?;
        let log = queue.host_object(0);
        for round in 1..=6 {
            let accesses = line.read_write(one_to_one());
            queue.task("add").parallel_for(5, accesses, |_, element| *element += 1)?;
            for _ in 0..20 {
                queue.host_task("note").everywhere(log.exclusive(), |_, log| *log += 1)?;
            }
            let (line, log) = queue.barrier_with((line.capture(), log.capture()))?;
            assert_eq!((line[4], log), (4 + round, 20 * round));
        }
        assert_eq!(log.take(queue)?, 120);
        Ok(())
    });
}

#[test]
fn a_barrier_waits_for_what_nobody_captures() {
    on_all(|queue| {
        let shared = std::sync::Arc::new(Mutex::new(0));
        let line = counted(queue, [5], 0)?;
        for _ in 0..10 {
            let shared = shared.clone();
            queue.host_task("own").everywhere((), move |_, ()| *shared.lock().unwrap() += 1)?;
        }
        queue.barrier_with(line.capture())?;
        assert_eq!(*shared.lock().unwrap(), 10);
        Ok(())
    });
}

#[test]
fn a_reduction_is_combined_when_it_is_captured() {
    on_all(|queue| {
        let (sum, most) = (queue.buffer::<u64, 0>([]), queue.buffer::<u64, 0>([]));
        let task = |first: u64| {
            let accesses = (sum.reduce(Sum), most.reduce(Max));
            queue.task("reduce").parallel_for([30, 10], accesses, move |item, (sum, most)| {
                sum.combine(first + item.linear_id() as u64);
                most.combine(first + item.linear_id() as u64);
            })
        };
        for first in [0, 7] {
            task(first)?;
            let (sum, most) = queue.barrier_with((sum.capture(), most.capture().on_node(0)))?;
            assert_eq!(sum[[]], (first..first + 300).sum());
            assert_eq!(most.map(|most| most[[]]), queue.is_root().then_some(first + 299));
        }
        Ok(())
    });
}

#[test]
fn each_node_gets_its_part_and_no_other() {
    on_all(|queue| {
        let (node, nodes) = (queue.node(), queue.nodes());
        let line = counted(queue, [8 * nodes], 0)?;
        let log = queue.host_object(vec![node]);
        let last = nodes - 1;
        // Other parts on other nodes; the first node gets the end, and the last one the beginning.
        let part = |at| Subrange { offset: [8 * at], range: [8] };
        let (first, end, log, everywhere) = queue.barrier_with((
            line.capture_part(part(last)).on_node(0),
            line.capture_part(part(0)).on_node(last),
            log.capture().on_node(last),
            line.capture_part(part(0)),
        ))?;
        let eight = |from: usize| (from as u32..from as u32 + 8).collect::<Vec<_>>();
        assert_eq!(first.map(|it| it.into_vec()), (node == 0).then(|| eight(8 * last)));
        assert_eq!(end.map(|it| it.into_vec()), (node == last).then(|| eight(0)));
        assert_eq!(log, (node == last).then(|| vec![last]));
        assert_eq!(everywhere.into_vec(), eight(0));
        Ok(())
    });
}

/// What is asked for on the node that has it goes nowhere.
#[test]
fn a_capture_on_one_node_sends_to_that_node_alone() {
    let file = format!("celerity-captures-{}.txt", std::process::id());
    let path = std::env::temp_dir().join(file);
    let transfers = |on_node: Option<usize>| {
        // Collectives would take part everywhere.
        let config = Config::default().nodes(3).collectives(Collectives::Off);
        let config = config.write_graphs(&path);
        let run = config.run(|queue| {
            let line = counted(queue, [12], 0)?;
            let part = line.capture_part(Subrange { offset: [4], range: [4] });
            match on_node {
                Some(node) => drop(queue.barrier_with(part.on_node(node))?),
                None => drop(queue.barrier_with(part)?),
            }
            Ok(())
        });
        run.unwrap();
        let graphs = fs::read_to_string(&path).unwrap();
        let pushes = graphs.lines().filter(|line| line.contains(" push ")).count();
        let awaits = graphs.lines().filter(|line| line.contains(" await push ")).count();
        (pushes, awaits)
    };
    let (nobody, one, all) = (transfers(Some(1)), transfers(Some(2)), transfers(None));
    fs::remove_file(&path).unwrap();
    assert_eq!(nobody, (0, 0), "node 1 has it");
    assert_eq!((one.1, all.1), (1, 2), "who needs it gets it");
    assert!(one.0 > 0 && all.0 > 0);
}

#[test]
fn fences_of_objects_stand_at_their_place() {
    on_all(|queue| {
        let log = queue.host_object(Vec::new()).named("log");
        let mut fences = Vec::new();
        for step in 0..20 {
            fences.push(queue.fence_object(&log)?);
            queue.host_task("note").everywhere(log.exclusive(), move |_, log| log.push(step))?;
        }
        // Waited for in another order than submitted.
        for (step, fence) in fences.into_iter().enumerate().rev() {
            assert_eq!(fence.wait()?, (0..step).collect::<Vec<_>>());
        }
        Ok(())
    });
}

#[test]
fn finish_gives_values_and_ends_the_run() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let line = counted(queue, [6], 3)?;
            let log = queue.host_object("log".to_owned());
            let early = queue.fence(&line)?;
            let (last, text, own) = queue.finish((
                line.capture_part(Subrange { offset: [5], range: [1] }),
                log.capture(),
                log.capture().on_node(queue.nodes() - 1),
            ))?;
            assert_eq!((last[5], text.as_str()), (8, "log"));
            assert_eq!(own.is_some(), queue.node() == queue.nodes() - 1);
            assert_eq!(early.wait()?[5], 8, "it was there before the end");

            // Whatever comes now is refused, and what submits nothing does nothing.
            let new = queue.buffer_from(4, vec![0_u32; 4])?.named("new");
            let accesses = new.read_write(one_to_one());
            assert!(is_ended(queue.task("late").parallel_for(4, accesses, |_, _| ())));
            assert!(is_ended(queue.host_task("late").once((), |()| ())));
            assert!(is_ended(queue.host_task("late").everywhere((), |_, ()| ())));
            assert!(is_ended(queue.fence(&line)) && is_ended(queue.fence_object(&log)));
            assert!(is_ended(queue.barrier()) && is_ended(queue.barrier_with(log.capture())));
            assert!(is_ended(queue.finish(())) && is_ended(queue.finish(line.capture())));
            assert!(is_ended(queue.host_object(1).named("new").take(queue)));
            assert!(is_ended(log.take(queue)));
            queue.flush();
            drop((line, new));
            Ok(last.into_vec())
        };
        assert_eq!(cluster.run(program).unwrap(), [8], "{cluster:?}");
    }
}

#[test]
fn a_program_that_fails_after_its_end_fails() {
    for nodes in [1, 3] {
        for culprit in [0, nodes - 1] {
            let message = format!("no room for the picture of node {culprit}");
            let program = |queue: &Queue| {
                queue.finish(counted(queue, [6], 3)?.capture())?;
                match queue.node() == culprit {
                    true => Err(Error::user(message.clone())),
                    false => Ok(()),
                }
            };
            let error = Config::default().nodes(nodes).run(program).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}

#[test]
fn what_cannot_be_captured_is_refused_and_the_run_goes_on() {
    for cluster in clusters() {
        let kept = Mutex::new(Vec::new());
        let keep = |queue: &Queue| {
            let of_other_run = (queue.buffer_from(2, vec![1, 2])?, queue.host_object(0));
            kept.lock().unwrap().push(of_other_run);
            Ok(())
        };
        cluster.run(keep).unwrap();
        let (buffer, object) = kept.into_inner().unwrap().pop().unwrap();
        let program = |queue: &Queue| {
            let line = counted(queue, [6], 0)?;
            let here = "captures.rs:";

            let error = queue.barrier_with((line.capture(), buffer.capture())).unwrap_err();
            assert!(matches!(error, Error::ForeignBuffer { .. }), "{error}");
            assert_says(&error, &["\"capture of B0\" at", here]);
            let error = queue.finish(object.capture()).unwrap_err();
            assert!(matches!(error, Error::ForeignObject { .. }), "{error}");
            assert_says(&error, &["\"capture of H0\" at", here]);
            let error = queue.fence_object(&object).unwrap_err();
            assert_says(&error, &["\"fence on H0\" at", here]);

            let taken = queue.host_object(0);
            let again = taken.clone();
            taken.take(queue)?;
            let error = queue.barrier_with(again.capture()).unwrap_err();
            let Error::Declare(declare) = &error else { panic!("{error}") };
            assert!(matches!(**declare, DeclareError::UnknownObject { .. }), "{error}");

            let unwritten = queue.buffer::<u32, 1>(3).named("unwritten");
            let error = queue.barrier_with(unwritten.capture()).unwrap_err();
            assert_says(&error, &["\"capture of unwritten\" at", here, "\"unwritten\""]);
            let outside = Subrange { offset: [4], range: [5] };
            let error = queue.finish(line.capture_part(outside)).unwrap_err();
            assert_says(&error, &["\"capture of counted\" at", here, "\"counted\""]);

            let nodes = queue.nodes();
            let error = queue.barrier_with(line.capture().on_node(nodes)).unwrap_err();
            assert!(matches!(error, Error::NoSuchNode { .. }), "{error}");
            let empty = Subrange { offset: [0], range: [0] };
            let error = queue.barrier_with(line.capture_part(empty).on_node(nodes)).unwrap_err();
            assert!(matches!(error, Error::NoSuchNode { .. }), "{error}");

            Ok(queue.barrier_with(line.capture())?[5])
        };
        assert_eq!(cluster.run(program).unwrap(), 5);
    }
}

/// Cannot be copied any more when it has broken.
struct Fragile {
    broken: bool,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!self.broken, "broken glass");
        Self { broken: false }
    }
}

/// How a program asks for a clone.
type Way = fn(&Queue, &HostObject<Fragile>) -> Result<()>;

#[test]
fn a_clone_that_panics_ends_the_run_and_names_the_object() {
    let ways: [Way; 4] = [
        |queue, vase| queue.barrier_with(((), vase.capture())).map(drop),
        |queue, vase| queue.barrier_with(vase.capture().on_node(queue.nodes() - 1)).map(drop),
        |queue, vase| queue.finish(vase.capture()).map(drop),
        |queue, vase| queue.fence_object(vase)?.wait().map(drop),
    ];
    for cluster in clusters() {
        for way in ways {
            let program = |queue: &Queue| {
                let last = queue.node() == queue.nodes() - 1;
                let vase = queue.host_object(Fragile { broken: false }).named("vase");
                queue.barrier_with(vase.capture())?;
                queue.host_task("drop").everywhere(vase.sequential(), move |_, vase| {
                    vase.broken = last;
                })?;
                way(queue, &vase)?;
                // Where it has not broken, the program need not notice before it waits again.
                queue.barrier()
            };
            let error = cluster.run(program).unwrap_err();
            assert_says(&error, &["vase\" at", "captures.rs:", "broken glass"]);
            let Error::Run(error) = &error else { panic!("{error}") };
            assert!(matches!(**error, RunError::TaskPanicked { .. }), "{error}");
        }
    }
}

#[test]
fn a_run_that_fails_fails_its_captures() {
    for cluster in clusters() {
        let program = |queue: &Queue| {
            let line = counted(queue, [64], 0)?;
            let log = queue.host_object(1);
            queue
                .host_task("broken")
                .everywhere((line.read(all()), log.exclusive()), |_, _| panic!("no"))?;
            let line = line.capture_part(Subrange { offset: [1], range: [1] });
            let fenced = queue.fence_object(&log).and_then(|fence| fence.wait());
            assert_says(&fenced.unwrap_err(), &["\"broken\" at"]);
            let error = queue.barrier_with((line, log.capture())).unwrap_err();
            assert_says(&error, &["\"broken\" at"]);
            Ok(())
        };
        assert_says(&cluster.run(program).unwrap_err(), &["\"broken\" at"]);
    }
}

/// What one node alone does, of which the others must hear.
type Alone = fn(&Queue, &Buffer<u32, 1>, &HostObject<u32>) -> Result<()>;

#[test]
fn a_capture_in_a_branch_that_one_node_takes_is_named() {
    let alone: [(&str, Alone); 6] = [
        ("capture of counted", |queue, line, _| queue.barrier_with(line.capture()).map(drop)),
        ("capture of log", |queue, _, log| queue.barrier_with(log.capture()).map(drop)),
        ("capture of log", |queue, _, log| queue.finish(log.capture().on_node(0)).map(drop)),
        ("fence on log", |queue, _, log| queue.fence_object(log)?.wait().map(drop)),
        ("take log", |queue, _, log| log.clone().take(queue).map(drop)),
        ("note", |queue, _, log| {
            queue.host_task("note").once(log.exclusive(), |_| ())?;
            queue.barrier()
        }),
    ];
    for nodes in [2, 3, 4] {
        for (nth, (name, act)) in alone.iter().enumerate() {
            let odd = nth % nodes;
            let error = Config::default().nodes(nodes).run(|queue| {
                let line = counted(queue, [8], 0)?;
                let log = queue.host_object(0).named("log");
                if queue.node() == odd {
                    act(queue, &line, &log)?;
                }
                queue.barrier()
            });
            let error = error.unwrap_err();
            let Error::Run(run) = &error else { panic!("{error}") };
            assert!(matches!(**run, RunError::Diverged { .. }), "{error}");
            assert_says(&error, &[&format!("\"{name}\" at"), "captures.rs:"]);
        }
    }
}

#[test]
fn nodes_that_ask_for_other_things_are_named() {
    let differs = |submit: fn(&Queue, &Buffer<u32, 1>, &HostObject<u32>) -> Result<()>| {
        let error = Config::default().nodes(3).run(|queue| {
            let (line, log) = (counted(queue, [8], 0)?, queue.host_object(0));
            submit(queue, &line, &log)?;
            queue.barrier()
        });
        match error.unwrap_err() {
            Error::Run(error) => assert!(matches!(*error, RunError::Diverged { .. }), "{error}"),
            other => panic!("{other}"),
        }
    };
    // Each for itself instead of all for the same node.
    differs(|queue, line, _| queue.barrier_with(line.capture().on_node(queue.node())).map(drop));
    differs(|queue, _, log| queue.barrier_with(log.capture().on_node(queue.node())).map(drop));
    differs(|queue, line, _| {
        let part = Subrange { offset: [queue.node()], range: [1] };
        queue.barrier_with(line.capture_part(part)).map(drop)
    });
    // The same objects in another order.
    differs(|queue, _, log| {
        let other = queue.host_object(1);
        let captured = if queue.is_root() { &other } else { log };
        queue.barrier_with(captured.capture()).map(drop)
    });
    // An object that one node alone makes.
    differs(|queue, line, _| {
        let _own = queue.is_root().then(|| queue.host_object(1));
        queue.fence(line)?.wait().map(drop)
    });
    // One ends its run where others go on.
    differs(|queue, line, _| match queue.node() {
        2 => queue.finish(line.capture()).map(drop),
        _ => queue.barrier_with(line.capture()).map(drop),
    });
}

#[test]
fn captures_of_many_steps_are_what_fences_would_be() {
    on_all(|queue| {
        let start: Vec<i64> = (0..60).map(|i| (i * 7919 + 13) % 1009).collect();
        let field = queue.buffer_from([6, 10], start.clone())?;
        for step in 1..=10 {
            let accesses = field.read_write(one_to_one());
            queue
                .task("step")
                .parallel_for([6, 10], accesses, |_, value| *value = *value * 3 + 1)?;
            let fenced = queue.fence(&field)?;
            let captured = queue.barrier_with(field.capture())?;
            assert_eq!(captured, fenced.wait()?, "step {step}");
        }
        let expected = start.iter().map(|&value| (0..10).fold(value, |value, _| value * 3 + 1));
        assert_eq!(queue.finish(field.capture())?.into_vec(), expected.collect::<Vec<_>>());
        Ok(())
    });
}
