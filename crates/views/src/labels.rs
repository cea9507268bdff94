//! What a task, command or instruction says about itself, on one line, without
//! its id and its edges. Ids inside are in the house notation.

use std::fmt::{self, Display, Formatter, Result};

use celerity_cdag::{CommandKind, TransferId};
use celerity_idag::{
    BoundAccess, CollectivePart, Effects, Exchange, ExchangePart, InstructionKind, LaneKind,
    Lifetime, LifetimeChange, Participation, Placement, Synchronization, TaskPart, Touch,
};
use celerity_tdag::{
    Access, AccessMode, BufferAccess, Count, DependencyKind, EpochAction, ObjectAccess, Task,
    TaskId, Work,
};

use crate::names::BufferNames;

/// A task: `fill [0..8]; write B0 "u" one_to_one`.
#[derive(Clone, Copy, Debug)]
pub struct TaskLabel<'a>(pub &'a Task, pub &'a BufferNames);

/// A command of a task: `push T3.B0 "u" [0..1] to N1`.
#[derive(Clone, Copy, Debug)]
pub struct CommandLabel<'a>(pub &'a CommandKind, pub TaskId, pub &'a BufferNames);

/// An instruction: `copy B0 "u" [0..4] from M2.A1 [0..8] to M1.A3 [0..4]`.
#[derive(Clone, Copy, Debug)]
pub struct InstructionLabel<'a>(pub &'a InstructionKind, pub &'a BufferNames);

impl Display for TaskLabel<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Task { name, work, accesses, .. } = self.0;
        match work {
            Work::Device(space) => write!(f, "{name} {}", space.extent)?,
            Work::HostOnce { node: 0 } => write!(f, "{name} on the host")?,
            Work::HostOnce { node } => write!(f, "{name} on the host of N{node}")?,
            Work::HostSplit { space, group: None } => {
                write!(f, "{name} {} on the host", space.extent)?;
            }
            Work::HostSplit { space, group: Some(group) } => {
                write!(f, "{name} {} on the host in {group}", space.extent)?;
            }
            Work::Fence => f.write_str("fence")?,
            Work::Combine { .. } => write!(f, "combine {name} everywhere")?,
            Work::Forward => f.write_str("forward")?,
            Work::Horizon => f.write_str("horizon")?,
            Work::Epoch(action) => write!(f, "epoch {}", epoch(*action))?,
        }
        accesses.iter().try_for_each(|access| match access {
            Access::Buffer(BufferAccess { buffer, mode: how, mapper }) => {
                write!(f, "; {} {} {mapper}", mode(*how), self.1.show(*buffer))
            }
            Access::Object(ObjectAccess { object, order }) => write!(f, "; {order} {object}"),
        })
    }
}

impl Display for CommandLabel<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let of = |transfer| OfTransfer(transfer, self.2);
        match self.0 {
            CommandKind::Execute { chunk } => write!(f, "execute {} {chunk}", self.1),
            CommandKind::Push { transfer, targets } => {
                write!(f, "push {}", of(transfer))?;
                targets.iter().try_for_each(|(node, region)| write!(f, " {region} to {node}"))
            }
            CommandKind::AwaitPush { transfer, region } => {
                write!(f, "await push {} {region}", of(transfer))
            }
            CommandKind::Collective { transfer, collective } => {
                write!(f, "{} {} {}", collective.pattern(), of(transfer), collective.region)?;
                match collective.members.are_all() {
                    true => Ok(()),
                    false => write!(f, " among {}", collective.members),
                }
            }
            CommandKind::Horizon => write!(f, "horizon {}", self.1),
            CommandKind::Epoch(action) => write!(f, "epoch {} {}", self.1, epoch(*action)),
        }
    }
}

impl Display for InstructionLabel<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (effects, names) = (self.0.effects(), self.1);
        f.write_str(effects.verb)?;
        if let Some(run) = &effects.runs {
            write!(f, " {}", Function(run, effects.lane, names))?;
        }
        if let Some(lifetime) = &effects.lifetime {
            write!(f, " {}", Lived(lifetime, names))?;
        }
        if let Some(point) = effects.synchronizes {
            write!(f, " {}", point.task())?;
        }
        if let Some(Synchronization::Epoch { action, .. }) = effects.synchronizes {
            write!(f, " {}", epoch(action))?;
        }
        write!(f, "{}", Moved(&effects, names))
    }
}

/// `T3 [0..4] on D0; B0 "u" [0..4] in M2.A1 [0..8]`.
struct Function<'a>(&'a TaskPart<'a>, LaneKind, &'a BufferNames);

