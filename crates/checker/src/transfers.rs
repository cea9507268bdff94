//! Instructions that move data: copies, sends and receives.

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{Inbound, InstructionKind, MemoryId, MessageId, Placement};
use celerity_regions::{Box3, Region};

use crate::batch::{Owed, TaskCheck};
use crate::buffers::{Buffers, TrackedBuffer};
use crate::commands::{check_inside, check_transfer};
use crate::geometry::{Boxes, difference, subtract};
use crate::instructions::Instructions;
use crate::ledger::AbstractValues;
use crate::outline::Moved;
use crate::violation::{AbstractValue, Check, Vertex, Violation};

/// What a message is about.
struct Message<'a> {
    to: NodeId,
    id: MessageId,
    transfer: TransferId,
    region: &'a Region,
    from_device: bool,
}

impl Instructions {
    /// A copy between memories passes on the sequential version. Within one
    /// memory, into a larger allocation, it may take outdated contents along: a
    /// node does not hear of remote writes to what it will not read.
    pub(crate) fn copy(
        &mut self,
        buffer: &mut TrackedBuffer,
        batch: &TaskCheck<'_>,
        me: u64,
        (source, target): (&Placement, &Placement),
        region: &Region,
        elem_size: u64,
    ) -> Check {
        let vertex = self.window.vertex(me);
        if source.allocation == target.allocation {
            let allocation = source.allocation;
            return Err(Violation::CopyOntoItself { vertex, allocation }.into());
        }
        check_elem_size(buffer, vertex, source, elem_size)?;
        self.place(buffer, vertex, source, region.boxes())?;
        self.place(buffer, vertex, target, region.boxes())?;
        self.note_move(source, target);
        for part in region.boxes() {
            let versions = self.versions(source, part);
            if source.memory != target.memory {
                self.check_current(buffer, me, source, part)?;
            }
            if versions.iter().any(|(_, version)| *version == AbstractValue::Undefined) {
                let place = buffer.place_in(*part, source.memory, source.allocation);
                Violation::CopyOfUndefined { copy: vertex, place }.note(&self.waste)?;
            }
            self.read(buffer, me, source, part)?;
            self.check_news(buffer, vertex, target, &versions)?;
            self.write(buffer, batch, me, target, part, &versions)?;
        }
        Ok(())
    }

    /// The versions in an allocation; empty if they are not tracked.
    fn versions(&self, placement: &Placement, part: &Box3) -> AbstractValues {
        self.ledger(placement.allocation).map(|ledger| ledger.versions(part)).unwrap_or_default()
    }

