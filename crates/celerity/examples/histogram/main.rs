//! How often each byte, and each pair of neighbouring bytes, occurs in a file, on every node and
//! device there is.
//!
//! ```text
//! cargo run --release --example histogram -- --verify Cargo.lock
//! CELERITY_NODES=2 cargo run --release --example histogram -- --random 100000000
//! cargo run --release --example histogram -- --random 100000000 --kernel group
//! ```
//!
//! A histogram is a reduction into many elements: here into 256 and into 256². From the counts
//! follows how many bits a byte holds (its entropy), alone and when the byte before it is known.
//!
//! In groups, a kernel counts in memory that the group shares, and updates the counts of its device; those of all
//! devices are summed once.

#[path = "../support/stopwatch.rs"]
mod stopwatch;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use celerity::Sum;
use celerity::prelude::*;
use celerity_example_kernels::bytes::{CROWD, PAIRS, WIDE, count_byte, count_pairs, sum_counts};
use clap::{Parser, ValueEnum};
use image::{GrayImage, ImageFormat, Luma};

use stopwatch::{Measure, Measured, Stopwatch, cluster};
use support::{OutputError, check_writable, progress_bar};

/// Groups that a device has at most: twice as many as an H100 has multiprocessors, each with room for one.
const GROUPS: usize = 264;

/// Bytes for which a group is worth its beginning and end, in which it goes through its counts of all pairs.
const WORTHWHILE: usize = 1 << 16;

/// Counts the bytes of a file, and pairs of neighbouring bytes, and draws how often each pair
/// occurs.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the result does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// The file. Without one, bytes are made up.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// So many made-up bytes.
    #[arg(long, default_value_t = 1_000_000, conflicts_with = "file")]
    random: usize,
    /// Counts so many times.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: u32,
    /// How the kernel is written.
    #[arg(long, value_enum, default_value_t = Kernel::Item)]
    kernel: Kernel,
    /// The picture: a row for each first byte of a pair, a column for each second one.
    #[arg(long, value_name = "FILE.png", default_value = "histogram.png")]
    out: PathBuf,
    /// Compares with a sequential program.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Called for each byte; reduces.
    Item,
    /// Called for groups of items with many bytes each, which count pairs together in 128 KiB that they share.
    Group,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot read \"{}\": {source}; choose a file that can be read", .path.display())]
    Input { path: PathBuf, source: std::io::Error },
    #[error("there are no bytes to count; choose another file, or more --random ones")]
    Empty,
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error("verification failed: {what} occurs {actual} times instead of {expected}")]
    Mismatch { what: String, actual: u64, expected: u64 },
}

/// What is counted, and how long it took.
struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    bytes: Vec<u64>,
    /// Row-major: the first byte of a pair is the row.
    pairs: Vec<u64>,
    elapsed: Duration,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("histogram: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let text = match &options.file {
        Some(path) => {
            let failure = |source| Failure::Input { path: path.clone(), source };
            std::fs::read(path).map_err(failure)?
        }
        None => made_up(options.random),
    };
    if text.is_empty() {
        return Err(Failure::Empty);
    }
    let outcome = celerity::run(|queue| count(queue, options, &text))?;
    if !outcome.is_root {
        return Ok(());
    }
    save(&options.out, &outcome.pairs)?;
    report(options, &outcome, text.len());
    if options.verify {
        compare(&text, &outcome)?;
        println!("verified: every count equals that of the sequential program");
    }
    Ok(())
}

/// Bytes of which small ones are frequent, and neighbours alike.
fn made_up(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut last = 0_u8;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        last = (last / 2).wrapping_add((state as u8).trailing_zeros() as u8 * 20);
        last
    };
    (0..count).map(|_| next()).collect()
}

/// The program that every node runs.
fn count(queue: &Queue, options: &Options, text: &[u8]) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let stopwatch = Stopwatch::start(options.measure);
    let (bytes, pairs, elapsed) = match options.kernel {
        Kernel::Item => count_by_item(queue, options, text, stopwatch)?,
        Kernel::Group => count_in_groups(queue, options, text, stopwatch)?,
    };
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, bytes, pairs, elapsed })
}

/// Counts of bytes and of pairs, and how long they took.
type Counted = (Vec<u64>, Vec<u64>, Duration);

fn count_by_item(
    queue: &Queue,
    options: &Options,
    text: &[u8],
    mut stopwatch: Stopwatch,
) -> celerity::Result<Counted> {
    let len = text.len();
    let text = queue.buffer_from(len, text)?.named("text");
    let bytes = queue.buffer::<u64, 1>(256).named("bytes");
    let pairs = queue.buffer::<u64, 2>([256; 2]).named("pairs");
    repeat(queue, options, &mut stopwatch, || {
        let accesses = (text.read(neighborhood([1])), bytes.reduce(Sum), pairs.reduce(Sum));
        queue.task("count").launch(len, accesses, count_byte {})?;
        Ok(())
    })?;
    let (bytes, pairs) = (queue.fence(&bytes)?, queue.fence(&pairs)?);
    let (bytes, pairs) = (bytes.wait()?.into_vec(), pairs.wait()?.into_vec());
    Ok((bytes, pairs, stopwatch.stop(queue)?))
}

