//! Nodes that die. Each process plays its part; whoever has started them looks at
//! what they print and how they end.

use std::process::{Command, exit};
use std::thread;
use std::time::{Duration, Instant};

use celerity_executor::{CommEvent, CommunicationError, Communicator, RunError};
use celerity_mpi::{MpiOptions, is_lost};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use crate::messages::{next_event, node, payload, pilot};
use crate::world::World;

/// The last node dies in the middle of a run: `kill` by a signal, `stop` by not
/// being run any more. Survivors print what they are told, and exit with 3.
pub(crate) fn run(world: &World, fault: &str) {
    let options = MpiOptions { peer_timeout: Duration::from_secs(3), ..MpiOptions::default() };
    let mut end = world.connect(&options);
    let (mut source, whole) = (vec![1; 1 << 20], Box3::from_range([1_usize << 20]));
    let last = world.size - 1;
    world.meet();
    if world.rank == last {
        signal(if fault == "kill" { "KILL" } else { "STOP" });
    }
    end.send_pilot(&pilot(node(last), 0, whole), 0);
    // SAFETY: the memory outlives the end.
    unsafe { end.send(node(last), payload(&mut source, whole, whole, 0)) };
    end.enter_barrier(TaskId::from_index(1));
    let start = Instant::now();
    let CommEvent::Failed(error) = next_event(&mut end) else { panic!("nobody has aborted") };
    let CommunicationError::Died { node: dead, .. } = &error else { panic!("{error}") };
    assert_eq!(*dead, node(last));
    let me = end.node();
    end.abort(&RunError::Communication { node: me, error: Box::new(error) });
    let CommEvent::Aborted(RunError::Communication { error, .. }) = next_event(&mut end) else {
        panic!("the abort reaches everybody")
    };
    assert!(end.is_quiet() && is_lost());
    drop(end);
    println!("{me}: {error} (after {:.1} s)", start.elapsed().as_secs_f64());
    exit(3);
}

fn signal(name: &str) {
    let process = std::process::id().to_string();
    let status = Command::new("kill").args(["-s", name, &process]).status();
    assert!(status.is_ok_and(|status| status.success()), "there is no `kill`");
    // The signal is on its way.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}
