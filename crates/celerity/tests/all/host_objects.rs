//! Host objects as a program uses them: what each order promises, on clusters of all shapes, and
//! what a program is told that breaks a rule.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use celerity::prelude::*;
use celerity::{DeclareError, Error, Result, RunError};

fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (1, 3), (2, 1), (3, 2)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

/// Runs a program on all clusters; it must give `expected` on node 0.
fn expect<R: Send + PartialEq + std::fmt::Debug>(
    expected: &R,
    program: impl Fn(&Queue) -> Result<R> + Sync,
) {
    for cluster in clusters() {
        let found = cluster.run(&program).unwrap();
        assert_eq!(found, *expected, "{cluster:?}");
    }
}

#[test]
fn sequential_tasks_come_in_the_order_of_submission() {
    expect(&(0..200).collect::<Vec<usize>>(), |queue| {
        let log = queue.host_object(Vec::new());
        let values = queue.buffer_from(8, vec![1_u32; 8])?;
        for step in 0..200 {
            // The longer ones first, so that later ones would overtake them.
            let pause = Duration::from_micros(if step % 10 == 0 { 500 } else { 0 });
            queue.host_task("note").once(log.sequential(), move |log| {
                thread::sleep(pause);
                log.push(step);
            })?;
            if step % 50 == 0 {
                let accesses = values.read_write(one_to_one());
                queue.task("step").parallel_for(8, accesses, |_, value| *value += 1)?;
            }
        }
        let log = log.take(queue)?;
        assert!(queue.is_root() || log.is_empty(), "host tasks run on node 0");
        Ok(log)
    });
}

/// Somebody who is alone, or says so.
#[derive(Default)]
struct Alone {
    inside: AtomicBool,
    visits: AtomicUsize,
}

impl Alone {
    fn visit(&self) {
        assert!(!self.inside.swap(true, SeqCst), "two tasks are at it at once");
        thread::sleep(Duration::from_micros(100));
        self.visits.fetch_add(1, SeqCst);
        self.inside.store(false, SeqCst);
    }
}

#[test]
fn exclusive_tasks_never_meet_and_all_run() {
    expect(&(), |queue| {
        let alone = [(); 2].map(|()| Arc::new(Alone::default()));
        let objects = alone.clone().map(|alone| queue.host_object((alone, 0)));
        for step in 0..120 {
            let [one, other] = &objects;
            let visit = |(alone, visits): &mut (Arc<Alone>, usize)| {
                alone.visit();
                *visits += 1;
            };
            match step % 3 {
                0 => queue.host_task("one").once(one.exclusive(), visit)?,
                1 => queue.host_task("other").once(other.exclusive(), visit)?,
                _ => queue.host_task("both").once(
                    (other.exclusive(), one.exclusive()),
                    move |(other, one)| {
                        visit(other);
                        visit(one);
                    },
                )?,
            };
            if step % 6 == 5 {
                // What only looks must not meet those who change it either.
                let look = |(alone, _): &(Arc<Alone>, usize)| alone.visit();
                queue.host_task("look").once(one.exclusive(), move |one| look(one))?;
                queue.host_task("look").once(other.exclusive(), move |other| look(other))?;
            }
        }
        let mut values = Vec::new();
        for object in objects {
            values.push(object.take(queue)?.1);
        }
        let visits = alone.map(|alone| alone.visits.load(SeqCst));
        let expected = if queue.is_root() { ([80; 2], [100; 2]) } else { ([0; 2], [0; 2]) };
        assert_eq!((<[usize; 2]>::try_from(values).unwrap(), visits), expected);
        Ok(())
    });
}

/// Two or more threads that wait for each other: they cannot unless they run at the same time.
struct Meeting {
    size: usize,
    here: Mutex<usize>,
    all: Condvar,
}

impl Meeting {
    fn of(size: usize) -> Self {
        Self { size, here: Mutex::new(0), all: Condvar::new() }
    }

    fn attend(&self) -> bool {
        let mut here = self.here.lock().unwrap();
        *here += 1;
        self.all.notify_all();
        let wait = Duration::from_secs(30);
        let alone = |here: &mut usize| *here < self.size;
        *self.all.wait_timeout_while(here, wait, alone).unwrap().0 >= self.size
    }
}

#[test]
fn relaxed_tasks_run_at_the_same_time() {
    expect(&true, |queue| {
        let meeting = queue.host_object((Meeting::of(3), AtomicUsize::new(0)));
        for _ in 0..3 {
            queue.host_task("meet").once(meeting.relaxed(), |(meeting, met)| {
                met.fetch_add(usize::from(meeting.attend()), SeqCst);
            })?;
        }
        let (_, met) = meeting.take(queue)?;
        Ok(met.load(SeqCst) == if queue.is_root() { 3 } else { 0 })
    });
}

