#![doc = include_str!("../README.md")]

mod arbiter;
mod backend;
mod check;
mod code;
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
mod pool;
mod profile;
mod progress;
mod pulse;
mod reactor;
mod run;
mod scheduler;
mod submission;
mod sync;
mod threads;
mod time;
mod warning;
mod window;
mod work;

pub use arbiter::{Arbiter, ArbiterError, PostReceive};
pub use backend::{
    AllocError, Arguments, Backend, Begun, Completion, CpuBackend, Job, JobFailure, Waker,
};
pub use celerity_idag::{DeviceMemory, Lookahead};
pub use check::CheckLevel;
pub use code::{CodeModule, CodeSource, DeviceCode, Launch, Parameters};
pub use communicator::{
    CommEvent, CommunicationError, Communicator, LocalCommunicator, NOTE_LEN,
    Payload as WirePayload, local_cluster,
};
pub use config::ClusterConfig;
pub use copy::{ElementArray, copy_elements, copy_elements_spread};
pub use engine::{Assignment, Engine, LaneGroup, LaneId, LaneJob, Step, Target};
pub use error::{
    NoRoom, Resident, RunError, ScheduleError, SubmitError, TaskError, write_with_causes,
};
pub use frontend::NodeFrontend;
pub use kernel_times::{KernelTime, KernelTimes};
pub use lanes::LaneLayout;
pub use machine::NodeMachine;
pub use memory::BasePtr;
pub use node::{Activity, Executor, OnLane, Phase, Running, Stall, Starvation, Waiting, WaitsFor};
pub use observe::Observer;
pub use pinning::{available_cores, online_cores};
pub use pool::CpuPool;
pub use progress::Progress;
pub use reactor::Attention;
pub use run::{CpuDevices, Devices, InProcess, KernelCheck, Network, Run, run_cluster};
pub use scheduler::{Batch, Order, Scheduler};
pub use submission::Submission;
pub use time::{Clock, Span, Time};
pub use warning::{Blocked, Lingering, Warning, WarningSink};
pub use window::{IdHasher, IdMap, Window};
pub use work::{BoundMemory, DeviceKernel, HostData, HostFunction, NoDeviceCode, Payload};
