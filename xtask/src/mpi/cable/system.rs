//! What the system is asked for: to work in a network namespace, and for an interface there whose
//! other end is a file. Only Linux has either.

#[cfg_attr(not(target_os = "linux"), path = "system/none.rs")]
#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
mod calls;

use std::io;
use std::path::Path;
use std::thread;

pub(super) use calls::{readable, tap};

/// Does something in a network namespace that `ip netns` knows by this name. Sockets and interfaces
/// that are made there stay there.
///
/// # Errors
/// If this process may not enter the namespace; and whatever `work` says.
pub(super) fn inside<T: Send>(
    name: &str,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let namespace = Path::new("/var/run/netns").join(name);
    // A thread of its own, since it does not come back.
    thread::scope(|scope| {
        let worker = scope.spawn(|| calls::enter(&namespace).and_then(|()| work()));
        worker.join().expect("what is done in namespaces does not panic")
    })
}