#[test]
fn tasks_at_different_objects_run_at_the_same_time() {
    expect(&true, |queue| {
        let meeting = Arc::new(Meeting::of(2));
        let (one, other) = (queue.host_object(false), queue.host_object(false));
        // The first ones of each meet, and the second ones could start in their place only.
        for object in [&one, &other, &one, &other] {
            let meeting = meeting.clone();
            queue.host_task("meet").once(object.exclusive(), move |met| *met = meeting.attend())?;
        }
        let met = (one.take(queue)?, other.take(queue)?);
        Ok(met == (queue.is_root(), queue.is_root()))
    });
}

#[test]
fn the_stricter_order_decides() {
    expect(&(), |queue| {
        let object = queue.host_object(AtomicUsize::new(0));
        for round in 0..20 {
            for _ in 0..3 {
                queue.host_task("look").once(object.relaxed(), move |seen| {
                    assert_eq!(seen.load(SeqCst) / 10, round, "before its round");
                    seen.fetch_add(1, SeqCst);
                })?;
            }
            queue.host_task("round").once(object.sequential(), move |seen| {
                assert_eq!(*seen.get_mut(), round * 10 + 3, "not behind all of its round");
                *seen.get_mut() = (round + 1) * 10;
            })?;
        }
        let seen = object.take(queue)?.into_inner();
        assert_eq!(seen, if queue.is_root() { 200 } else { 0 });
        Ok(())
    });
}

#[test]
fn an_object_stands_beside_buffers_at_any_place_of_the_tuple() {
    expect(&vec![28, 36], |queue| {
        let values = queue.buffer_from([2, 4], (0..8).collect::<Vec<u64>>())?;
        let sums = queue.host_object(Vec::new());
        let unit = queue.host_object(()).named("only an order");
        for step in 0..2 {
            queue.host_task("sum").once(
                (
                    sums.sequential(),
                    values.read(all()),
                    unit.exclusive(),
                    values.read(fixed(Subrange { offset: [1, 0], range: [1, 4] })),
                ),
                |(sums, values, (), below)| {
                    assert_eq!(below[[1, 3]], values[[1, 3]]);
                    sums.push(values.as_slice().iter().sum::<u64>());
                },
            )?;
            let accesses = values.read_write(one_to_one());
            queue
                .task("step")
                .parallel_for([2, 4], accesses, move |_, value| *value += 1 + step)?;
        }
        let sums = sums.take(queue)?;
        Ok(if queue.is_root() { sums } else { vec![28, 36] })
    });
}

/// Tells when it is dropped.
struct Told(Arc<AtomicUsize>, usize);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(self.1, SeqCst);
    }
}

#[test]
fn a_value_outlives_its_handles_and_goes_with_its_last_task() {
    expect(&(), |queue| {
        let gone = Arc::new(AtomicUsize::new(0));
        let object = queue.host_object(Told(gone.clone(), 0));
        for step in 1..=3 {
            let gone = gone.clone();
            queue.host_task("use").once(object.sequential(), move |told| {
                thread::sleep(Duration::from_millis(2));
                assert_eq!(gone.load(SeqCst), 0, "it is gone while tasks use it");
                told.1 = step;
            })?;
        }
        drop(object);
        queue.barrier()?;
        assert_eq!(gone.load(SeqCst), if queue.is_root() { 3 } else { 0 });
        Ok(())
    });
}

#[test]
fn what_is_not_sync_is_changed_by_one_after_the_other() {
    expect(&10, |queue| {
        let cell = queue.host_object(Cell::new(0));
        for _ in 0..5 {
            queue.host_task("one").once(cell.exclusive(), |cell| cell.set(cell.get() + 1))?;
            queue.host_task("two").once(cell.sequential(), |cell| cell.set(cell.get() + 1))?;
        }
        let count = cell.take(queue)?.get();
        Ok(if queue.is_root() { count } else { 10 })
    });
}

#[test]
fn a_reference_is_an_arc_in_the_object() {
    expect(&(), |queue| {
        let shared = Arc::new(Mutex::new(0));
        let object = queue.host_object(shared.clone());
        queue.host_task("set").once(object.sequential(), |shared| *shared.lock().unwrap() = 7)?;
        queue.barrier()?;
        assert_eq!(*shared.lock().unwrap(), if queue.is_root() { 7 } else { 0 });
        Ok(())
    });
}

