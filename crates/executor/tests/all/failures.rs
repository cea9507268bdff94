//! What goes wrong ends the run on all nodes with one error: no hang, and the
//! next run is not disturbed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity_cdag::{Diagnostic, NodeId};
use celerity_executor::{
    CheckLevel, ClusterConfig, HostFunction, Lookahead, NoRoom, NodeFrontend, Payload, Resident,
    RunError, ScheduleError, SubmitError, TaskError,
};
use celerity_regions::Box3;
use celerity_tdag::{DeclareError, Mapper, MapperInput, UserMapper, Work};

use crate::common::*;

fn line(length: usize) -> Box3 {
    Box3::from_range([length])
}

/// Submits kernels until the run has failed.
fn work_until_failure(node: &celerity_executor::NodeFrontend) -> ProgramError {
    let data = buffer(node, line(16));
    let fill = vec![writes(data, Mapper::OneToOne)];
    if let Err(error) = kernel(node, "fill", line(16), fill, |p, v| v[0].set(p, 0)) {
        return error.into();
    }
    loop {
        let accesses = vec![updates(data, Mapper::neighborhood([0]))];
        if let Err(error) = kernel(node, "work", line(16), accesses, |p, v| v[0].set(p, p[0])) {
            return error.into();
        }
    }
}

fn assert_next_run_works(config: &ClusterConfig) {
    let sum = run(config, |node| {
        let data = buffer(node, line(10));
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", line(10), fill, |p, v| v[0].set(p, p[0]))?;
        Ok(fence(node, data, line(10))?.wait(node)?.iter().sum::<u64>())
    });
    assert_eq!(sum, Ok(45));
}

#[test]
fn a_kernel_panic_on_one_node_stops_all_with_the_same_error() {
    for config in configurations() {
        let (errors, last) = (PerNode::default(), config.nodes as u64 * 8 - 1);
        let seen = errors.clone();
        let outcome = run(&config, move |node| {
            let space = line(node.nodes() * 8);
            let data = buffer(node, space);
            let fill = vec![writes(data, Mapper::OneToOne)];
            kernel(node, "bad", space, fill, move |p, v| {
                assert!(p[0] != last, "item {} is bad", p[0]);
                v[0].set(p, 1);
            })?;
            let waited = fence(node, data, space)?.wait(node).map(|_| ());
            let error = work_until_failure(node);
            seen.push(node, (waited, error.clone()));
            Err::<(), _>(error)
        });
        let Err(ProgramError::Run(error)) = outcome else { panic!("{outcome:?}") };
        let RunError::TaskPanicked { task, node, device, message } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (task.as_str(), message.as_str()),
            ("T1 \"bad\"", &*format!("item {last} is bad"))
        );
        assert_eq!(*node, NodeId::from_index(config.nodes as u64 - 1));
        assert!(device.is_some());
        for (waited, submitted) in errors.take() {
            assert_eq!(submitted, ProgramError::Run(error.clone()), "{config:?}");
            assert_eq!(waited, Err(error.clone()), "the fence needs what was not written");
        }
        assert_next_run_works(&config);
    }
}

#[test]
fn nothing_runs_that_depends_on_a_panicked_kernel() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let outcome = run(&cluster(1, 1), move |node| {
        let data = buffer(node, line(8));
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "bad", line(8), fill, |_, _| panic!("no"))?;
        let (first, second) = (counter.clone(), counter.clone());
        kernel(node, "after", line(8), vec![updates(data, Mapper::OneToOne)], move |_, _| {
            first.fetch_add(1, Ordering::SeqCst);
        })?;
        host_task(node, "save", vec![reads(data, Mapper::All)], move |_| {
            second.fetch_add(1, Ordering::SeqCst);
        })?;
        Ok(node.barrier()?)
    });
    assert!(
        matches!(outcome, Err(ProgramError::Run(RunError::TaskPanicked { .. }))),
        "{outcome:?}"
    );
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&ran), 1, "payloads are dropped uncalled");
}

