//! Calls on devices: once per chunk, on the device that owns it, in the order of the graph. On GPUs
//! (feature `cuda`) they put copies by the driver on their streams, on CPU devices they loop over
//! views.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use celerity::prelude::*;
use celerity::{
    DeviceCall, DeviceCallError, DeviceCallFailed, DeviceMemory, DeviceView, DeviceViewMut, Error,
    RunError,
};

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// Nodes and devices of each.
const CLUSTERS: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)];

fn on(nodes: usize, devices: usize) -> Config {
    // With memories of their own, so that parts lie in allocations that are no whole buffers.
    let config = Config::from_env().unwrap().share_gpus(true);
    config.nodes(nodes).devices(devices).device_memory(DeviceMemory::Own)
}

/// Row by row of `to`: what is in `from` at the index that `source` says of the row's first.
fn copy_rows<const K: usize, const D: usize>(
    call: DeviceCall<K>,
    (from, to): (DeviceView<'_, u32, D>, DeviceViewMut<'_, u32, D>),
    source: impl Fn([usize; D]) -> [usize; D],
) -> Result<(), Boxed> {
    let mut to = to;
    let (first, part) = (to.as_mut_ptr() as u64, to.subrange());
    let width = part.range.last().copied().unwrap_or(1);
    let ahead = |view: &DeviceView<'_, u32, D>, index: [usize; D]| {
        let (start, strides) = (view.subrange().offset, view.strides());
        4 * (0..D).map(|dim| (index[dim] - start[dim]) * strides[dim]).sum::<usize>() as u64
    };
    for row in rows_of(part) {
        let (from, to) =
            (from.as_ptr() as u64 + ahead(&from, source(row)), first + ahead(&to, row));
        match call.stream() {
            Ok(stream) => copy_row_on(stream, from, to, 4 * width)?,
            Err(DeviceCallError::NoStream) => {
                let [from, to] = [from, to].map(|it| it as usize as *mut u32);
                // SAFETY: both rows were accessed, for reading and writing, in the host's memory.
                unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// `to = from`, for the same part of both.
fn copy<const K: usize, const D: usize>(
    call: DeviceCall<K>,
    from: DeviceView<'_, u32, D>,
    to: DeviceViewMut<'_, u32, D>,
) -> Result<(), Boxed> {
    assert_eq!(from.subrange(), to.subrange());
    copy_rows(call, (from, to), |row| row)
}

/// The first index of every row of a box.
fn rows_of<const D: usize>(part: Subrange<D>) -> Vec<[usize; D]> {
    let mut rows = if part.range.contains(&0) { Vec::new() } else { vec![part.offset] };
    for dim in 0..D.saturating_sub(1) {
        let along = |row: [usize; D]| {
            (0..part.range[dim]).map(move |at| {
                let mut next = row;
                next[dim] += at;
                next
            })
        };
        rows = rows.into_iter().flat_map(along).collect();
    }
    rows
}

#[cfg(feature = "cuda")]
fn copy_row_on(
    stream: celerity::DeviceStream,
    from: u64,
    to: u64,
    bytes: usize,
) -> Result<(), Boxed> {
    use celerity::cuda::cudarc::driver::sys;

    let mut current = std::ptr::null_mut();
    // SAFETY: `current` outlives the call.
    unsafe { sys::cuCtxGetCurrent(&raw mut current) }.result()?;
    assert_eq!(current.cast(), stream.context, "the stream's context is current");
    // SAFETY: both rows were accessed, for reading and writing, on the stream's GPU.
    unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.stream.cast()) }.result()?;
    Ok(())
}

#[cfg(not(feature = "cuda"))]
fn copy_row_on(_: celerity::DeviceStream, _: u64, _: u64, _: usize) -> Result<(), Boxed> {
    unreachable!("there are no GPUs here")
}

/// `0, 1, 2, …`, in every element its position.
fn numbered<const D: usize>(queue: &Queue, range: [usize; D]) -> celerity::Result<Buffer<u32, D>> {
    let count: usize = range.iter().product();
    queue.buffer_from(range, (0..count as u32).collect::<Vec<_>>())
}

/// Copies a buffer by a call, and returns the copy with the chunks that were called for.
fn copied<const N: usize>(
    config: Config,
    range: [usize; N],
    hint: Hint,
) -> (Vec<u32>, Vec<Subrange<N>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let copy_of = |queue: &Queue| {
        let (from, to) = (numbered(queue, range)?, queue.buffer::<u32, N>(range));
        let calls = calls.clone();
        let accesses = (from.read(one_to_one()), to.write(one_to_one()));
        queue.task("copy").hint(hint).device_call(range, accesses, move |call, (from, to)| {
            calls.lock().unwrap().push(call.subrange());
            assert_eq!((from.subrange(), to.subrange()), (call.subrange(), call.subrange()));
            assert_eq!(from.len(), call.subrange().range.iter().product::<usize>());
            assert_eq!(call.global(), Subrange { offset: [0; N], range });
            copy(call, from, to)
        })?;
        Ok(queue.fence(&to)?.wait()?.into_vec())
    };
    let copy = config.run(copy_of).unwrap();
    let mut calls = std::mem::take(&mut *calls.lock().unwrap());
    calls.sort_by_key(|call| call.offset);
    (copy, calls)
}

#[test]
fn each_chunk_is_called_for_once_and_sees_its_part() {
    for (nodes, devices) in CLUSTERS {
        let chunks = nodes * devices;
        let (copy, calls) = copied(on(nodes, devices), [37], Hint::BandSplit);
        assert_eq!(copy, (0..37).collect::<Vec<_>>(), "{nodes} x {devices}");
        assert_eq!(calls.len(), chunks);
        let mut end = 0;
        for call in calls {
            assert_eq!(call.offset[0], end, "side by side");
            end += call.range[0];
        }
        assert_eq!(end, 37);
        for hint in [Hint::BandSplit, Hint::TiledSplit, Hint::SplitAlong(1)] {
            let (copy, calls) = copied(on(nodes, devices), [12, 7], hint);
            assert_eq!(copy, (0..84).collect::<Vec<_>>(), "{nodes} x {devices}, {hint:?}");
            assert_eq!(calls.len(), chunks, "{hint:?}");
            let (copy, _) = copied(on(nodes, devices), [6, 5, 8], hint);
            assert_eq!(copy, (0..240).collect::<Vec<_>>(), "{nodes} x {devices}, {hint:?}");
        }
        let (_, calls) = copied(on(nodes, devices), [48], Hint::Oversubscribe(3));
        assert_eq!(calls.len(), chunks * chunks_of_a_device(3), "{nodes} x {devices}");
    }
}

/// How many chunks a device has that is to be oversubscribed with some 48 items: CPUs take each, and GPUs
/// merge those that are too small to be worth a launch.
fn chunks_of_a_device(asked: usize) -> usize {
    if devices_are_gpus() { 1 } else { asked }
}

/// Whether devices are GPUs here, which have streams.
fn devices_are_gpus() -> bool {
    let found = Arc::new(Mutex::new(None));
    let look = |queue: &Queue| {
        let (one, found) = (queue.buffer::<u32, 1>(1), found.clone());
        queue.task("look").device_call(1, one.write(one_to_one()), move |call, _| {
            *found.lock().unwrap() = Some(call.stream().is_ok());
            Ok(())
        })?;
        Ok(())
    };
    on(1, 1).run(look).unwrap();
    let found = found.lock().unwrap().take();
    found.expect("the call was made")
}

#[test]
fn little_work_goes_to_few_devices() {
    assert_eq!(copied(on(3, 2), [1], Hint::BandSplit).0, [0]);
    assert_eq!(copied(on(3, 2), [1], Hint::BandSplit).1.len(), 1);
    assert_eq!(copied(on(3, 2), [2, 3], Hint::BandSplit).1.len(), 2);
    assert_eq!(copied(on(2, 2), [0], Hint::BandSplit), (vec![], vec![]));
    assert_eq!(copied(on(2, 2), [4, 0], Hint::BandSplit), (vec![], vec![]));
}

#[test]
fn calls_stand_between_kernels_in_the_graph() {
    let program = |queue: &Queue| {
        let (mut x, mut y) = (numbered(queue, [9, 4])?, queue.buffer::<u32, 2>([9, 4]));
        for _ in 0..5 {
            // From another device, or another node, at each end of a chunk.
            let accesses = (x.read(neighborhood([1, 0])), y.write(one_to_one()));
            queue.task("up").device_call([9, 4], accesses, |call, views| {
                copy_rows(call, views, |[row, column]| [(row + 1).min(8), column])
            })?;
            add_one(queue, &y)?;
            std::mem::swap(&mut x, &mut y);
        }
        Ok(queue.fence(&x)?.wait()?.into_vec())
    };
    let mut expected: Vec<u32> = (0..36).collect();
    for _ in 0..5 {
        let below = |at: usize| if at < 32 { at + 4 } else { at };
        expected = (0..36).map(|at| expected[below(at)] + 1).collect();
    }
    let three = on(3, 1).device_memory(DeviceMemory::Host);
    assert_eq!(three.run(program).unwrap(), expected);
    for (nodes, devices) in CLUSTERS {
        assert_eq!(on(nodes, devices).run(program).unwrap(), expected, "{nodes} x {devices}");
    }
}

/// By a kernel of one source, for CPUs and GPUs.
fn add_one(queue: &Queue, x: &Buffer<u32, 2>) -> celerity::Result<()> {
    let access = x.read_write(one_to_one());
    queue.task("add").launch(x.range(), access, celerity_example_kernels::calls::add_one)?;
    Ok(())
}

#[test]
fn views_say_how_their_part_lies_in_the_allocation() {
    on(1, 1)
        .run(|queue| {
            let matrix = numbered(queue, [6, 10])?;
            let inner = fixed(Subrange { offset: [2, 3], range: [3, 4] });
            // All of it is on the device first, so that the part lies in a larger allocation.
            add_one(queue, &matrix)?;
            queue.task("look").device_call(1, matrix.read(inner), |_, part| {
                assert_eq!(part.subrange(), Subrange { offset: [2, 3], range: [3, 4] });
                assert_eq!(part.allocation(), Subrange { offset: [0, 0], range: [6, 10] });
                assert_eq!((part.strides(), part.len(), part.span()), ([10, 1], 12, 24));
                assert!(!part.is_contiguous() && !part.is_empty());
                assert_eq!(part.boxes().collect::<Vec<_>>(), [part.subrange()]);
            })?;
            let rows = fixed(Subrange { offset: [2, 0], range: [3, 10] });
            queue.task("rows").device_call(1, matrix.read(rows), |_, part| {
                assert!(part.is_contiguous());
                assert_eq!((part.len(), part.span()), (30, 30));
            })?;
            let nothing = fixed(Subrange { offset: [2, 0], range: [0, 10] });
            queue.task("nothing").device_call(1, matrix.read(nothing), |_, part| {
                assert!(part.is_empty() && part.is_contiguous());
                assert_eq!((part.len(), part.span(), part.boxes().count()), (0, 0, 0));
            })?;
            let axes = matrix.read(neighborhood_along_axes([1, 1]));
            let task = queue.task("axes").offset([2, 2]);
            task.device_call([1, 1], axes, |call, part| {
                assert!(part.boxes().count() > 1 && part.len() == 5);
                assert_eq!(part.subrange(), Subrange { offset: [1, 1], range: [3, 3] });
                assert!(!part.is_contiguous());
                if call.stream().is_err() {
                    let error = part.on_host().map(drop).unwrap_err();
                    assert!(matches!(error, DeviceCallError::SeveralBoxes { boxes: 2.. }));
                }
            })?;
            queue.barrier()
        })
        .unwrap();
}

#[test]
fn a_scalar_is_a_part_of_one_element() {
    let value = on(2, 1).run(|queue| {
        let (from, to) = (queue.buffer_from([], vec![7_u32])?, queue.buffer::<u32, 0>([]));
        let accesses = (from.read(all()), to.write(all()));
        queue.task("scalar").device_call(1, accesses, |call, (from, to)| {
            assert_eq!((from.len(), from.span(), from.strides()), (1, 1, []));
            copy(call, from, to)
        })?;
        Ok(queue.fence(&to)?.wait()?[[]])
    });
    assert_eq!(value.unwrap(), 7);
}

#[test]
fn what_several_chunks_would_write_is_refused() {
    let refused = on(2, 1).run(|queue| {
        let sum = queue.buffer::<u32, 0>([]);
        queue.task("sum").device_call(8, sum.write(all()), |_, _| {})?;
        Ok(())
    });
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("\"sum\"") && text.contains("device_calls.rs"), "{text}");
}