#[test]
fn many_more_tasks_than_lanes_and_objects_never_block_each_other() {
    expect(&vec![250; 8], |queue| {
        let objects: Vec<_> = (0..8).map(|_| queue.host_object(0)).collect();
        for step in 0..1000 {
            // Each shares an object with those before and behind it.
            let (one, other) = (&objects[step % 8], &objects[(step + 1) % 8]);
            queue
                .host_task("both")
                .once((one.exclusive(), other.exclusive()), |(one, other)| {
                    (*one, *other) = (*one + 1, *other + 1)
                })?;
        }
        let counts = objects.into_iter().map(|object| object.take(queue));
        let counts = counts.collect::<Result<Vec<_>>>()?;
        Ok(if queue.is_root() { counts } else { vec![250; 8] })
    });
}

#[test]
fn host_tasks_of_every_form_have_objects() {
    expect(&(), |queue| {
        let (node, nodes) = (queue.node(), queue.nodes());
        let log = queue.host_object(vec![]);
        let last = nodes - 1;
        queue.host_task("first").on_node(last).once(log.sequential(), |log| log.push("first"))?;
        queue.host_task("own").everywhere(log.sequential(), move |partition, log| {
            assert_eq!(partition.node(), node, "the object of another node");
            log.push("own");
        })?;
        queue.host_task("part").distributed(nodes).submit(log.exclusive(), |_, log| {
            log.push("part");
        })?;
        queue.host_task("all").collective("all", log.exclusive(), |partition, log| {
            partition.communicator().barrier()?;
            log.push("all");
            Ok(())
        })?;
        queue.host_task("end").on_node(last).once(log.exclusive(), |log| log.push("end"))?;
        let log = log.take(queue)?;
        match node == last {
            true => assert_eq!(log, ["first", "own", "part", "all", "end"]),
            false => assert_eq!(log, ["own", "part", "all"]),
        }
        Ok(())
    });
}

#[test]
fn parts_on_one_node_take_turns_in_their_order() {
    expect(&(), |queue| {
        let alone = Arc::new(Alone::default());
        let log = queue.host_object((alone.clone(), Vec::new()));
        let parts = 5;
        let note = |task: usize| {
            move |partition: celerity::Partition<2>, (alone, log): &mut (Arc<Alone>, Vec<_>)| {
                alone.visit();
                log.push((task, partition.subrange().offset));
            }
        };
        for task in 0..4 {
            let range = [5 * queue.nodes(), 3];
            let split = queue.host_task("note").distributed(range);
            let split = split.hint(Hint::Oversubscribe(parts));
            match task % 2 {
                0 => split.submit(log.sequential(), note(task))?,
                _ => split.submit(log.exclusive(), note(task))?,
            };
        }
        let (_, log) = log.take(queue)?;
        assert_eq!(log.len(), 4 * parts, "each part comes once");
        assert!(log.windows(2).all(|pair| pair[0] < pair[1]), "out of turn: {log:?}");
        assert_eq!(alone.visits.load(SeqCst), 4 * parts);
        Ok(())
    });
}

#[test]
fn relaxed_parts_run_at_the_same_time() {
    expect(&(), |queue| {
        let meeting = queue.host_object((Meeting::of(3), AtomicUsize::new(0)));
        let split = queue.host_task("meet").distributed(3 * queue.nodes());
        split.hint(Hint::Oversubscribe(3)).submit(meeting.relaxed(), |_, (meeting, met)| {
            met.fetch_add(usize::from(meeting.attend()), SeqCst);
        })?;
        assert_eq!(meeting.take(queue)?.1.into_inner(), 3, "they do not meet");
        Ok(())
    });
}

/// Nodes that chose different orders of two exclusive collective tasks would wait for each other.
#[test]
fn collective_tasks_of_different_groups_come_to_an_object_in_one_order_on_all_nodes() {
    for nodes in [2, 3] {
        let program = |queue: &Queue| {
            let log = queue.host_object(Vec::new());
            let gates = [(); 3].map(|()| queue.host_object(()));
            for step in 0..30 {
                let (group, gate) = (["files", "plots", "links"][step % 3], &gates[step % 3]);
                // Keeps one node from what comes next, another one each time: the other nodes could
                // begin with it, and this one with the task of the next group.
                let pause = queue.host_task("pause").on_node(step % queue.nodes());
                pause.once(gate.sequential(), |()| thread::sleep(Duration::from_micros(300)))?;
                let accesses = (log.exclusive(), gate.relaxed());
                queue.host_task(group).collective(
                    group,
                    accesses,
                    move |partition, (log, ())| {
                        partition.communicator().barrier()?;
                        log.push(step);
                        Ok(())
                    },
                )?;
                // May come before or behind, but not in between.
                let once = queue.host_task("look").on_node((step + 1) % queue.nodes());
                once.once(log.relaxed(), |log| assert!(log.is_sorted()))?;
            }
            assert_eq!(log.take(queue)?, (0..30).collect::<Vec<_>>());
            Ok(())
        };
        Config::default().nodes(nodes).run(program).unwrap();
    }
}