#[test]
fn a_host_task_panic_stops_nodes_that_only_wait() {
    for config in configurations() {
        let outcome = run(&config, |node| {
            let data = buffer_from(node, line(8), vec![1; 8]);
            host_task(node, "save", vec![reads(data, Mapper::All)], |_| panic!("disk full"))?;
            Ok(node.barrier()?)
        });
        let expected = RunError::TaskPanicked {
            task: "T1 \"save\"".to_owned(),
            node: NodeId::from_index(0),
            device: None,
            message: "disk full".to_owned(),
        };
        assert_eq!(outcome, Err(ProgramError::Run(expected)), "{config:?}");
    }
}

#[test]
fn an_error_of_a_host_task_stops_nodes_that_only_wait() {
    for config in configurations() {
        let outcome = run(&config, |node| {
            let data = buffer_from(node, line(8), vec![1; 8]);
            let payload = Payload::Host(HostFunction::new(|_| Err(TaskError::new("disk full"))));
            let accesses = vec![reads(data, Mapper::All)];
            node.submit(spec("save", Work::HostOnce { node: 0 }, accesses), payload)?;
            Ok(node.barrier()?)
        });
        let expected = RunError::TaskFailed {
            task: "T1 \"save\"".to_owned(),
            node: NodeId::from_index(0),
            device: None,
            error: TaskError::new("disk full"),
        };
        assert_eq!(outcome, Err(ProgramError::Run(expected)), "{config:?}");
        assert_next_run_works(&config);
    }
}

#[test]
fn an_error_of_the_program_on_node_0_is_returned_as_it_is() {
    for config in configurations() {
        let others = PerNode::default();
        let seen = others.clone();
        let outcome = run(&config, move |node| {
            if node.node().index() == 0 {
                return Err::<(), _>(ProgramError::Own("no such file".to_owned()));
            }
            let error = work_until_failure(node);
            seen.push(node, error.clone());
            Err(error)
        });
        assert_eq!(outcome, Err(ProgramError::Own("no such file".to_owned())));
        let stopped =
            RunError::Stopped { node: NodeId::from_index(0), message: "no such file".to_owned() };
        assert_eq!(others.take(), vec![ProgramError::Run(stopped); config.nodes - 1]);
    }
}

/// What the run returns if the program fails on its last node, and what the others hear.
fn last_fails(nodes: usize, fail: fn() -> ProgramError) -> (Outcome, Vec<ProgramError>) {
    let others = PerNode::default();
    let seen = others.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(&cluster(nodes, 2), move |node| {
            if node.node().index() as usize == nodes - 1 {
                return Err(fail());
            }
            let error = ProgramError::from(node.barrier().expect_err("the last one has failed"));
            seen.push(node, error.clone());
            Err(error)
        })
    }));
    (outcome, others.take())
}

type Outcome = std::thread::Result<Result<(), ProgramError>>;

fn stopped(node: usize, message: &str) -> ProgramError {
    let node = NodeId::from_index(node as u64);
    ProgramError::Run(RunError::Stopped { node, message: message.to_owned() })
}

#[test]
fn an_error_of_the_program_on_another_node_is_returned_as_it_is() {
    for nodes in 2..=4 {
        let own = || ProgramError::Own("no such file".to_owned());
        let (outcome, others) = last_fails(nodes, own);
        assert_eq!(outcome.expect("nobody panics"), Err(own()));
        assert_eq!(others, vec![stopped(nodes - 1, "no such file"); nodes - 1]);
    }
}

#[test]
fn a_panic_of_the_program_is_a_panic_of_the_run_and_an_error_on_other_nodes() {
    for nodes in 1..=3 {
        let (outcome, others) = last_fails(nodes, || panic!("out of ideas"));
        let panic = outcome.expect_err("a panic stays one");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"out of ideas"));
        let heard = stopped(nodes - 1, "the program panicked: out of ideas");
        assert_eq!(others, vec![heard; nodes - 1]);
        assert_next_run_works(&cluster(nodes, 1));
    }
}