    /// A copy brings something that is not there yet.
    fn check_news(
        &self,
        buffer: &TrackedBuffer,
        mover: Vertex,
        target: &Placement,
        brought: &AbstractValues,
    ) -> Check {
        for (part, version) in brought {
            for (part, found) in self.versions(target, part) {
                if found == *version {
                    let place = buffer.place_in(part, target.memory, target.allocation);
                    Violation::Redundant { mover, place, version: found }.note(&self.waste)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn send(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        kind: &InstructionKind,
    ) -> Check {
        let InstructionKind::Send { to, message, transfer, source, region, elem_size } = kind
        else {
            unreachable!("only sends are sent here")
        };
        let vertex = self.window.vertex(me);
        let from_device = source.memory.device().is_some();
        let (to, id, transfer) = (*to, *message, *transfer);
        let message = Message { to, id, transfer, region, from_device };
        check_transfer(batch, vertex, transfer)?;
        self.check_message(batch, vertex, &message)?;
        if let Some(receive) = batch.first_receive {
            return Err(Violation::MayDeadlock { send: vertex, receive }.into());
        }
        batch.last_send = Some(me);
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_elem_size(buffer, vertex, source, *elem_size)?;
        self.check_reached(buffer, vertex, source)?;
        if region.boxes().len() > 1 {
            check_host(buffer, vertex, source)?;
        }
        self.place(buffer, vertex, source, region.boxes())?;
        for part in region.boxes() {
            self.check_current(buffer, me, source, part)?;
            self.read(buffer, me, source, part)?;
        }
        let boxes = region.boxes().to_vec();
        batch.outline.sends.push(Moved { vertex, transfer, to, boxes });
        Ok(())
    }

    /// A message is new, goes to another node, and one pilot says the same.
    fn check_message(
        &mut self,
        batch: &mut TaskCheck<'_>,
        send: Vertex,
        message: &Message<'_>,
    ) -> Check {
        let Message { to, id, transfer, region, from_device } = *message;
        if id.index() < self.next_message {
            return Err(Violation::OldMessage { send, message: id }.into());
        }
        self.next_message = id.index() + 1;
        if to == self.node || to.index() >= self.nodes as u64 {
            let why = "that is no other node";
            return Err(Violation::BadTarget { push: send, transfer, to: Some(to), why }.into());
        }
        let announced = batch.pilots.iter().position(|pilot| {
            (pilot.message, pilot.to, pilot.transfer) == (id, to, transfer)
                && (&pilot.region, pilot.from_device) == (region, from_device)
        });
        match announced {
            Some(pilot) => {
                batch.pilots.remove(pilot);
                Ok(())
            }
            None => {
                let elements = region.bounding_box();
                Err(Violation::Unannounced { send, message: id, transfer, to, elements }.into())
            }
        }
    }

    /// A receive takes what the node's await-pushes promise. Elements of a
    /// split receive cannot be used before they are awaited.
    pub(crate) fn receive(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        inbound: &Inbound,
        split: bool,
    ) -> Check {
        let Inbound { transfer, target, region, elem_size } = inbound;
        let vertex = self.window.vertex(me);
        check_transfer(batch, vertex, *transfer)?;
        batch.first_receive.get_or_insert(vertex);
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_elem_size(buffer, vertex, target, *elem_size)?;
        self.check_reached(buffer, vertex, target)?;
        check_inside(buffer, vertex, region.boxes())?;
        self.place(buffer, vertex, target, region.boxes())?;
        take(batch, buffer, vertex, *transfer, region.boxes())?;
        for part in region.boxes() {
            let versions = match split {
                true => AbstractValues::from_iter([(*part, AbstractValue::Arriving)]),
                false => buffer.truth.versions(part),
            };
            self.write(buffer, batch, me, target, part, &versions)?;
        }
        if split {
            let rest = Boxes::from_slice(region.boxes());
            let target = Some(target.allocation);
            batch.arriving.push(Owed { by: vertex, transfer: *transfer, rest, target });
        }
        let (transfer, to, boxes) = (*transfer, self.node, region.boxes().to_vec());
        batch.outline.receives.push(Moved { vertex, transfer, to, boxes });
        Ok(())
    }

    /// The network reaches host memory, and that of devices where it can.
    fn check_reached(
        &self,
        buffer: &TrackedBuffer,
        vertex: Vertex,
        placement: &Placement,
    ) -> Check {
        match placement.memory.device() {
            Some(_) if self.device_wires => Ok(()),
            _ => check_host(buffer, vertex, placement),
        }
    }

    /// An await receive ends the wait for a part of one split receive.
    pub(crate) fn await_receive(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        transfer: TransferId,
        region: &Region,
    ) -> Check {
        let vertex = self.window.vertex(me);
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_inside(buffer, vertex, region.boxes())?;
        let brings = |promise: &&mut Owed| {
            promise.transfer == transfer && difference(region.boxes(), &promise.rest).is_empty()
        };
        let promise = batch.arriving.iter_mut().find(brings);
        let Some((promise, id)) = promise.and_then(|promise| {
            let target = promise.target?;
            Some((promise, target))
        }) else {
            let part = region.boxes().first().copied().unwrap_or(Box3::EMPTY);
            return Err(Violation::NotArriving { vertex, place: buffer.place(part) }.into());
        };
        for part in region.boxes() {
            subtract(&mut promise.rest, part);
            self.arrive(buffer, me, id, part)?;
        }
        Ok(())
    }
}

/// Takes what is received from what is awaited.
fn take(
    batch: &mut TaskCheck<'_>,
    buffer: &TrackedBuffer,
    vertex: Vertex,
    transfer: TransferId,
    boxes: &[Box3],
) -> Check {
    let awaited = || batch.awaited.iter().filter(|promise| promise.transfer == transfer);
    let all: Boxes = awaited().flat_map(|promise| promise.rest.iter().copied()).collect();
    if let Some(part) = difference(boxes, &all).first() {
        let why = "no command awaits, or another receive takes";
        return Err(Violation::Unneeded { vertex, place: buffer.place(*part), why }.into());
    }
    let awaited = batch.awaited.iter_mut().filter(|promise| promise.transfer == transfer);
    awaited.for_each(|promise| promise.rest = difference(&promise.rest, boxes));
    Ok(())
}

pub(crate) fn check_elem_size(
    buffer: &TrackedBuffer,
    vertex: Vertex,
    placement: &Placement,
    elem_size: u64,
) -> Check {
    match elem_size == buffer.info.elem_size {
        true => Ok(()),
        false => bad(buffer, vertex, placement, "elements have another size"),
    }
}

pub(crate) fn check_host(buffer: &TrackedBuffer, vertex: Vertex, placement: &Placement) -> Check {
    match placement.memory == MemoryId::HOST {
        true => Ok(()),
        false => bad(buffer, vertex, placement, "the network reaches M1 only"),
    }
}

fn bad(buffer: &TrackedBuffer, vertex: Vertex, placement: &Placement, why: &'static str) -> Check {
    let Placement { allocation, memory, extent } = *placement;
    let place = buffer.place_in(extent, memory, allocation);
    Err(Violation::BadPlacement { vertex, place, why }.into())
}
