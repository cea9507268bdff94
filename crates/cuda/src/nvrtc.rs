//! NVIDIA's run-time compiler, found when a program runs. Compiles to the
//! machine code of one architecture, and keeps what it has compiled on disk.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::code::{CompileError, Compiler};
use crate::kernel::HEADER;

mod cache;
mod library;

use cache::DiskCache;
use library::Library;

/// How to compile, and with what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvrtcConfig {
    /// The library. Without this, the usual names are tried.
    pub library: Option<PathBuf>,
    /// A folder for what has been compiled, which is made if it does not exist;
    /// may be shared by processes. Without this, nothing is kept.
    pub cache: Option<PathBuf>,
    /// Whether kernels check their indices, and report those outside of what
    /// their tasks declare.
    pub checked: bool,
    /// More options for the compiler, as on its command line.
    pub options: Vec<String>,
}

/// The compiler.
pub struct Nvrtc {
    library: Library,
    cache: Option<DiskCache>,
    options: Vec<String>,
}

impl Nvrtc {
    /// Finds the compiler.
    ///
    /// # Errors
    /// [`CompileError::NoCompiler`] says what was tried.
    pub fn new(config: &NvrtcConfig) -> Result<Self, CompileError> {
        let library = Library::open(config.library.as_deref())?;
        let mut options = vec!["--std=c++17".to_owned(), "--generate-line-info".to_owned()];
        if config.checked {
            options.push("--define-macro=CELERITY_CHECKED".to_owned());
        }
        options.extend_from_slice(&config.options);
        Ok(Self { library, cache: config.cache.clone().map(DiskCache::new), options })
    }

    /// The compiler's version: major and minor.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.library.version()
    }

    /// The folder of the user where compiled code is kept by convention:
    /// `$XDG_CACHE_HOME/celerity`, or `~/.cache/celerity`.
    #[must_use]
    pub fn user_cache() -> Option<PathBuf> {
        let from = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let xdg = from("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = xdg.or_else(|| Some(PathBuf::from(from("HOME")?).join(".cache")));
        cache.map(|cache| cache.join("celerity"))
    }

    /// Machine code for an architecture that the compiler knows; for a newer
    /// one, assembly for the newest that it does, which the driver compiles.
    fn target(&self, (major, minor): (u32, u32)) -> Result<Target, CompileError> {
        let wanted = major * 10 + minor;
        let known = self.library.architectures()?;
        if known.contains(&wanted) {
            return Ok(Target::Machine(wanted));
        }
        let older = known.iter().filter(|&&known| known < wanted).max();
        older.map(|&older| Target::Assembly(older)).ok_or_else(|| {
            let (major, minor) = (wanted / 10, wanted % 10);
            let what = format!("this compiler is too new for compute capability {major}.{minor}");
            CompileError::NoCompiler(what)
        })
    }
}

/// The compiler, found when it is first needed: a program without CUDA C++ neither
/// needs nor loads it.
pub struct LazyNvrtc {
    config: NvrtcConfig,
    opened: OnceLock<Result<Nvrtc, CompileError>>,
}

impl LazyNvrtc {
    /// Looks for nothing yet.
    #[must_use]
    pub fn new(config: NvrtcConfig) -> Self {
        Self { config, opened: OnceLock::new() }
    }
}

impl Compiler for LazyNvrtc {
    fn compile(
        &self,
        name: &str,
        source: &str,
        capability: (u32, u32),
    ) -> Result<Arc<[u8]>, CompileError> {
        let opened = self.opened.get_or_init(|| Nvrtc::new(&self.config));
        opened.as_ref().map_err(Clone::clone)?.compile(name, source, capability)
    }
}

/// What is compiled to, by architecture: compute capability 9.0 is 90.
#[derive(Clone, Copy)]
enum Target {
    Machine(u32),
    Assembly(u32),
}

impl Target {
    fn option(self) -> String {
        match self {
            Self::Machine(number) => format!("--gpu-architecture=sm_{number}"),
            Self::Assembly(number) => format!("--gpu-architecture=compute_{number}"),
        }
    }
}

impl Compiler for Nvrtc {
    fn compile(
        &self,
        name: &str,
        source: &str,
        capability: (u32, u32),
    ) -> Result<Arc<[u8]>, CompileError> {
        let target = self.target(capability)?;
        let mut options = self.options.clone();
        options.push(target.option());
        let key = self.key(name, source, &options);
        if let Some(known) = self.cache.as_ref().and_then(|cache| cache.get(&key)) {
            return Ok(known.into());
        }
        let program = self.library.program(name, source, HEADER)?;
        program.compile(&options)?;
        let code = match target {
            Target::Machine(_) => program.machine_code()?,
            Target::Assembly(_) => program.assembly()?,
        };
        if let Some(cache) = &self.cache {
            cache.put(&key, &code);
        }
        Ok(code.into())
    }
}

impl Nvrtc {
    /// Everything that the outcome depends on.
    fn key(&self, name: &str, source: &str, options: &[String]) -> Vec<u8> {
        let (major, minor) = self.version();
        let head = format!("{major}.{minor}\0{}\0{name}\0", options.join("\0"));
        [head.as_bytes(), HEADER.as_bytes(), b"\0", source.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_missed_when_it_is_needed() {
        let library = Some("/nowhere/libnvrtc.so".into());
        let compiler = LazyNvrtc::new(NvrtcConfig { library, ..NvrtcConfig::default() });
        let error = compiler.compile("a.cu", "", (9, 0)).unwrap_err().to_string();
        assert!(error.contains("none of /nowhere/libnvrtc.so can be loaded"), "{error}");
    }
}
