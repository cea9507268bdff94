//! Which threads a process has for its nodes.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use celerity_cdag::NodeId;
use celerity_executor::{
    Backend, Communicator, CpuDevices, CpuPool, DeviceMemory, Devices, InProcess, Network,
    Observer, Run, RunError, Waker, available_cores,
};

use crate::common::{OnTask, cluster};

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

/// The threads that schedule in a process which shares its cores.
fn schedulers(sharers: usize) -> Vec<String> {
    let config = cluster(1, 1);
    let devices = CpuDevices { per_node: 1, memory: DeviceMemory::Own, memory_limit: None };
    let names = Arc::<Mutex<Vec<String>>>::default();
    let noted = names.clone();
    let observer = move |_| {
        let names = noted.clone();
        let note = move || {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            names.lock().unwrap().push(name);
        };
        Some(Box::new(OnTask(note)) as Box<dyn Observer>)
    };
    let run = Run::new(&config).on(Crowded { sharers }).with_devices(Fast(devices));
    let run = run.observed(observer);
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
