//! The suite's core, a shared library with the interface of its `core_c.h`. Owns every call into it.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_double, c_int, c_long, c_void};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use libloading::Library;

use crate::arguments::Arguments;
use crate::graph::{Formula, Graph, Line, Point};

/// Why the suite's core cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// There is no such file, or it is no library for this machine.
    #[error(
        "cannot load {}: {}; `make -C core` in a copy of the suite builds its libcore.so",
        path.display(), reason(source)
    )]
    Open { path: PathBuf, source: libloading::Error },
    /// It is a library, but not this one.
    #[error("{} lacks `{symbol}`: it is not the core of Task Bench, or not one of 2020 or later", path.display())]
    Symbol { path: PathBuf, symbol: &'static str },
}

/// What the system's loader says, which the library's error keeps behind itself.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Handle(*mut c_void);

#[repr(C)]
#[derive(Clone, Copy)]
struct Interval {
    start: c_long,
    /// The last one.
    end: c_long,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Kernel {
    kind: c_int,
    iterations: c_long,
    samples: c_int,
    imbalance: c_double,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawGraph {
    index: c_long,
    steps: c_long,
    width: c_long,
    dependence: c_int,
    radix: c_long,
    period: c_long,
    fraction: c_double,
    kernel: Kernel,
    output_bytes: usize,
    scratch_bytes: usize,
    fields: c_int,
}

type Execute = unsafe extern "C" fn(
    RawGraph,
    c_long,
    c_long,
    *mut c_char,
    usize,
    *const *const c_char,
    *const usize,
    usize,
    *mut c_char,
    usize,
);

macro_rules! api {
    ($($name:ident: $symbol:literal, $type:ty;)*) => {
        /// The functions of the suite that are called here.
        struct Api {
            $($name: $type,)*
            /// Whose code the functions are: it stays loaded for as long.
            _library: Library,
        }

        impl Api {
            fn find(library: Library, path: &Path) -> Result<Self, LoadError> {
                $(
                    // SAFETY: `core_c.h` declares the function of this name with this type; what has all of
                    // these names is taken for the suite's core, which is what `load` asks its caller for.
                    let $name = unsafe { library.get::<$type>($symbol) };
                    let symbol = || $symbol.to_str().unwrap_or("a symbol");
                    let $name = *$name.map_err(|_| LoadError::Symbol { path: path.into(), symbol: symbol() })?;
                )*
                Ok(Self { $($name,)* _library: library })
            }
        }
    };
}

api! {
    app_create: c"app_create", unsafe extern "C" fn(c_int, *mut *mut c_char) -> Handle;
    app_destroy: c"app_destroy", unsafe extern "C" fn(Handle);
    app_graphs: c"app_task_graphs", unsafe extern "C" fn(Handle) -> Handle;
    app_display: c"app_display", unsafe extern "C" fn(Handle);
    app_report: c"app_report_timing", unsafe extern "C" fn(Handle, c_double);
    list_len: c"task_graph_list_num_task_graphs", unsafe extern "C" fn(Handle) -> c_long;
    list_at: c"task_graph_list_task_graph", unsafe extern "C" fn(Handle, c_long) -> RawGraph;
    list_destroy: c"task_graph_list_destroy", unsafe extern "C" fn(Handle);
    offset: c"task_graph_offset_at_timestep", unsafe extern "C" fn(RawGraph, c_long) -> c_long;
    width: c"task_graph_width_at_timestep", unsafe extern "C" fn(RawGraph, c_long) -> c_long;
    sets: c"task_graph_max_dependence_sets", unsafe extern "C" fn(RawGraph) -> c_long;
    set_at: c"task_graph_dependence_set_at_timestep", unsafe extern "C" fn(RawGraph, c_long) -> c_long;
    dependencies: c"task_graph_dependencies", unsafe extern "C" fn(RawGraph, c_long, c_long) -> Handle;
    intervals_len: c"interval_list_num_intervals", unsafe extern "C" fn(Handle) -> c_long;
    interval_at: c"interval_list_interval", unsafe extern "C" fn(Handle, c_long) -> Interval;
    intervals_destroy: c"interval_list_destroy", unsafe extern "C" fn(Handle);
    execute: c"task_graph_execute_point_scratch", Execute;
    prepare: c"task_graph_prepare_scratch", unsafe extern "C" fn(*mut c_char, usize);
}

/// The suite's core.
#[derive(Clone)]
pub(crate) struct Suite(Arc<Api>);

/// Loads the suite's core. The caller says which file that is: what else has functions of these names, and
/// does something else, does it in this process.
///
/// # Errors
/// If there is no library, or none with the suite's functions.
pub(crate) fn load(path: &Path) -> Result<Suite, LoadError> {
    // SAFETY: the suite's core has no initialisers but those of its own tables of names.
    let library = unsafe { Library::new(path) };
    let library = library.map_err(|source| LoadError::Open { path: path.into(), source })?;
    Ok(Suite(Arc::new(Api::find(library, path)?)))
}

impl Suite {
    /// What the suite makes of arguments.
    pub(crate) fn app(&self, arguments: Arguments) -> App {
        let formulas = arguments.formulas;
        let words = std::iter::once("task-bench".to_owned()).chain(arguments.words);
        let words: Vec<_> = words.map(|word| CString::new(word).unwrap_or_default()).collect();
        let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: as many strings as it says, which it reads and does not keep.
        let handle = unsafe { (self.0.app_create)(count, pointers.as_mut_ptr()) };
        App { suite: self.clone(), handle, formulas }
    }
}

/// Task graphs, and how the suite tells of them.
pub(crate) struct App {
    suite: Suite,
    handle: Handle,
    formulas: Vec<Formula>,
}

// SAFETY: of what the handle leads to, `App` gives out copies, and `display` and `report` only read it.
unsafe impl Sync for App {}

impl App {
    /// All graphs, at least one.
    pub(crate) fn graphs(&self) -> Vec<SuiteGraph> {
        let api = &self.suite.0;
        // SAFETY: the handle is alive until `self` is dropped, the list until it is destroyed here, and
        // indices are less than its length.
        unsafe {
            let list = (api.app_graphs)(self.handle);
            let raws: Vec<_> =
                (0..(api.list_len)(list)).map(|at| (api.list_at)(list, at)).collect();
            (api.list_destroy)(list);
            let both = raws.into_iter().zip(&self.formulas);
            let graph = |(raw, &formula): (RawGraph, &Formula)| SuiteGraph {
                suite: self.suite.clone(),
                raw,
                formula,
                sizes: vec![raw.output_bytes; number(raw.width)].into(),
            };
            both.map(graph).collect()
        }
    }

    /// Prints what is to be done, in the suite's words.
    pub(crate) fn display(&self) {
        // SAFETY: the handle is alive.
        unsafe { (self.suite.0.app_display)(self.handle) }
    }

    /// Prints what came out, in the suite's words.
    pub(crate) fn report(&self, elapsed: Duration) {
        // SAFETY: the handle is alive.
        unsafe { (self.suite.0.app_report)(self.handle, elapsed.as_secs_f64()) }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // SAFETY: made by `app_create`, and nobody else destroys it.
        unsafe { (self.suite.0.app_destroy)(self.handle) }
    }
}

/// A graph of the suite.
pub(crate) struct SuiteGraph {
    suite: Suite,
    raw: RawGraph,
    formula: Formula,
    /// Bytes of each input of a point, of which there are at most as many as places.
    sizes: Box<[usize]>,
}

impl SuiteGraph {
    /// Iterations of a point's kernel, as the arguments have them.
    pub(crate) fn iterations(&self) -> i64 {
        self.raw.kernel.iterations
    }
}

/// What the library counts, which `arguments` has kept small and not negative.
fn number(long: c_long) -> usize {
    usize::try_from(long).unwrap_or(0)
}

/// What it counts from here, which it has given out as a [`c_long`] before.
fn long(number: usize) -> c_long {
    c_long::try_from(number).unwrap_or(c_long::MAX)
}

impl Graph for SuiteGraph {
    fn steps(&self) -> usize {
        number(self.raw.steps)
    }

    fn width(&self) -> usize {
        number(self.raw.width)
    }

    fn output_bytes(&self) -> usize {
        self.raw.output_bytes
    }

    fn scratch_lines(&self) -> usize {
        self.raw.scratch_bytes / size_of::<Line>()
    }

    fn active(&self, step: usize) -> Range<usize> {
        let (api, step) = (&self.suite.0, long(step));
        // SAFETY: pure functions of a graph that the suite has made, for any step.
        let (first, count) = unsafe { ((api.offset)(self.raw, step), (api.width)(self.raw, step)) };
        number(first)..number(first + count)
    }

    fn formula(&self) -> Formula {
        self.formula
    }

    fn sets(&self) -> usize {
        // SAFETY: a pure function of a graph that the suite has made.
        number(unsafe { (self.suite.0.sets)(self.raw) })
    }

    fn set_at(&self, step: usize) -> usize {
        // SAFETY: as `sets`; `arguments` refuses graphs without a set, by whose number this divides.
        number(unsafe { (self.suite.0.set_at)(self.raw, long(step)) })
    }

    fn dependencies(&self, set: usize, place: usize) -> Vec<Range<usize>> {
        let api = &self.suite.0;
        // SAFETY: a pure function, whose list lives until it is destroyed here; indices are less than its length.
        unsafe {
            let list = (api.dependencies)(self.raw, long(set), long(place));
            let intervals = (0..(api.intervals_len)(list)).map(|at| (api.interval_at)(list, at));
            let ranges = intervals.map(|part| number(part.start)..number(part.end + 1)).collect();
            (api.intervals_destroy)(list);
            ranges
        }
    }

    fn prepare(&self, scratch: &mut [Line]) {
        // SAFETY: so many bytes, all of which it may write.
        unsafe {
            (self.suite.0.prepare)(scratch.as_mut_ptr().cast(), size_of_val(scratch));
        }
    }

    fn execute(
        &self,
        point: Point,
        iterations: i64,
        output: &mut [u64],
        inputs: &[&[u64]],
        scratch: &mut [Line],
    ) {
        let bytes = self.raw.output_bytes;
        let words = bytes.div_ceil(size_of::<u64>());
        let is_whole = |row: &[u64]| row.len() == words;
        assert!(
            is_whole(output) && inputs.iter().all(|row| is_whole(row)),
            "rows have {words} words"
        );
        assert!(inputs.len() <= self.sizes.len(), "an input for each place at most");
        let mut raw = self.raw;
        raw.kernel.iterations = iterations;
        // Where so few rows fit, nothing is allocated, and nothing is moved.
        let mut few = [ptr::null(); 16];
        let mut many = Vec::new();
        let rows: &mut [*const c_char] = match few.get_mut(..inputs.len()) {
            Some(rows) => rows,
            None => {
                many.resize(inputs.len(), ptr::null());
                &mut many
            }
        };
        for (pointer, row) in rows.iter_mut().zip(inputs) {
            *pointer = row.as_ptr().cast();
        }
        // SAFETY: output and inputs have at least `bytes` bytes each, aligned for the suite's pairs of `long`;
        // there are as many pointers as it is told, and at least as many sizes, and `scratch` has as many bytes. It keeps none of
        // them, and writes to output and scratch alone. Its functions may run on several threads at once.
        unsafe {
            (self.suite.0.execute)(
                raw,
                long(point.step),
                long(point.place),
                output.as_mut_ptr().cast(),
                bytes,
                rows.as_ptr(),
                self.sizes.as_ptr(),
                rows.len(),
                scratch.as_mut_ptr().cast(),
                size_of_val(scratch),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let error = load("no/such/libcore.so".as_ref()).err().expect("there is none").to_string();
        assert!(error.contains("no/such/libcore.so") && error.contains("make -C core"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_library_is_refused() {
        let error = load("libm.so.6".as_ref()).err().expect("no suite in it").to_string();
        assert!(error.contains("libm.so.6 lacks `app_create`"), "{error}");
    }
}
