//! From code modules to functions on GPUs: compiles each module once per
//! architecture, loads it once per GPU, or of each kernel what it needs, and keeps it. Launches nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use celerity_executor::{BoundMemory, CodeModule, CodeSource, DeviceCode};
use celerity_kernel::abi::ModuleOutline;
use celerity_regions::{Box3, Region};
use celerity_tdag::Count;
use thiserror::Error;

use crate::checked::AccessRecord;
use crate::driver::{Driver, DriverError, Function, Gpu, Image, ModuleHandle};
use crate::panics::GpuPanics;

/// Why a kernel's code cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// It is CUDA C++, and there is nothing to compile it with.
    #[error("module `{module}` is CUDA C++, but there is no compiler for it: {reason}")]
    NoCompiler {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// It does not compile.
    #[error("module `{module}` does not compile:\n{log}")]
    Compile {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// What the compiler says.
        log: String,
    },
    /// The driver does not take it.
    #[error("module `{module}` cannot be loaded on {gpu}: {error}")]
    Load {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// The GPU that it was for.
        gpu: Gpu,
        /// What the driver says.
        error: DriverError,
    },
    /// It is for newer GPUs only.
    #[error(
        "module `{module}` has no code for compute capability {capability}, which {gpu} has: it \
         was compiled for newer ones; ask for this one in the build script of its kernels"
    )]
    TooNew {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// The GPU that it was for.
        gpu: Gpu,
        /// What the GPU can run.
        capability: String,
    },
    /// The entry point does not exist.
    #[error(
        "module `{module}` has no kernel `{entry}`; in CUDA C++ it must be `extern \"C\" __global__`"
    )]
    MissingEntry {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// The name that it lacks.
        entry: String,
    },
    /// Its groups need more memory than there is.
    #[error(
        "kernel `{entry}` of module `{module}` needs {} of shared memory for each group, but {gpu} \
         has {limit}: make its `Local` and `LocalSlice` parameters smaller",
        Count(*needed, "byte")
    )]
    SharedMemory {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// The name of the entry point in the module.
        entry: String,
        /// The GPU that it was for.
        gpu: Gpu,
        /// Bytes that a group needs.
        needed: u64,
        /// Bytes that it can have.
        limit: u64,
    },
    /// The entry point takes other parameters.
    #[error(
        "kernel `{entry}` of module `{module}` takes {} of parameters, but the task has {given}; \
         its parameters must be those of the task, in order",
        Count(*expected, "byte")
    )]
    Parameters {
        /// The name of the module of kernels: that of its crate.
        module: String,
        /// The name of the entry point in the module.
        entry: String,
        /// What it takes.
        expected: u64,
        /// What it would be given.
        given: u64,
    },
}

/// A compiler of CUDA C++, which a run asks for binaries.
pub trait Compiler: Send + Sync + 'static {
    /// A binary for GPUs of the given compute capability. `name` is what the
    /// source is called in messages.
    ///
    /// # Errors
    /// [`CompileError`].
    fn compile(
        &self,
        name: &str,
        source: &str,
        capability: (u32, u32),
    ) -> Result<Arc<[u8]>, CompileError>;
}

/// Why there is no binary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no compiler.
    #[error("{0}")]
    NoCompiler(String),
    /// The compiler objects.
    #[error("{0}")]
    Rejected(String),
}

pub(crate) struct CodeLoader {
    driver: Arc<dyn Driver>,
    compiler: Option<Arc<dyn Compiler>>,
    /// By GPU.
    capabilities: Vec<Capability>,
    /// By the module's address, which stays its own while it is held here.
    units: Mutex<HashMap<usize, Arc<Unit>>>,
}

/// Major and minor.
type Capability = (u32, u32);

/// A module and what has become of it.
struct Unit {
    module: Arc<CodeModule>,
    /// By architecture: what its source has been compiled to.
    binaries: Mutex<HashMap<Capability, Arc<[u8]>>>,
    /// By what a text of it is for: what is in it.
    outlines: Mutex<HashMap<u32, Option<Arc<ModuleOutline>>>>,
    /// By GPU.
    on_gpus: Vec<OnGpu>,
}

/// What of a module is on a GPU.
#[derive(Default)]
struct OnGpu {
    /// All of it, where it is not known what entry points need.
    whole: OnceLock<Result<Loaded, CodeError>>,
    /// A program uses few entry points: looking through them is faster than a map.
    entries: Mutex<Vec<(Box<str>, LoadedEntry)>>,
}

