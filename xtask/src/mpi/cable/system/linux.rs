//! The system calls of Linux.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::null;
use std::time::Duration;

/// Puts the calling thread into a network namespace.
pub(super) fn enter(namespace: &Path) -> io::Result<()> {
    let namespace = File::open(namespace)?;
    // SAFETY: it takes an open file, and touches no memory.
    told(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// A new Ethernet interface in the namespace of the calling thread, until it is deleted or the file
/// closed. What it sends is read from the file, a frame at a time, and what is written to the file
/// is what it receives.
pub(in super::super) fn tap(name: &str) -> io::Result<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: it is made of integers and pointers that may be null.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let (_end, room) = request.ifr_name.split_last_mut().expect("names have a length");
    for (to, from) in room.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: this request takes a name that ends with zero, and flags; it writes nothing else.
    told(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(file)
}

/// Waits until there is something to read, or an error; at most so long, if that is given, and less
/// if a signal comes. Returns whether there is.
pub(in super::super) fn readable(file: &File, most: Option<Duration>) -> io::Result<bool> {
    let mut wanted = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let most = most.map(|most| libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: most.subsec_nanos() as libc::c_long,
    });
    let most = most.as_ref().map_or(null(), std::ptr::from_ref);
    // SAFETY: `wanted` is one, `most` is null or lives until the end of this function.
    match unsafe { libc::ppoll(&raw mut wanted, 1, most, null()) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        ready => Ok(ready > 0),
    }
}

fn told(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
