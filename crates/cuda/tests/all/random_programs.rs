//! Random programs on nodes with GPUs, on a driver without GPUs whose streams
//! take turns in random orders, against the sequential twin. Kernels hash all
//! that they read, so a single stale element changes the result. They are the
//! testkit's own, or the one that is compiled for real GPUs as well.

use std::sync::Arc;

use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, Gpu, Gpus, WindowConfig};
use celerity_executor::{ClusterConfig, DeviceKernel, Run, Wires};
use celerity_testkit::check::{Configuration, any_configuration};
use celerity_testkit::corpus;
use celerity_testkit::program::{Program, Sizes, any_program};
use celerity_testkit::run::{KernelTask, run_on};
use celerity_testkit::twin::{Observation, interpret};
use celerity_testkit::violation::Violation;
use proptest::prelude::*;

#[path = "../../examples/random_programs/compiled.rs"]
mod compiled;

use compiled::Statement;

use crate::one_host::OneHost;

/// Whose kernels a program runs.
type Kernels = fn(KernelTask<'_>, Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel>;

fn interpreted(_: KernelTask<'_>, kernel: Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel> {
    kernel
}

fn single_source(task: KernelTask<'_>, _: Arc<dyn DeviceKernel>) -> Arc<dyn DeviceKernel> {
    Arc::new(Statement::new(task))
}

/// Runs the program on fake GPUs; what is wrong with it.
fn check(
    program: &Program,
    configuration: &Configuration,
    linked: bool,
    seed: u64,
    own: Kernels,
) -> Result<(), String> {
    let (nodes, per_node) = (configuration.nodes, configuration.devices);
    let fake = FakeDriver::new(nodes * per_node, 1 << 30).with_seed(seed);
    let (fake, kernels) = fake.hosting_kernels();
    let fake = if linked { fake } else { fake.without_links() };
    let nccl = Arc::new(fake.nccl());
    let gpus = Gpus::with_nccl(Arc::new(fake), None, Arc::new(move || Ok(nccl.clone()))).unwrap();
    let place = |config: &ClusterConfig| {
        let count = u16::try_from(nodes * per_node).unwrap();
        let all: Vec<_> = (0..count).map(Gpu::from_slot).collect();
        let cuda = CudaConfig {
            lane_waits: !seed.is_multiple_of(4),
            // The models' sizes: a fake driver has no addresses without memory.
            growing: configuration.growing(),
            least_chunk: 0,
            windows: WindowConfig {
                slots: 2,
                slot_bytes: 1 << 16,
                least: configuration.wires_from,
            },
            collectives: configuration.collective_terms().unwrap_or_default(),
            ..CudaConfig::default()
        };
        let devices = CudaDevices::deal(&gpus, &all, 0..nodes, false, &cuda);
        let wires = match (configuration.wires_from, configuration.collectives_from) {
            (_, 1..) if linked => Wires::Nccl,
            (1.., _) => Wires::Ipc,
            _ => Wires::Host,
        };
        let config = ClusterConfig { wires, ..config.clone() };
        Run::new(&config).on(OneHost { nodes }).with_devices(devices.unwrap())
    };
    let adapt = |task: KernelTask<'_>, kernel| kernels.wrap(own(task, kernel));
    compare(program, run_on(program, configuration, place, adapt))
}

fn compare(program: &Program, found: Result<Vec<Observation>, Violation>) -> Result<(), String> {
    let (found, expected) = (found.map_err(|error| error.to_string())?, interpret(program));
    match found.iter().position(|observation| *observation != expected) {
        None => Ok(()),
        Some(node) => Err(format!("N{node} has observed something else")),
    }
}

#[test]
fn a_kernel_that_computes_something_else_is_noticed() {
    let another = |task: KernelTask<'_>, _: Arc<dyn DeviceKernel>| -> Arc<dyn DeviceKernel> {
        Arc::new(Statement::new(KernelTask { op: task.op + 1, ..task }))
    };
    let program = corpus::jacobi([8, 8], 3);
    let configuration = Configuration::new(2, 2);
    let outcome = compare(&program, run_on(&program, &configuration, Run::new, another));
    assert_eq!(outcome, Err("N0 has observed something else".to_owned()));
}

proptest! {
    #[test]
    fn random_programs_compute_what_the_twin_computes(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
        linked: bool,
        seed in 1_u64..,
    ) {
        let outcome = check(&program, &configuration, linked, seed, interpreted);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }

    #[test]
    fn kernels_of_one_source_compute_what_the_twin_computes(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
        seed in 1_u64..,
    ) {
        let outcome = check(&program, &configuration, true, seed, single_source);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }

    #[test]
    fn kernels_of_one_source_do_so_on_cpus(
        program in any_program(Sizes::default()),
        configuration in any_configuration(),
    ) {
        let found = run_on(&program, &configuration, Run::new, single_source);
        let outcome = compare(&program, found);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}