fn declare(error: &Error) -> &DeclareError {
    match error {
        Error::Declare(error) => error,
        other => panic!("not an error at submission: {other:?}"),
    }
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in: {text}"));
}

#[test]
fn an_object_of_another_run_is_refused() {
    for cluster in clusters() {
        let kept = Mutex::new(Vec::new());
        let keep = |queue: &Queue| {
            kept.lock().unwrap().push(queue.host_object(0).named("log"));
            Ok(())
        };
        cluster.run(keep).unwrap();
        let foreign = kept.into_inner().unwrap().pop().unwrap();
        let program = |queue: &Queue| {
            let error = queue.host_task("note").once(foreign.exclusive(), |_| ()).unwrap_err();
            assert!(matches!(error, Error::ForeignObject { .. }), "{error}");
            assert_says(&error, &["\"note\" at", "host_objects.rs:", "exclusive", "\"log\""]);
            let error = foreign.clone().take(queue).unwrap_err();
            assert!(matches!(error, Error::ForeignObject { .. }), "{error}");
            assert_says(&error, &["\"take log\" at", "host_objects.rs:"]);
            // The run goes on.
            queue.host_object(5).take(queue)
        };
        assert_eq!(cluster.run(program).unwrap(), 5);
    }
}

#[test]
fn an_object_is_refused_after_its_end() {
    expect(&3, |queue| {
        let log = queue.host_object(3).named("log");
        let again = log.clone();
        let value = log.take(queue)?;
        let error = queue.host_task("note").once(again.sequential(), |_| ()).unwrap_err();
        assert!(matches!(declare(&error), DeclareError::UnknownObject { .. }), "{error}");
        assert_says(
            &error,
            &["\"note\" at", "host_objects.rs:", "a sequential side effect", "\"log\""],
        );
        let error = again.take(queue).unwrap_err();
        assert!(matches!(declare(&error), DeclareError::UnknownObject { .. }), "{error}");
        Ok(value)
    });
}

#[test]
fn an_object_twice_in_one_tuple_is_refused() {
    expect(&1, |queue| {
        let log = queue.host_object(0).named("log");
        let accesses = (log.relaxed(), log.exclusive());
        let error = queue.host_task("note").once(accesses, |_| ()).unwrap_err();
        assert!(matches!(declare(&error), DeclareError::RepeatedObject { .. }), "{error}");
        let rule = "a task has one side effect on an object";
        let sides = ["a relaxed side effect and an exclusive side effect", "\"log\"", rule];
        assert_says(&error, &["\"note\" at", "host_objects.rs:", sides[0], sides[1], sides[2]]);
        queue.host_task("note").once(log.exclusive(), |log| *log += 1)?;
        let value = log.take(queue)?;
        Ok(if queue.is_root() { value } else { 1 })
    });
}

#[test]
fn a_panic_or_an_error_beside_an_object_ends_the_run_and_names_the_task() {
    for cluster in clusters() {
        for fails in ["panics", "returns"] {
            let program = |queue: &Queue| -> Result<usize> {
                let log = queue.host_object(0);
                for step in 0..30 {
                    let name = if step == 20 { "culprit" } else { "note" };
                    queue.host_task(name).once(log.exclusive(), move |log| {
                        *log += 1;
                        match (step, fails) {
                            (20, "panics") => panic!("no more paper"),
                            (20, _) => Err("no more paper".into()),
                            _ => Ok(()),
                        }
                    })?;
                }
                log.take(queue)
            };
            let error = cluster.run(program).unwrap_err();
            assert_says(&error, &["\"culprit\" at", "host_objects.rs:", "N0", "no more paper"]);
            let Error::Run(error) = &error else { panic!("{error}") };
            match fails {
                "panics" => assert!(matches!(**error, RunError::TaskPanicked { .. }), "{error}"),
                _ => assert!(matches!(**error, RunError::TaskFailed { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn a_value_that_panics_when_it_goes_is_told_of_its_last_task() {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("broken glass");
        }
    }
    let program = |queue: &Queue| {
        let fragile = queue.host_object(Fragile);
        queue.host_task("keeper").once(fragile.sequential(), |_| {
            thread::sleep(Duration::from_millis(5));
        })?;
        drop(fragile);
        queue.barrier()
    };
    let error = Config::default().nodes(1).run(program).unwrap_err();
    assert_says(&error, &["\"keeper\" at", "broken glass"]);
}