/// What is dropped with a panic.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn what_a_failed_run_drops_may_panic_as_its_error_may() {
    /// An error that is not made of any.
    #[derive(Debug)]
    struct Unmade;

    impl From<RunError> for Unmade {
        fn from(_: RunError) -> Self {
            panic!("no error of mine")
        }
    }

    impl std::fmt::Display for Unmade {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            unreachable!("nobody makes one")
        }
    }

    fn fail(node: &NodeFrontend) {
        let failing = |_: &[View<'_>]| panic!("broken");
        host_task(node, "failing", Vec::new(), failing).expect("it is lawful");
    }

    for nodes in 1..=3 {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run(&cluster(nodes, 1), |node| {
                fail(node);
                Ok(Bomb)
            })
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"dropped"));
        let body = |node: &Arc<NodeFrontend>| -> Result<(), Unmade> {
            fail(node);
            Ok(())
        };
        let outcome = catch_unwind(|| celerity_executor::run_cluster(&cluster(nodes, 1), body));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"no error of mine"));
        assert_next_run_works(&cluster(nodes, 1));
    }
}

#[test]
fn an_error_of_a_host_task_whose_text_panics_is_told_with_its_task() {
    #[derive(Debug)]
    struct Unsaid;

    impl std::fmt::Display for Unsaid {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no words")
        }
    }

    impl std::error::Error for Unsaid {}

    for config in configurations() {
        let outcome = run(&config, |node| {
            let payload = Payload::Host(HostFunction::new(|_| Err(TaskError::new(Unsaid))));
            node.submit(spec("save", Work::HostOnce { node: 0 }, Vec::new()), payload)?;
            Ok(node.barrier()?)
        });
        let Err(ProgramError::Run(error)) = outcome else { panic!("{config:?}: {outcome:?}") };
        let text = error.to_string();
        assert!(text.contains("T1 \"save\""), "{text}");
        assert!(text.contains("its error's text panics: no words"), "{text}");
    }
}

#[test]
fn a_mistake_of_all_nodes_is_the_same_error_whoever_makes_it_first() {
    for first in 0..3_u64 {
        let outcome = run(&cluster(3, 1), move |node| {
            if node.node().index() != first {
                while node.error().is_none() {
                    std::thread::yield_now();
                }
            }
            let space = line(8);
            let data = buffer(node, space);
            Ok(kernel(node, "early", space, vec![reads(data, Mapper::All)], |_, _| {})?)
        });
        let Err(ProgramError::Submit(SubmitError::Declare(error))) = &outcome else {
            panic!("N{first}: {outcome:?}")
        };
        assert!(matches!(error, DeclareError::UninitializedRead { .. }), "{error}");
    }
}

#[test]
fn a_failure_after_the_first_node_has_ended_its_program_is_not_lost() {
    let outcome = run(&cluster(2, 1), |node| {
        if node.node().index() == 0 {
            return Ok(());
        }
        // N0 waits for everything by now.
        std::thread::sleep(std::time::Duration::from_millis(50));
        Err(ProgramError::Own("too late".to_owned()))
    });
    assert_eq!(outcome, Err(ProgramError::Own("too late".to_owned())));
}

