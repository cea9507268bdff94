//! The schedule of a dry run as text, for who wants to know what a cluster would do: a line per task
//! and per instruction, in order of generation. `docs/prediction.md` has the format. Performs nothing,
//! and knows no costs.

use std::fmt::{self, Display, Write as _};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use celerity_cdag::Command;
use celerity_executor::{Observer, RunError};
use celerity_idag::{
    AllocationId, CollectivePart, Effects, Elements, Exchange, ExchangePart, Instruction, Lifetime,
    LifetimeChange, Pilot, Synchronization, TaskPart,
};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, BufferInfo, EpochAction, Task, Work};

use crate::config::Config;
use crate::error::Result;

/// How a file begins.
const HEADER: &str = "celerity-schedule 1";

/// The file of a dry run's schedule.
pub(crate) struct ScheduleFile {
    path: PathBuf,
    file: Arc<Mutex<BufWriter<File>>>,
}

impl ScheduleFile {
    /// The file that `config` asks for, with its first lines; none if it asks for none, or for no
    /// dry run.
    ///
    /// # Errors
    /// [`RunError::Start`] if the file cannot be written, or something else is to be written to it.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>> {
        let (Some(path), Some(nodes)) = (&config.dry_run_schedule, config.dry_run) else {
            return Ok(None);
        };
        let cluster = config.cluster();
        if cluster.trace.as_ref().is_some_and(|trace| is_one_file(trace, path)) {
            let what = format!(
                "the schedule and the trace are both to be written to \"{}\"; choose another path for \
                 one of them",
                path.display()
            );
            return Err(RunError::Start { what }.into());
        }
        let create = || {
            let mut file = BufWriter::new(File::create(path)?);
            let (node, devices) = (config.dry_run_node, cluster.devices);
            writeln!(file, "{HEADER}\nnode {node} of {nodes}, {devices} devices")?;
            file.flush()?;
            Ok(file)
        };
        let file = create().map_err(|error: io::Error| {
            let path = path.display();
            let what = format!(
                "the schedule cannot be written to \"{path}\": {error}; choose another path, or make it \
                 writable"
            );
            RunError::Start { what }
        })?;
        Ok(Some(Self { path: path.clone(), file: Arc::new(Mutex::new(file)) }))
    }

    /// Who writes what is generated.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(Writer { file: self.file.clone(), path: self.path.clone(), line: String::new() })
    }

    /// Says that the schedule is complete.
    ///
    /// # Errors
    /// [`RunError::Start`] if the end cannot be written.
    pub(crate) fn finish(self) -> Result<()> {
        let mut file = lock(&self.file);
        let ended = writeln!(file, "end").and_then(|()| file.flush());
        Ok(ended.map_err(|error| RunError::Start { what: lost(&self.path, &error) })?)
    }
}

/// Whether both paths lead to one file, which may not be there yet. What is no file, such as
/// `/dev/null`, takes what several write.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| fs::canonicalize(path).or_else(|_| absolute(path)).ok();
    let is_other = |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file());
    place(one) == place(other) && !is_other(one)
}

fn lost(path: &Path, error: &io::Error) -> String {
    format!("the schedule was not written to \"{}\": {error}", path.display())
}

/// The file, of which whole lines are written, even if somebody has panicked.
fn lock(file: &Mutex<BufWriter<File>>) -> MutexGuard<'_, BufWriter<File>> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    file: Arc<Mutex<BufWriter<File>>>,
    path: PathBuf,
    /// What is to be written next.
    line: String,
}

impl Observer for Writer {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        task: &Arc<Task>,
        _: &[Command],
        instructions: &[Instruction],
        _: &[Pilot],
    ) -> std::result::Result<(), String> {
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = writeln!(self.line, "task {} {} {:?}", task.id, kind(&task.work), &*task.name);
        self.write(instructions)
    }

    fn buffer_end(
        &mut self,
        _: BufferId,
        frees: &[Instruction],
    ) -> std::result::Result<(), String> {
        self.line.clear();
        self.write(frees)
    }
}

impl Writer {
    fn write(&mut self, instructions: &[Instruction]) -> std::result::Result<(), String> {
        for instruction in instructions {
            let _ = writeln!(self.line, "{}", Line(instruction));
        }
        let written = lock(&self.file).write_all(self.line.as_bytes());
        written.map_err(|error| lost(&self.path, &error))
    }
}

