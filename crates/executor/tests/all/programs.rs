//! Programs from submission to result, on 1 to 4 nodes of 1 to 3 devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use celerity_executor::{BasePtr, ClusterConfig, DeviceMemory, HostData, Lookahead};
use celerity_regions::Box3;
use celerity_tdag::Mapper;

use crate::common::*;

fn line(length: usize) -> Box3 {
    Box3::from_range([length])
}

#[test]
fn fill_and_stencil() {
    const SIDE: usize = 24;
    const STEPS: usize = 9;
    let space = Box3::from_range([SIDE, SIDE]);
    let neighbours = |[y, x, _]: [u64; 3]| {
        let last = SIDE as u64 - 1;
        [
            [y.saturating_sub(1), x, 0],
            [(y + 1).min(last), x, 0],
            [y, x.saturating_sub(1), 0],
            [y, (x + 1).min(last), 0],
        ]
    };
    let mut expected: Vec<u64> = points(&space).map(|[y, x, _]| y * 31 + x).collect();
    for _ in 0..STEPS {
        let at = |[y, x, _]: [u64; 3]| expected[usize::try_from(y).unwrap() * SIDE + x as usize];
        let next = points(&space).map(|point| neighbours(point).map(at).iter().sum());
        expected = next.collect();
    }
    for config in configurations() {
        let snapshot = run(&config, move |node| {
            let (mut now, mut next) = (buffer(node, space), buffer(node, space));
            let fill = vec![writes(now, Mapper::OneToOne)];
            kernel(node, "fill", space, fill, |p, v| v[0].set(p, p[0] * 31 + p[1]))?;
            for _ in 0..STEPS {
                let accesses =
                    vec![reads(now, Mapper::neighborhood([1, 1])), writes(next, Mapper::OneToOne)];
                kernel(node, "step", space, accesses, move |p, v| {
                    v[1].set(p, neighbours(p).map(|from| v[0].get(from)).iter().sum());
                })?;
                std::mem::swap(&mut now, &mut next);
            }
            Ok(fence(node, now, space)?.wait(node)?)
        });
        assert_eq!(snapshot.as_ref(), Ok(&expected), "{config:?}");
    }
}

#[test]
fn all_gather_with_snapshots_on_every_node() {
    const BODIES: usize = 37;
    let mut expected: Vec<u64> = (0..BODIES as u64).collect();
    for _ in 0..6 {
        let sum: u64 = expected.iter().fold(0, |sum, body| sum.wrapping_add(*body));
        expected.iter_mut().for_each(|body| *body = body.wrapping_mul(3).wrapping_add(sum));
    }
    for config in configurations() {
        let snapshots = PerNode::default();
        let here = snapshots.clone();
        run(&config, move |node| {
            let space = line(BODIES);
            let (bodies, sums) = (buffer(node, space), buffer(node, space));
            let fill = vec![writes(bodies, Mapper::OneToOne)];
            kernel(node, "fill", space, fill, |p, v| v[0].set(p, p[0]))?;
            for _ in 0..6 {
                let gather = vec![reads(bodies, Mapper::All), writes(sums, Mapper::OneToOne)];
                kernel(node, "gather", space, gather, move |p, v| {
                    let all = points(&line(BODIES)).map(|from| v[0].get(from));
                    v[1].set(p, all.fold(0, u64::wrapping_add));
                })?;
                let accesses =
                    vec![reads(sums, Mapper::OneToOne), updates(bodies, Mapper::OneToOne)];
                kernel(node, "update", space, accesses, |p, v| {
                    v[1].set(p, v[1].get(p).wrapping_mul(3).wrapping_add(v[0].get(p)));
                })?;
            }
            here.push(node, fence(node, bodies, space)?.wait(node)?);
            Ok(())
        })
        .unwrap();
        let snapshots = snapshots.take();
        assert_eq!(snapshots.len(), config.nodes);
        assert!(snapshots.iter().all(|snapshot| *snapshot == expected), "{config:?}");
    }
}

