//! What only GPUs can show: copies, kernels and errors of the backend on the
//! machine's own GPUs, and how long things take there.
//!
//! One binary for a machine that has a driver and no Rust. It exits with 0 if
//! everything passed. Without GPUs it says so, and fails. Arguments select
//! cases by parts of their names; `--compile` instead compiles all kernels, for
//! which a compiler is enough.

use std::process::ExitCode;
use std::sync::Arc;

use celerity_cuda::{Gpus, NvidiaDriver, Nvrtc, NvrtcConfig};

mod copies;
mod errors;
mod growth;
mod kernels;
mod node;
mod programs;
mod timing;

/// What a case says if it fails.
type Outcome = Result<(), String>;

/// What all cases share.
struct Suite {
    gpus: Arc<Gpus>,
    /// The same GPUs, for kernels that check their indices.
    checked: Arc<Gpus>,
}

type Case = (&'static str, fn(&Suite) -> Outcome);

/// In this order: the last leaves a GPU behind that cannot be used any more.
const CASES: [Case; 28] = [
    ("copies/host_and_device", copies::host_and_device),
    ("copies/within_a_device", copies::within_a_device),
    ("copies/between_devices", copies::between_devices),
    ("copies/pageable_memory", copies::pageable_memory),
    ("copies/many_boxes", copies::many_boxes),
    ("copies/many_boxes_of_pageable_memory", copies::many_boxes_of_pageable_memory),
    ("kernels/ptx", kernels::ptx),
    ("kernels/one_dimension", kernels::one_dimension),
    ("kernels/two_dimensions", kernels::two_dimensions),
    ("kernels/three_dimensions", kernels::three_dimensions),
    ("kernels/groups", kernels::groups),
    ("kernels/lanes_keep_order", kernels::lanes_keep_order),
    ("memory/zeroed_again", kernels::memory_is_zeroed_again),
    ("memory/grows_in_place", growth::in_place),
    ("memory/grows_from_what_was_left", growth::from_what_was_left),
    ("memory/grows_between_devices", growth::between_devices),
    ("errors/code", errors::code),
    ("errors/out_of_memory", errors::out_of_memory),
    ("errors/out_of_bounds", errors::out_of_bounds),
    ("programs/halos", programs::halos),
    ("timing/launches", timing::launches),
    ("timing/whole_runtime", programs::chain),
    ("timing/strided_copies", timing::strided_copies),
    ("timing/many_boxes", timing::many_boxes),
    ("timing/spans", timing::spans),
    ("timing/growing", growth::timing),
    ("timing/memory_and_waking", timing::memory_and_waking),
    ("errors/fault", errors::fault),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.iter().any(|argument| argument == "--compile") {
        return exit_code(kernels::compile());
    }
    let suite = match Suite::new() {
        Ok(suite) => suite,
        Err(error) => return exit_code(Err(error)),
    };
    for info in suite.gpus.infos() {
        let (major, minor) = info.capability;
        println!("{}, {} MiB, compute capability {major}.{minor}", info.name, info.memory >> 20);
    }
    let selected = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
    let (mut passed, mut failed) = (0, 0);
    for (name, case) in CASES.iter().filter(|(name, _)| selected(name)) {
        match case(&suite) {
            Ok(()) => {
                passed += 1;
                println!("{name}: ok");
            }
            Err(what) => {
                failed += 1;
                println!("{name}: FAILED: {what}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Suite {
    fn new() -> Result<Self, String> {
        let driver = Arc::new(NvidiaDriver::new().map_err(|error| error.to_string())?);
        let gpus = |checked| {
            let config = NvrtcConfig { checked, ..NvrtcConfig::default() };
            let compiler = Nvrtc::new(&config).map_err(|error| error.to_string())?;
            let (major, minor) = compiler.version();
            println!("compiler {major}.{minor}");
            let gpus = Gpus::new(driver.clone(), Some(Arc::new(compiler)));
            gpus.map_err(|error| error.to_string())
        };
        Ok(Self { gpus: gpus(false)?, checked: gpus(true)? })
    }
}

/// Compares, and says where two arrays differ first.
fn expect_equal<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T]) -> Outcome {
    if found.len() != expected.len() {
        return Err(format!("{} elements, but {} expected", found.len(), expected.len()));
    }
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => Err(format!("at {at}: {:?}, but {:?} expected", found[at], expected[at])),
    }
}
