//! What a task, command or instruction says about itself, on one line, without
//! its id and its edges. Ids inside are in the house notation.

use std::fmt::{self, Display, Formatter, Result};

use celerity_cdag::{CommandKind, TransferId};
use celerity_idag::{BoundAccess, Inbound, InstructionKind, Placement};
use celerity_tdag::{
    Access, AccessMode, BufferAccess, Count, DependencyKind, EpochAction, Task, TaskId, Work,
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
            Work::HostOnce => write!(f, "{name} on the host")?,
            Work::Fence => f.write_str("fence")?,
            Work::Horizon => f.write_str("horizon")?,
            Work::Epoch(action) => write!(f, "epoch {}", epoch(*action))?,
        }
        accesses.iter().try_for_each(|access| match access {
            Access::Buffer(BufferAccess { buffer, mode: how, mapper }) => {
                write!(f, "; {} {} {mapper}", mode(*how), self.1.show(*buffer))
            }
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
            CommandKind::Horizon => write!(f, "horizon {}", self.1),
            CommandKind::Epoch(action) => write!(f, "epoch {} {}", self.1, epoch(*action)),
        }
    }
}

impl Display for InstructionLabel<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let names = self.1;
        let (show, of) = (|buffer| names.show(buffer), |transfer| OfTransfer(transfer, names));
        match self.0 {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, .. } => {
                let (buffer, bytes) = (show(*buffer), Count(*bytes, "byte"));
                write!(f, "alloc {memory}.{allocation} for {buffer}, {bytes}")
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, .. } => {
                let (buffer, bytes) = (show(*buffer), Count(*bytes, "byte"));
                write!(f, "reserve {memory}.{allocation} for {buffer}, {bytes}")
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes } => {
                let bytes = Count(bytes.end - bytes.start, "byte");
                let buffer = show(*buffer);
                write!(f, "grow {memory}.{allocation} by {buffer} {elements}, {bytes}")
            }
            InstructionKind::Free { allocation, memory } => {
                write!(f, "free {memory}.{allocation}")
            }
            InstructionKind::Copy { buffer, source, target, elements, .. } => {
                let (buffer, source, target) = (show(*buffer), At(source), At(target));
                write!(f, "copy {buffer} {elements} from {source} to {target}")
            }
            InstructionKind::Send { to, message, transfer, source, elements, .. } => {
                let (transfer, source) = (of(transfer), At(source));
                write!(f, "send {transfer} {elements} from {source} to {to}, {message}")
            }
            InstructionKind::Receive(inbound) => write!(f, "receive {}", Into(inbound, names)),
            InstructionKind::SplitReceive(inbound) => {
                write!(f, "split receive {}", Into(inbound, names))
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                write!(f, "await receive {} {region}", of(transfer))
            }
            InstructionKind::Kernel { device, task, chunk, accesses } => {
                write!(f, "kernel {task} {chunk} on {device}{}", Bindings(accesses, names))
            }
            InstructionKind::HostTask { task, accesses } => {
                write!(f, "host task {task}{}", Bindings(accesses, names))
            }
            InstructionKind::Horizon { task } => write!(f, "horizon {task}"),
            InstructionKind::Epoch { task, action } => write!(f, "epoch {task} {}", epoch(*action)),
        }
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

struct Into<'a>(&'a Inbound, &'a BufferNames);

impl Display for Into<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Inbound { transfer, target, region, .. } = self.0;
        write!(f, "{} {region} into {}", OfTransfer(transfer, self.1), At(target))
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
pub(crate) struct Kind(pub(crate) DependencyKind);

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.0 {
            DependencyKind::True => "true",
            DependencyKind::Anti => "anti",
            DependencyKind::Output => "output",
            DependencyKind::Order => "order",
        })
    }
}