#[test]
fn a_panicking_range_mapper_is_an_error_with_the_task() {
    // It behaves as long as the whole index space is looked at.
    let mapper = UserMapper::new(|input: &MapperInput| {
        assert!(input.chunk == input.global, "only whole spaces, please");
        input.buffer.into()
    });
    let outcome = run(&cluster(2, 1), move |node| {
        let data = buffer_from(node, line(8), vec![0; 8]);
        let accesses = vec![reads(data, Mapper::User(mapper.clone()))];
        kernel(node, "mapped", line(8), accesses, |_, _| {})?;
        Ok(node.barrier()?)
    });
    let Err(ProgramError::Run(RunError::Schedule { error, .. })) = outcome else {
        panic!("{outcome:?}")
    };
    let message = error.to_string();
    assert!(matches!(*error, ScheduleError::MapperPanicked { .. }), "{message}");
    assert!(message.contains("T1 \"mapped\" panicked: only whole spaces, please"), "{message}");
}

#[test]
fn a_lying_range_mapper_is_a_diagnostic() {
    let everything = UserMapper::disjoint(|input: &MapperInput| input.buffer.into());
    let outcome = run(&cluster(2, 1), move |node| {
        let data = buffer(node, line(8));
        let accesses = vec![writes(data, Mapper::User(everything.clone()))];
        kernel(node, "liar", line(8), accesses, |_, _| {})?;
        Ok(node.barrier()?)
    });
    let Err(ProgramError::Run(RunError::Schedule { error, .. })) = outcome else {
        panic!("{outcome:?}")
    };
    let message = error.to_string();
    let ScheduleError::Commands(Diagnostic::OverlappingWrites { region, .. }) = *error else {
        panic!("{message}")
    };
    assert_eq!(region, line(8).into());
    assert!(message.contains("T1 \"liar\"") && message.contains("[0..8]"), "{message}");
}

#[test]
fn a_wrong_task_is_refused_at_submission_and_the_run_goes_on() {
    let outcome = run(&cluster(2, 2), |node| {
        let data = buffer(node, line(8));
        let refused = kernel(node, "early", line(8), vec![reads(data, Mapper::All)], |_, _| {});
        assert!(
            matches!(refused, Err(SubmitError::Declare(DeclareError::UninitializedRead { .. }))),
            "{refused:?}"
        );
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", line(8), fill, |p, v| v[0].set(p, 3))?;
        Ok(fence(node, data, line(8))?.wait(node)?)
    });
    assert_eq!(outcome, Ok(vec![3; 8]));
}

#[test]
fn too_little_device_memory_is_an_error_with_all_figures() {
    let config = ClusterConfig { device_memory_limit: Some(1000), ..cluster(1, 2) };
    let outcome = run(&config, |node| {
        let (small, big) = (buffer(node, line(100)), buffer(node, line(200)));
        node.rename_buffer(big, "big one");
        for (data, length) in [(small, 100), (big, 200)] {
            let fill = vec![writes(data, Mapper::OneToOne)];
            kernel(node, "fill", line(length), fill, |p, v| v[0].set(p, 3))?;
        }
        Ok(node.barrier()?)
    });
    let Err(ProgramError::Run(error)) = outcome else { panic!("{outcome:?}") };
    let RunError::OutOfMemory { error, .. } = error else { panic!("{error:?}") };
    let NoRoom { memory, task, buffer, extent, bytes, free, residents, .. } = &*error;
    assert_eq!((buffer.as_str(), *bytes, *free), ("\"big one\"", 800, Some(600)));
    let [Resident { buffer, bytes: 400, .. }] = &**residents else { panic!("{residents:?}") };
    assert_eq!(buffer, "\"B0\"");
    assert!(memory.contains("the memory of D"), "{memory}");
    assert!(task.as_deref().is_some_and(|task| task.contains("T2 \"fill\"")), "{task:?}");
    let halves = [(0, 100), (100, 100)].map(|(at, len)| Box3::from_offset_range([at], [len]));
    assert!(extent.is_some_and(|extent| halves.contains(&extent)), "{extent:?}");
}

