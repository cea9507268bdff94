//! Kernel code for devices that are no CPUs: modules, entry points, and how one
//! chunk is launched. Plain data; knows no driver and compiles nothing.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytemuck::NoUninit;
use celerity_regions::Box3;

use crate::bound::BoundMemory;

/// What a device that is no CPU runs for a kernel.
///
/// `module` and `entry` say which code; [`launch`](Self::launch) how to call it
/// for one chunk. A backend loads each module once per device.
///
/// # Safety
/// The entry point, launched as [`launch`](Self::launch) says, touches nothing but its own shared
/// memory and what the `memory` that it was given [allows](BoundMemory), if that is what the
/// accesses of the task are bound to for the chunk. That the task has the accesses which the code
/// was written for is seen to as for a [kernel](crate::DeviceKernel).
pub unsafe trait DeviceCode: Send + Sync {
    /// The module that holds the code. Modules are told apart by address: the
    /// same `Arc` is loaded once.
    fn module(&self) -> &Arc<CodeModule>;

    /// The name of the entry point in the module.
    fn entry(&self) -> &str;

    /// The name of the one that [launches](Self::launch) a chunk that is bound to `memory`, where that is not the same for all. Of
    /// the same parameters.
    fn entry_for(&self, memory: &[BoundMemory<'_>]) -> &str {
        let _ = memory;
        self.entry()
    }

    /// Bytes of shared memory that each block of any launch takes, as far as that is known
    /// before there is one.
    fn shared_bytes(&self) -> u64 {
        0
    }

    /// Sizes and parameters for the items of `chunk`, which has some. The bases
    /// of `memory` are addresses on the device: they must not be followed here.
    ///
    /// # Errors
    /// Why the chunk cannot be launched.
    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>>;

    /// The same in blocks of at most `threads` threads, for a device that has not registers for as many as
    /// [`launch`](Self::launch) says. Asked for only then; what cannot be launched otherwise says the same again.
    ///
    /// # Errors
    /// As of [`launch`](Self::launch).
    fn launch_within(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        threads: u32,
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let _ = threads;
        self.launch(chunk, memory)
    }

    /// Two parts of a chunk that a [launch](Self::launch) has no room for, to be launched one after the other with
    /// what the whole is bound to; `None` if that is not why there is no launch.
    fn halves(&self, chunk: &Box3) -> Option<[Box3; 2]> {
        let _ = chunk;
        None
    }
}

/// A unit of code that is loaded at once.
#[derive(Debug)]
pub struct CodeModule {
    name: Arc<str>,
    source: CodeSource,
}

impl CodeModule {
    /// A module; the name appears in errors.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, source: CodeSource) -> Arc<Self> {
        Arc::new(Self { name: name.into(), source })
    }

    /// The name that it was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it consists of.
    #[must_use]
    pub fn source(&self) -> &CodeSource {
        &self.source
    }
}

/// The forms in which code can come.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeSource {
    /// Text in NVIDIA's portable assembly, which the driver compiles.
    Ptx(Cow<'static, str>),
    /// The same for several architectures, given by their compute capability (8.0
    /// is 80), in increasing order. A device takes the newest that it can run.
    PtxFor(Vec<(u32, Cow<'static, str>)>),
    /// A binary for one architecture, or several in one container.
    Binary(Cow<'static, [u8]>),
    /// CUDA C++, which is compiled for each architecture when it is needed.
    CudaCpp(Cow<'static, str>),
}

impl fmt::Debug for CodeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (form, bytes) = match self {
            Self::Ptx(text) => ("Ptx", text.len()),
            Self::PtxFor(texts) => ("PtxFor", texts.iter().map(|(_, text)| text.len()).sum()),
            Self::Binary(code) => ("Binary", code.len()),
            Self::CudaCpp(text) => ("CudaCpp", text.len()),
        };
        write!(f, "{form}({bytes} bytes)")
    }
}

/// One launch of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z; none is 0.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z; none is 0.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
    /// The parameters of the entry point, one behind the other.
    pub parameters: Parameters,
}

impl Launch {
    /// Threads of a block.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.block.iter().fold(1, |all: u64, &side| all.saturating_mul(u64::from(side)))
    }
}

/// The parameters of a launch, laid out one after another, each at a multiple of
/// its alignment: what the driver takes as one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    bytes: Vec<u8>,
}

/// What a chunk and four views take: one allocation for most kernels.
const USUAL_BYTES: usize = 1024;

impl Default for Parameters {
    /// None, with room for those of most kernels.
    fn default() -> Self {
        Self { bytes: Vec::with_capacity(USUAL_BYTES) }
    }
}

impl Parameters {
    /// Appends a value, at the alignment of its type.
    pub fn push<T: NoUninit>(&mut self, value: T) {
        self.push_bytes(bytemuck::bytes_of(&value), align_of::<T>());
    }

    /// Appends an address on the device.
    pub fn push_address(&mut self, address: *mut u8) {
        self.push(address as u64);
    }

    /// Appends bytes at a multiple of `alignment`, a power of two.
    pub fn push_bytes(&mut self, bytes: &[u8], alignment: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self.bytes.extend_from_slice(bytes);
    }

    /// The parameters' bytes, each at its alignment.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_at_multiples_of_their_alignment() {
        let mut parameters = Parameters::default();
        parameters.push(7_u8);
        parameters.push(0x0102_0304_u32);
        parameters.push([1_u16, 2]);
        parameters.push(9_u64);
        let bytes = parameters.as_bytes();
        assert_eq!(bytes.len(), 24);
        assert_eq!(bytes[4..8], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!(bytes[16..24], 9_u64.to_ne_bytes());
    }
}
