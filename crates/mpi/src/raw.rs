//! MPI's functions as far as this crate needs them, with results for error codes.
//! Knows nothing of Celerity.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use mpi::ffi;
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Request, MPI_Status};

use crate::error::MpiError;

pub(crate) mod collective;

pub(crate) const TRUNCATED: u32 = ffi::MPI_ERR_TRUNCATE;

/// How long launchers have to pass on what this process has said at last.
const FORWARDING: Duration = Duration::from_millis(200);

/// Turns an error code into an error.
pub(crate) fn check(call: &'static str, code: c_int) -> Result<(), MpiError> {
    match u32::try_from(code) {
        Ok(ffi::MPI_SUCCESS) => Ok(()),
        _ => Err(MpiError { call, message: describe(code) }),
    }
}

/// What MPI calls an error.
pub(crate) fn describe(code: c_int) -> String {
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut len = 0;
    // SAFETY: the buffer is as long as MPI asks for.
    let known =
        unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &raw mut len) };
    let len = usize::try_from(len).unwrap_or(0).min(text.len());
    match known {
        0 => String::from_utf8_lossy(&text[..len]).into_owned(),
        _ => format!("error {code}"),
    }
}

/// The class of an error code.
pub(crate) fn class(code: c_int) -> u32 {
    let mut class = 0;
    // SAFETY: any code may be asked for.
    unsafe { ffi::MPI_Error_class(code, &raw mut class) };
    u32::try_from(class).unwrap_or(u32::MAX)
}

/// The name of this machine, as MPI knows it.
pub(crate) fn processor_name() -> Result<String, MpiError> {
    let mut text = [0_u8; ffi::MPI_MAX_PROCESSOR_NAME as usize];
    let mut len = 0;
    // SAFETY: the buffer is as long as MPI asks for.
    let code =
        unsafe { ffi::MPI_Get_processor_name(text.as_mut_ptr().cast::<c_char>(), &raw mut len) };
    check("MPI_Get_processor_name", code)?;
    let len = usize::try_from(len).unwrap_or(0).min(text.len());
    Ok(String::from_utf8_lossy(&text[..len]).into_owned())
}

/// Types whose values MPI can send.
pub(crate) fn byte() -> MPI_Datatype {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_UINT8_T }
}

fn word() -> MPI_Datatype {
    // SAFETY: as above.
    unsafe { ffi::RSMPI_UINT64_T }
}

/// How many buffers, or bytes, or nodes: MPI counts in `int`.
pub(crate) fn count(count: usize) -> c_int {
    c_int::try_from(count).expect("messages are cut so that MPI can count them")
}

/// Where data lies for MPI: so many items of a type, from an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedMemory {
    pub(crate) address: *mut u8,
    pub(crate) count: c_int,
    pub(crate) datatype: MPI_Datatype,
}

impl TypedMemory {
    pub(crate) fn of_bytes(address: *mut u8, len: usize) -> Self {
        Self { address, count: count(len), datatype: byte() }
    }
}

/// A communicator: all processes, or one of our own of the same processes, whose
/// messages no other can take.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Comm(MPI_Comm);

// SAFETY: MPI's handles may be used by any thread, one at a time, since that level of thread
// support has been checked; who may call MPI is a matter of `Permit`.
unsafe impl Send for Comm {}
// SAFETY: as above; a handle is a plain value.
unsafe impl Sync for Comm {}

impl Comm {
    /// All processes.
    pub(crate) fn world() -> Self {
        Self(world())
    }

    /// None, until MPI has made one.
    pub(crate) fn none() -> Self {
        // SAFETY: a constant of the MPI library.
        Self(unsafe { ffi::RSMPI_COMM_NULL })
    }