impl Display for Function<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let TaskPart { task, chunk, bound } = self.0;
        write!(f, "{task}")?;
        chunk.iter().try_for_each(|chunk| write!(f, " {chunk}"))?;
        self.1.device().iter().try_for_each(|device| write!(f, " on {device}"))?;
        write!(f, "{}", Bindings(bound, self.2))
    }
}

/// `M2.A1 for B0 "u", 32 bytes`.
struct Lived<'a>(&'a Lifetime<'a>, &'a BufferNames);

impl Display for Lived<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (Lifetime { allocation, memory, change }, names) = (self.0, self.1);
        write!(f, "{memory}.{allocation}")?;
        match change {
            LifetimeChange::Made { buffer, bytes, .. } => {
                write!(f, " for {}, {}", names.show(*buffer), Count(*bytes, "byte"))
            }
            LifetimeChange::Grown { buffer, elements, bytes } => {
                let bytes = Count(bytes.end - bytes.start, "byte");
                write!(f, " by {} {elements}, {bytes}", names.show(*buffer))
            }
            LifetimeChange::Ended => Ok(()),
        }
    }
}

/// ` B0 "u" [0..4] from M2.A1 [0..8] to M1.A3 [0..4]`; nothing of what moves nothing.
struct Moved<'a>(&'a Effects<'a>, &'a BufferNames);

impl Display for Moved<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (Effects { source, target, exchange, .. }, names) = (self.0, self.1);
        match (exchange, source.or(*target)) {
            (Some(Exchange { transfer, elements, .. }), _) => {
                write!(f, " {} {elements}", OfTransfer(transfer, names))?;
            }
            (None, Some(Touch { buffer, elements, .. })) => {
                write!(f, " {} {elements}", names.show(buffer))?;
            }
            (None, None) => {}
        }
        if let Some(source) = source {
            write!(f, " from {}", At(source.placement))?;
        }
        if let Some(target) = target {
            let preposition = if source.is_some() { "to" } else { "into" };
            write!(f, " {preposition} {}", At(target.placement))?;
        }
        match exchange.map(|exchange| exchange.part) {
            Some(ExchangePart::Send { to, message }) => write!(f, " to {to}, {message}"),
            Some(ExchangePart::Collective { number }) => {
                write!(f, ", number {number}")?;
                self.0.participates.map_or(Ok(()), |part| Exchanged(part).fmt(f))
            }
            Some(ExchangePart::Receive | ExchangePart::Begin | ExchangePart::Await) | None => {
                Ok(())
            }
        }
    }
}

/// `; [0..4] from M1.A3 [0..8]; [4..8] into M1.A3 [0..8]`.
struct Exchanged<'a>(&'a Participation);

impl Display for Exchanged<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (parts, preposition) in [(&self.0.sources, "from"), (&self.0.targets, "into")] {
            for CollectivePart { placement, region } in parts {
                write!(f, "; {region} {preposition} {}", At(placement))?;
            }
        }
        Ok(())
    }
}

/// `T3.B0 "u"`.
struct OfTransfer<'a>(&'a TransferId, &'a BufferNames);

impl Display for OfTransfer<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}.{}", self.0.consumer, self.1.show(self.0.buffer))
    }
}

struct At<'a>(&'a Placement);

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Placement { allocation, memory, extent } = self.0;
        write!(f, "{memory}.{allocation} {extent}")
    }
}

struct Bindings<'a>(&'a [BoundAccess], &'a BufferNames);

impl Display for Bindings<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.iter().try_for_each(|BoundAccess { buffer, placement, region }| {
            let buffer = self.1.show(*buffer);
            match placement {
                Some(placement) => write!(f, "; {buffer} {region} in {}", At(placement)),
                None => write!(f, "; {buffer} nowhere"),
            }
        })
    }
}

fn mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Read => "read",
        AccessMode::Write => "write",
        AccessMode::ReadWrite => "read_write",
        AccessMode::Update => "update",
    }
}

fn epoch(action: EpochAction) -> &'static str {
    match action {
        EpochAction::Init => "init",
        EpochAction::Barrier => "barrier",
        EpochAction::Shutdown => "shutdown",
    }
}

/// Why one node waits for another.
pub(crate) struct DependencyName(pub(crate) DependencyKind);

impl fmt::Display for DependencyName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.0 {
            DependencyKind::True => "true",
            DependencyKind::Anti => "anti",
            DependencyKind::Output => "output",
            DependencyKind::Order => "order",
        })
    }
}
