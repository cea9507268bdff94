//! A cluster file from what was measured on a machine: traces of one program, and the constants of exchanges. Owns which
//! sample becomes which constant; who runs the program is `cargo xtask calibrate --cluster`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::cluster::Nanos;
use crate::error::PredictError;

/// All that a cluster file of a machine with CPU devices is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// What was measured, for the name of the cluster: `2 processes of Open MPI on two cores`.
    pub name: String,
    /// When, and how busy the machine was: a line of the file's head.
    pub circumstances: String,
    /// Nodes that were measured together.
    pub nodes: usize,
    /// Whether nodes are processes, each with a core for all of its threads, rather than parts of one process.
    pub processes: bool,
    /// Largest message that leaves before its receiver is ready, in bytes, and who says so: it is not measured.
    pub eager: (u64, String),
    /// The program on one node.
    pub alone: MachineSamples,
    /// The program on all nodes.
    pub together: MachineSamples,
    /// The program on one node with two devices, each with a memory of its own.
    pub copies: MachineSamples,
    /// What exchanges take.
    pub exchanges: ExchangeCosts,
}

/// Constants of exchanges, as `cargo xtask calibrate` finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeCosts {
    /// Messages to and from one node: once, for each, in ns, and per byte, in ps.
    pub message: [f64; 3],
    /// An all-gather: once, for each round, in ns, and per byte, in ps.
    pub all_gather: [f64; 3],
}

/// What the trace of the measuring program tells, times in ns, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineSamples {
    /// Kernels named `stream`, which go through as much memory on each node.
    pub kernels: Vec<Nanos>,
    /// From the end of one of these to the start of the next on the same device.
    pub gaps: Vec<Nanos>,
    /// Allocations.
    pub allocations: Vec<Nanos>,
    /// Host tasks named `look`, which do nothing.
    pub host_tasks: Vec<Nanos>,
    /// Copies, by bytes.
    pub copies: BTreeMap<u64, Vec<Nanos>>,
}

impl MachineSamples {
    /// Reads what `CELERITY_TRACE` has written.
    ///
    /// # Errors
    /// [`PredictError::Read`], or [`PredictError::Malformed`] with the line that is none of a trace.
    pub fn read(path: &Path) -> Result<Self, PredictError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PredictError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// What the text of a trace tells; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] with the line that is none of a trace.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        let mut samples = Self::default();
        let mut devices = BTreeMap::<_, Vec<(Nanos, Nanos)>>::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim().trim_end_matches(',');
            if text.is_empty() || text == "[" || text == "]" {
                continue;
            }
            let event: Value = serde_json::from_str(text).map_err(|error| {
                let what = format!("this is no line of a trace: {error}");
                PredictError::Malformed { path: path.to_owned(), line, what }
            })?;
            let (Some(start), Some(took)) = (nanos(&event, "ts"), nanos(&event, "dur")) else {
                continue;
            };
            let name = event["name"].as_str().unwrap_or_default();
            match event["cat"].as_str() {
                Some("kernel") if name == "stream" => {
                    samples.kernels.push(took);
                    let device = event["args"]["device"].as_str().map(str::to_owned);
                    let device = (event["pid"].as_u64(), device);
                    devices.entry(device).or_default().push((start, start + took));
                }
                Some("memory") if name.starts_with("alloc") => samples.allocations.push(took),
                Some("host") if name == "look" => samples.host_tasks.push(took),
                Some("copy") => {
                    let bytes = event["args"]["bytes"].as_u64().unwrap_or(0);
                    samples.copies.entry(bytes).or_default().push(took);
                }
                _ => {}
            }
        }
        for kernels in devices.values_mut() {
            kernels.sort_unstable();
            let gaps = kernels.windows(2).map(|two| two[1].0.saturating_sub(two[0].1));
            samples.gaps.extend(gaps);
        }
        let all = [
            &mut samples.kernels,
            &mut samples.gaps,
            &mut samples.allocations,
            &mut samples.host_tasks,
        ];
        all.into_iter().chain(samples.copies.values_mut()).for_each(|times| times.sort_unstable());
        Ok(samples)
    }
}

impl ExchangeCosts {
    /// Of what `calibrate fit` has printed; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] if a constant is missing, or is none, with the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        let malformed = |line, what| PredictError::Malformed { path: path.to_owned(), line, what };
        let constant = |key: String| {
            let mut lines = (1..).zip(text.lines());
            let found = lines.find_map(|(number, line)| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| (number, value.trim()))
            });
            let (line, value) =
                found.ok_or_else(|| malformed(1, format!("there is no `{key}`")))?;
            let number = value.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
            number.ok_or_else(|| malformed(line, format!("`{value}` is no cost")))
        };
        let of = |name: &str| -> Result<[f64; 3], PredictError> {
            let [once, step, byte] =
                ["once.ns", "step.ns", "byte.ps"].map(|what| constant(format!("{name}.{what}")));
            Ok([once?, step?, byte?])
        };
        Ok(Self { message: of("message")?, all_gather: of("all-gather")? })
    }
}

