//! Wires between fake GPUs of different nodes: what goes by them, and what is said where they are not.

use std::sync::{Arc, Mutex};

use celerity_cpd::Collectives;
use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, FindNccl, Gpu, Gpus, WindowConfig};
use celerity_executor::{ClusterConfig, CollectiveTerms, Network, Run, RunError, Wires};
use celerity_testkit::check::Configuration;
use celerity_testkit::corpus;
use celerity_testkit::run::run_on;
use celerity_testkit::twin::interpret;

use crate::one_host::{ManyHosts, OneHost};

const WINDOWS: WindowConfig = WindowConfig { slots: 2, slot_bytes: 1 << 16, least: 1 };

fn devices(fake: FakeDriver, nodes: usize, windows: WindowConfig) -> CudaDevices {
    let nccl = Arc::new(fake.nccl());
    let find: FindNccl = Arc::new(move || Ok(nccl.clone()));
    devices_with(fake, find, nodes, windows)
}

fn devices_with(
    fake: FakeDriver,
    nccl: FindNccl,
    nodes: usize,
    windows: WindowConfig,
) -> CudaDevices {
    let gpus = Gpus::with_nccl(Arc::new(fake), None, nccl).unwrap();
    let all: Vec<_> = (0..gpus.infos().len()).map(|gpu| Gpu::from_slot(gpu as u16)).collect();
    let collectives = CollectiveTerms::default();
    let (growing, least_chunk) = (0..0, 0);
    let config = CudaConfig { windows, collectives, growing, least_chunk, ..CudaConfig::default() };
    CudaDevices::deal(&gpus, &all, 0..nodes, true, &config).unwrap()
}

/// What begins the run of a program that does nothing, and what the run says.
fn begin(fake: FakeDriver, wires: Wires) -> (Result<(), RunError>, Vec<String>) {
    begin_on(ONE_HOST, devices(fake, 2, WINDOWS), wires)
}

const ONE_HOST: OneHost = OneHost { nodes: 2 };

fn begin_on(
    network: impl Network + 'static,
    devices: CudaDevices,
    wires: Wires,
) -> (Result<(), RunError>, Vec<String>) {
    let said = Mutex::new(Vec::new());
    let config = ClusterConfig { nodes: 2, wires, ..ClusterConfig::default() };
    let run = Run::new(&config).on(network).with_devices(devices);
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

#[test]
fn collectives_of_gpus_are_there_or_it_is_said_why_not() {
    let no_library = || -> FindNccl { Arc::new(|| Err("there is no NCCL".to_owned())) };
    let devices_without = || devices_with(FakeDriver::new(2, 1 << 28), no_library(), 2, WINDOWS);
    let without = |wires| begin_on(ONE_HOST, devices_without(), wires);
    let apart = |devices| begin_on(ManyHosts { nodes: 2 }, devices, Wires::Auto);
    assert_eq!(begin(FakeDriver::new(2, 1 << 28), Wires::Nccl), (Ok(()), Vec::new()));
    assert_eq!(apart(devices(FakeDriver::new(2, 1 << 28), 2, WINDOWS)), (Ok(()), Vec::new()));
    assert_eq!(without(Wires::Ipc), (Ok(()), Vec::new()));
    assert_eq!(without(Wires::Auto), (Ok(()), Vec::new()), "on one host nobody asks");
    let (outcome, said) = apart(devices_without());
    assert_eq!(outcome, Ok(()));
    let [text] = &said[..] else { panic!("{said:?}") };
    assert_eq!(text, "collective operations go through host memory: there is no NCCL");
    let error = without(Wires::Nccl).0.unwrap_err().to_string();
    assert!(error.contains("there is no NCCL") && error.contains("CELERITY_WIRES"), "{error}");
    // Nodes that share a GPU are refused by the library.
    let (outcome, said) = apart(devices(FakeDriver::new(1, 1 << 28), 2, WINDOWS));
    assert_eq!((outcome, said.len()), (Ok(()), 1));
    assert!(said[0].contains("Duplicate GPU"), "{said:?}");
    let error = begin(FakeDriver::new(1, 1 << 28), Wires::Nccl).0.unwrap_err().to_string();
    assert!(error.contains("Duplicate GPU"), "{error}");
    // GPUs of a node have to reach each other.
    let (outcome, said) = apart(devices(FakeDriver::new(4, 1 << 28).without_links(), 2, WINDOWS));
    assert_eq!((outcome, said.len()), (Ok(()), 1));
    assert!(said[0].contains("reach each other"), "{said:?}");
}

/// Whole programs, also on GPUs that nodes share, and with slots so few that pieces wait; and with all
/// collective operations between GPUs.
#[test]
fn programs_compute_what_the_twin_computes() {
    for (name, program) in corpus::all(4) {
        for (nodes, per_node, gpus, wires) in [
            (2, 1, 2, Wires::Ipc),
            (3, 1, 2, Wires::Ipc),
            (2, 2, 4, Wires::Ipc),
            (2, 1, 2, Wires::Nccl),
            (3, 2, 6, Wires::Nccl),
        ] {
            let configuration =
                Configuration { wires_from: 1, ..Configuration::new(nodes, per_node) };
            let (fake, kernels) = FakeDriver::new(gpus, 1 << 28).hosting_kernels();
            let devices = Mutex::new(Some(devices(fake, nodes, WINDOWS)));
            let place = |config: &ClusterConfig| {
                let collectives = match wires {
                    Wires::Nccl => Collectives::Always,
                    _ => config.collectives,
                };
                let config = ClusterConfig { wires, collectives, ..config.clone() };
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
