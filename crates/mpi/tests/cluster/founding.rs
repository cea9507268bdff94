//! A member of an operation that dies, or stands still, while it makes a communicator with the others: it is in
//! MPI, where nothing wakes them, and it has told them that it comes.
//!
//! MPI's profiling interface lets a program stand in front of each function of MPI, which it then calls by
//! another name. So the member meets its fate exactly there.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use celerity_cpd::Members;
use celerity_executor::{CommEvent, CommunicationError, Communicator};
use celerity_mpi::MpiOptions;
use mpi::ffi;

use crate::exchanges::gathered_among;
use crate::faults::signal;
use crate::messages::{next_event, node};
use crate::world::World;

/// What happens to this process, and in which of its calls of [`MPI_Comm_create_group`].
static FATE: OnceLock<(u32, &str)> = OnceLock::new();

static CALLS: AtomicU32 = AtomicU32::new(0);

/// How long others wait for the member.
const PATIENCE: Duration = Duration::from_secs(3);

/// The last two nodes gather a line, and the last one does not come to its third communicator. The other
/// one ends all processes, as nothing else can be done, and says why. Those that are no members are told.
pub(crate) fn run(world: &World, fault: &str) {
    let options = MpiOptions { peer_timeout: PATIENCE, ..MpiOptions::default() };
    let mut end = world.connect(&options);
    let (me, last) = (end.node(), world.size - 1);
    let members = Members::range(last - 1, world.size, world.size);
    let mut field = vec![0; 64];
    world.meet();
    if world.rank == last {
        let fate = if fault == "found-kill" { (2, "KILL") } else { (3, "STOP") };
        FATE.set(fate).expect("nothing else has set it");
    }
    if members.contains(me) {
        // SAFETY: the memory outlives the end.
        unsafe { end.exchange(gathered_among(&mut field, world, members)) };
    }
    let CommEvent::Failed(error) = next_event(&mut end) else { panic!("nobody has aborted") };
    let CommunicationError::Died { node: dead, .. } = &error else { panic!("{error}") };
    assert_eq!(*dead, node(last));
    println!("{me}: {error}");
    // The member that is in MPI is to say what it has to say, and ends this process.
    std::thread::sleep(2 * PATIENCE);
    std::process::exit(3);
}

/// Stands in front of MPI's.
///
/// # Safety
/// As for MPI's.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Comm_create_group(
    parent: ffi::MPI_Comm,
    group: ffi::MPI_Group,
    tag: c_int,
    made: *mut ffi::MPI_Comm,
) -> c_int {
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some((_, name)) = FATE.get().filter(|(fatal, _)| *fatal == call) {
        signal(name);
    }
    // SAFETY: the caller promises to MPI what it promises here.
    unsafe { ffi::PMPI_Comm_create_group(parent, group, tag, made) }
}
