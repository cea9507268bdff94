//! Mistakes that a program can make, and what it is told: which task, which
//! buffer, what is wrong. Never a hang, never a wrong result.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{Bounds, DeclareError, Error, Result, RunError, Sum, UninitializedRead};

/// Clusters of one node, of several devices, and of several nodes.
fn clusters() -> impl Iterator<Item = Config> {
    [(1, 1), (1, 3), (3, 2)]
        .into_iter()
        .map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices))
}

/// The error that `program` ends with, the same on every cluster.
fn error_of<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> Error {
    let mut errors = clusters().map(|cluster| match cluster.run(&program) {
        Ok(_) => panic!("the program should have failed on {cluster:?}"),
        Err(error) => error,
    });
    let first = errors.next().expect("there are clusters");
    errors.for_each(|error| assert_eq!(kind(&error), kind(&first), "{error} against {first}"));
    first
}

fn kind(error: &Error) -> std::mem::Discriminant<Error> {
    std::mem::discriminant(error)
}

#[track_caller]
fn declare(error: &Error) -> &DeclareError {
    match error {
        Error::Declare(error) => error,
        other => panic!("not an error at submission: {other:?}"),
    }
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "\"{message}\" does not say \"{part}\"");
    }
}

#[test]
fn reading_what_nothing_has_written_names_task_buffer_and_part() {
    let error = error_of(|queue| {
        let a = queue.buffer::<f32, 2>([8, 8]).named("pressure");
        let b = queue.buffer::<f32, 2>([8, 8]).named("flow");
        queue.task("half").parallel_for([4, 8], a.write(one_to_one()), |_, a| *a = 1.0)?;
        let accesses = (b.write(one_to_one()), a.read(one_to_one()));
        queue.task("gradient").parallel_for([8, 8], accesses, |_, (b, a)| *b = *a)
    });
    assert!(matches!(declare(&error), DeclareError::UninitializedRead { .. }), "{error:?}");
    assert_says(&error, &["gradient", "pressure", "[4..8, 0..8]", "bad_input.rs"]);
}

#[test]
fn uninitialised_elements_are_zero_if_that_is_asked_for() {
    for cluster in clusters() {
        let contents = cluster.uninitialized_read(UninitializedRead::Warn).run(|queue| {
            let a = queue.buffer::<u32, 1>([100]);
            queue.task("half").parallel_for(50, a.write(one_to_one()), |_, a| *a = 7)?;
            queue.task("add").parallel_for(100, a.read_write(one_to_one()), |_, a| *a += 1)?;
            Ok(queue.fence(&a)?.wait()?.into_vec())
        });
        let expected: Vec<u32> = [[8; 50], [1; 50]].concat();
        assert_eq!(contents.unwrap(), expected);
    }
}

#[test]
fn a_fence_on_what_nothing_has_written_is_refused() {
    let error = error_of(|queue| queue.fence(&queue.buffer::<f32, 1>([3]).named("empty")));
    assert_says(&error, &["fence", "empty", "[0..3]"]);
}

#[test]
fn leaving_a_buffer_is_refused() {
    let error = error_of(|queue| {
        let a = queue.buffer::<f32, 1>([100]).named("short");
        queue.task("long").parallel_for(101, a.write(one_to_one()), |_, a| *a = 0.0)
    });
    assert!(matches!(declare(&error), DeclareError::OutOfBounds { .. }), "{error:?}");
    assert_says(&error, &["long", "short", "one_to_one"]);
    let error = error_of(|queue| {
        let a = queue.buffer_from(4, vec![0_u8; 4])?.named("four");
        let part = Subrange { offset: [2], range: [usize::MAX] };
        queue.task("far").parallel_for(4, a.read(fixed(part)), |_, _| ())
    });
    assert_says(&error, &["far", "four", "fixed"]);
    let error = error_of(|queue| {
        let a = queue.buffer_from(4, vec![0_u8; 4])?.named("four");
        let shifted = mapper("shifted", |chunk: Chunk<1>, _: [usize; 1]| Subrange {
            offset: [chunk.offset[0] + 1],
            range: chunk.range,
        });
        queue.task("beyond").parallel_for(4, a.read(shifted), |_, _| ())
    });
    assert_says(&error, &["beyond", "four", "shifted"]);
    let error = error_of(|queue| {
        let a = queue.buffer_from(4, vec![0_u8; 4])?.named("four");
        queue.fence_part(&a, Subrange { offset: [2], range: [3] })
    });
    assert_says(&error, &["fence on four", "[2..5]"]);
}

