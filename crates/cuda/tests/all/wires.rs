//! Wires between fake GPUs of different nodes: what goes by them, and what is said where they are not.

use std::sync::{Arc, Mutex};

use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, Gpu, Gpus, WindowConfig};
use celerity_executor::{ClusterConfig, Run, RunError, Wires};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::run::run_on;
use celerity_testkit::twin::interpret;

use crate::one_host::OneHost;

const WINDOWS: WindowConfig = WindowConfig { slots: 2, slot_bytes: 1 << 16, least: 1 };

fn devices(fake: FakeDriver, nodes: usize, windows: WindowConfig) -> CudaDevices {
    let gpus = Gpus::new(Arc::new(fake), None).unwrap();
    let all: Vec<_> = (0..gpus.infos().len()).map(|gpu| Gpu::from_slot(gpu as u16)).collect();
    let config = CudaConfig { windows, growing: 0..0, least_chunk: 0, ..CudaConfig::default() };
    CudaDevices::deal(&gpus, &all, 0..nodes, true, &config).unwrap()
}

/// What begins the run of a program that does nothing, and what the run says.
fn begin(fake: FakeDriver, wires: Wires) -> (Result<(), RunError>, Vec<String>) {
    let said = Mutex::new(Vec::new());
    let config = ClusterConfig { nodes: 2, wires, ..ClusterConfig::default() };
    let run = Run::new(&config).on(OneHost { nodes: 2 }).with_devices(devices(fake, 2, WINDOWS));
    let run = run.informing(|text| said.lock().unwrap().push(text.to_owned()));
    let outcome = run.execute(|_| Ok::<_, RunError>(()));
    (outcome, said.into_inner().unwrap())
}

#[test]
fn what_is_asked_for_by_name_and_cannot_be_had_is_an_error() {
    let (outcome, said) = begin(FakeDriver::new(2, 1 << 24), Wires::Ipc);
    assert_eq!((outcome, said.len()), (Ok(()), 0));
    let (outcome, said) = begin(FakeDriver::new(2, 1 << 24).without_sharing(), Wires::Ipc);
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("do not share memory") && error.contains("CELERITY_WIRES"), "{error}");
    assert_eq!(said.len(), 0);
}

#[test]
fn what_cannot_be_had_is_said_once() {
    let (outcome, said) = begin(FakeDriver::new(2, 1 << 24).without_sharing(), Wires::Auto);
    assert_eq!(outcome, Ok(()));
    let [text] = &said[..] else { panic!("{said:?}") };
    assert!(text.contains("host memory") && text.contains("do not share memory"), "{text}");
    let (outcome, said) = begin(FakeDriver::new(2, 1 << 24).without_sharing(), Wires::Host);
    assert_eq!((outcome, said.len()), (Ok(()), 0));
}

/// Without room for windows there are none.
#[test]
fn windows_that_have_no_room_are_done_without() {
    let (outcome, said) = begin(FakeDriver::new(2, 1 << 10), Wires::Auto);
    assert_eq!((outcome, said.len()), (Ok(()), 1));
}

/// Whole programs, also on GPUs that nodes share, and with slots so few that pieces wait.
#[test]
fn programs_compute_what_the_twin_computes() {
    for (name, program) in corpus::all(4) {
        for (nodes, per_node, gpus) in [(2, 1, 2), (3, 1, 2), (2, 2, 4)] {
            let configuration =
                Configuration { wires_from: 1, ..Configuration::new(nodes, per_node) };
            let (fake, kernels) = FakeDriver::new(gpus, 1 << 28).hosting_kernels();
            let devices = Mutex::new(Some(devices(fake, nodes, WINDOWS)));
            let place = |config: &ClusterConfig| {
                let config = ClusterConfig { wires: Wires::Ipc, ..config.clone() };
                let devices = devices.lock().unwrap().take().expect("a program runs once");
                Run::new(&config).on(OneHost { nodes }).with_devices(devices)
            };
            let found = run_on(&program, &configuration, place, |_, kernel| kernels.wrap(kernel));
            let expected = interpret(&program);
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(found.iter().all(|observed| *observed == expected), "{name} on {nodes}");
        }
    }
}