#[test]
fn host_tasks_run_once_in_the_cluster_between_kernels() {
    for config in configurations() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        let snapshot = run(&config, move |node| {
            let space = line(20);
            let data = buffer_from(node, space, (0..20).collect());
            let double = |p, v: &[View<'_>]| v[0].set(p, v[0].get(p) * 2);
            kernel(node, "double", space, vec![updates(data, Mapper::OneToOne)], double)?;
            let counter = counter.clone();
            host_task(node, "reverse", vec![updates(data, Mapper::All)], move |v| {
                counter.fetch_add(1, Ordering::SeqCst);
                let old: Vec<_> = points(&space).map(|p| v[0].get(p)).collect();
                points(&space).zip(old.into_iter().rev()).for_each(|(p, x)| v[0].set(p, x));
            })?;
            kernel(node, "double", space, vec![updates(data, Mapper::OneToOne)], double)?;
            Ok(fence(node, data, space)?.wait(node)?)
        });
        let expected: Vec<u64> = (0..20).rev().map(|x| x * 4).collect();
        assert_eq!(snapshot, Ok(expected), "{config:?}");
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_barrier_returns_when_all_nodes_have_done_everything_before() {
    for config in configurations() {
        let items = Arc::new(AtomicUsize::new(0));
        run(&config, move |node| {
            let space = line(24);
            let data = buffer(node, space);
            for round in 1..=3 {
                let items_here = items.clone();
                kernel(node, "count", space, vec![writes(data, Mapper::OneToOne)], move |p, v| {
                    v[0].set(p, 1);
                    items_here.fetch_add(1, Ordering::SeqCst);
                })?;
                node.barrier()?;
                let so_far = items.load(Ordering::SeqCst);
                assert!(so_far >= 24 * round, "{so_far} items after {round} barriers");
                node.barrier()?;
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn large_transfers_between_nodes_take_the_pool() {
    let rows = 4 * 64;
    let space = Box3::from_range([rows, 1024]);
    let snapshot = run(&cluster(4, 1), move |node| {
        let (data, other) = (buffer(node, space), buffer(node, space));
        let fill = vec![writes(data, Mapper::OneToOne)];
        kernel(node, "fill", space, fill, |p, v| v[0].set(p, p[0] << 20 | p[1]))?;
        // Every node needs the rows of the mirrored one.
        let mirror =
            Mapper::User(celerity_tdag::UserMapper::new(|input: &celerity_tdag::MapperInput| {
                let (min, max) = (input.chunk.min(), input.chunk.max());
                let last = input.buffer.max()[0];
                Box3::new([last - max[0], min[1], 0], [last - min[0], max[1], 1]).into()
            }));
        let accesses = vec![reads(data, mirror), writes(other, Mapper::OneToOne)];
        kernel(node, "mirror", space, accesses, move |p, v| {
            v[1].set(p, v[0].get([rows as u64 - 1 - p[0], p[1], 0]));
        })?;
        Ok(fence(node, other, space)?.wait(node)?)
    });
    let expected: Vec<u64> =
        points(&space).map(|[y, x, _]| (rows as u64 - 1 - y) << 20 | x).collect();
    assert!(snapshot.unwrap() == expected);
}

#[test]
fn dropped_buffers_live_until_their_last_task_has_run() {
    for config in configurations() {
        let total = Arc::new(AtomicUsize::new(0));
        let sum = total.clone();
        run(&config, move |node| {
            let space = line(16);
            for round in 0..50 {
                let data = buffer_from(node, space, vec![round; 16]);
                let add = vec![updates(data, Mapper::OneToOne)];
                kernel(node, "add", space, add, |p, v| v[0].set(p, v[0].get(p) + p[0]))?;
                let sum = sum.clone();
                host_task(node, "sum", vec![reads(data, Mapper::All)], move |v| {
                    let all: u64 = points(&space).map(|p| v[0].get(p)).sum();
                    sum.fetch_add(usize::try_from(all).unwrap(), Ordering::SeqCst);
                })?;
                node.drop_buffer(data);
                node.drop_buffer(data);
            }
            Ok(())
        })
        .unwrap();
        let expected: usize = (0..50).map(|round| round * 16 + 120).sum();
        assert_eq!(total.load(Ordering::SeqCst), expected, "{config:?}");
    }
}

/// A device with room for one buffer serves many, one after another.
#[test]
fn memory_of_dropped_buffers_is_given_back() {
    let room = 8 * 100 + 100;
    for lookahead in [Lookahead::None, Lookahead::Auto] {
        let config = ClusterConfig { device_memory_limit: Some(room), lookahead, ..cluster(1, 1) };
        let sums = run(&config, |node| {
            let mut sums = Vec::new();
            for round in 0..5 {
                let (space, data) = (line(100), buffer(node, line(100)));
                let fill = vec![writes(data, Mapper::OneToOne)];
                kernel(node, "fill", space, fill, move |p, v| v[0].set(p, round))?;
                let last = fence(node, data, space)?;
                // Its users may not have finished yet.
                node.drop_buffer(data);
                sums.push(last.wait(node)?.iter().sum::<u64>());
                node.barrier()?;
            }
            Ok(sums)
        });
        assert_eq!(sums, Ok(vec![0, 100, 200, 300, 400]), "{lookahead:?}");
    }
}

/// Initial contents whose end can be seen.
fn watched(contents: Vec<u64>, marker: &Arc<()>) -> HostData {
    let mut owner = (contents, marker.clone());
    let base = BasePtr::of_mut_slice(bytemuck::cast_slice_mut(&mut owner.0));
    let bytes = owner.0.len() as u64 * 8;
    // SAFETY: what a list holds stays where it is while its owner is kept and not touched.
    #[allow(unsafe_code)]
    unsafe {
        HostData::of_raw(base, bytes, owner)
    }
}

/// What a node has handed over is kept as long as the buffer is used, and no longer, whether it is
/// worked on or copied; each node works on its own.
#[test]
fn what_was_handed_over_goes_with_its_buffer() {
    for config in configurations() {
        for device_memory in [DeviceMemory::Own, DeviceMemory::Host] {
            let config = ClusterConfig { device_memory: Some(device_memory), ..config.clone() };
            let sums = run(&config, |node| {
                let marker = Arc::new(());
                let data = node.create_buffer(
                    new_buffer(line(100), true),
                    Some(watched((0..100).collect(), &marker)),
                );
                let add = vec![updates(data, Mapper::OneToOne)];
                kernel(node, "add", line(100), add, |p, v| v[0].set(p, v[0].get(p) + 1))?;
                let last = fence(node, data, line(100))?;
                node.drop_buffer(data);
                let sum = last.wait(node)?.iter().sum::<u64>();
                node.barrier()?;
                assert_eq!(Arc::strong_count(&marker), 1, "the buffer has ended");
                Ok(sum)
            });
            assert_eq!(sums, Ok(5050), "{config:?}");
        }
    }
}

#[test]
fn what_was_handed_over_goes_with_a_run_that_fails() {
    for device_memory in [DeviceMemory::Own, DeviceMemory::Host] {
        let (marker, config) = (Arc::new(()), cluster(2, 1));
        let config = ClusterConfig { device_memory: Some(device_memory), ..config };
        let inside = marker.clone();
        let failed = run(&config, move |node| {
            let contents = watched(vec![0; 100], &inside);
            let data = node.create_buffer(new_buffer(line(100), true), Some(contents));
            let add = vec![updates(data, Mapper::OneToOne)];
            kernel(node, "fail", line(100), add, |p, v| v[0].set(p, 100 / (p[0] - 77)))?;
            Ok(fence(node, data, line(100))?.wait(node)?)
        });
        assert!(failed.is_err());
        assert_eq!(Arc::strong_count(&marker), 1, "{device_memory:?}");
    }
}

#[test]
fn payloads_go_when_their_task_has_run() {
    let marker = Arc::new(());
    let inside = marker.clone();
    run(&cluster(2, 2), move |node| {
        let data = buffer(node, line(8));
        let held = inside.clone();
        kernel(node, "hold", line(8), vec![writes(data, Mapper::OneToOne)], move |p, v| {
            let _held = &held;
            v[0].set(p, 0);
        })?;
        node.barrier()?;
        node.barrier()?;
        // This closure, and what the test keeps: the kernels' are gone.
        assert_eq!(Arc::strong_count(&inside), 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(Arc::strong_count(&marker), 1);
}

#[test]
fn nothing_of_nothing() {
    for config in configurations() {
        let snapshot = run(&config, |node| {
            let empty = Box3::from_range([0]);
            let nothing = buffer(node, empty);
            let initialized = buffer_from(node, empty, Vec::new());
            let before =
                kernel(node, "none", empty, vec![writes(nothing, Mapper::OneToOne)], |_, _| {
                    panic!("there is no item")
                })?;
            assert_eq!(before.index(), 0, "only the first epoch is there");
            kernel(node, "touch", line(4), vec![reads(initialized, Mapper::All)], |_, v| {
                assert_eq!(v.len(), 1);
            })?;
            host_task(node, "no accesses", Vec::new(), |v| assert!(v.is_empty()))?;
            node.barrier()?;
            Ok(fence(node, initialized, empty)?.wait(node)?)
        });
        assert_eq!(snapshot, Ok(Vec::new()), "{config:?}");
    }
    assert_eq!(run(&cluster(3, 2), |_| Ok(5)), Ok(5), "a program without tasks");
}

#[test]
fn zero_dimensional_buffers_and_kernels() {
    for config in configurations() {
        let snapshot = run(&config, |node| {
            let scalar = buffer(node, Box3::UNIT);
            kernel(node, "set", Box3::UNIT, vec![writes(scalar, Mapper::All)], |p, v| {
                v[0].set(p, 42);
            })?;
            Ok(fence(node, scalar, Box3::UNIT)?.wait(node)?)
        });
        assert_eq!(snapshot, Ok(vec![42]), "{config:?}");
    }
}