/// A module on a GPU, or an excerpt of one.
#[derive(Clone)]
struct Loaded {
    module: ModuleHandle,
    /// Where its views record what goes wrong, if they check.
    record: Option<AccessRecord>,
    /// Where its kernels record that they panicked, if they can.
    panics: Option<Arc<GpuPanics>>,
}

/// What there is to launch.
#[derive(Clone, Debug)]
pub(crate) struct LoadedEntry {
    pub(crate) function: Function,
    /// Bytes of all parameters, where the driver can tell.
    parameter_bytes: Option<u64>,
    /// How many threads its blocks can have.
    pub(crate) most_threads: u32,
    /// Of a module that checks its indices.
    pub(crate) record: Option<AccessRecord>,
    /// Of a module whose kernels can panic.
    pub(crate) panics: Option<Arc<GpuPanics>>,
}

impl CodeLoader {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        compiler: Option<Arc<dyn Compiler>>,
        capabilities: Vec<Capability>,
    ) -> Self {
        Self { driver, compiler, capabilities, units: Mutex::default() }
    }

    /// What to launch, by its name.
    pub(crate) fn entry(
        &self,
        gpu: Gpu,
        named: (&dyn DeviceCode, &str),
    ) -> Result<LoadedEntry, CodeError> {
        self.with_entry(gpu, named, Clone::clone)
    }

    /// Looks at what to launch.
    fn with_entry<T>(
        &self,
        gpu: Gpu,
        (code, name): (&dyn DeviceCode, &str),
        look: impl FnOnce(&LoadedEntry) -> T,
    ) -> Result<T, CodeError> {
        let unit = self.unit(code.module());
        let on_gpu = &unit.on_gpus[gpu.slot()];
        let mut entries = lock(&on_gpu.entries);
        if let Some((_, known)) = entries.iter().find(|(known, _)| **known == *name) {
            return Ok(look(known));
        }
        // What a driver makes of an excerpt that it does not take, it says of the whole.
        let loaded = match self.load_excerpt(&unit, gpu, name) {
            Some(loaded) => loaded,
            None => on_gpu.whole.get_or_init(|| self.load(&unit, gpu)).clone()?,
        };
        let function = self.driver.function(loaded.module, name);
        let function = function.map_err(|error| missing(&unit.module, name, gpu, error))?;
        let refused = |error| load_error(&unit.module, gpu, error);
        let parameter_bytes = self.driver.parameter_bytes(function).map_err(refused)?;
        let most_threads = self.driver.most_threads(function).map_err(refused)?;
        let Loaded { record, panics, .. } = loaded;
        let entry = LoadedEntry { function, parameter_bytes, most_threads, record, panics };
        let seen = look(&entry);
        entries.push((name.into(), entry));
        Ok(seen)
    }

    /// See [`Gpus::check`](crate::Gpus::check).
    pub(crate) fn check(
        &self,
        gpu: Gpu,
        code: &dyn DeviceCode,
        accesses: usize,
    ) -> Result<(), CodeError> {
        // Not a copy of it: the panic record is counted on the thread of the GPU.
        let expected = self.with_entry(gpu, (code, code.entry()), |entry| entry.parameter_bytes)?;
        let Some(expected) = expected else { return Ok(()) };
        let region = Region::empty();
        let nothing = BoundMemory::of_nothing(&region);
        // What cannot be launched for one item may well be for others.
        let Ok(launch) = code.launch(&Box3::UNIT, &vec![nothing; accesses]) else { return Ok(()) };
        let given = launch.parameters.as_bytes().len() as u64;
        if given == expected {
            return Ok(());
        }
        let (module, entry) = (code.module().name().to_owned(), code.entry().to_owned());
        Err(CodeError::Parameters { module, entry, expected, given })
    }

    fn unit(&self, module: &Arc<CodeModule>) -> Arc<Unit> {
        let mut units = lock(&self.units);
        let unit = units.entry(Arc::as_ptr(module).addr()).or_insert_with(|| {
            let on_gpus = self.capabilities.iter().map(|_| OnGpu::default()).collect();
            let (binaries, outlines) = (Mutex::default(), Mutex::default());
            Arc::new(Unit { module: module.clone(), binaries, outlines, on_gpus })
        });
        unit.clone()
    }

    fn load(&self, unit: &Unit, gpu: Gpu) -> Result<Loaded, CodeError> {
        let load = |image| {
            let loaded = self.driver.load(gpu, image);
            loaded.map_err(|error| load_error(&unit.module, gpu, error))
        };
        let module = match (unit.module.source(), self.assembly(unit, gpu)) {
            (_, Some(assembly)) => load(Image::Ptx(assembly?.1))?,
            (CodeSource::Binary(code), _) => load(Image::Binary(code))?,
            (CodeSource::CudaCpp(source), _) => {
                load(Image::Binary(&self.compiled(unit, source, gpu)?))?
            }
            _ => unreachable!("all forms of code are handled"),
        };
        self.with_records(module).map_err(|error| load_error(&unit.module, gpu, error))
    }

    fn with_records(&self, module: ModuleHandle) -> Result<Loaded, DriverError> {
        let record = self.driver.variable(module, AccessRecord::VARIABLE)?;
        let record = record.map(|(address, bytes)| AccessRecord::new(address, bytes));
        let panics = GpuPanics::install(&self.driver, module)?;
        Ok(Loaded { module, record, panics })
    }

    /// An entry point of a module in PTX with no more than what it needs, if that is known: the driver compiles
    /// all that it is given.
    fn load_excerpt(&self, unit: &Unit, gpu: Gpu, entry: &str) -> Option<Loaded> {
        let (key, text) = self.assembly(unit, gpu)?.ok()?;
        let mut outlines = lock(&unit.outlines);
        let outline =
            outlines.entry(key).or_insert_with(|| ModuleOutline::of(text).map(Arc::new)).clone();
        drop(outlines);
        let excerpt = outline?.only(text, entry)?;
        let module = self.driver.load(gpu, Image::Ptx(&excerpt)).ok()?;
        self.with_records(module).ok()
    }

    /// The text of a module in PTX for a GPU, and which of its texts that is. `None` if it is in another form.
    fn assembly<'a>(&self, unit: &'a Unit, gpu: Gpu) -> Option<Result<(u32, &'a str), CodeError>> {
        match unit.module.source() {
            CodeSource::Ptx(text) => Some(Ok((0, text))),
            CodeSource::PtxFor(texts) => Some(self.newest(unit, texts, gpu)),
            _ => None,
        }
    }

    /// The newest text that the GPU can run, and what it needs.
    fn newest<'a>(
        &self,
        unit: &Unit,
        texts: &'a [(u32, Cow<'static, str>)],
        gpu: Gpu,
    ) -> Result<(u32, &'a str), CodeError> {
        let (major, minor) = self.capabilities[gpu.slot()];
        let known = major * 10 + minor;
        let text = texts.iter().rev().find(|(needed, _)| *needed <= known);
        text.map(|(needed, text)| (*needed, &**text)).ok_or_else(|| CodeError::TooNew {
            module: unit.module.name().to_owned(),
            gpu,
            capability: format!("{major}.{minor}"),
        })
    }

    fn compiled(&self, unit: &Unit, source: &str, gpu: Gpu) -> Result<Arc<[u8]>, CodeError> {
        let capability = self.capabilities[gpu.slot()];
        // Held while compiling: GPUs of one architecture wait for one compiler.
        let mut binaries = lock(&unit.binaries);
        if let Some(known) = binaries.get(&capability) {
            return Ok(known.clone());
        }
        let name = unit.module.name();
        let outcome = match &self.compiler {
            Some(compiler) => compiler.compile(name, source, capability),
            None => Err(CompileError::NoCompiler("the run was started without one".to_owned())),
        };
        let binary = outcome.map_err(|error| match error {
            CompileError::NoCompiler(reason) => {
                CodeError::NoCompiler { module: name.to_owned(), reason }
            }
            CompileError::Rejected(log) => CodeError::Compile { module: name.to_owned(), log },
        })?;
        binaries.insert(capability, binary.clone());
        Ok(binary)
    }
}

fn load_error(module: &CodeModule, gpu: Gpu, error: DriverError) -> CodeError {
    CodeError::Load { module: module.name().to_owned(), gpu, error }
}

fn missing(module: &CodeModule, entry: &str, gpu: Gpu, error: DriverError) -> CodeError {
    if error.is_not_found() {
        return CodeError::MissingEntry {
            module: module.name().to_owned(),
            entry: entry.to_owned(),
        };
    }
    load_error(module, gpu, error)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What they protect is consistent between statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