#[test]
fn parts_beyond_the_last_coordinate_are_refused() {
    let beyond = |size| Subrange { offset: [usize::MAX], range: [size] };
    for size in [5, usize::MAX] {
        let error = error_of(|queue| {
            let a = queue.buffer_from(4, vec![0_u8; 4])?.named("four");
            queue.host_task("far").once(a.read(fixed(beyond(size))), |_| ())
        });
        assert!(matches!(declare(&error), DeclareError::OutOfBounds { .. }), "{error:?}");
        assert_says(&error, &["far", "four", "fixed"]);
        let error = error_of(|queue| {
            let a = queue.buffer_from(4, vec![0_u8; 4])?.named("four");
            queue.fence_part(&a, beyond(size))
        });
        assert!(matches!(declare(&error), DeclareError::OutOfBounds { .. }), "{error:?}");
        assert_says(&error, &["fence on four", "; name a part that the buffer has"]);
    }
}

#[test]
fn an_index_space_that_cannot_be_counted_is_refused() {
    for range in [[1 << 32, 1 << 32, 1], [usize::MAX, 1, 2], [1 << 33, 1 << 33, 1 << 33]] {
        let error =
            error_of(|queue| queue.task("endless").parallel_for(range, (), |_, ()| unreachable!()));
        assert!(matches!(error, Error::IndexSpaceVolume { .. }), "{error:?}");
        assert_says(&error, &["endless", &format!("{range:?}"), "64 bits"]);
    }
    for cluster in clusters() {
        let outcome = cluster.run(|queue| {
            let range = [usize::MAX, 0, usize::MAX];
            queue.task("empty").parallel_for(range, (), |_, ()| unreachable!())?;
            queue.barrier()
        });
        outcome.unwrap();
    }
}

#[test]
fn two_accesses_to_one_buffer_exclude_a_write() {
    let error = error_of(|queue| {
        let a = queue.buffer_from(8, vec![1_i32; 8])?.named("both");
        let accesses = (a.read_write(one_to_one()), a.read(neighborhood([1])));
        queue.task("in place").parallel_for(8, accesses, |_, (a, near)| *a = near.clamped([1]))
    });
    assert!(matches!(declare(&error), DeclareError::ConflictingAccesses { .. }), "{error:?}");
    assert_says(&error, &["in place", "both"]);
    let error = error_of(|queue| {
        let a = queue.buffer::<i32, 1>(8).named("both");
        queue.host_task("twice").once((a.write(all()), a.write(all())), |_| ())
    });
    assert_says(&error, &["twice", "both"]);
}

#[test]
fn items_that_share_a_slice_cannot_write_it() {
    let error = error_of(|queue| {
        let a = queue.buffer::<i32, 2>([8, 8]).named("shared");
        queue.task("all rows").parallel_for([8, 8], a.write(slice(1)), |_, _| ())
    });
    assert!(matches!(declare(&error), DeclareError::OverlappingWrites { .. }), "{error:?}");
    assert_says(&error, &["all rows", "shared", "slice(1)"]);
}

/// Products of sizes that wrap around would be small.
#[test]
fn partial_results_that_cannot_be_counted_have_no_room() {
    let sizes = [[usize::MAX, 1], [1 << 32, 1 << 32], [(1 << 61) + 1, 1], [1 << 61, 8]];
    for size in sizes {
        let error = error_of(|queue| {
            let sums = queue.buffer::<u64, 2>(size).named("sums");
            let accesses = sums.reduce(Sum);
            queue.task("add").parallel_for(8, accesses, |item, sums| {
                sums.combine_at([item[0], 0], 1);
            })?;
            queue.barrier()
        });
        assert!(
            matches!(error, Error::Run(ref error) if matches!(**error, RunError::OutOfMemory { .. }))
        );
        assert_says(&error, &["\"add\"", "\"partial results of sums\""]);
    }
}

/// Its memory is asked for after the program has let go of it.
#[test]
fn a_buffer_that_has_no_room_is_named_though_it_has_been_dropped() {
    let error = error_of(|queue| {
        let huge = queue.buffer::<f64, 1>(1 << 45).named("huge");
        queue.task("fill").parallel_for(1 << 45, huge.write(one_to_one()), |_, x| *x = 1.0)?;
        drop(huge);
        queue.barrier()
    });
    assert!(
        matches!(error, Error::Run(ref error) if matches!(**error, RunError::OutOfMemory { .. }))
    );
    assert_says(&error, &["\"fill\"", "\"huge\""]);
}

