//! Nodes that die. Each process plays its part; whoever has started them looks at
//! what they print and how they end.

use std::process::{Command, exit};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use celerity_executor::{CommEvent, CommunicationError, Communicator, RunError};
use celerity_mpi::{MpiOptions, StartError, is_lost};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use crate::exchanges::gathered;
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
    let mut field = vec![0; 64];
    // SAFETY: as above.
    unsafe { end.exchange(gathered(&mut field, world)) };
    end.enter_barrier(TaskId::from_index(1));
    let start = Instant::now();
    let CommEvent::Failed(error) = next_event(&mut end) else { panic!("nobody has aborted") };
    let CommunicationError::Died { node: dead, .. } = &error else { panic!("{error}") };
    assert_eq!(*dead, node(last));
    let dead = *dead;
    let me = end.node();
    end.abort(&RunError::Communication { node: me, error: Box::new(error) });
    let CommEvent::Aborted(RunError::Communication { error, .. }) = next_event(&mut end) else {
        panic!("the abort reaches everybody")
    };
    assert!(end.is_quiet() && is_lost());
    drop(end);
    let Err(StartError::Run(again)) = celerity_mpi::start(&options, Arc::new(|| {})) else {
        panic!("MPI is lost")
    };
    assert!(again.to_string().contains(&format!("{dead} has died")), "{again}");
    println!("{me}: {error} (after {:.1} s)", start.elapsed().as_secs_f64());
    exit(3);
}

/// `N0` is stopped in the middle of a run for most of the time after which it would count as
/// dead. Nobody takes notice.
pub(crate) fn pause(world: &World) {
    let mut end = world.connect(&MpiOptions::default());
    world.meet();
    if world.rank == 0 {
        stop_for(Duration::from_secs(6));
    }
    end.enter_barrier(TaskId::from_index(1));
    assert_eq!(next_event(&mut end), CommEvent::BarrierReached);
    drop(end);
    world.count(1);
}

/// `N0` is stopped for longer than that, and continued. The others have given it up, and go;
/// it learns that.
pub(crate) fn give_up(world: &World) {
    let options = MpiOptions { peer_timeout: Duration::from_secs(2), ..MpiOptions::default() };
    let mut end = world.connect(&options);
    let me = end.node();
    world.meet();
    if world.rank == 0 {
        stop_for(Duration::from_secs(4));
    }
    end.enter_barrier(TaskId::from_index(1));
    let event = match next_event(&mut end) {
        // The others were in the barrier before they gave it up: what they sent there and their
        // verdict wait for it side by side, and either may be seen first.
        CommEvent::BarrierReached if world.rank == 0 => next_event(&mut end),
        event => event,
    };
    let CommEvent::Failed(error) = event else { panic!("nobody has aborted: {event:?}") };
    match (&error, world.rank) {
        (CommunicationError::GivenUp { node: given_up, .. }, 0) => assert_eq!(*given_up, me),
        (CommunicationError::Died { node: dead, .. }, 1..) => assert_eq!(*dead, node(0)),
        _ => panic!("{error}"),
    }
    assert!(is_lost());
    println!("{me}: {error}");
    if world.rank > 0 {
        // Launchers end all when the first has gone, also one that is stopped.
        thread::sleep(Duration::from_secs(6));
    }
    exit(3);
}

/// Stops this process; another one continues it.
fn stop_for(pause: Duration) {
    let process = std::process::id();
    let continues = format!("sleep {}; kill -s CONT {process}", pause.as_secs_f64());
    let other = Command::new("sh").args(["-c", &continues]).spawn();
    send_signal("STOP");
    // The signal may be on its way.
    let ended = other.and_then(|mut other| other.wait());
    assert!(ended.is_ok_and(|status| status.success()), "there is no `sh`");
}

/// Does something to this process that it does not come back from.
pub(crate) fn signal(name: &str) {
    send_signal(name);
    // The signal is on its way.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

fn send_signal(name: &str) {
    let process = std::process::id().to_string();
    let status = Command::new("kill").args(["-s", name, &process]).status();
    assert!(status.is_ok_and(|status| status.success()), "there is no `kill`");
}