impl Calibration {
    /// The cluster file: each constant with what it comes from.
    ///
    /// # Errors
    /// Which samples are missing.
    pub fn to_toml(&self) -> Result<String, MissingSamples> {
        let alone = Times::of("kernels", &self.alone.kernels)?;
        let together = Times::of("kernels of all nodes", &self.together.kernels)?;
        let gaps = Times::of("pauses between kernels", &self.alone.gaps)?;
        let allocations = Times::of("allocations", &self.alone.allocations)?;
        let looks = Times::of("host tasks", &self.alone.host_tasks)?;
        let (small, small_times) = self.copied(self.copies.copies.iter().next())?;
        let (large, large_times) = self.copied(self.copies.copies.iter().next_back())?;
        if small == large {
            return Err(MissingSamples { what: "copies of two sizes" });
        }
        let (low, high) = (small_times.low as f64, large_times.low as f64);
        let copy_byte = (1000.0 * (high - low) / (large - small) as f64).max(0.0);
        let copy_latency = (low - copy_byte * small as f64 / 1000.0).max(0.0).round();
        let copy = format!("{{ latency-ns = {copy_latency}, byte-ps = {copy_byte:.1} }}");
        let beside = match self.processes {
            true => (100.0 * together.low as f64 / alone.low.max(1) as f64).max(100.0).round(),
            false => 100.0,
        };
        let Self { name, circumstances, nodes, eager: (eager, who), .. } = self;
        // Each is in one line.
        let [circumstances, who] = [circumstances, who].map(|text| text.replace('\n', " "));
        let name = name.replace(['\n', '"', '\\'], " ");
        let [once, step, byte] = self.exchanges.message;
        let [collective, round, collective_byte] = self.exchanges.all_gather;
        let (per_host, processor, threads) = match self.processes {
            true => (*nodes, "own", "processor"),
            false => (1024, "host", "host"),
        };
        let which = match self.processes {
            true => "Each process has a core, on which it schedules, issues and computes.",
            false => "Nodes of one process share its cores, and one thread issues for all of them.",
        };
        let message = format!("{{ latency-ns = {once}, byte-ps = {byte} }}");
        let reference = match self.processes {
            true => "\n[reference]\nRAYON_NUM_THREADS = \"1\"\n",
            false => "",
        };
        Ok(format!(
            "# Measured by `cargo xtask calibrate --cluster`: {circumstances}. Of several samples the lower quartile counts, as\n\
             # whatever else runs only makes them longer.\n\
             name = \"{name}\"\n\n\
             [nodes]\n\
             # All nodes are on this host.\n\
             per-host = {per_host}\n\n\
             [device]\n\
             # {which}\n\
             processor = \"{processor}\"\n\
             memory = \"host\"\n\
             # Devices made of threads time the kernel itself.\n\
             launch-ns = 0\n\
             # A kernel on one node: {alone}; on each of {nodes}: {together}.\n\
             beside-others-percent = {beside}\n\n\
             [engine]\n\
             threads = \"{threads}\"\n\
             # Between two kernels: {gaps}.\n\
             instruction-ns = {}\n\
             # An allocation: {allocations}.\n\
             allocation-ns = {}\n\
             # A host task that does nothing: {looks}.\n\
             host-item-ns = {}\n\
             # What it takes in dry runs, which run on the same machine.\n\
             scheduling-percent = 100\n\n\
             [copy]\n\
             # Of {small} bytes: {small_times}; of {large}: {large_times}. All memory is the host's.\n\
             within-host = {copy}\n\
             to-device = {copy}\n\
             from-device = {copy}\n\
             between-devices = {copy}\n\
             within-device = {copy}\n\n\
             [network]\n\
             # Exchanges by messages, as fitted for `Collectives::Auto`: once, and per byte.\n\
             same-host = {message}\n\
             # There is one host.\n\
             between-hosts = {message}\n\
             # Each message, by the same fit, half of it at either end.\n\
             message-ns = {:.0}\n\
             # Not measured: {who}.\n\
             eager-bytes = {eager}\n\
             # All-gathers as operations, by the same fit.\n\
             collective-ns = {collective:.0}\n\
             round-ns = {round:.0}\n\
             collective-byte-ps = {collective_byte}\n\
             {reference}",
            gaps.low,
            allocations.low,
            looks.low,
            step / 2.0,
        ))
    }

    fn copied(&self, copies: Option<(&u64, &Vec<Nanos>)>) -> Result<(u64, Times), MissingSamples> {
        let (bytes, times) = copies.ok_or(MissingSamples { what: "copies" })?;
        Ok((*bytes, Times::of("copies", times)?))
    }
}

/// Something that is needed was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the traces have no {what}: run `cargo xtask calibrate --cluster` again")]
pub struct MissingSamples {
    what: &'static str,
}

/// Times of the same thing.
#[derive(Clone, Copy, Debug)]
struct Times {
    low: Nanos,
    median: Nanos,
    count: usize,
}

impl Times {
    fn of(what: &'static str, ascending: &[Nanos]) -> Result<Self, MissingSamples> {
        let count = ascending.len();
        let at = |index: usize| ascending.get(index).copied().ok_or(MissingSamples { what });
        Ok(Self { low: at(count / 4)?, median: at(count / 2)?, count })
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { low, median, count } = self;
        write!(f, "{low} ns, {median} in the median of {count}")
    }
}

/// A time, which traces have in microseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn nanos(event: &Value, key: &str) -> Option<Nanos> {
    event[key].as_f64().map(|micros| (micros * 1000.0).round() as Nanos)
}