/// One device would have to hold what two have written.
#[test]
fn memory_for_what_is_copied_names_the_reader() {
    let lookahead = Lookahead::None;
    let config = ClusterConfig { device_memory_limit: Some(1000), lookahead, ..cluster(1, 2) };
    let outcome = run(&config, |node| {
        let (data, sum) = (buffer(node, line(200)), buffer(node, line(2)));
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", line(200), fill, |p, v| v[0].set(p, 3))?;
        let all = vec![reads(data, Mapper::All), writes(sum, Mapper::OneToOne)];
        kernel(node, "read all", line(2), all, |p, v| v[1].set(p, v[0].get([0, 0, 0])))?;
        Ok(node.barrier()?)
    });
    let Err(ProgramError::Run(error)) = outcome else { panic!("{outcome:?}") };
    let RunError::OutOfMemory { error, .. } = error else { panic!("{error:?}") };
    let NoRoom { task, extent, bytes, residents, .. } = &*error;
    assert!(task.as_deref().is_some_and(|task| task.contains("T2 \"read all\"")), "{task:?}");
    // What is there stays until it has been copied.
    assert_eq!((*extent, *bytes), (Some(line(200)), 1600));
    assert_eq!((residents[0].buffer.as_str(), residents[0].bytes), ("\"B0\"", 800));
}

#[test]
fn initial_data_of_the_wrong_length_is_an_error() {
    let outcome = run(&cluster(2, 1), |node| {
        let _ = buffer_from(node, line(8), vec![0; 7]);
        Ok(node.barrier()?)
    });
    let expected =
        RunError::HostDataLength { buffer: "\"B0\"".to_owned(), expected: 64, actual: 56 };
    assert_eq!(outcome, Err(ProgramError::Run(expected)));
}

#[test]
fn impossible_clusters_are_refused() {
    for config in [cluster(0, 1), cluster(usize::MAX, 1), cluster(1, 0), cluster(1, 62)] {
        let outcome = run(&config, |_| Ok(()));
        assert!(matches!(outcome, Err(ProgramError::Run(RunError::Start { .. }))), "{outcome:?}");
    }
}

#[test]
fn a_frontend_that_outlives_its_run_is_refused_politely() {
    let (frontend, data) =
        run(&cluster(2, 1), |node| Ok((node.clone(), buffer(node, line(4))))).unwrap();
    frontend.drop_buffer(data);
    let ended = RunError::Ended { node: NodeId::from_index(0) };
    assert_eq!(frontend.barrier(), Err(ended.clone()));
    let submitted = host_task(&frontend, "late", Vec::new(), |_| panic!("never called"));
    assert_eq!(submitted, Err(SubmitError::Run(ended)));
}

#[test]
fn tasks_that_drop_buffers_do_not_deadlock_with_submission() {
    struct DropBuffer(Arc<celerity_executor::NodeFrontend>, celerity_tdag::BufferId);
    impl Drop for DropBuffer {
        fn drop(&mut self) {
            self.0.drop_buffer(self.1);
        }
    }
    let config = ClusterConfig { run_ahead: 1, ..cluster(1, 1) };
    let outcome = run(&config, |node| {
        for _ in 0..100 {
            let data = buffer(node, line(4));
            let handle = DropBuffer(node.clone(), data);
            host_task(node, "own", vec![writes(data, Mapper::All)], move |_| drop(handle))?;
        }
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn programs_that_diverge_between_barriers_are_an_error() {
    let program = |node: &Arc<NodeFrontend>| {
        if node.node().index() == 1 {
            let _ = host_task(node, "extra", Vec::new(), |_| {})?;
        }
        Ok(node.barrier()?)
    };
    for check in [CheckLevel::Off, CheckLevel::Cheap] {
        // Found by the nodes' hashes, or by the barrier that they enter meanwhile.
        let message = match run(&ClusterConfig { check, ..cluster(3, 1) }, program) {
            Err(ProgramError::Run(RunError::Communication { error, .. })) => error.to_string(),
            Err(ProgramError::Run(error @ RunError::Diverged { .. })) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(message.contains("T1") && message.contains("N1"), "{message}");
    }
}
