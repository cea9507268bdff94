//! Programs that are scheduled for many nodes and executed on none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity::prelude::*;
use celerity::{CheckLevel, Error, LogLevel, Sum};

fn dry(nodes: usize) -> Config {
    Config::default().dry_run(nodes).check(CheckLevel::Full).log_level(LogLevel::Off)
}

/// Counts how often the program's functions are called.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_called_and_fences_deliver_zeroes() {
    let calls = Calls::default();
    for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (7, 4), (1000, 2)] {
        let outcome = dry(nodes).devices(devices).run(|queue| {
            assert_eq!((queue.nodes(), queue.devices(), queue.node()), (nodes, devices, 0));
            assert!(queue.is_dry_run() && !queue.is_root());
            let field = queue.buffer_from([40, 30], vec![1.5_f32; 1200])?;
            let (next, total) = (queue.buffer::<f32, 2>([40, 30]), queue.buffer::<f32, 0>([]));
            for _ in 0..20 {
                let kernel = calls.clone();
                let around = field.read(neighborhood([1, 1]));
                let accesses = (around, next.write(one_to_one()), total.reduce(Sum));
                queue.task("step").parallel_for(
                    [40, 30],
                    accesses,
                    move |_, (_, next, total)| {
                        kernel.count();
                        *next = 1.0;
                        total.combine(1.0);
                    },
                )?;
                let host = calls.clone();
                queue.host_task("look").once(next.read(all()), move |_| host.count())?;
            }
            let part = Subrange { offset: [3, 4], range: [5, 6] };
            let (part, total) = (queue.fence_part(&next, part)?, queue.fence(&total)?);
            let untouched = queue.fence(&field)?;
            drop(field);
            queue.barrier()?;
            assert!(part.wait()?.as_slice().iter().all(|&value| value == 0.0));
            assert!(untouched.wait()?.as_slice().iter().all(|&value| value == 0.0));
            let (total, here) = (total.wait()?[[]], next.capture().on_node(0));
            let zeroes = queue.finish(here)?.expect("this is node 0");
            assert!(zeroes.as_slice().iter().all(|&value| value == 0.0));
            Ok(total)
        });
        assert_eq!(outcome.unwrap(), 0.0, "{nodes} × {devices}");
    }
    assert_eq!(calls.0.load(Ordering::Relaxed), 0);
}

#[test]
fn host_objects_stay_as_they_were_and_collectives_meet_nobody() {
    let log = dry(64).run(|queue| {
        let log = queue.host_object(vec![1_u8]);
        for _ in 0..3 {
            queue.host_task("append").once((log.sequential(),), |(log,)| log.push(2))?;
            queue.host_task("meet").collective("all", (), |partition, ()| {
                partition.communicator().barrier()?;
                Ok(())
            })?;
        }
        assert_eq!(queue.barrier_with((log.capture(), log.capture().on_node(3)))?, (vec![1], None));
        log.take(queue)
    });
    assert_eq!(log.unwrap(), [1]);
}

#[test]
fn memory_that_no_machine_has_is_scheduled() {
    let outcome = dry(4096).check(CheckLevel::Off).devices(8).run(|queue| {
        let range = [1 << 24, 1 << 20];
        let (mut u, mut up) = (queue.buffer::<f64, 2>(range), queue.buffer::<f64, 2>(range));
        queue.task("fill").parallel_for(range, u.write(one_to_one()), |_, u| *u = 1.0)?;
        for _ in 0..10 {
            let accesses = (u.read(neighborhood([1, 1])), up.write(one_to_one()));
            queue.task("step").parallel_for(range, accesses, |_, _| ())?;
            std::mem::swap(&mut u, &mut up);
        }
        let row = Subrange { offset: [77, 0], range: [1, 1000] };
        Ok(queue.fence_part(&u, row)?.wait()?.as_slice().len())
    });
    assert_eq!(outcome.unwrap(), 1000);
}

#[test]
fn mistakes_are_found_as_in_other_runs() {
    let unwritten = dry(16).run(|queue| {
        let a = queue.buffer::<f32, 1>(100);
        queue.task("step").parallel_for(100, a.read(all()), |_, _| ())
    });
    let unwritten = unwritten.unwrap_err().to_string();
    assert!(unwritten.contains("T1") && unwritten.contains("B0"), "{unwritten}");
    let results = dry(16).run(|queue| queue.require_results("a plot")).unwrap_err();
    assert!(matches!(&results, Error::DryRun { what } if what == "a plot"), "{results}");
    Config::default().run(|queue| queue.require_results("a plot")).unwrap();
    for impossible in [0, (1 << 20) + 1] {
        let error = dry(impossible).run(|_| Ok(())).unwrap_err().to_string();
        assert!(error.contains(&format!("`nodes` is {impossible}")), "{error}");
    }
}
