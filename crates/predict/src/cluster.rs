//! What a cluster costs: a file of constants, in TOML. Owns the format and its errors; when which
//! constant counts is the simulation's business.

use std::collections::BTreeMap;
use std::path::Path;

use celerity_cpd::{CostLine, Costs};
use serde::Deserialize;

use crate::error::PredictError;

/// Nanoseconds of simulated time.
pub type Nanos = u64;

/// The constants of a cluster. All keys are required, so that a gap in a calibration is an error and
/// no silent zero; the keys of a file and of these fields are the same, with `-` for `_`.
///
/// ```
/// # use celerity_predict::ClusterModel;
/// let error = ClusterModel::parse("name = 'no more than a name'\n", "a.toml".as_ref()).unwrap_err();
/// assert!(error.to_string().contains("missing field `nodes`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClusterModel {
    /// What the constants are of.
    pub name: String,
    /// How nodes lie on hosts.
    pub nodes: NodesModel,
    /// What kernels run on.
    pub device: DeviceModel,
    /// What the runtime itself takes.
    pub engine: EngineModel,
    /// What copies within a node take.
    pub copy: CopyModel,
    /// What goes between nodes.
    pub network: NetworkModel,
    /// Variables of the environment for the run that measures kernels, beside those of the caller.
    #[serde(default)]
    pub reference: BTreeMap<String, String>,
}

/// How nodes lie on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodesModel {
    /// Nodes of one host: node *n* is on host *n* / per-host. At least 1.
    pub per_host: usize,
}

/// What kernels run on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceModel {
    /// Who has a processor.
    pub processor: Processor,
    /// Which memory kernels work in, as `CELERITY_DEVICE_MEMORY`.
    pub memory: DeviceMemoryModel,
    /// What a launch takes on the device beside its items, in ns.
    pub launch_ns: Nanos,
    /// What a kernel takes while other nodes of its host compute, too, in percent of what it takes
    /// alone: memory is shared, and so is power.
    pub beside_others_percent: f64,
}

/// Whose processor runs the kernels of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processor {
    /// Each device has its own, as a GPU.
    Own,
    /// All devices of all nodes of a host share one: devices made of the threads of one process.
    Host,
}

/// Which memory kernels work in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceMemoryModel {
    /// Each device in its own, as GPUs do.
    Own,
    /// All in the host's.
    Host,
}

/// What the runtime itself takes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineModel {
    /// Which threads it has.
    pub threads: EngineThreads,
    /// What an instruction takes from when it may start until it is under way, in ns.
    pub instruction_ns: Nanos,
    /// What an allocation takes beside that, in ns.
    pub allocation_ns: Nanos,
    /// What an item of a host task takes that the measured run has not run, in ns: folds of
    /// reductions exist on several nodes only.
    pub host_item_ns: Nanos,
    /// What scheduling and submitting a task takes, in percent of what it took in the dry run.
    pub scheduling_percent: f64,
}

/// Where nodes schedule tasks and issue instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineThreads {
    /// Two threads of each node do nothing else.
    Own,
    /// One thread for all nodes of a host: nodes of one process.
    Host,
    /// The processor of the node's first device, between kernels: processes with one core each.
    Processor,
}

/// A way for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WayModel {
    /// What is there once per transfer, in ns.
    pub latency_ns: Nanos,
    /// What each byte takes, in ps: 1000 is 1 GB/s.
    pub byte_ps: f64,
}

/// What copies within a node take.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CopyModel {
    /// From host memory to host memory.
    pub within_host: WayModel,
    /// From host memory to that of a device.
    pub to_device: WayModel,
    /// From a device's memory to the host's.
    pub from_device: WayModel,
    /// From one device's memory to another's.
    pub between_devices: WayModel,
    /// Within the memory of one device.
    pub within_device: WayModel,
}

/// What goes between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkModel {
    /// Between nodes of one host: each node sends one message at a time, and receives one.
    pub same_host: WayModel,
    /// Between hosts: each host sends one message at a time, and receives one.
    pub between_hosts: WayModel,
    /// What a message takes of the runtime's thread at either end, in ns.
    pub message_ns: Nanos,
    /// Messages of more bytes leave when the receiver is ready.
    pub eager_bytes: u64,
    /// What a collective operation or a barrier takes once, in ns.
    pub collective_ns: Nanos,
    /// What it takes for each of its rounds, in ns: the logarithm of the number of nodes, or the
    /// number of other nodes in an all-to-all.
    pub round_ns: Nanos,
    /// What it takes for each byte that the busiest node sends or receives, in ps.
    pub collective_byte_ps: f64,
}

