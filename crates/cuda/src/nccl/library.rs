//! NVIDIA's library: the few functions that are used, under their own names. Of version 2.14 or later, in
//! which calls need not wait for others.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::{Arc, OnceLock};

use celerity_executor::DeviceStream;

use super::{Joined, JoiningId, Nccl, NcclCall};
use crate::dynamic::functions;

/// By which names the library goes.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The oldest version that is good enough, as the library counts: 2.14.0.
const OLDEST: c_int = 21400;

type Status = c_int;
type Communicator = *mut c_void;
type CudaStream = *mut c_void;

const SUCCESS: Status = 0;
const IN_PROGRESS: Status = 7;
/// `ncclUint8`: lengths are in bytes.
const BYTE: c_int = 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([u8; 128]);

/// `ncclConfig_t` of version 2.14; later ones have more behind it, and know by the size that it is not there.
#[repr(C)]
struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
}

functions! {
    ncclGetVersion: fn(*mut c_int) -> Status;
    ncclGetErrorString: fn(Status) -> *const c_char;
    ncclGetLastError: fn(Communicator) -> *const c_char;
    ncclGetUniqueId: fn(*mut UniqueId) -> Status;
    ncclCommInitRankConfig: fn(*mut Communicator, c_int, UniqueId, c_int, *mut Config) -> Status;
    ncclCommGetAsyncError: fn(Communicator, *mut Status) -> Status;
    ncclCommAbort: fn(Communicator) -> Status;
    ncclGroupStart: fn() -> Status;
    ncclGroupEnd: fn() -> Status;
    ncclSend: fn(*const c_void, usize, c_int, c_int, Communicator, CudaStream) -> Status;
    ncclRecv: fn(*mut c_void, usize, c_int, c_int, Communicator, CudaStream) -> Status;
    ncclAllGather: fn(
        *const c_void, *mut c_void, usize, c_int, Communicator, CudaStream
    ) -> Status;
    ncclBroadcast: fn(
        *const c_void, *mut c_void, usize, c_int, c_int, Communicator, CudaStream
    ) -> Status;
}

struct Library {
    functions: Functions,
    /// Keeps `functions` good.
    _library: libloading::Library,
}

/// The library, loaded the first time that it is asked for, and kept.
///
/// # Errors
/// If there is none, or it is too old: what to do about it.
pub fn load_nccl() -> Result<Arc<dyn Nccl>, String> {
    static LIBRARY: OnceLock<Result<Arc<Library>, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open().map(Arc::new)).clone().map(|library| library as _)
}

impl Library {
    fn open() -> Result<Self, String> {
        let found = NAMES.iter().find_map(|name| {
            // SAFETY: loading the library runs its initialisers, which is what they are made for.
            unsafe { libloading::Library::new(*name) }.ok()
        });
        let library = found.ok_or_else(|| {
            let [one, other] = NAMES;
            format!(
                "neither {one} nor {other} can be loaded; install NVIDIA's NCCL, or add its folder \
                 to `LD_LIBRARY_PATH`"
            )
        })?;
        // SAFETY: by its name it is NCCL.
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|error| format!("its NCCL is too old: {error}"))?;
        let mut version = 0;
        // SAFETY: `version` outlives the call.
        functions.check(null_mut(), unsafe { (functions.ncclGetVersion)(&raw mut version) })?;
        if version < OLDEST {
            return Err(format!("its NCCL has version code {version}, and {OLDEST} is needed"));
        }
        Ok(Self { functions, _library: library })
    }
}

