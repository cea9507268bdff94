//! The compiler's library: the few functions that are used, under their own
//! names.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use crate::code::CompileError;
use crate::dynamic::functions;

/// By which names the library goes, newest first.
const NAMES: [&str; 6] = [
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "/opt/cuda/lib64/libnvrtc.so",
];

type Program = *mut c_void;
type Status = c_int;

functions! {
    nvrtcVersion: fn(*mut c_int, *mut c_int) -> Status;
    nvrtcGetErrorString: fn(Status) -> *const c_char;
    nvrtcGetNumSupportedArchs: fn(*mut c_int) -> Status;
    nvrtcGetSupportedArchs: fn(*mut c_int) -> Status;
    nvrtcCreateProgram: fn(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char
    ) -> Status;
    nvrtcDestroyProgram: fn(*mut Program) -> Status;
    nvrtcCompileProgram: fn(Program, c_int, *const *const c_char) -> Status;
    nvrtcGetProgramLogSize: fn(Program, *mut usize) -> Status;
    nvrtcGetProgramLog: fn(Program, *mut c_char) -> Status;
    nvrtcGetCUBINSize: fn(Program, *mut usize) -> Status;
    nvrtcGetCUBIN: fn(Program, *mut c_char) -> Status;
    nvrtcGetPTXSize: fn(Program, *mut usize) -> Status;
    nvrtcGetPTX: fn(Program, *mut c_char) -> Status;
}

type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> Status;
type Contents = unsafe extern "C" fn(Program, *mut c_char) -> Status;

pub(super) struct Library {
    functions: Functions,
    version: (u32, u32),
    /// Keeps `functions` good.
    _library: libloading::Library,
}

impl Library {
    /// Loads the library at `path`, or the first that is found.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, CompileError> {
        let named = path.map(|path| vec![path.as_os_str()]);
        let names = named.unwrap_or_else(|| NAMES.iter().map(AsRef::as_ref).collect());
        let found = names.iter().find_map(|name| {
            // SAFETY: loading the compiler runs its initialisers, which is what
            // they are made for.
            unsafe { libloading::Library::new(*name) }.ok()
        });
        let library = found.ok_or_else(|| no_library(&names))?;
        // SAFETY: by its name it is NVIDIA's compiler.
        let functions = unsafe { Functions::of(&library) }.map_err(|error| {
            CompileError::NoCompiler(format!("the run-time compiler found is too old: {error}"))
        })?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both outlive the call.
        let status = unsafe { (functions.nvrtcVersion)(&raw mut major, &raw mut minor) };
        functions.check(status)?;
        let version = (major.unsigned_abs(), minor.unsigned_abs());
        Ok(Self { functions, version, _library: library })
    }

    pub(super) fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Architectures that it compiles for, such as 90.
    pub(super) fn architectures(&self) -> Result<Vec<u32>, CompileError> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        let status = unsafe { (self.functions.nvrtcGetNumSupportedArchs)(&raw mut count) };
        self.functions.check(status)?;
        let mut known = vec![0; usize::try_from(count).unwrap_or_default()];
        // SAFETY: there is room for as many as were announced.
        let status = unsafe { (self.functions.nvrtcGetSupportedArchs)(known.as_mut_ptr()) };
        self.functions.check(status)?;
        Ok(known.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// A program that may include `header` as `celerity.cuh`.
    pub(super) fn program(
        &self,
        name: &str,
        source: &str,
        header: &str,
    ) -> Result<Compilation<'_>, CompileError> {
        let [source, name, header] = [text(source)?, text(name)?, text(header)?];
        let headers = [header.as_ptr()];
        let header_names = [c"celerity.cuh".as_ptr()];
        let mut program = null_mut();
        // SAFETY: all text ends with a NUL and outlives the call; there is one
        // header with one name.
        let status = unsafe {
            (self.functions.nvrtcCreateProgram)(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                1,
                headers.as_ptr(),
                header_names.as_ptr(),
            )
        };
        self.functions.check(status)?;
        Ok(Compilation { functions: &self.functions, program })
    }
}

/// A program, destroyed when dropped.
pub(super) struct Compilation<'a> {
    functions: &'a Functions,
    program: Program,
}

impl Compilation<'_> {
    /// Compiles, once.
    pub(super) fn compile(&self, options: &[String]) -> Result<(), CompileError> {
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).expect("few options");
        // SAFETY: the program is alive, and there are so many options.
        let status =
            unsafe { (self.functions.nvrtcCompileProgram)(self.program, count, pointers.as_ptr()) };
        self.functions.check(status).map_err(|error| match self.log() {
            Some(log) => CompileError::Rejected(log),
            None => error,
        })
    }

    /// Code for one architecture.
    pub(super) fn machine_code(&self) -> Result<Vec<u8>, CompileError> {
        self.output(self.functions.nvrtcGetCUBINSize, self.functions.nvrtcGetCUBIN)
    }

    /// Portable assembly.
    pub(super) fn assembly(&self) -> Result<Vec<u8>, CompileError> {
        self.output(self.functions.nvrtcGetPTXSize, self.functions.nvrtcGetPTX)
    }

    fn log(&self) -> Option<String> {
        let log = self
            .output(self.functions.nvrtcGetProgramLogSize, self.functions.nvrtcGetProgramLog)
            .ok()?;
        let text = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn output(&self, size_of: SizeOf, contents: Contents) -> Result<Vec<u8>, CompileError> {
        let mut size = 0;
        // SAFETY: the program is alive, and `size` outlives the call.
        self.functions.check(unsafe { size_of(self.program, &raw mut size) })?;
        let mut bytes = vec![0_u8; size];
        // SAFETY: there is room for as much as was announced.
        self.functions.check(unsafe { contents(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and this is its last use.
        let _: Status = unsafe { (self.functions.nvrtcDestroyProgram)(&raw mut self.program) };
    }
}

impl Functions {
    fn check(&self, status: Status) -> Result<(), CompileError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: every status has a text, which lives as long as the library.
        let text = unsafe { CStr::from_ptr((self.nvrtcGetErrorString)(status)) };
        Err(CompileError::Rejected(text.to_string_lossy().into_owned()))
    }
}

fn text(text: &str) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::Rejected("there is a NUL in it".to_owned()))
}

fn no_library(names: &[&std::ffi::OsStr]) -> CompileError {
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    CompileError::NoCompiler(format!(
        "none of {} can be loaded; install NVIDIA's run-time compiler (NVRTC), or add its folder \
         to `LD_LIBRARY_PATH`",
        names.join(", ")
    ))
}