impl ClusterModel {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PredictError::Read`], or as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, PredictError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PredictError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// The constants of a text; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] if it is no TOML, if a key is missing or unknown, or if a number
    /// cannot be meant: with the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        let malformed = |line, what| PredictError::Malformed { path: path.to_owned(), line, what };
        let model: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            malformed(line_of(text, start), error.message().to_owned())
        })?;
        match model.mistake() {
            None => Ok(model),
            Some((key, what)) => Err(malformed(line_with(text, key), format!("`{key}` {what}"))),
        }
    }

    /// A number that cannot be meant.
    fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let Self { nodes, device, engine, copy, network, .. } = self;
        if nodes.per_host == 0 {
            return Some(("per-host", "is 0, but a host has at least one node"));
        }
        let percents = [
            ("beside-others-percent", device.beside_others_percent),
            ("scheduling-percent", engine.scheduling_percent),
        ];
        let ways = [
            ("within-host", copy.within_host),
            ("to-device", copy.to_device),
            ("from-device", copy.from_device),
            ("between-devices", copy.between_devices),
            ("within-device", copy.within_device),
            ("same-host", network.same_host),
            ("between-hosts", network.between_hosts),
        ];
        let rates = ways.map(|(key, way)| (key, way.byte_ps));
        let all = percents.into_iter().chain(rates);
        let mut all = all.chain([("collective-byte-ps", network.collective_byte_ps)]);
        let wrong = all.find(|(_, number)| !(number.is_finite() && *number >= 0.0));
        wrong.map(|(key, _)| (key, "is negative or no number"))
    }

    /// By what the runtime weighs collective operations against messages on so many nodes of this cluster
    /// (`CELERITY_CALIBRATION`): what it would have measured there.
    #[must_use]
    pub fn weights(&self, nodes: usize) -> Costs {
        let network = &self.network;
        let (way, sharing) = match nodes <= self.nodes.per_host {
            true => (network.same_host, 1),
            // Nodes of a host share its link.
            false => (network.between_hosts, self.nodes.per_host),
        };
        let byte = whole(way.byte_ps * sharing as f64);
        let messages = CostLine { once: way.latency_ns, step: network.message_ns, byte };
        let (once, step) = (network.collective_ns, network.round_ns);
        let operation = CostLine { once, step, byte: whole(network.collective_byte_ps) };
        Costs { messages, collectives: [operation; 5] }
    }

    /// The host that a node is on.
    #[must_use]
    pub fn host_of(&self, node: usize) -> usize {
        node / self.nodes.per_host
    }
}

impl WayModel {
    /// What so many bytes take, without the latency, in ns.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Nanos {
        bytes_at(self.byte_ps, bytes)
    }

    /// What a transfer of so many bytes takes, in ns.
    #[must_use]
    pub fn whole(self, bytes: u64) -> Nanos {
        self.latency_ns.saturating_add(self.bytes(bytes))
    }
}

impl NetworkModel {
    /// What a collective operation takes once all nodes have come, in ns.
    #[must_use]
    pub fn collective(self, rounds: u64, busiest: u64) -> Nanos {
        let steps = self.round_ns.saturating_mul(rounds);
        self.collective_ns
            .saturating_add(steps)
            .saturating_add(bytes_at(self.collective_byte_ps, busiest))
    }
}

/// So many bytes at so many ps each, in ns.
fn bytes_at(byte_ps: f64, bytes: u64) -> Nanos {
    whole(byte_ps * bytes as f64 / 1000.0)
}

/// A number, rounded.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// The line that gives a key its value, counted from 1: comments may name it, too.
fn line_with(text: &str, key: &str) -> usize {
    let gives = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    1 + text.lines().position(gives).unwrap_or(0)
}

/// The line of a position in a text, counted from 1.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    1 + text.as_bytes()[..position].iter().filter(|&&byte| byte == b'\n').count()
}
