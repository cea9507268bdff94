//! How long things take, for the documentation. Nothing is judged.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use celerity_cuda::{CudaConfig, Driver, Gpu, Image, LaunchSize, NvidiaDriver};
use celerity_executor::{Backend, DeviceKernel, Time};
use celerity_idag::MemoryId;
use celerity_regions::{Box3, Region};

use crate::kernels::{kernel, module};
use crate::node::{Node, device_memory, kernel_job, kernel_lane};
use crate::{Outcome, Suite};

const EMPTY: &str =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }";

fn micros(time: Duration, count: u32) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(count)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Kernels that follow each other on one stream, with an event behind every
/// `batch` of them and nothing else.
fn bare(count: u32, batch: u32) -> Result<f64, celerity_cuda::DriverError> {
    let (driver, gpu) = (NvidiaDriver::new()?, Gpu::from_slot(0));
    driver.adopt_thread(gpu)?;
    let (stream, event) = (driver.create_stream(gpu)?, driver.create_event(gpu, false)?);
    let module = driver.load(gpu, Image::Ptx(EMPTY))?;
    let function = driver.function(module, "empty")?;
    let size = LaunchSize { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 };
    let mut samples = Vec::new();
    for _ in 0..7 {
        driver.synchronize(stream)?;
        let start = Instant::now();
        for index in 1..=count {
            // SAFETY: the kernel has no parameters and touches no memory.
            unsafe { driver.launch(stream, function, size, &[])? };
            if index % batch == 0 {
                driver.record(event, stream)?;
            }
        }
        driver.synchronize(stream)?;
        samples.push(micros(start.elapsed(), count));
    }
    // SAFETY: this is their last use.
    unsafe {
        driver.destroy_event(event);
        driver.destroy_stream(stream);
    }
    Ok(median(samples))
}

/// The same through the backend: µs per kernel in all, and of that in the
/// caller's thread.
fn chain(suite: &Suite, batch: usize, count: u32) -> Result<(f64, f64), String> {
    let config = CudaConfig { batch, ..CudaConfig::default() };
    let mut node = Node::new(&suite.gpus, 1, &config)?;
    let one = Box3::from_range([1]);
    let kernel: Arc<dyn DeviceKernel> =
        Arc::new(kernel(&module(), "nothing", 1, one).with_block([32, 1, 1], 1));
    node.issue(kernel_lane(0), kernel_job(kernel.clone(), one, &[]));
    node.finish()?;
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..count {
            node.issue(kernel_lane(0), kernel_job(kernel.clone(), one, &[]));
        }
        own.push(micros(start.elapsed(), count));
        node.finish()?;
        all.push(micros(start.elapsed(), count));
    }
    Ok((median(all), median(own)))
}

pub(crate) fn launches(suite: &Suite) -> Outcome {
    let count = 10_000;
    let bare = |batch| bare(count, batch).map_err(|error| error.to_string());
    let alone = bare(u32::MAX)?;
    println!("  bare stream: {alone:.2} µs per kernel");
    for batch in [1, 4, 16, 64] {
        println!("  with an event for every {batch}: {:.2} µs", bare(batch)?);
    }
    for batch in [1, 4, 8, 16, 32, 64, 128] {
        let (all, own) = chain(suite, batch, count)?;
        let ratio = all / alone;
        println!(
            "  backend, batches of {batch}: {all:.2} µs per kernel ({ratio:.2} × bare), {own:.2} µs \
             of the caller's"
        );
    }
    println!("  bare stream again: {:.2} µs per kernel", bare(u32::MAX)?);
    Ok(())
}

/// What a kernel of a known length takes longer, from being issued to being
/// reported.
fn delay(suite: &Suite, spin: Duration, length: Duration) -> Result<f64, String> {
    let config = CudaConfig { spin, ..CudaConfig::default() };
    let mut node = Node::new(&suite.gpus, 1, &config)?;
    let one = Box3::from_range([1]);
    let nanoseconds = u64::try_from(length.as_nanos()).expect("short");
    let kernel = kernel(&module(), "linger", 1, one).with_block([1; 3], 1);
    let kernel: Arc<dyn DeviceKernel> = Arc::new(kernel.with_value(nanoseconds));
    let mut samples = Vec::new();
    for _ in 0..51 {
        // Asleep, if it ever sleeps.
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        node.issue(kernel_lane(0), kernel_job(kernel.clone(), one, &[]));
        node.finish()?;
        samples.push(micros(start.elapsed(), 1) - length.as_secs_f64() * 1e6);
    }
    Ok(median(samples))
}

/// Allocating and freeing so many bytes once, and again.
fn allocation(node: &mut Node, memory: MemoryId, bytes: u64) -> Result<(f64, f64), String> {
    let extent = Box3::new([0; 3], [bytes, 1, 1]);
    let once = |node: &mut Node| {
        let start = Instant::now();
        let allocation = node.alloc(memory, extent, 1)?;
        node.free(allocation);
        Ok::<_, String>(micros(start.elapsed(), 1))
    };
    let first = once(node)?;
    let again = (0..21).map(|_| once(node)).collect::<Result<Vec<_>, _>>()?;
    Ok((first, median(again)))
}