#[test]
fn partial_results_that_nodes_cannot_send_are_refused() {
    let outcome = Config::default().nodes(2).run(|queue| {
        let sums = queue.buffer::<u32, 1>(1 << 29).named("sums");
        queue.task("add").parallel_for(8, sums.reduce(Sum), |item, sums| {
            sums.combine_at(item[0], 1);
        })?;
        Ok(())
    });
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::PartialResults { .. }), "{error:?}");
    assert_says(&error, &["\"add\"", "\"sums\"", "2147483648 bytes"]);
}

#[test]
fn tasks_that_touch_the_same_in_another_order_are_another_program() {
    for (nodes, hosts) in [(2, false), (3, false), (2, true)] {
        let outcome = Config::default().nodes(nodes).run(|queue| {
            let cells = queue.buffer_from(8, vec![1_u64; 8])?;
            let order = if queue.node() == 1 { ["double", "add"] } else { ["add", "double"] };
            for name in order {
                let accesses = cells.read_write(one_to_one());
                if hosts {
                    queue.host_task(name).once((), |()| ())?;
                } else if name == "add" {
                    queue.task(name).parallel_for(8, accesses, |_, cell| *cell += 1)?;
                } else {
                    queue.task(name).parallel_for(8, accesses, |_, cell| *cell *= 2)?;
                }
            }
            Ok(queue.fence(&cells)?.wait()?.into_vec())
        });
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, Error::Run(ref error) if matches!(**error, RunError::Diverged { .. }))
        );
        assert_says(&error, &["T1 \"add\"", "T1 \"double\"", "bad_input.rs:"]);
    }
}

#[test]
fn buffers_of_other_types_are_another_program_though_sizes_are_the_same() {
    for nodes in [2, 3] {
        for filled in [false, true] {
            let outcome = Config::default().nodes(nodes).run(|queue| {
                if queue.node() == 1 {
                    touch::<u32>(queue, filled)
                } else {
                    touch::<f32>(queue, filled)
                }
            });
            let error = outcome.unwrap_err();
            assert_says(&error, &["T1 \"touch\"", "after other buffers"]);
        }
    }
}

/// A task that touches a buffer of zeroes, which has the same bits for any type of number.
fn touch<T: celerity::Element>(queue: &Queue, filled: bool) -> Result<()> {
    let cells = match filled {
        true => queue.buffer_from(8, vec![T::zeroed(); 8])?,
        false => queue.buffer::<T, 1>(8),
    };
    queue.task("touch").parallel_for(8, cells.write(one_to_one()), |_, x| *x = T::zeroed())?;
    queue.barrier()
}

#[test]
fn an_error_at_submission_leaves_the_run_intact() {
    for cluster in clusters() {
        let contents = cluster.run(|queue| {
            let a = queue.buffer::<i32, 1>(8);
            let refused = queue.task("read").parallel_for(8, a.read(one_to_one()), |_, _| ());
            assert!(refused.is_err());
            queue.task("write").parallel_for(8, a.write(one_to_one()), |_, a| *a = 3)?;
            Ok(queue.fence(&a)?.wait()?.into_vec())
        });
        assert_eq!(contents.unwrap(), [3; 8]);
    }
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let error = error_of(|queue| queue.buffer_from([3, 4], vec![0.0_f32; 11]).map(|_| ()));
    assert_says(&error, &["[3, 4]", "12", "11"]);
    let error = error_of(|queue| {
        let a = queue.buffer::<f32, 2>([3, 4]).named("a");
        queue.task("slices").parallel_for([3, 4], a.read(slice(2)), |_, _| ())
    });
    assert_says(&error, &["slices", "\"a\"", "slice(2)", "2 dimensions"]);
    for granularity in [[0, 8], [1, 0]] {
        let error = error_of(|queue| {
            queue.task("grains").granularity(granularity).parallel_for([8, 8], (), |_, ()| ())
        });
        assert_says(&error, &["grains", &format!("{granularity:?}")]);
    }
    for block in [[0, 8], [32, 33], [usize::MAX, 2]] {
        let error = error_of(|queue| {
            queue.task("blocks").block(block).parallel_for([8, 8], (), |_, ()| ())
        });
        assert_says(&error, &["blocks", &format!("{block:?}"), "2 dimensions", "at most 1024"]);
    }
    let error =
        error_of(|queue| queue.task("blocks").block(8).parallel_for([8, 8], (), |_, ()| ()));
    assert_says(&error, &["blocks", "[8]", "2 dimensions"]);
    let error =
        error_of(|queue| queue.task("grains").granularity([8, 8]).parallel_for(64, (), |_, ()| ()));
    assert_says(&error, &["grains", "[8, 8]", "1 dimension"]);
}