/// Counts pairs, each device those of its part of the text. Bytes follow from pairs.
fn count_in_groups(
    queue: &Queue,
    options: &Options,
    text: &[u8],
    mut stopwatch: Stopwatch,
) -> celerity::Result<Counted> {
    let last = text.last().copied();
    let parts = queue.nodes() * queue.devices();
    let share = text.len().div_ceil(parts).next_multiple_of(WIDE);
    let groups = share.div_ceil(WORTHWHILE).min(GROUPS);
    let text = queue.buffer_from(text.len(), text)?.named("text");
    let counts = queue.buffer::<u64, 2>([parts, PAIRS]).named("counts");
    let pairs = queue.buffer::<u64, 1>(PAIRS).named("pairs");
    // The bytes of a chunk's parts, and the one behind, with which the last of them makes a pair.
    let parts_of_text = mapper("parts", move |chunk: Chunk<2>, [len]: [usize; 1]| {
        let first = (chunk.offset[0] * share).min(len);
        let end = ((chunk.offset[0] + chunk.range[0]) * share + 1).min(len);
        Subrange::new([first], [end - first])
    });
    repeat(queue, options, &mut stopwatch, || {
        counts.fill(0)?;
        let accesses = (counts.update(slice(1)), text.read(parts_of_text.clone()));
        let range = nd_range([parts, groups * CROWD], [1, CROWD]);
        queue.task("count").launch(range, accesses, count_pairs { share })?;
        Ok(())
    })?;
    let of_pair = per_dimension([Side::all(), Side::along(0)]);
    let accesses = (pairs.write(one_to_one()), counts.read(of_pair));
    queue.task("sum").launch(PAIRS, accesses, sum_counts {})?;
    let pairs = queue.fence(&pairs)?.wait()?.into_vec();
    // A byte is the first of a pair as often as it occurs, but for the last one of all.
    let mut bytes: Vec<u64> = pairs.chunks(256).map(|row| row.iter().sum()).collect();
    if let Some(last) = last {
        bytes[usize::from(last)] += 1;
    }
    Ok((bytes, pairs, stopwatch.stop(queue)?))
}

/// Takes a step as often as options say.
fn repeat(
    queue: &Queue,
    options: &Options,
    stopwatch: &mut Stopwatch,
    step: impl Fn() -> celerity::Result<()>,
) -> celerity::Result<()> {
    let bar = progress_bar(u64::from(options.steps), queue.is_root());
    for number in 0..options.steps {
        stopwatch.before_step(queue, u64::from(number))?;
        step()?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

fn compare(text: &[u8], outcome: &Outcome) -> Result<(), Failure> {
    let (mut bytes, mut pairs) = (vec![0_u64; 256], vec![0_u64; 256 * 256]);
    text.iter().for_each(|&byte| bytes[usize::from(byte)] += 1);
    for pair in text.windows(2) {
        pairs[usize::from(pair[0]) * 256 + usize::from(pair[1])] += 1;
    }
    let byte = |at: usize| format!("byte {at}");
    let pair = |at: usize| format!("pair {}, {}", at / 256, at % 256);
    differing(&outcome.bytes, &bytes, byte)?;
    differing(&outcome.pairs, &pairs, pair)
}

fn differing(
    actual: &[u64],
    expected: &[u64],
    what: impl Fn(usize) -> String,
) -> Result<(), Failure> {
    match (0..expected.len()).find(|&at| actual[at] != expected[at]) {
        None => Ok(()),
        Some(at) => {
            let (actual, expected) = (actual[at], expected[at]);
            Err(Failure::Mismatch { what: what(at), actual, expected })
        }
    }
}

/// Bits per value of what was counted so often.
fn entropy(counts: &[u64]) -> f64 {
    let all: u64 = counts.iter().sum();
    let share = |&count: &u64| count as f64 / all as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(share);
    shares.map(|share| -share * share.log2()).sum()
}

/// Draws pairs, the more frequent the brighter.
fn save(path: &Path, pairs: &[u64]) -> Result<(), OutputError> {
    let most = pairs.iter().copied().max().unwrap_or_default().max(1) as f64;
    let picture = GrayImage::from_fn(256, 256, |x, y| {
        let count = pairs[(y * 256 + x) as usize] as f64;
        Luma([(255.0 * (1.0 + count).ln() / (1.0 + most).ln()) as u8])
    });
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}

fn report(options: &Options, outcome: &Outcome, len: usize) {
    let measured = Measured {
        program: "histogram",
        devices: outcome.nodes * outcome.devices,
        size: len,
        steps: u64::from(options.steps),
        elapsed: outcome.elapsed,
        work: len as f64,
        unit: "bytes",
    };
    let alone = entropy(&outcome.bytes);
    let known = entropy(&outcome.pairs) - alone;
    println!(
        "histogram: {len} bytes of {alone:.3} bits each, {known:.3} if the one before is known, \
         {cluster}, {seconds:.3} s, {rate:.1} million bytes/s, {out}",
        known = known.max(0.0),
        cluster = cluster(outcome.nodes, outcome.devices),
        seconds = outcome.elapsed.as_secs_f64(),
        rate = measured.rate(options.measure) / 1e6,
        out = options.out.display(),
    );
    let counts = [&outcome.bytes, &outcome.pairs].map(|counts| bytemuck::cast_slice(counts));
    measured.print(options.measure, &counts);
}