pub(crate) fn memory_and_waking(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    for (name, memory) in [("pinned", MemoryId::HOST), ("device", device_memory(0))] {
        for mib in [1, 64] {
            let (first, again) = allocation(&mut node, memory, mib << 20)?;
            println!("  {name} memory, {mib} MiB: {first:.0} µs once, {again:.1} µs again");
        }
    }
    drop(node);
    for (what, spin) in
        [("looking", Duration::from_secs(1)), ("with naps", CudaConfig::default().spin)]
    {
        for length in [20, 200, 1000, 10_000] {
            let delay = delay(suite, spin, Duration::from_micros(length))?;
            println!("  {what}: a kernel of {length} µs takes {delay:.1} µs longer");
        }
    }
    Ok(())
}

/// 64 MiB in rows of different lengths, from twice as much memory.
pub(crate) fn strided_copies(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let host = MemoryId::HOST;
    let ways =
        [(device_memory(0), host), (host, device_memory(0)), (device_memory(0), device_memory(0))];
    for row in [4, 16, 64, 256, 1024, 16384] {
        let rows = (64 << 20) / row;
        let (wide, narrow) =
            (Box3::new([0; 3], [rows, 2 * row, 1]), Box3::new([0; 3], [rows, row, 1]));
        let mut rates = Vec::new();
        for (from, to) in ways {
            let source = node.alloc(from, wide, 1)?;
            let target = node.alloc(to, narrow, 1)?;
            node.copy(source, target, narrow, 1)?;
            let mut samples = Vec::new();
            for _ in 0..5 {
                let start = Instant::now();
                node.copy(source, target, narrow, 1)?;
                samples.push((64 << 20) as f64 / start.elapsed().as_secs_f64() / 1e9);
            }
            node.free(source);
            node.free(target);
            rates.push(median(samples));
        }
        println!(
            "  rows of {row} bytes: to host {:.2}, from host {:.2}, within the GPU {:.1} GB/s",
            rates[0], rates[1], rates[2]
        );
    }
    Ok(())
}

/// Many small boxes, spread evenly over 16 MiB: in one job, and each in one of its own.
pub(crate) fn many_boxes(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 2)?;
    let (host, first, second) = (MemoryId::HOST, device_memory(0), device_memory(1));
    let ways = [(first, host), (host, first), (first, second)];
    let extent = Box3::from_range([16 << 20]);
    for (boxes, bytes) in
        [(16, 4), (64, 4), (256, 4), (1024, 4), (4096, 4), (4096, 64), (4096, 1024)]
    {
        let apart = (16 << 20) / boxes;
        let parts = (0..boxes).map(|nth| Box3::from_offset_range([nth * apart], [bytes]));
        let parts: Vec<Box3> = parts.collect();
        let region = Region::from_boxes(parts.iter().copied());
        let mut texts = Vec::new();
        for (from, to) in ways {
            let (source, target) = (node.alloc(from, extent, 1)?, node.alloc(to, extent, 1)?);
            let mut samples = [Vec::new(), Vec::new()];
            for _ in 0..9 {
                let start = Instant::now();
                node.copy(source, target, region.clone(), 1)?;
                samples[0].push(start.elapsed().as_secs_f64() * 1e6);
                let start = Instant::now();
                parts.iter().for_each(|part| node.issue_copy(source, target, *part, 1));
                node.finish()?;
                samples[1].push(start.elapsed().as_secs_f64() * 1e6);
            }
            node.free(source);
            node.free(target);
            let [together, apart] = samples.map(median);
            texts.push(format!("{together:.1} ({apart:.0})"));
        }
        println!(
            "  {boxes} boxes of {bytes} bytes, together (and each by itself): to host {}, from host {}, to another GPU {} us",
            texts[0], texts[1], texts[2]
        );
    }
    Ok(())
}

/// What the runtime's clock says about a kernel of a known length.
pub(crate) fn spans(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let since = Instant::now();
    node.backend.time_jobs(Arc::new(move || Time::elapsed(since)));
    let one = Box3::from_range([1]);
    let kernel = kernel(&module(), "linger", 1, one).with_block([1; 3], 1).with_value(500_000_u64);
    let kernel: Arc<dyn DeviceKernel> = Arc::new(kernel);
    for _ in 0..3 {
        let issued = Time::elapsed(since);
        node.issue(kernel_lane(0), kernel_job(kernel.clone(), one, &[]));
        node.finish()?;
        let (seen, span) = (Time::elapsed(since), node.span.ok_or("no span")?);
        let (wait, length, late) =
            (span.start.since(issued), span.end.since(span.start), seen.since(span.end));
        println!(
            "  500 µs of work: began {wait:.1?} after its issue, took {length:.1?}, seen {late:.1?} later"
        );
    }
    Ok(())
}
