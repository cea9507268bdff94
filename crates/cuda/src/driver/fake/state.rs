//! What a fake driver knows: streams, events, modules. Runs what is on streams.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Instant;

use super::memory::Memory;
use super::{AddressSpace, DriverError, FakeLaunch, Gpu, Shared, Transfer};

type Function = dyn Fn(&FakeLaunch) -> Result<(), String> + Send + Sync;

pub(super) struct Kernel {
    pub(super) bytes: Option<u64>,
    pub(super) most_threads: u32,
    pub(super) run: Arc<Function>,
}

/// What a fake driver has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FakeCounts {
    /// Kernels that were launched.
    pub launches: usize,
    /// Copies that were put on streams.
    pub transfers: usize,
    /// Events that were recorded.
    pub records: usize,
    /// Allocations of GPU memory.
    pub allocations: usize,
    /// Ranges of addresses of GPU memory.
    pub reservations: usize,
    /// Allocations of GPU memory without addresses.
    pub pages: usize,
    /// Allocations of pinned host memory.
    pub host_allocations: usize,
    /// Modules that were loaded.
    pub loads: usize,
}

/// What is put on streams.
pub(super) enum Operation {
    Launch {
        kernel: Arc<Function>,
        launch: FakeLaunch,
    },
    /// What somebody else has put there.
    Foreign(Box<dyn FnOnce() -> Result<(), String> + Send>),
    /// Lets the stream go on when this is open.
    Until(Arc<Gate>),
    Copy(Transfer),
    Zero {
        place: AddressSpace,
        address: u64,
        bytes: u64,
    },
    Free(u64),
    Record {
        event: usize,
        ticket: u64,
    },
    Wait {
        event: usize,
        ticket: u64,
    },
}

/// How often an event was recorded, and which of these have happened.
struct EventState {
    gpu: Gpu,
    recorded: u64,
    happened: u64,
    /// When the last of these has.
    when: Instant,
}

pub(super) struct State {
    pub(super) linked: bool,
    /// Whether memory can be exported.
    pub(super) shares: bool,
    pub(super) paused: bool,
    pub(super) closed: bool,
    /// Whether an operation is running.
    pub(super) busy: bool,
    pub(super) random: u64,
    pub(super) counts: FakeCounts,
    pub(super) memory: Memory,
    /// By GPU: what has failed there.
    pub(super) failed: Vec<Option<DriverError>>,
    pub(super) streams: Vec<VecDeque<Operation>>,
    /// Whose context is current on a thread.
    pub(super) adopted: HashMap<ThreadId, Gpu>,
    pub(super) kernels: BTreeMap<String, Kernel>,
    /// What variables start with.
    pub(super) variables: BTreeMap<String, Vec<u64>>,
    gpu_of_stream: Vec<Gpu>,
    events: Vec<EventState>,
    modules: Vec<ModuleHandle>,
    /// By function: its module and name.
    functions: Vec<(usize, String)>,
}

struct ModuleHandle {
    words: Vec<String>,
    /// Where the variables are that have been asked for.
    variables: BTreeMap<String, u64>,
}

/// What a stream waits at.
#[derive(Debug, Default)]
pub(super) struct Gate(AtomicBool);

impl Gate {
    pub(super) fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl State {
    pub(super) fn new(gpus: usize, memory: u64) -> Self {
        Self {
            linked: true,
            shares: true,
            paused: false,
            closed: false,
            busy: false,
            random: 1,
            counts: FakeCounts::default(),
            memory: Memory::new(memory),
            failed: vec![None; gpus],
            streams: Vec::new(),
            adopted: HashMap::new(),
            kernels: BTreeMap::new(),
            variables: BTreeMap::new(),
            gpu_of_stream: Vec::new(),
            events: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
        }
    }

    pub(super) fn healthy(&self, gpu: Gpu) -> Result<(), DriverError> {
        self.failed[gpu.slot()].clone().map_or(Ok(()), Err)
    }

    pub(super) fn new_stream(&mut self, gpu: Gpu) -> usize {
        self.streams.push(VecDeque::new());
        self.gpu_of_stream.push(gpu);
        self.streams.len() - 1
    }

    pub(super) fn new_event(&mut self, gpu: Gpu) -> usize {
        self.events.push(EventState { gpu, recorded: 0, happened: 0, when: Instant::now() });
        self.events.len() - 1
    }

    pub(super) fn new_ticket(&mut self, event: usize) -> u64 {
        self.counts.records += 1;
        self.events[event].recorded += 1;
        self.events[event].recorded
    }

    pub(super) fn ticket(&self, event: usize) -> u64 {
        self.events[event].recorded
    }

    pub(super) fn when(&self, event: usize) -> Instant {
        self.events[event].when
    }

    pub(super) fn has_happened(&self, event: usize, ticket: u64) -> bool {
        self.events[event].happened >= ticket
    }

    /// Words that no kernel is named after do no harm; text without words is
    /// none.
    pub(super) fn load(&mut self, text: &str) -> Result<usize, String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: Vec<_> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if words.is_empty() {
            return Err("there is nothing in it".to_owned());
        }
        self.modules.push(ModuleHandle { words, variables: BTreeMap::new() });
        Ok(self.modules.len() - 1)
    }