/// What kind of work a task is, in a word.
fn kind(work: &Work) -> &'static str {
    match work {
        Work::Device(_) => "kernel",
        Work::HostOnce { .. } | Work::HostSplit { .. } => "host",
        Work::Fence => "fence",
        Work::Combine { .. } => "combine",
        Work::Forward => "forward",
        Work::Horizon => "horizon",
        Work::Epoch(_) => "epoch",
    }
}

/// An instruction in a line.
struct Line<'a>(&'a Instruction);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effects = self.0.effects();
        write!(f, "{} {}", self.0.id, effects.verb.replace(' ', "-"))?;
        if let Some(run) = &effects.runs {
            ran(f, &effects, run)?;
        }
        if let Some(Lifetime { memory, change, .. }) = &effects.lifetime {
            write!(f, " memory={memory} bytes={}", lived(change))?;
        }
        match &effects.exchange {
            Some(exchange) => exchanged(f, &effects, exchange)?,
            None => moved(f, &effects)?,
        }
        if let Some(Synchronization::Epoch { action, .. }) = effects.synchronizes {
            write!(f, " action={}", reached(action))?;
        }
        f.write_str(" after=")?;
        let conflicts = effects.conflicts.iter();
        let before = self.0.dependencies.iter().chain(conflicts).map(ToString::to_string);
        f.write_str(&before.collect::<Vec<_>>().join(","))
    }
}

fn ran(f: &mut fmt::Formatter<'_>, effects: &Effects<'_>, run: &TaskPart<'_>) -> fmt::Result {
    write!(f, " task={}", run.task)?;
    if let Some(device) = effects.lane.device() {
        write!(f, " device={device}")?;
    }
    write!(f, " items={}", run.chunk.unwrap_or(Box3::UNIT).volume())
}

/// How many bytes become memory.
fn lived(change: &LifetimeChange<'_>) -> u64 {
    match change {
        LifetimeChange::Made { bytes, provided, .. } => {
            if *provided {
                *bytes
            } else {
                0
            }
        }
        LifetimeChange::Grown { bytes, .. } => bytes.end - bytes.start,
        LifetimeChange::Ended => 0,
    }
}

fn moved(f: &mut fmt::Formatter<'_>, effects: &Effects<'_>) -> fmt::Result {
    let (Some(source), Some(target)) = (effects.source, effects.target) else { return Ok(()) };
    let bytes = source.elements.volume().saturating_mul(effects.elem_size.unwrap_or(1));
    let (from, to) = (source.placement.memory, target.placement.memory);
    write!(f, " from={from} to={to} bytes={bytes}")
}

fn exchanged(
    f: &mut fmt::Formatter<'_>,
    effects: &Effects<'_>,
    exchange: &Exchange<'_>,
) -> fmt::Result {
    let Exchange { transfer, elements, part } = exchange;
    write!(f, " for={} buffer={}", transfer.consumer, transfer.buffer)?;
    if let Some(size) = effects.elem_size {
        write!(f, " size={size}")?;
    }
    match part {
        ExchangePart::Collective { number } => {
            let parts = effects.participates;
            let bytes = |parts: &[CollectivePart]| {
                let elements = parts.iter().map(|part| part.region.volume()).sum::<u64>();
                elements.saturating_mul(effects.elem_size.unwrap_or(1))
            };
            let [out, into] =
                parts.map_or([0; 2], |parts| [bytes(&parts.sources), bytes(&parts.targets)]);
            return write!(f, " number={number} out={out} in={into}");
        }
        ExchangePart::Send { to, .. } => write!(f, " to={to}")?,
        ExchangePart::Receive | ExchangePart::Begin | ExchangePart::Await => {}
    }
    f.write_str(" boxes=")?;
    match elements {
        Elements::Box(one) => boxes(f, &[*one]),
        Elements::Region(region) => boxes(f, Region::boxes(region)),
    }
}

/// Boxes as `0:0:0-4:8:1`, with commas between them.
fn boxes(f: &mut fmt::Formatter<'_>, all: &[Box3]) -> fmt::Result {
    for (nth, one) in all.iter().enumerate() {
        let ([a, b, c], [d, e, g]) = (one.min(), one.max());
        write!(f, "{}{a}:{b}:{c}-{d}:{e}:{g}", if nth == 0 { "" } else { "," })?;
    }
    Ok(())
}

fn reached(action: EpochAction) -> &'static str {
    match action {
        EpochAction::Init => "init",
        EpochAction::Barrier => "barrier",
        EpochAction::Shutdown => "shutdown",
    }
}
