//! Which threads a process has for its nodes.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Arc, Mutex};

use celerity_cdag::{Command, NodeId};
use celerity_executor::{
    Backend, ClusterConfig, Communicator, CpuDevices, CpuPool, DeviceMemory, Devices, InProcess,
    Network, Observer, Run, RunError, Waker, available_cores,
};
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};

/// A network of one node, whose process so many others share its cores with.
struct Crowded {
    sharers: usize,
}

impl Network for Crowded {
    fn nodes(&self) -> usize {
        1
    }

    fn local(&self) -> Range<usize> {
        0..1
    }

    fn sharers_of_cores(&self) -> usize {
        self.sharers
    }

    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        InProcess { nodes: 1 }.connect(wakers, pool)
    }
}

/// Devices as quick as a node.
struct Fast(CpuDevices);

impl Devices for Fast {
    fn per_node(&self) -> usize {
        self.0.per_node()
    }

    fn are_fast(&self) -> bool {
        true
    }

    fn open(
        &self,
        node: NodeId,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Result<Box<dyn Backend>, RunError> {
        self.0.open(node, pool, waker)
    }
}

/// Notes the threads that schedule tasks.
struct Noting(Arc<Mutex<Vec<String>>>);

impl Observer for Noting {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        _: &Arc<Task>,
        _: &[Command],
        _: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        self.0.lock().unwrap().push(name);
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, _: &[Instruction]) -> Result<(), String> {
        Ok(())
    }
}

/// The threads that schedule in a process which shares its cores.
fn schedulers(sharers: usize) -> Vec<String> {
    let config = ClusterConfig { nodes: 1, devices: 1, ..ClusterConfig::default() };
    let devices = CpuDevices { per_node: 1, memory: DeviceMemory::Own, memory_limit: None };
    let names = Arc::<Mutex<Vec<String>>>::default();
    let noted = names.clone();
    let run = Run::new(&config).on(Crowded { sharers }).with_devices(Fast(devices));
    let run = run.observed(move |_| Some(Box::new(Noting(noted.clone()))));
    run.execute(|node| node.barrier()).unwrap();
    let mut names = names.lock().unwrap().clone();
    names.dedup();
    names
}

#[test]
fn a_node_with_one_core_has_one_thread_for_both_halves() {
    assert_eq!(schedulers(usize::MAX / 2), ["celerity-reactor"]);
    let has_two = available_cores().unwrap().len() > 1;
    let expected = if has_two { "celerity-schedule" } else { "celerity-reactor" };
    assert_eq!(schedulers(1), [expected]);
}