#[test]
fn impossible_hints_are_refused() {
    let submit = |hint| {
        error_of(move |queue: &Queue| {
            queue.task("cut").hint(hint).parallel_for([8, 8], (), |_, ()| ())
        })
    };
    assert_says(&submit(Hint::SplitAlong(2)), &["cut", "dimension 2", "2 dimensions"]);
    assert_says(&submit(Hint::SplitAlong(usize::MAX)), &["cut", &usize::MAX.to_string()]);
    for chunks in [0, 1025, usize::MAX] {
        assert_says(&submit(Hint::Oversubscribe(chunks)), &["cut", &chunks.to_string()]);
    }
}

#[test]
fn buffers_stay_in_their_run() {
    let stray = Config::default().run(|queue| Ok(queue.buffer::<i32, 1>(8).named("stray")));
    let stray = stray.unwrap();
    let error = error_of(|queue| {
        queue.task("borrower").parallel_for(8, stray.write(one_to_one()), |_, a| *a = 1)
    });
    assert_says(&error, &["borrower", "stray", "another run"]);
    let error = error_of(|queue| queue.fence(&stray));
    assert_says(&error, &["stray", "another run"]);
}

#[test]
fn a_cluster_of_nothing_is_refused() {
    for config in [
        Config::default().nodes(0),
        Config::default().devices(0),
        Config::default().horizon_step(0),
        Config::default().horizon_max_parallelism(0),
        Config::default().run_ahead(0),
    ] {
        let error = config.run(|_| Ok(())).unwrap_err();
        let Error::Run(run) = &error else { panic!("{error:?}") };
        assert!(matches!(**run, RunError::Start { .. }), "{error:?}");
        assert_says(&error, &["is 0, but must be a number from 1 to"]);
    }
}

/// What [`the_environment_is_read_and_checked`] runs in a process of its own.
#[test]
fn reports_its_cluster() {
    match celerity::run(|queue| Ok((queue.nodes(), queue.devices()))) {
        Ok((nodes, devices)) => println!("ran on {nodes} x {devices}"),
        Err(error) => println!("refused: {error}"),
    }
}

#[test]
fn the_environment_is_read_and_checked() {
    let report = |variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "bad_input::reports_its_cluster", "--nocapture"]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CELERITY_")) {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let two_by_three = report(&[("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "3")]);
    assert!(two_by_three.contains("ran on 2 x 3"), "{two_by_three}");
    let unknown = report(&[("CELERITY_DEVICE", "3")]);
    assert!(unknown.contains("refused: ") && unknown.contains("CELERITY_DEVICES?"), "{unknown}");
    let malformed = report(&[("CELERITY_NODES", "many")]);
    assert!(malformed.contains("CELERITY_NODES is \"many\""), "{malformed}");
    if cfg!(not(feature = "mpi")) {
        let launched = report(&[("PMI_SIZE", "2")]);
        assert!(launched.contains("PMI_SIZE") && launched.contains("`mpi`"), "{launched}");
    }
    let verbose = report(&[("CELERITY_LOG_LEVEL", "debug")]);
    assert!(verbose.contains("celerity: run on 1 node × 1 device"), "{verbose}");
}

#[test]
fn a_panicking_kernel_ends_the_run_with_its_name() {
    let error = error_of(|queue| {
        let a = queue.buffer::<i32, 1>(1000);
        queue.task("fragile").parallel_for(1000, a.write(one_to_one()), |item, a| {
            assert!(item[0] != 777, "item 777 is cursed");
            *a = 1;
        })?;
        // Submitting goes on until the news arrives; waiting for it must not hang.
        queue.task("after").parallel_for(1000, a.read_write(one_to_one()), |_, a| *a += 1)?;
        queue.fence(&a)?.wait()
    });
    let Error::Run(run) = &error else { panic!("{error:?}") };
    assert!(matches!(**run, RunError::TaskPanicked { .. }), "{error:?}");
    assert_says(&error, &["fragile", "item [777]: item 777 is cursed"]);
}

