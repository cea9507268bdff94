//! Every node writes its part of a matrix into its place of one file, and reads it again: input
//! and output that no single node has to hold, or to wait for.
//!
//! ```text
//! cargo run --release --example distr_io -- --verify
//! CELERITY_NODES=4 cargo run --release --example distr_io -- --rows 4096 --columns 2048
//! mpirun -n 4 target/release/examples/distr_io --verify     # built with --features mpi
//! ```
//!
//! The file is the matrix, row by row, each element eight bytes, the least first. Nodes that are
//! processes of several hosts need a file system that these share.

#[path = "../support/stopwatch.rs"]
#[allow(dead_code, reason = "other examples take times")]
mod stopwatch;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "other examples draw bars")]
mod support;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use celerity::prelude::*;
use celerity_example_kernels::hash::{fill_placed, placed};
use clap::Parser;

use stopwatch::cluster;
use support::{OutputError, check_writable};

/// Bytes per element.
const ELEMENT: u64 = size_of::<u64>() as u64;

/// Writes a matrix to one file from all nodes, and reads it into another one.
///
/// CELERITY_NODES and CELERITY_DEVICES choose how many nodes and devices share
/// the work; the file does not depend on them.
#[derive(Parser, Debug)]
struct Options {
    /// Rows of the matrix: nodes share them out.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Its columns.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    columns: u32,
    /// Where the file is to be; it stays there.
    #[arg(long, default_value = "distr_io.bin")]
    out: PathBuf,
    /// Compares the file with what it should be, byte by byte, and what was read from it, too.
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] celerity::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot read \"{}\": {source}", .path.display())]
    Input { path: PathBuf, source: io::Error },
    #[error("verification failed: the file has {actual} bytes instead of {expected}")]
    Length { actual: usize, expected: usize },
    #[error("verification failed: byte {at} of the file is {actual} instead of {expected}")]
    Byte { at: usize, actual: u8, expected: u8 },
    #[error("verification failed: {0} elements that were read are not what was written")]
    Elements(usize),
}

struct Outcome {
    is_root: bool,
    nodes: usize,
    devices: usize,
    /// What has been read from the file.
    read: Vec<u64>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("distr_io: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    check_writable(&options.out)?;
    let outcome = celerity::run(|queue| write_and_read(queue, options))?;
    if !outcome.is_root {
        return Ok(());
    }
    let bytes = ELEMENT * u64::from(options.rows) * u64::from(options.columns);
    println!(
        "distr_io: {bytes} bytes in \"{}\", written and read by {}",
        options.out.display(),
        cluster(outcome.nodes, outcome.devices)
    );
    if options.verify { verify(options, &outcome) } else { Ok(()) }
}

/// The program that every node runs.
fn write_and_read(queue: &Queue, options: &Options) -> celerity::Result<Outcome> {
    if options.verify {
        queue.require_results("--verify")?;
    }
    let range = [options.rows as usize, options.columns as usize];
    let path: Arc<Path> = options.out.as_path().into();
    let written = queue.buffer::<u64, 2>(range).named("written");
    queue.task("fill").launch(range, written.write(one_to_one()), fill_placed {})?;

    // One node makes the file, and all others wait for that; then all write at the same time.
    let (file, done) = (path.clone(), queue.buffer::<u8, 1>(queue.nodes()).named("done"));
    let accesses = (written.read(rows_of_node()), done.write(one_to_one()));
    queue.host_task("write").collective("file", accesses, move |partition, (rows, mut done)| {
        let node = partition.node();
        if node == 0 {
            File::create(&file)?.set_len(ELEMENT * (range[0] * range[1]) as u64)?;
        }
        partition.communicator().barrier()?;
        let first = share(node, partition.nodes(), range[0]);
        let mut file = OpenOptions::new().write(true).open(&file)?;
        file.seek(SeekFrom::Start(ELEMENT * (first * range[1]) as u64))?;
        for row in rows.rows() {
            let bytes: Vec<u8> = row.iter().flat_map(|element| element.to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        done[node] = 1;
        Ok(())
    })?;

    // Whoever reads the file reads from all nodes that they have written it. Parts are others than
    // those of the nodes that have: two on each.
    let read = queue.buffer::<u64, 2>(range).named("read");
    let task = queue.host_task("read").distributed(range).hint(Hint::Oversubscribe(2));
    let accesses = (read.write(one_to_one()), done.read(all()));
    task.submit(accesses, move |partition, (mut rows, _done)| {
        let Subrange { offset: [first, _], range: [count, columns] } = partition.subrange();
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(ELEMENT * (first * columns) as u64))?;
        let mut bytes = vec![0; columns * size_of::<u64>()];
        for row in first..first + count {
            file.read_exact(&mut bytes)?;
            let elements = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            elements.enumerate().for_each(|(column, element)| rows[[row, column]] = element);
        }
        Ok(())
    })?;
    let read = queue.fence(&read)?.wait()?.into_vec();
    let (nodes, devices) = (queue.nodes(), queue.devices());
    Ok(Outcome { is_root: queue.is_root(), nodes, devices, read })
}

/// The first of `rows` rows that belongs to a node.
fn share(node: usize, nodes: usize, rows: usize) -> usize {
    node * rows / nodes
}

/// From nodes to their rows, all columns of them.
fn rows_of_node() -> celerity::CustomMapper<1, 2> {
    mapper("rows of node", |chunk: Chunk<1>, [rows, columns]: [usize; 2]| {
        let nodes = chunk.global.range[0];
        let first = share(chunk.offset[0], nodes, rows);
        let end = share(chunk.offset[0] + chunk.range[0], nodes, rows);
        Subrange { offset: [first, 0], range: [end - first, columns] }
    })
}

/// Compares with what a sequential program writes.
fn verify(options: &Options, outcome: &Outcome) -> Result<(), Failure> {
    let (rows, columns) = (u64::from(options.rows), u64::from(options.columns));
    let expected: Vec<u64> =
        (0..rows).flat_map(|row| (0..columns).map(move |column| placed([row, column]))).collect();
    let bytes: Vec<u8> = expected.iter().flat_map(|element| element.to_le_bytes()).collect();
    let actual = std::fs::read(&options.out)
        .map_err(|source| Failure::Input { path: options.out.clone(), source })?;
    if actual.len() != bytes.len() {
        return Err(Failure::Length { actual: actual.len(), expected: bytes.len() });
    }
    if let Some(at) = (0..bytes.len()).find(|&at| actual[at] != bytes[at]) {
        return Err(Failure::Byte { at, actual: actual[at], expected: bytes[at] });
    }
    println!("verified: the file is that of a sequential program, byte by byte");
    let wrong = outcome.read.iter().zip(&expected).filter(|(one, other)| one != other).count();
    match wrong {
        0 => println!("verified: what was read from it is what was written"),
        wrong => return Err(Failure::Elements(wrong)),
    }
    Ok(())
}