    /// Starts to make another communicator of the same processes, to be used when the request
    /// has completed. Collective.
    ///
    /// # Safety
    /// `made` belongs to MPI until then.
    pub(crate) unsafe fn start_duplicate(self, made: *mut Self) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on; a `Comm` is a handle and nothing else.
        let code = unsafe { ffi::MPI_Comm_idup(self.0, made.cast(), &raw mut request) };
        check("MPI_Comm_idup", code).map(|()| request)
    }

    /// Another communicator of the same processes. Collective, with others of other tags at the
    /// same time.
    pub(crate) fn duplicate_as_group(self, tag: c_int) -> Result<Self, MpiError> {
        self.created_by(tag, |_| Ok(()))
    }

    /// A communicator of these processes, in this order. Collective among these alone; waits for them.
    pub(crate) fn of_some(self, ranks: &[c_int], tag: c_int) -> Result<Self, MpiError> {
        self.created_by(tag, |group| {
            // SAFETY: the group is alive; MPI reads as many ranks as there are, and writes a handle. It
            // takes back that of the larger group.
            unsafe {
                let (mut all, some) = (*group, count(ranks.len()));
                let code = ffi::MPI_Group_incl(all, some, ranks.as_ptr(), group);
                let freed = ffi::MPI_Group_free(&raw mut all);
                check("MPI_Group_incl", code)?;
                check("MPI_Group_free", freed)
            }
        })
    }

    /// A communicator of what `choose` makes of the group of all processes.
    fn created_by(
        self,
        tag: c_int,
        choose: impl FnOnce(&mut ffi::MPI_Group) -> Result<(), MpiError>,
    ) -> Result<Self, MpiError> {
        // SAFETY: the communicator is alive; MPI writes handles, and takes back that of the group.
        unsafe {
            let (mut group, mut made) = (ffi::RSMPI_GROUP_NULL, self.0);
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.0, &raw mut group))?;
            choose(&mut group)?;
            let code = ffi::MPI_Comm_create_group(self.0, group, tag, &raw mut made);
            let freed = ffi::MPI_Group_free(&raw mut group);
            check("MPI_Comm_create_group", code)?;
            check("MPI_Group_free", freed)?;
            Ok(Self(made))
        }
    }

    /// The handle.
    pub(crate) fn raw(self) -> MPI_Comm {
        self.0
    }

    /// Says why, and ends all of its processes. In one write, and with time for launchers to pass it on: they
    /// drop what has not come when they end.
    pub(crate) fn end_all(self, why: &str) {
        // Nobody is left to be told that it cannot be written.
        drop(io::stderr().write_all(format!("{why}\n").as_bytes()));
        thread::sleep(FORWARDING);
        // SAFETY: the communicator is alive.
        unsafe { ffi::MPI_Abort(self.0, 1) };
    }

    /// Lets errors of calls with it be returned.
    pub(crate) fn return_errors(self) -> Result<(), MpiError> {
        // SAFETY: the communicator is alive.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(self.0, ffi::RSMPI_ERRORS_RETURN) };
        check("MPI_Comm_set_errhandler", code)
    }

    /// This process's rank and the number of processes.
    pub(crate) fn place(self) -> Result<(usize, usize), MpiError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the communicator is alive.
        unsafe {
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(self.0, &raw mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(self.0, &raw mut size))?;
        }
        let number = |count| usize::try_from(count).expect("ranks are not negative");
        Ok((number(rank), number(size)))
    }

    /// How many tags there are.
    pub(crate) fn tags(self) -> Result<u64, MpiError> {
        let (mut value, mut known) = (std::ptr::null_mut::<c_int>(), 0);
        let key = ffi::MPI_TAG_UB.cast_signed();
        // SAFETY: MPI writes a pointer to an `int` of its own.
        let code = unsafe {
            ffi::MPI_Comm_get_attr(self.0, key, (&raw mut value).cast::<c_void>(), &raw mut known)
        };
        check("MPI_Comm_get_attr", code)?;
        if known == 0 {
            // What every MPI has at least.
            return Ok(32768);
        }
        // SAFETY: MPI has found the attribute, and keeps it.
        let largest = unsafe { *value }.max(1).cast_unsigned();
        Ok(u64::from(largest) + 1)
    }

    /// Starts to give `len` bytes to all processes, and to receive as many of each, in order
    /// of ranks.
    ///
    /// # Safety
    /// `own` stays as it is and `all` belongs to MPI until the request has completed; they
    /// hold `len` bytes, and as many for each process. `len` is the same everywhere.
    pub(crate) unsafe fn start_gather(
        self,
        own: *const u8,
        all: *mut u8,
        len: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            let (own, all) = (own.cast::<c_void>(), all.cast::<c_void>());
            let (len, byte) = (count(len), byte());
            ffi::MPI_Iallgather(own, len, byte, all, len, byte, self.0, &raw mut request)
        };
        check("MPI_Iallgather", code).map(|()| request)
    }

    /// Starts to send.
    ///
    /// # Safety
    /// The data stays as it is until the request has completed.
    pub(crate) unsafe fn send(
        self,
        TypedMemory { address, count, datatype }: TypedMemory,
        to: usize,
        tag: c_int,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        let data = address.cast::<c_void>();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Isend(data, count, datatype, rank(to), tag, self.0, &raw mut request)
        };
        check("MPI_Isend", code).map(|()| request)
    }

    /// Starts to receive.
    ///
    /// # Safety
    /// The memory belongs to MPI until the request has completed.
    pub(crate) unsafe fn receive(
        self,
        TypedMemory { address, count, datatype }: TypedMemory,
        from: usize,
        tag: c_int,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        let data = address.cast::<c_void>();
        // SAFETY: passed on.
        let code = unsafe {
            ffi::MPI_Irecv(data, count, datatype, rank(from), tag, self.0, &raw mut request)
        };
        check("MPI_Irecv", code).map(|()| request)
    }

    /// Starts to receive from anybody.
    ///
    /// # Safety
    /// As for [`receive`](Self::receive).
    pub(crate) unsafe fn receive_any(
        self,
        TypedMemory { address, count, datatype }: TypedMemory,
        tag: c_int,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        let data = address.cast::<c_void>();
        // SAFETY: passed on.
        let code = unsafe {
            let anybody = ffi::RSMPI_ANY_SOURCE;
            ffi::MPI_Irecv(data, count, datatype, anybody, tag, self.0, &raw mut request)
        };
        check("MPI_Irecv", code).map(|()| request)
    }

    /// Starts to find the lowest of all processes' words, each word for itself.
    ///
    /// # Safety
    /// `own` stays as it is and `lowest` belongs to MPI until the request has
    /// completed; both hold `len` words, and `len` is the same everywhere.
    pub(crate) unsafe fn start_lowest(
        self,
        own: *const u64,
        lowest: *mut u64,
        len: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            let (own, lowest) = (own.cast::<c_void>(), lowest.cast::<c_void>());
            let minimum = ffi::RSMPI_MIN;
            ffi::MPI_Iallreduce(own, lowest, count(len), word(), minimum, self.0, &raw mut request)
        };
        check("MPI_Iallreduce", code).map(|()| request)
    }

    /// Starts to find the lowest of all processes' words: each gives the first half, and gets the second.
    /// The words belong to MPI until the request has completed.
    pub(crate) fn lowest_of(self, words: &mut [u64; 4]) -> Result<MPI_Request, MpiError> {
        let base = words.as_mut_ptr();
        // SAFETY: both halves have two words. The caller, a membership, leaves them alone until the request has
        // completed, in a box that lives as long as the network.
        unsafe { self.start_lowest(base, base.wrapping_add(2), 2) }
    }

    /// Starts to send `len` words to each process, and to receive as many.
    ///
    /// # Safety
    /// As for [`start_lowest`](Self::start_lowest), with `len` words per process.
    pub(crate) unsafe fn start_exchange(
        self,
        sent: *const u64,
        received: *mut u64,
        len: usize,
    ) -> Result<MPI_Request, MpiError> {
        let mut request = null_request();
        // SAFETY: passed on.
        let code = unsafe {
            let (sent, received) = (sent.cast::<c_void>(), received.cast::<c_void>());
            let (len, word) = (count(len), word());
            ffi::MPI_Ialltoall(sent, len, word, received, len, word, self.0, &raw mut request)
        };
        check("MPI_Ialltoall", code).map(|()| request)
    }

    /// Receives a message that nobody has asked for, if there is one: its sender
    /// and a request. Its bytes end up in `scratch`.
    ///
    /// # Safety
    /// `scratch` is left alone until the request has completed.
    pub(crate) unsafe fn receive_stray(
        self,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<(usize, MPI_Request)>, MpiError> {
        let (mut found, mut request) = (0, null_request());
        // SAFETY: plain data, written by the call below.
        let mut status: MPI_Status = unsafe { std::mem::zeroed() };
        // SAFETY: MPI fills in what is passed; the buffer is as long as the
        // message, and passed on.
        unsafe {
            let mut message = ffi::RSMPI_MESSAGE_NULL;
            let (anybody, any) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            let code = ffi::MPI_Improbe(
                anybody,
                any,
                self.0,
                &raw mut found,
                &raw mut message,
                &raw mut status,
            );
            check("MPI_Improbe", code)?;
            if found == 0 {
                return Ok(None);
            }
            let len = received_bytes(&status, byte())?;
            scratch.resize(len, 0);
            let data = scratch.as_mut_ptr().cast::<c_void>();
            let code =
                ffi::MPI_Imrecv(data, count(len), byte(), &raw mut message, &raw mut request);
            check("MPI_Imrecv", code)?;
        }
        Ok(Some((source(&status), request)))
    }
}