impl Functions {
    /// What a status means, of a call for a communicator if there is one yet.
    fn check(&self, communicator: Communicator, status: Status) -> Result<(), String> {
        if status == SUCCESS || status == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: every status has a text, and every communicator or none a last error; both texts live
        // until the next call.
        let [meaning, last] = unsafe {
            [(self.ncclGetErrorString)(status), (self.ncclGetLastError)(communicator)].map(|text| {
                match text.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(text).to_string_lossy().trim().to_owned(),
                }
            })
        };
        let detail = if last.is_empty() { String::new() } else { format!(" ({last})") };
        Err(format!("NCCL says: {meaning}{detail}"))
    }

    /// Puts a call into the open group.
    ///
    /// # Safety
    /// As for [`Nccl::start`].
    unsafe fn call(
        &self,
        communicator: Communicator,
        stream: CudaStream,
        call: NcclCall,
    ) -> Status {
        let read = |address: u64| with_exposed_provenance::<c_void>(address as usize);
        let written = |address: u64| with_exposed_provenance_mut::<c_void>(address as usize);
        let length = |bytes: u64| usize::try_from(bytes).expect("it is in memory");
        let rank = |rank: usize| c_int::try_from(rank).expect("there are few nodes");
        // SAFETY: passed on.
        unsafe {
            match call {
                NcclCall::Send { address, bytes, to } => {
                    let (address, count) = (read(address), length(bytes));
                    (self.ncclSend)(address, count, BYTE, rank(to), communicator, stream)
                }
                NcclCall::Receive { address, bytes, from } => {
                    let (address, count) = (written(address), length(bytes));
                    (self.ncclRecv)(address, count, BYTE, rank(from), communicator, stream)
                }
                NcclCall::AllGather { own, all, bytes } => {
                    let (own, all, count) = (read(own), written(all), length(bytes));
                    (self.ncclAllGather)(own, all, count, BYTE, communicator, stream)
                }
                NcclCall::Broadcast { address, bytes, root } => {
                    let (from, to, count) = (read(address), written(address), length(bytes));
                    (self.ncclBroadcast)(from, to, count, BYTE, rank(root), communicator, stream)
                }
            }
        }
    }
}

fn communicator(joined: Joined) -> Communicator {
    with_exposed_provenance_mut(joined.0)
}

impl Nccl for Library {
    fn id(&self) -> Result<JoiningId, String> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: `id` outlives the call.
        let status = unsafe { (self.functions.ncclGetUniqueId)(&raw mut id) };
        self.functions.check(null_mut(), status)?;
        Ok(id.0)
    }

    fn join(&self, id: &JoiningId, rank: usize, ranks: usize) -> Result<Joined, String> {
        let [rank, ranks] =
            [rank, ranks].map(|number| c_int::try_from(number).unwrap_or(c_int::MAX));
        let version = OLDEST.unsigned_abs();
        let mut config =
            Config { size: size_of::<Config>(), magic: 0xcafe_beef, version, blocking: 0 };
        let mut made = null_mut();
        // SAFETY: both outlive the call, which copies the configuration.
        let status = unsafe {
            let (made, config) = (&raw mut made, &raw mut config);
            (self.functions.ncclCommInitRankConfig)(made, ranks, UniqueId(*id), rank, config)
        };
        self.functions.check(null_mut(), status)?;
        Ok(Joined(made.expose_provenance()))
    }

    fn is_ready(&self, joined: Joined) -> Result<bool, String> {
        let mut status = SUCCESS;
        let communicator = communicator(joined);
        // SAFETY: the communicator has not been given up, and `status` outlives the call.
        let asked =
            unsafe { (self.functions.ncclCommGetAsyncError)(communicator, &raw mut status) };
        self.functions.check(communicator, asked)?;
        self.functions.check(communicator, status)?;
        Ok(status != IN_PROGRESS)
    }

    unsafe fn start(
        &self,
        joined: Joined,
        stream: &DeviceStream,
        calls: &[NcclCall],
    ) -> Result<(), String> {
        let (functions, communicator) = (&self.functions, communicator(joined));
        // SAFETY: groups need nothing.
        functions.check(communicator, unsafe { (functions.ncclGroupStart)() })?;
        let begun = calls.iter().try_for_each(|call| {
            // SAFETY: passed on; the communicator has not been given up.
            let status = unsafe { functions.call(communicator, stream.stream, *call) };
            functions.check(communicator, status)
        });
        // SAFETY: a group is open.
        let ended = functions.check(communicator, unsafe { (functions.ncclGroupEnd)() });
        begun.and(ended)
    }

    fn abandon(&self, joined: Joined) {
        // SAFETY: this is its last use.
        let _: Status = unsafe { (self.functions.ncclCommAbort)(communicator(joined)) };
    }
}