    pub(super) fn function(&mut self, module: usize, name: &str) -> Option<usize> {
        let exists = self.kernels.contains_key(name) && self.has_word(module, name);
        exists.then(|| {
            self.functions.push((module, name.to_owned()));
            self.functions.len() - 1
        })
    }

    /// Address and size of a module's own instance of a variable.
    pub(super) fn variable(
        &mut self,
        module: usize,
        name: &str,
        place: AddressSpace,
    ) -> Result<Option<(u64, u64)>, DriverError> {
        let exists = self.has_word(module, name);
        let Some(words) = self.variables.get(name).filter(|_| exists) else { return Ok(None) };
        let known = &mut self.modules[module].variables;
        let address = match known.get(name) {
            Some(&address) => address,
            None => self.memory.alloc_words(place, words)?,
        };
        known.insert(name.to_owned(), address);
        Ok(Some((address, 8 * words.len() as u64)))
    }

    fn has_word(&self, module: usize, name: &str) -> bool {
        self.modules[module].words.iter().any(|word| word == name)
    }

    pub(super) fn kernel(&self, function: usize) -> &Kernel {
        &self.kernels[&self.functions[function].1]
    }

    /// A function, and where the variables of its module are.
    pub(super) fn launchable(&self, function: usize) -> (Arc<Function>, BTreeMap<String, u64>) {
        let variables = &self.modules[self.functions[function].0].variables;
        (self.kernel(function).run.clone(), variables.clone())
    }

    /// The next operation of some stream that can go on. Streams of a GPU that
    /// has failed lose what is on them.
    pub(super) fn next(&mut self) -> Option<(Gpu, Operation)> {
        if self.paused && !self.closed {
            return None;
        }
        for (stream, gpu) in self.streams.iter_mut().zip(&self.gpu_of_stream) {
            if self.failed[gpu.slot()].is_some() {
                stream.clear();
            }
        }
        let ready: Vec<usize> =
            (0..self.streams.len()).filter(|&stream| self.can_go_on(stream)).collect();
        if ready.is_empty() {
            return None;
        }
        let stream = ready[self.draw(ready.len())];
        self.busy = true;
        Some((self.gpu_of_stream[stream], self.streams[stream].pop_front()?))
    }

    fn can_go_on(&self, stream: usize) -> bool {
        match self.streams[stream].front() {
            Some(Operation::Wait { event, ticket }) => {
                // Nobody waits for what a failed GPU would have done.
                let failed = &self.failed[self.events[*event].gpu.slot()];
                failed.is_some() || self.has_happened(*event, *ticket)
            }
            Some(Operation::Until(gate)) => gate.is_open(),
            front => front.is_some(),
        }
    }

    /// A number below `bound`, by xorshift.
    fn draw(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % bound as u64).expect("less than a count")
    }
}

impl Operation {
    /// Runs it, without the lock while code of the test runs.
    pub(super) fn run(self, shared: &Shared) -> Result<(), String> {
        match self {
            Self::Launch { kernel, launch } => catch_unwind(AssertUnwindSafe(|| kernel(&launch)))
                .unwrap_or_else(|_| Err("the kernel of a test panicked".to_owned())),
            Self::Foreign(work) => catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err("the work of a test panicked".to_owned())),
            Self::Copy(transfer) => shared.lock().memory.copy(&transfer),
            Self::Zero { place, address, bytes } => {
                shared.lock().memory.zero(place, address, bytes)
            }
            Self::Free(address) => {
                shared.lock().memory.free(address);
                Ok(())
            }
            Self::Record { event, ticket } => {
                let mut state = shared.lock();
                let event = &mut state.events[event];
                event.happened = event.happened.max(ticket);
                event.when = Instant::now();
                Ok(())
            }
            Self::Wait { .. } | Self::Until(_) => Ok(()),
        }
    }
}
