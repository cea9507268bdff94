//! Mistakes with reductions, host objects and range mappers, and panics in what the program hands
//! over: by closures and by `#[kernel]`s, in one dimension and in three, on one node and on several.
//! Each is an error that names task, line and rule; none hangs, and the next run is as good as any.

use celerity::prelude::*;
use celerity::{
    ArrayReducer, CheckLevel, DeclareError, Element, Error, HostObject, Max, Operator,
    PeriodicItem, PeriodicRow, Reducer, Result, RunError, Sum, kernel,
};

const CLUSTERS: [(usize, usize); 4] = [(1, 1), (1, 3), (2, 2), (4, 1)];

/// What `program` ends with on all clusters but those of fewer nodes: the same kind of error, after
/// which the next run works.
fn errors_of<R: Send>(
    least_nodes: usize,
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> Vec<Error> {
    let clusters = CLUSTERS.into_iter().filter(|(nodes, _)| *nodes >= least_nodes);
    let errors = clusters.map(|(nodes, devices)| {
        // Off: a sample of calls of mappers would be made when tasks are submitted.
        let cluster = Config::default().nodes(nodes).devices(devices).check(CheckLevel::Off);
        let outcome = cluster.run(&program);
        let error = outcome.err().unwrap_or_else(|| panic!("{nodes} × {devices} succeed"));
        let next = cluster.run(|queue| {
            let sum = queue.buffer::<u32, 0>([]);
            queue.task("good").parallel_for(100, sum.reduce(Sum), |_, sum| sum.combine(1))?;
            Ok(queue.fence(&sum)?.wait()?[[]])
        });
        assert_eq!(next.unwrap(), 100);
        error
    });
    errors.collect()
}

/// All errors of a program say all of this, and in which file it is.
#[track_caller]
fn all_say(errors: &[Error], parts: &[&str]) {
    for error in errors {
        let message = error.to_string();
        for part in parts.iter().chain(&[" at ", "bad_model.rs:"]) {
            assert!(message.contains(part), "\"{message}\" does not say \"{part}\"");
        }
    }
}

#[track_caller]
fn all_are_run_errors(errors: &[Error], expected: fn(&RunError) -> bool) {
    for error in errors {
        match error {
            Error::Run(error) => assert!(expected(error), "{error}"),
            other => panic!("no error of the run: {other}"),
        }
    }
}

fn is_panic(error: &RunError) -> bool {
    matches!(error, RunError::TaskPanicked { .. })
}

#[kernel]
fn add_twice(_item: Item<3>, (one, other): (Reducer<'_, u32, Sum>, Reducer<'_, u32, Sum>)) {
    one.combine(1);
    other.combine(1);
}

#[kernel]
fn read_and_add(_item: Item<1>, (sum, value): (Reducer<'_, u32, Sum>, &u32)) {
    sum.combine(*value);
}

#[test]
fn a_buffer_is_reduced_into_once_in_a_task() {
    let is_refused = |errors: &[Error]| {
        for error in errors {
            assert!(matches!(error, Error::SharedReduction { .. }), "{error}");
        }
        all_say(errors, &["\"twice\"", "reduces into buffer \"sum\"", "once"]);
    };
    is_refused(&errors_of(1, |queue| {
        let sum = queue.buffer::<u32, 0>([]).named("sum");
        let accesses = (sum.reduce(Sum), sum.reduce(Sum));
        queue.task("twice").launch([4, 4, 4], accesses, add_twice)
    }));
    is_refused(&errors_of(1, |queue| {
        let sum = queue.buffer::<u32, 3>([2, 3, 4]).named("sum");
        let accesses = (sum.reduce(Sum), sum.reduce(Max));
        queue.task("twice").parallel_for(8, accesses, |_, (sum, _)| sum.combine_at([0; 3], 1))
    }));
    is_refused(&errors_of(1, |queue| {
        let sum = queue.buffer_from(8, vec![1_u32; 8])?.named("sum");
        let accesses = (sum.read(one_to_one()), sum.reduce(Sum));
        queue.task("twice").parallel_for(8, accesses, |_, (_, sum)| sum.combine_at(0, 1))
    }));
    is_refused(&errors_of(1, |queue| {
        let sum = queue.buffer::<u32, 1>(8).named("sum");
        let accesses = (sum.write(one_to_one()), sum.reduce(Sum));
        queue.task("twice").parallel_for_rows(8, accesses, |_, (_, sum)| sum.combine_at(0, 1))
    }));
}

#[test]
fn the_run_goes_on_after_a_reduction_that_is_refused() {
    for (nodes, devices) in CLUSTERS {
        let sum = Config::default().nodes(nodes).devices(devices).run(|queue| {
            let (sum, one) = (queue.buffer::<u32, 0>([]), queue.buffer_from(9, vec![1_u32; 9])?);
            let twice = (sum.reduce(Sum), sum.reduce(Sum));
            queue.task("twice").launch([4, 4, 4], twice, add_twice).unwrap_err();
            let accesses = (sum.reduce(Sum), one.read(one_to_one()));
            queue.task("once").launch(9, accesses, read_and_add)?;
            Ok(queue.fence(&sum)?.wait()?[[]])
        });
        assert_eq!(sum.unwrap(), 9);
    }
}

#[kernel]
fn count_beyond(item: Item<1>, counts: ArrayReducer<'_, u32, Sum, 2>) {
    counts.combine_at([item[0] / 300, 1], 1);
}

#[test]
fn an_index_outside_of_what_is_reduced_into_names_item_and_buffers_size() {
    let ends = |errors: &[Error], parts: &[&str]| {
        all_are_run_errors(errors, is_panic);
        all_say(errors, parts);
    };
    let errors = errors_of(1, |queue| {
        let counts = queue.buffer::<u32, 1>(7);
        queue.task("line").parallel_for(1000, counts.reduce(Sum), |item, counts| {
            counts.combine_at(item[0] / 100, 1);
        })?;
        queue.fence(&counts)?.wait()
    });
    ends(&errors, &["\"line\"", "is outside of the buffer of [7] that is reduced into", "item ["]);
    let errors = errors_of(1, |queue| {
        let counts = queue.buffer::<u32, 3>([2, 3, 4]);
        let beyond = counts.reduce(Sum).including_current();
        queue.task("fill").parallel_for([2, 3, 4], counts.write(one_to_one()), |_, u| *u = 0)?;
        queue.task("space").parallel_for([10, 9, 8], beyond, |item, counts| {
            counts.combine_at([item[0] / 5, item[1] / 3, item[2] / 2 + item[0] / 9], 1);
        })?;
        queue.fence(&counts)?.wait()
    });
    ends(&errors, &["\"space\"", "index [1, ", "4] is outside of the buffer of [2, 3, 4]"]);
    let errors = errors_of(1, |queue| {
        let counts = queue.buffer::<u32, 2>([3, 2]);
        queue.task("compiled").launch(1000, counts.reduce(Sum), count_beyond)?;
        queue.fence(&counts)?.wait()
    });
    ends(&errors, &["\"compiled\"", "index [3, 1] is outside of the buffer of [3, 2]"]);
}

/// As `Sum`, but for its name.
#[derive(Clone, Copy)]
struct Total;

impl Operator<u64> for Total {
    fn identity(&self) -> u64 {
        0
    }

    fn combine(&self, a: u64, b: u64) -> u64 {
        a + b
    }
}

#[test]
fn nodes_that_combine_otherwise_are_named() {
    fn reduce<T: Element + Default, O: Operator<T>>(
        queue: &Queue,
        operator: O,
        items: usize,
    ) -> Result<()> {
        let sum = queue.buffer::<T, 0>([]);
        let accesses = sum.reduce(operator);
        queue.task("count").parallel_for(items, accesses, |_, sum| sum.combine(T::default()))?;
        queue.fence(&sum)?.wait().map(drop)
    }
    let differs = |program: fn(&Queue, bool, usize) -> Result<()>| {
        // Partial results that are few are sent as they are, others are folded before.
        for items in [100, 100_000] {
            let errors = errors_of(2, |queue| {
                program(queue, queue.node() + 1 == queue.nodes(), items)?;
                queue.barrier()
            });
            all_are_run_errors(&errors, |error| matches!(error, RunError::Diverged { .. }));
            all_say(&errors, &["the nodes run different programs", "count\""]);
        }
    };
    differs(|queue, last, items| match last {
        false => reduce::<u64, _>(queue, Sum, items),
        true => reduce::<u64, _>(queue, Max, items),
    });
    differs(|queue, last, items| match last {
        false => reduce::<u64, _>(queue, Sum, items),
        true => reduce::<u64, _>(queue, Total, items),
    });
    // Elements of one size.
    differs(|queue, last, items| match last {
        false => reduce::<u32, _>(queue, Sum, items),
        true => reduce::<f32, _>(queue, Sum, items),
    });
}

#[test]
fn nodes_that_reduce_into_what_differs_are_named() {
    let differs = |program: fn(&Queue, usize) -> Result<()>| {
        let errors = errors_of(2, |queue| {
            let last = usize::from(queue.node() + 1 == queue.nodes());
            program(queue, last)?;
            queue.barrier()
        });
        all_are_run_errors(&errors, |error| matches!(error, RunError::Diverged { .. }));
        all_say(&errors, &["the nodes run different programs", "\"count\""]);
    };
    // More elements, larger ones, other dimensions; and as many bytes in other pieces.
    differs(|queue, last| {
        let counts = queue.buffer::<u32, 1>(10 + last);
        queue.task("count").parallel_for(100, counts.reduce(Sum), |_, u| u.combine_at(0, 1))?;
        Ok(())
    });
    differs(|queue, last| {
        let count = |queue: &Queue| {
            let sum = queue.buffer::<u64, 0>([]);
            queue.task("count").parallel_for(100, sum.reduce(Sum), |_, sum| sum.combine(1))
        };
        if last == 1 {
            let sum = queue.buffer::<u32, 0>([]);
            queue.task("count").parallel_for(100, sum.reduce(Sum), |_, sum| sum.combine(1))?;
        } else {
            count(queue)?;
        }
        Ok(())
    });
    differs(|queue, last| {
        if last == 1 {
            let sum = queue.buffer::<[u32; 2], 1>(2);
            queue.task("count").parallel_for(100, sum.reduce(Pairs), |_, sum| {
                sum.combine_at(1, [1, 1]);
            })?;
        } else {
            let sum = queue.buffer::<u32, 1>(4);
            queue
                .task("count")
                .parallel_for(100, sum.reduce(Sum), |_, sum| sum.combine_at(1, 1))?;
        }
        Ok(())
    });
}

#[derive(Clone, Copy)]
struct Pairs;

impl Operator<[u32; 2]> for Pairs {
    const IS_COMMUTATIVE: bool = true;

    fn identity(&self) -> [u32; 2] {
        [0; 2]
    }

    fn combine(&self, a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }
}

/// Adds, and does not like what it gets: a number, or to be asked for its identity.
#[derive(Clone, Copy, Default)]
struct Moody;

const TOO_MUCH: u32 = 1 << 20;

impl Operator<u32> for Moody {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        assert!(a + b < TOO_MUCH, "too much for me");
        a + b
    }
}

#[derive(Clone, Copy)]
struct Nobody;

impl Operator<u32> for Nobody {
    fn identity(&self) -> u32 {
        panic!("I am nobody")
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        a + b
    }
}

#[kernel]
fn add_moodily(_item: Item<3>, (value, sum): (&u32, Reducer<'_, u32, Moody>)) {
    sum.combine(*value);
}

#[kernel]
fn add_moodily_at(item: Item<3>, (value, sums): (&u32, ArrayReducer<'_, u32, Moody, 1>)) {
    sums.combine_at(item[0] % 3, *value);
}

/// Values of which single ones, tiles, or all together are too much, at the end of the space.
fn values_that_are_too_much(items: usize, at_once: usize) -> Vec<u32> {
    (0..items).map(|i| if i + at_once >= items { TOO_MUCH / at_once as u32 } else { 0 }).collect()
}

#[test]
fn a_panic_in_a_combiner_names_the_task_wherever_it_is() {
    const RANGE: [usize; 3] = [20, 30, 40];
    // In a tile; where a node folds, or where all is combined.
    for at_once in [1, 2, 16_384] {
        let check = |way: fn(&Queue, &Buffer<u32, 3>) -> Result<()>| {
            let errors = errors_of(1, |queue| {
                let values = values_that_are_too_much(24_000, at_once);
                way(queue, &queue.buffer_from(RANGE, values)?)
            });
            all_are_run_errors(&errors, is_panic);
            all_say(&errors, &["add\" at", "too much for me"]);
        };
        check(|queue, values| {
            let sum = queue.buffer::<u32, 0>([]).named("sum");
            let accesses = (values.read(one_to_one()), sum.reduce(Moody));
            queue.task("add").parallel_for(RANGE, accesses, |_, (u, sum)| sum.combine(*u))?;
            queue.fence(&sum)?.wait().map(drop)
        });
        check(|queue, values| {
            let sum = queue.buffer::<u32, 0>([]).named("sum");
            let accesses = (values.read(one_to_one()), sum.reduce(Moody));
            queue.task("add").launch(RANGE, accesses, add_moodily)?;
            queue.fence(&sum)?.wait().map(drop)
        });
        check(|queue, values| {
            let sum = queue.buffer_from([], vec![0_u32])?.named("sum");
            let reduction = sum.reduce(Moody).including_current();
            let accesses = (values.read(one_to_one()), reduction);
            queue.task("add").parallel_for_rows(RANGE, accesses, |_, (row, sum)| {
                row.iter().for_each(|&u| sum.combine(u));
            })?;
            // Somebody else needs it first.
            let copy = queue.buffer::<u32, 0>([]);
            let accesses = (sum.read(all()), copy.write(all()));
            queue.host_task("copy").everywhere(sum.read(all()), |_, _| ())?;
            queue.host_task("copy").once(accesses, |(sum, mut copy)| copy[[]] = sum[[]])?;
            queue.fence(&copy)?.wait().map(drop)
        });
        if at_once == 1 {
            check(|queue, values| {
                let sums = queue.buffer::<u32, 1>(3).named("sums");
                let accesses = (values.read(one_to_one()), sums.reduce(Moody));
                queue.task("add").launch(RANGE, accesses, add_moodily_at)?;
                queue.fence(&sums)?.wait().map(drop)
            });
        }
    }
    // A result that nobody asks for is an error all the same, if it is one in the kernel.
    let errors = errors_of(1, |queue| {
        let sum = queue.buffer::<u32, 0>([]);
        queue.task("add").parallel_for(100, sum.reduce(Nobody), |_, sum| sum.combine(1))?;
        Ok(())
    });
    all_are_run_errors(&errors, is_panic);
    all_say(&errors, &["\"add\"", "I am nobody"]);
}

/// The forms of host tasks with a side effect each.
fn side_effects(queue: &Queue, object: &HostObject<i32>, node: usize) -> Vec<Result<()>> {
    let task = || queue.host_task("note");
    vec![
        task().once(object.sequential(), |_| ()).map(drop),
        task().on_node(node).once(object.relaxed(), |_| ()).map(drop),
        task().everywhere(object.exclusive(), |_, _| ()).map(drop),
        task().distributed([4, 4, 4]).submit(object.sequential(), |_, _| ()).map(drop),
        task().collective("g", object.exclusive(), |_, _| ()).map(drop),
    ]
}

#[test]
fn objects_of_other_runs_and_after_their_end_are_refused_in_every_form() {
    for (nodes, devices) in CLUSTERS {
        let cluster = Config::default().nodes(nodes).devices(devices);
        let kept = std::sync::Mutex::new(None);
        let keep = |queue: &Queue| {
            *kept.lock().unwrap() = Some(queue.host_object(0).named("log"));
            Ok(())
        };
        cluster.run(keep).unwrap();
        let foreign = kept.into_inner().unwrap().unwrap();
        let program = |queue: &Queue| {
            for outcome in side_effects(queue, &foreign, nodes - 1) {
                let error = outcome.unwrap_err();
                assert!(matches!(error, Error::ForeignObject { .. }), "{error}");
                all_say(&[error], &["\"note\"", "side effect", "\"log\"", "another run"]);
            }
            let ended = queue.host_object(3).named("log");
            let again = ended.clone();
            ended.take(queue)?;
            for outcome in side_effects(queue, &again, nodes - 1) {
                let error = outcome.unwrap_err();
                let Error::Declare(declared) = &error else { panic!("{error}") };
                assert!(matches!(**declared, DeclareError::UnknownObject { .. }), "{error}");
                all_say(&[error], &["\"note\"", "side effect", "\"log\""]);
            }
            queue.host_object(5).take(queue)
        };
        assert_eq!(cluster.run(program).unwrap(), 5);
    }
}

#[kernel]
fn look_around(_item: Item<3>, (out, u): (&mut u32, PeriodicItem<'_, u32, 3>)) {
    *out = u.at([0, 0, 1]);
}

#[kernel]
fn look_along(_row: Row<1>, (out, u): (&mut [u32], PeriodicRow<'_, u32, 1>)) {
    out.copy_from_slice(u.at([1]));
}

#[test]
fn a_periodic_border_wider_than_the_buffer_is_refused() {
    let is_refused = |errors: &[Error], parts: &[&str]| {
        for error in errors {
            let Error::Declare(declared) = error else { panic!("{error}") };
            assert!(matches!(**declared, DeclareError::Mapper { .. }), "{error}");
        }
        all_say(errors, &[&["\"look\"", "\"u\"", "narrower"], parts].concat());
    };
    let line = ["border of 6 along dimension 0", "5 elements"];
    is_refused(
        &errors_of(1, |queue| {
            let u = queue.buffer_from(5, vec![1_u32; 5])?.named("u");
            queue.task("look").parallel_for(5, u.read(neighborhood([6]).periodic()), |_, _| ())
        }),
        &line,
    );
    is_refused(
        &errors_of(1, |queue| {
            let u = queue.buffer_from(5, vec![1_u32; 5])?.named("u");
            let out = queue.buffer::<u32, 1>(5);
            let accesses = (out.write(one_to_one()), u.read(neighborhood([6]).periodic()));
            queue.task("look").launch(5, accesses, look_along)
        }),
        &line,
    );
    let range = [4, 5, 3];
    for compiled in [false, true] {
        is_refused(
            &errors_of(1, |queue| {
                let u = queue.buffer_from(range, vec![1_u32; 60])?.named("u");
                let out = queue.buffer::<u32, 3>(range);
                let ring = neighborhood_along_axes([1, 1, 4]).periodic_along([2]);
                let accesses = (out.write(one_to_one()), u.read(ring));
                let task = queue.task("look");
                match compiled {
                    true => task.launch(range, accesses, look_around),
                    false => task.parallel_for(range, accesses, |_, (out, u)| {
                        *out = u.at([0, 0, 1]);
                    }),
                }
            }),
            &["border of 4 along dimension 2", "3 elements"],
        );
    }
}

/// A program with a host task that panics on the last node.
type Form = fn(&Queue, Buffer<u32, 1>) -> Result<()>;

/// Panics on one node, in every form of host task, and who waits for it hears of it.
#[test]
fn a_panic_in_a_host_task_of_any_form_names_the_node() {
    let forms: [Form; 5] = [
        |queue, u| {
            let last = queue.nodes() - 1;
            let task = queue.host_task("fragile").on_node(last);
            task.once(u.write(all()), |_| panic!("broken"))?;
            queue.fence(&u)?.wait().map(drop)
        },
        |queue, u| {
            let last = queue.nodes() - 1;
            queue.host_task("fragile").everywhere(u.read(all()), move |part, _| {
                assert!(part.node() != last, "broken");
            })?;
            queue.barrier()
        },
        |queue, u| {
            let last = queue.nodes() - 1;
            let task = queue.host_task("fragile").distributed(16);
            task.submit(u.write(one_to_one()), move |part, _| {
                assert!(part.node() != last, "broken");
            })?;
            queue.fence(&u)?.wait().map(drop)
        },
        |queue, u| {
            let last = queue.nodes() - 1;
            let task = queue.host_task("fragile");
            task.collective("g", u.read(all()), move |part, _| {
                assert!(part.node() != last, "broken");
                // Others wait for it without end, but for the end of the run.
                part.communicator().barrier()?;
                Ok(())
            })?;
            queue.barrier()
        },
        |queue, u| {
            let last = queue.nodes() - 1;
            let log = queue.host_object(0);
            let task = queue.host_task("fragile").on_node(last);
            task.once((log.exclusive(), u.read(all())), |_| panic!("broken"))?;
            log.take(queue).map(drop)
        },
    ];
    for form in forms {
        let errors = errors_of(1, |queue| form(queue, queue.buffer_from(16, vec![1; 16])?));
        all_are_run_errors(&errors, is_panic);
        all_say(&errors, &["\"fragile\"", "broken"]);
        let of_node = |nodes: usize| format!("panicked on N{}", nodes - 1);
        for (error, (nodes, _)) in errors.iter().zip(CLUSTERS) {
            assert!(error.to_string().contains(&of_node(nodes)), "{error}");
        }
    }
}

/// A mapper is asked when its task is submitted, and then by each node for chunks: there it panics.
#[test]
fn a_panic_in_a_mapper_that_is_scheduled_names_the_task() {
    let fragile = |chunk: [usize; 3], whole: [usize; 3]| {
        assert!(chunk == whole, "I do not know parts");
        Subrange::new([0; 3], whole)
    };
    let is_told = |errors: &[Error]| {
        all_are_run_errors(errors, |error| matches!(error, RunError::Schedule { .. }));
        all_say(errors, &["a range mapper", "\"look\"", "I do not know parts"]);
    };
    let cluster_of_several = 2;
    is_told(&errors_of(cluster_of_several, |queue| {
        let u = queue.buffer_from([4, 4, 4], vec![1_u32; 64])?;
        let mapper = mapper("fragile", move |chunk: Chunk<3>, _: [usize; 3]| {
            fragile(chunk.range, chunk.global.range)
        });
        queue.task("look").parallel_for([4, 4, 4], u.read(mapper), |_, _| ())?;
        queue.barrier()
    }));
    is_told(&errors_of(cluster_of_several, |queue| {
        let u = queue.buffer_from([4, 4, 4], vec![1_u32; 64])?;
        let mapper = region_mapper("fragile", move |chunk: Chunk<3>, _: [usize; 3]| {
            Some(fragile(chunk.range, chunk.global.range))
        });
        let task = queue.host_task("look").distributed([4, 4, 4]);
        task.submit(u.read(mapper), |_, _| ())?;
        queue.barrier()
    }));
}