#[test]
fn a_panicking_host_task_ends_the_run_with_its_name() {
    let error = error_of(|queue| {
        let a = queue.buffer_from(4, vec![1_u8; 4])?;
        queue.host_task("clumsy").once(a.read(all()), |a| assert_eq!(a[0], 2, "unlike"))?;
        queue.barrier()
    });
    assert_says(&error, &["clumsy", "unlike"]);
}

#[test]
fn looking_beyond_what_was_declared_ends_the_run() {
    let error = error_of(|queue| {
        let (a, b) = (queue.buffer_from(50, vec![1; 50])?, queue.buffer::<i32, 1>(50));
        let accesses = (b.write(one_to_one()), a.read(neighborhood([1])));
        queue.task("too far").parallel_for(50, accesses, |_, (b, a)| *b = a.clamped([2]))?;
        queue.barrier()
    });
    assert_says(&error, &["too far", "offset [2]", "neighborhood([1])"]);
    let error = error_of(|queue| {
        let (a, b) = (queue.buffer_from(50, vec![1; 50])?, queue.buffer::<i32, 1>(50));
        let part = fixed(Subrange { offset: [10], range: [5] });
        let accesses = (b.write(one_to_one()), a.read(part));
        queue.task("elsewhere").parallel_for(50, accesses, |item, (b, a)| *b = a[item[0]])?;
        queue.barrier()
    });
    assert_says(&error, &["elsewhere", "outside of what the access declared"]);
}

#[test]
#[allow(unsafe_code)]
fn a_mapper_that_is_not_additive_cannot_write_elsewhere() {
    // Names the first element for whole chunks, but each item's own for items.
    let fickle = |chunk: Chunk<1>, _: [usize; 1]| match chunk.range {
        [1] => Subrange { offset: chunk.offset, range: [1] },
        _ => Subrange { offset: [chunk.offset[0]], range: [1] },
    };
    let error = error_of(|queue| {
        let a = queue.buffer::<i32, 1>(640);
        // SAFETY: different chunks get different elements, few as they are.
        let fickle = unsafe { disjoint_mapper("fickle", fickle) };
        queue.task("liar").parallel_for(640, a.write(fickle), |item, mut a| a[item[0]] = 1)?;
        queue.barrier()
    });
    assert_says(&error, &["liar", "must hold"]);
}

#[test]
#[allow(unsafe_code)]
fn a_mapper_whose_volume_wraps_cannot_write_elsewhere() {
    let bloated = |chunk: Chunk<2>, buffer: [usize; 2]| match chunk.range {
        [1, 1] => Subrange { offset: [0, 0], range: [1 << 32, 1 << 32] },
        _ => Subrange::whole(buffer),
    };
    let error = error_of(|queue| {
        let a = queue.buffer::<u8, 2>([8, 8]);
        // SAFETY: it is wrong, but the views refuse it before anything is written.
        let bloated = unsafe { disjoint_mapper("bloated", bloated) };
        queue.task("liar").granularity([8, 1]).parallel_for(
            [8, 1],
            a.write(bloated),
            |_, mut a| a[[1000, 1000]] = 1,
        )?;
        queue.barrier()
    });
    assert_says(&error, &["liar", "must hold"]);
}

#[test]
fn a_kernel_cannot_widen_its_view() {
    for (corner, end) in [([0, 0], [1 << 32, 1 << 32]), ([0, 0], [8, 9]), ([7, 0], [9, 8])] {
        let error = error_of(|queue| {
            let a = queue.buffer::<u8, 2>([8, 8]);
            queue.task("greedy").parallel_for([8, 1], a.write(slice(1)), move |_, mut a| {
                a.narrowed(Bounds::new(corner, end))[[1000, 1000]] = 1;
            })?;
            queue.barrier()
        });
        assert_says(&error, &["greedy", "is not inside of the box"]);
    }
    let inverted = Config::default().run(|queue| {
        let a = queue.buffer::<u8, 1>(8);
        queue.task("inverted").parallel_for(1, a.write(slice(0)), |_, mut a| {
            assert!(
                a.narrowed(Bounds::new([3], [2])).try_as_relative_mut_slice().unwrap().is_empty()
            );
        })?;
        queue.barrier()
    });
    inverted.unwrap();
}