/// The error of a run whose call does `body` on the second half of eight items.
fn failure<R: celerity::HostOutcome + 'static>(
    nodes: usize,
    devices: usize,
    body: impl Fn() -> R + Copy + Send + Sync + 'static,
    good: impl Fn() -> R + Copy + Send + Sync + 'static,
) -> RunError {
    let result = on(nodes, devices).run(|queue| {
        let x = queue.buffer_from(8, vec![0_u32; 8])?;
        queue.task("break").device_call(8, x.read_write(one_to_one()), move |call, _| {
            if call.subrange().offset[0] == 4 { body() } else { good() }
        })?;
        queue.barrier()
    });
    match result {
        Err(Error::Run(error)) => *error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_names_task_device_and_chunk() {
    let fails = || Err(Boxed::from(std::io::Error::other("status 7")));
    for (nodes, devices, place) in [(1, 2, "N0, D1"), (2, 1, "N1, D0")] {
        let error = failure(nodes, devices, fails, || Ok(()));
        let text = error.to_string();
        let RunError::TaskFailed { task, error, device, .. } = &error else { panic!("{error}") };
        assert!(task.contains("\"break\" at ") && task.contains("device_calls.rs"), "{task}");
        assert!(device.is_some());
        let expected = format!(" failed on {place}: chunk [4..8]: status 7");
        assert!(text.ends_with(&expected), "{text}");
        let failed = error.downcast_ref::<DeviceCallFailed>().expect("a call has failed");
        assert!(failed.error.downcast_ref::<std::io::Error>().is_some());
    }
}

#[test]
fn a_panic_names_task_device_and_chunk() {
    let panics = || panic!("no plan for {} items", 4);
    for (nodes, devices, place) in [(1, 2, "N0, D1"), (2, 1, "N1, D0")] {
        let text = failure::<()>(nodes, devices, panics, || ()).to_string();
        let expected = format!(" panicked on {place}: chunk [4..8]: no plan for 4 items");
        assert!(text.contains("\"break\" at ") && text.ends_with(&expected), "{text}");
    }
}

#[test]
fn a_call_for_gpus_says_on_cpus_what_it_lacks() {
    let result = on(1, 1).run(|queue| {
        queue.task("gpu").device_call(1, (), |call, ()| {
            call.stream()?;
            Ok(())
        })?;
        queue.barrier()
    });
    match result {
        Ok(()) if cfg!(feature = "cuda") => {}
        Ok(()) => panic!("a stream of CPU threads"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("made of CPU threads and has no stream"), "{text}");
        }
    }
}
