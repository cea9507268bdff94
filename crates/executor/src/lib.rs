#![doc = include_str!("../README.md")]

mod arbiter;
mod backend;
mod bound;
mod call;
mod check;
mod code;
mod collective;
mod communicator;
mod config;
pub mod contain;
mod copy;
mod engine;
mod error;
mod frontend;
mod kernel_times;
mod lanes;
mod machine;
mod memory;
mod node;
mod observe;
mod pinning;
mod polling;
mod pool;
mod profile;
mod progress;
mod pulse;
mod reactor;
mod reduced;
mod run;
mod scheduler;
mod stall;
mod starvation;
mod submission;
mod sync;
mod threads;
mod time;
mod warning;
mod watchdog;
mod window;
mod wires;
mod work;

pub use arbiter::{Arbiter, ArbiterError, PostReceive};
pub use backend::{AllocError, Arguments, Backend, Begun, Completion, CpuBackend, Job, JobFailure};
pub use bound::BoundMemory;
pub use call::{DeviceStream, EnqueuedCall};
pub use celerity_cpd::{Collectives, Costs, NotCosts, Weighed};
pub use celerity_idag::{DeviceMemory, Lookahead};
pub use code::{CodeModule, CodeSource, DeviceCode, Launch, Parameters};
pub use collective::{CollectiveError, CollectiveOperation, GroupCommunicator};
pub use communicator::{
    CollectiveExchange, CommEvent, Communicator, LocalCommunicator, MemoryPart, NOTE_LEN,
    WirePayload, find_in, local_cluster, pack, unpack,
};
pub use config::{CheckLevel, ClusterConfig};
pub use copy::{ElementArray, copy_elements, copy_elements_spread, copy_region, cut_elements};
pub use engine::{
    Assignment, CANDIDATES, Engine, LaneGroup, LaneId, LaneJob, Step, Target, independent_set,
};
pub use error::{
    CommunicationError, NoRoom, Resident, RunError, ScheduleError, SubmitError, TaskError,
    write_with_causes,
};
pub use frontend::{KernelCheck, NodeFrontend};
pub use kernel_times::{KernelTime, KernelTimes};
pub use lanes::LaneLayout;
pub use machine::NodeMachine;
pub use memory::BasePtr;
pub use node::{Executor, Phase};
pub use observe::Observer;
pub use pinning::{available_cores, online_cores};
pub use polling::{Activity, Attention, Waker};
pub use pool::CpuPool;
pub use progress::Progress;
pub use run::{CpuDevices, Devices, InProcess, Network, Run, run_cluster};
pub use scheduler::{Batch, Scheduler, SchedulerMessage};
pub use stall::{OnLane, Running, Stall, Waiting, WaitsFor};
pub use starvation::Starvation;
pub use submission::Submission;
pub use time::{Clock, Span, Time};
pub use warning::{Blocked, Lingering, Warning, WarningSink};
pub use window::{IdHasher, IdMap, Window};
pub use wires::{
    CARD_LEN, CollectiveTerms, Copied, CopyId, DeviceCollectives, DeviceWindows, Handshake,
    MOST_OF_JOINING_CARD, MemoryArray, Slot, WindowError, WindowSize, WireCopy, Wired,
    WiredCommunicator, Wires,
};
pub use work::{DeviceKernel, HostCall, HostData, HostFunction, HostKernel, NoDeviceCode, Payload};
