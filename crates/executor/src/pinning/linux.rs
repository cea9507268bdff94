//! The system calls of Linux, over lists of cores.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;

use libc::cpu_set_t;

/// A thread of this process, as the system knows it.
pub(crate) type ThreadId = libc::pid_t;

const MOST_CORES: usize = libc::CPU_SETSIZE as usize;

pub(crate) fn this_thread() -> ThreadId {
    // SAFETY: it takes nothing and always succeeds.
    unsafe { libc::gettid() }
}

pub(super) fn cores_of(thread: ThreadId) -> io::Result<Vec<usize>> {
    let mut set = none();
    // SAFETY: `set` is as large as is said.
    let code = unsafe { libc::sched_getaffinity(thread, size_of::<cpu_set_t>(), &raw mut set) };
    told(code)?;
    // SAFETY: these are the numbers of all bits in `set`.
    Ok((0..MOST_CORES).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

pub(super) fn online() -> io::Result<usize> {
    // SAFETY: it takes a number that it knows.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

pub(super) fn keep_on(thread: ThreadId, cores: &[usize]) -> io::Result<()> {
    let mut set = none();
    for &core in cores {
        if core >= MOST_CORES {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `set` has a bit of this number.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: `set` is as large as is said.
    told(unsafe { libc::sched_setaffinity(thread, size_of::<cpu_set_t>(), &raw const set) })
}

fn none() -> cpu_set_t {
    // SAFETY: it is made of integers.
    unsafe { std::mem::zeroed() }
}

fn told(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