fn world() -> MPI_Comm {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

pub(crate) fn null_request() -> MPI_Request {
    // SAFETY: a constant of the MPI library.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// The rank of a node among all processes, or of a member among those of its communicator.
pub(crate) fn rank(node: usize) -> c_int {
    count(node)
}

/// Who sent a message that has been received.
pub(crate) fn source(status: &MPI_Status) -> usize {
    usize::try_from(status.MPI_SOURCE).unwrap_or(usize::MAX)
}

/// How many bytes a message had that has been received as `datatype`, which is
/// made of bytes.
pub(crate) fn received_bytes(
    status: &MPI_Status,
    datatype: MPI_Datatype,
) -> Result<usize, MpiError> {
    let mut bytes = 0;
    // SAFETY: the status comes from MPI.
    let code = unsafe { ffi::MPI_Get_elements(status, datatype, &raw mut bytes) };
    check("MPI_Get_elements", code)?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Ends a receive that nothing can match any more.
///
/// # Safety
/// The request is an active receive.
pub(crate) unsafe fn cancel(mut request: MPI_Request) -> Result<(), MpiError> {
    // SAFETY: a cancelled receive completes at once, so waiting does not block.
    unsafe {
        check("MPI_Cancel", ffi::MPI_Cancel(&raw mut request))?;
        let ignored = ffi::RSMPI_STATUS_IGNORE;
        check("MPI_Wait", ffi::MPI_Wait(&raw mut request, ignored))?;
    }
    Ok(())
}

/// A datatype of `runs` equal parts that are `step` bytes apart.
pub(crate) fn strided(
    runs: usize,
    part: (usize, MPI_Datatype),
    step: usize,
) -> Result<MPI_Datatype, MpiError> {
    let mut datatype = part.1;
    let step = step.try_into().expect("live memory fits the address space");
    // SAFETY: `part` is a datatype.
    let code = unsafe {
        ffi::MPI_Type_create_hvector(count(runs), count(part.0), step, part.1, &raw mut datatype)
    };
    check("MPI_Type_create_hvector", code).map(|()| datatype)
}

/// Makes a datatype usable.
pub(crate) fn commit(mut datatype: MPI_Datatype) -> Result<MPI_Datatype, MpiError> {
    // SAFETY: it is a datatype.
    check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&raw mut datatype) })?;
    Ok(datatype)
}