#[test]
fn errors_of_the_program_come_back() {
    let error = error_of::<()>(|_| Err(Error::user("no bodies")));
    assert_says(&error, &["no bodies"]);
    let error = error_of(|_| Ok(std::fs::read("/no/such/file")?));
    assert!(matches!(error, Error::User(_)), "{error:?}");
}

#[test]
fn another_nodes_error_stops_every_node() {
    let outcome = Config::default().nodes(3).run(|queue| {
        if queue.node() == 2 {
            return Err(Error::user("node 2 has had enough"));
        }
        let a = queue.buffer::<i32, 1>(30);
        queue.task("fill").parallel_for(30, a.write(one_to_one()), |_, a| *a = 1)?;
        queue.barrier()
    });
    assert_says(&outcome.unwrap_err(), &["node 2 has had enough"]);
}

#[test]
fn a_failed_run_does_not_disturb_the_next() {
    for cluster in clusters() {
        let failing = cluster.run(|queue| {
            queue.task("bad").parallel_for(8, (), |_, ()| panic!("bad"))?;
            queue.barrier()
        });
        assert!(failing.is_err());
        let next = cluster.run(|queue| {
            let a = queue.buffer::<i32, 1>(8);
            queue.task("good").parallel_for(8, a.write(one_to_one()), |_, a| *a = 5)?;
            queue.fence(&a)?.wait().map(|snapshot| snapshot.into_vec())
        });
        assert_eq!(next.unwrap(), [5; 8]);
    }
}

/// Does something when it is dropped, and keeps what comes of it.
struct AtTheEnd<F: Fn() -> String> {
    act: F,
    said: Arc<Mutex<BTreeSet<String>>>,
}

impl<F: Fn() -> String> Drop for AtTheEnd<F> {
    fn drop(&mut self) {
        self.said.lock().unwrap().insert((self.act)());
    }
}

/// What the program itself drops last is a part of the program.
const ACCEPTED: &str = "accepted";

/// The runtime drops what kernels and mappers own on threads of its own, which would wait for themselves.
#[test]
fn destructors_that_the_runtime_runs_submit_nothing_and_do_not_wait() {
    for cluster in clusters() {
        let said = Arc::<Mutex<BTreeSet<String>>>::default();
        let program = |queue: &Queue| {
            let (line, other) =
                (queue.buffer_from(10, vec![0_u32; 10])?, queue.buffer::<u32, 1>(10));
            for n in 0..500 {
                let (filled, said) = (other.clone(), said.clone());
                let fence = Mutex::new(if n % 50 == 0 { Some(queue.fence(&line)?) } else { None });
                let act = move || {
                    let outcome = match fence.lock().unwrap().take() {
                        Some(fence) => fence.wait().map(drop),
                        None => filled.fill(3).map(drop),
                    };
                    outcome.map_or_else(|error| error.to_string(), |()| ACCEPTED.to_owned())
                };
                let owned = AtTheEnd { act, said };
                let accesses = line.read_write(one_to_one());
                if n % 2 == 0 {
                    queue.task("owns").parallel_for(10, accesses, move |_, x| {
                        let _ = &owned;
                        *x += 1;
                    })?;
                    continue;
                }
                let map = mapper("owns", move |chunk: Chunk<1>, _: [usize; 1]| {
                    let _ = &owned;
                    Subrange { offset: chunk.offset, range: chunk.range }
                });
                let all = (accesses, line.read(map));
                queue
                    .task("maps")
                    .parallel_for(10, all, |_, (x, _)| *x += 1)
                    .map(drop)
                    .unwrap_or(());
            }
            queue.barrier()
        };
        cluster.run(program).unwrap();
        let said = said.lock().unwrap();
        assert!(said.iter().any(|text| text.contains("submit a task")), "{said:?}");
        assert!(said.iter().all(|text| text == ACCEPTED || text.contains(" cannot ")), "{said:?}");
    }
}

#[test]
fn kernels_do_not_wait_for_fences() {
    for cluster in clusters() {
        let error = cluster.run(|queue| {
            let line = queue.buffer_from(16, vec![0_u32; 16])?;
            let fence = Mutex::new(Some(queue.fence(&line)?));
            queue.task("waits").parallel_for(16, line.read_write(one_to_one()), move |_, x| {
                let taken = fence.lock().unwrap().take();
                if let Some(fence) = taken {
                    *x = fence.wait().unwrap()[0];
                }
            })?;
            queue.barrier()
        });
        assert_says(&error.unwrap_err(), &["waits", "a kernel cannot wait"]);
    }
}
