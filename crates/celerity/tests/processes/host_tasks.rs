//! Host tasks of every form where nodes are processes: what they say to each other by our means
//! and by those of MPI, and how a run ends in which one of them fails.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use celerity::mpi::collective::SystemOperation;
use celerity::mpi::traits::*;
use celerity::{MpiGroupError, RunError, prelude::*};

use crate::faults::{ENDED, config, fail_with};

/// More than there are threads for host tasks outside of groups.
const GROUPS: usize = 8;

/// Each form, several times, with more groups than threads.
pub(crate) fn all_forms() {
    let met = Arc::new(AtomicUsize::new(0));
    let outcome = config().run(|queue| {
        let (node, nodes) = (queue.node(), queue.nodes());
        let data = queue.buffer_from(4 * nodes, vec![1_u64; 4 * nodes])?.named("data");
        let (open, opened) = channel::<()>();
        let opened = Arc::new(Mutex::new(opened));
        for named in 0..nodes {
            // All threads for host tasks of each node wait for the end of the program.
            for _ in 0..4 {
                let opened = opened.clone();
                queue.host_task("block").on_node(named).once((), move |()| {
                    assert_eq!(node, named);
                    let _ended = opened.lock().unwrap().recv();
                })?;
            }
        }
        for turn in 0..3 {
            for nth in 0..GROUPS {
                let (met, name) = (met.clone(), format!("group {nth}"));
                queue.host_task("meet").collective(
                    name,
                    data.read(all()),
                    move |partition, data| {
                        assert_eq!((partition.node(), partition.nodes()), (node, nodes));
                        let all = partition.communicator();
                        std::thread::sleep(Duration::from_millis(((nth + turn + node) % 3) as u64));
                        all.barrier()?;
                        let told = all.all_gather(&[(100 * nth + 10 * turn + node) as u64])?;
                        for (from, told) in told.iter().enumerate() {
                            assert_eq!(told[..], [(100 * nth + 10 * turn + from) as u64]);
                        }
                        // More than a message holds.
                        let root = nth % partition.nodes();
                        let mut many = vec![if node == root { nth as u32 } else { 0 }; 2000];
                        all.broadcast(root, &mut many)?;
                        assert_eq!(many, [nth as u32; 2000]);
                        assert_eq!(data.as_slice(), vec![1; 4 * partition.nodes()]);
                        met.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    },
                )?;
            }
            assert_eq!(queue.fence(&data)?.wait()?.as_slice(), vec![1; 4 * nodes]);
        }
        while met.load(Ordering::SeqCst) < 3 * GROUPS {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(open);
        let own = queue.buffer::<u64, 1>(nodes).named("own");
        queue.host_task("own").everywhere(own.write(one_to_one()), move |partition, mut own| {
            own[partition.node()] = 7 + partition.node() as u64;
        })?;
        let task = queue.host_task("add").distributed(4 * nodes).hint(Hint::Oversubscribe(2));
        task.submit(
            (data.read_write(one_to_one()), own.read(all())),
            |partition, (mut data, own)| {
                let Subrange { offset: [first], range: [count] } = partition.subrange();
                (first..first + count).for_each(|i| data[i] += own[partition.node()]);
            },
        )?;
        Ok((node, queue.fence(&data)?.wait()?.into_vec()))
    });
    let (node, data) = outcome.unwrap_or_else(|error| panic!("{error}"));
    let expected = (0..data.len() as u64).map(|i| 8 + i / 4);
    assert_eq!(data, expected.collect::<Vec<_>>());
    if node == 0 {
        crate::passed();
    }
}

/// Groups that use MPI at the same time, each its own communicator.
pub(crate) fn mpi_groups() {
    let outcome = config().mpi_thread_multiple(true).run(|queue| {
        let sums = queue.buffer::<i64, 1>(queue.nodes()).named("sums");
        for turn in 0..4 {
            for nth in 0..GROUPS {
                let name = format!("group {nth}");
                queue.host_task("sum").collective(name, (), move |partition, ()| {
                    let mpi = partition.mpi()?;
                    assert_eq!(mpi.rank() as usize, partition.node());
                    assert_eq!(mpi.size() as usize, partition.nodes());
                    let (own, mut sum) = ((10 * nth + turn) as i64, 0_i64);
                    mpi.all_reduce_into(&own, &mut sum, SystemOperation::sum());
                    assert_eq!(sum, own * partition.nodes() as i64);
                    mpi.barrier();
                    Ok(())
                })?;
            }
        }
        queue.host_task("write").collective(
            "group 0",
            sums.write(one_to_one()),
            |part, mut sums| {
                let (own, mut sum) = (1 + part.node() as i64, 0_i64);
                part.mpi()?.all_reduce_into(&own, &mut sum, SystemOperation::sum());
                sums[part.node()] = sum;
                Ok(())
            },
        )?;
        Ok((queue.node(), queue.fence(&sums)?.wait()?.into_vec()))
    });
    let (node, sums) = outcome.unwrap_or_else(|error| panic!("{error}"));
    let nodes = sums.len() as i64;
    assert_eq!(sums, vec![nodes * (nodes + 1) / 2; sums.len()]);
    if node == 0 {
        crate::passed();
    }
}

/// MPI has not been asked for what tasks need that call it, so they are told how to get it.
pub(crate) fn mpi_refused() {
    let outcome = config().run(|queue| {
        queue.host_task("ask").collective("g", (), |partition, ()| {
            let error = partition.mpi().unwrap_err();
            assert!(matches!(error, MpiGroupError::Threads { .. }), "{error}");
            assert!(error.to_string().contains("CELERITY_MPI_THREAD_MULTIPLE=on"), "{error}");
        })?;
        Ok(queue.node())
    });
    if outcome.unwrap_or_else(|error| panic!("{error}")) == 0 {
        crate::passed();
    }
}

/// The last node's part of a collective task panics, while others wait for it.
pub(crate) fn panics() -> ExitCode {
    std::panic::set_hook(Box::new(|_| ()));
    let (node, error, _) = fail_with(&config(), |queue| {
        let last = queue.nodes() - 1;
        queue.host_task("meet").collective("g", (), move |partition, ()| {
            assert!(partition.node() != last, "the disk is on fire");
            partition.communicator().barrier()?;
            Ok(())
        })?;
        queue.barrier()
    });
    told(node, &error)
}

/// The same while others wait inside of MPI, where nothing can wake them.
pub(crate) fn panics_while_others_wait_in_mpi() -> ExitCode {
    std::panic::set_hook(Box::new(|_| ()));
    let patient = config().mpi_thread_multiple(true).peer_timeout(Duration::from_secs(2));
    let (node, error, _) = fail_with(&patient, |queue| {
        let last = queue.nodes() - 1;
        queue.host_task("meet").collective("g", (), move |partition, ()| {
            let mpi = partition.mpi()?;
            assert!(partition.node() != last, "the disk is on fire");
            mpi.barrier();
            Ok(())
        })?;
        queue.barrier()
    });
    told(node, &error)
}

/// The same before the last node has asked for MPI, and others wait for it to do so.
pub(crate) fn panics_while_others_ask_for_mpi() -> ExitCode {
    std::panic::set_hook(Box::new(|_| ()));
    let patient = config().mpi_thread_multiple(true).peer_timeout(Duration::from_secs(2));
    let (node, error, _) = fail_with(&patient, |queue| {
        let last = queue.nodes() - 1;
        queue.host_task("meet").collective("g", (), move |partition, ()| {
            if partition.node() == last {
                std::thread::sleep(Duration::from_millis(300));
                panic!("the disk is on fire");
            }
            partition.mpi()?.barrier();
            Ok(())
        })?;
        queue.barrier()
    });
    told(node, &error)
}

/// The same, and others come to MPI when the run has failed.
pub(crate) fn panics_before_others_use_mpi() -> ExitCode {
    std::panic::set_hook(Box::new(|_| ()));
    let patient = config().mpi_thread_multiple(true).peer_timeout(Duration::from_secs(2));
    let (node, error, _) = fail_with(&patient, |queue| {
        let last = queue.nodes() - 1;
        let meet = || queue.host_task("meet");
        meet()
            .collective("g", (), |partition, ()| partition.mpi().map(drop).map_err(Into::into))?;
        meet().collective("g", (), move |partition, ()| {
            assert!(partition.node() != last, "the disk is on fire");
            std::thread::sleep(Duration::from_millis(1500));
            partition.mpi()?.barrier();
            Ok(())
        })?;
        queue.barrier()
    });
    told(node, &error)
}

fn told(node: usize, error: &RunError) -> ExitCode {
    println!("N{node}: {error}");
    ExitCode::from(ENDED)
}