/// Gives a datatype back. Messages under way keep it.
pub(crate) fn free_datatype(mut datatype: MPI_Datatype) -> Result<(), MpiError> {
    // SAFETY: it was made by `strided`, and is not used for new messages.
    check("MPI_Type_free", unsafe { ffi::MPI_Type_free(&raw mut datatype) })
}

/// Tests one request: its status, if it has completed and is forgotten by MPI.
pub(crate) fn test_one(request: MPI_Request) -> Result<Option<MPI_Status>, MpiError> {
    // SAFETY: plain data, which MPI overwrites.
    let (mut requests, mut statuses) = ([request], [unsafe { std::mem::zeroed() }]);
    // As several are tested, so that errors of a message are in its status.
    let completed = test_some(&mut requests, &mut [0], &mut statuses)?;
    Ok((completed > 0).then_some(statuses[0]))
}

/// Tests all requests at once: appends the positions of those that have
/// completed, with their statuses. `positions` and `statuses` are scratch space
/// as long as `requests`.
pub(crate) fn test_some(
    requests: &mut [MPI_Request],
    positions: &mut [c_int],
    statuses: &mut [MPI_Status],
) -> Result<usize, MpiError> {
    debug_assert!(positions.len() == requests.len() && statuses.len() == requests.len());
    let mut completed = 0;
    // SAFETY: all three have as many entries.
    let code = unsafe {
        ffi::MPI_Testsome(
            count(requests.len()),
            requests.as_mut_ptr(),
            &raw mut completed,
            positions.as_mut_ptr(),
            statuses.as_mut_ptr(),
        )
    };
    let each_has_its_own = u32::try_from(code) == Ok(ffi::MPI_ERR_IN_STATUS);
    if each_has_its_own {
        return Ok(usize::try_from(completed).unwrap_or(0));
    }
    check("MPI_Testsome", code)?;
    // Negative if no request is active.
    let completed = usize::try_from(completed).unwrap_or(0);
    // Without errors, the field of a status is left as it was.
    statuses[..completed].iter_mut().for_each(|status| status.MPI_ERROR = 0);
    Ok(completed)
}
