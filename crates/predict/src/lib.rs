#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod calibration;
mod cluster;
mod costs;
mod error;
mod kernels;
mod pace;
mod prediction;
mod recorded;
mod report;
pub mod runs;
mod schedule;
mod simulate;
mod span;
mod timeline;

pub use calibration::{Calibration, ExchangeCosts, MachineSamples, MissingSamples};
pub use cluster::{
    ClusterModel, CopyModel, DeviceMemoryModel, DeviceModel, EngineModel, EngineThreads, Nanos,
    NetworkModel, NodesModel, Processor, WayModel,
};
pub use costs::{CostedWork, WorkCosts};
pub use error::PredictError;
pub use kernels::KernelCosts;
pub use pace::{Act, Pace};
pub use prediction::{Prediction, RepeatedKernel, StretchedKernel};
pub use recorded::{MeasuredLaunch, RecordedRun, Stretch};
pub use report::{ReportRow, csv, table};
pub use schedule::{
    Action, NodeSchedule, ReceivePart, ScheduledKind, ScheduledStep, ScheduledTask, TransferKey,
};
pub use simulate::predict;
pub use span::{Lane, Limit, SimulatedSpan, SpanId, Spans, Subject};
pub use timeline::write_timeline;
