//! Messages and arrivals: who announces what, and who notices that it is there.

use celerity_cdag::TransferId;
use celerity_regions::Region;

use super::Broken;
use crate::effects::{Effects, Exchange, ExchangePart, Touch};
use crate::instruction::{Instruction, InstructionId, MessageId, Participation, Pilot};

/// What has been announced and begun, and has not come to its end.
#[derive(Debug)]
pub(super) struct Transfers<'a> {
    /// Of sends to come.
    pilots: &'a [Pilot],
    next: MessageId,
    arriving: Vec<Arriving>,
    next_collective: u64,
}

/// A split receive.
#[derive(Debug)]
struct Arriving {
    begun_by: InstructionId,
    transfer: TransferId,
    region: Region,
    /// What nobody has awaited.
    unnoticed: Region,
}

impl<'a> Transfers<'a> {
    pub(super) fn new(pilots: &'a [Pilot]) -> Self {
        Self { pilots, next: MessageId::from_index(0), arriving: Vec::new(), next_collective: 0 }
    }

    pub(super) fn check(
        &mut self,
        instruction: InstructionId,
        effects: &Effects<'_>,
        broken: &mut Vec<Broken>,
    ) {
        let Some(Exchange { transfer, elements, part }) = effects.exchange else { return };
        match part {
            ExchangePart::Send { to, message } => {
                let region = elements.to_region();
                let from_device = effects.source.as_ref().is_some_and(leaves_from_device);
                let why = self.send(&Pilot { to, message, transfer, region, from_device });
                broken.extend(why.map(|why| Broken::Message { instruction, message, why }));
            }
            ExchangePart::Receive => {}
            ExchangePart::Begin => {
                let region = elements.to_region();
                let (begun_by, unnoticed) = (instruction, region.clone());
                self.arriving.push(Arriving { begun_by, transfer, region, unnoticed });
            }
            ExchangePart::Await => {
                let why = self.notice(transfer, &elements.to_region());
                broken.extend(why.map(|why| Broken::Arrival { instruction, transfer, why }));
            }
            ExchangePart::Collective { number } => {
                let due = std::mem::replace(&mut self.next_collective, number + 1);
                let why = (number != due).then_some("is not the next collective");
                let pieces = effects.participates.and_then(overlap);
                let broken_by = |why| Broken::Arrival { instruction, transfer, why };
                broken.extend(why.or(pieces).map(broken_by));
            }
        }
    }

    fn send(&mut self, sent: &Pilot) -> Option<&'static str> {
        let due = std::mem::replace(&mut self.next, sent.message.next());
        let boxes = sent.region.boxes().len();
        match self.pilots.split_off_first() {
            _ if boxes > Pilot::MOST_BOXES => Some("brings more boxes than a message may"),
            _ if boxes > 1 && sent.from_device => {
                Some("brings several boxes from a device's memory")
            }
            _ if sent.message != due => Some("is not the next message"),
            None => Some("is sent without a pilot"),
            Some(pilot) if pilot != sent => Some("is not what its pilot announces"),
            Some(_) => None,
        }
    }

    fn notice(&mut self, transfer: TransferId, region: &Region) -> Option<&'static str> {
        let holds = |one: &&mut Arriving| {
            one.transfer == transfer && region.difference(&one.region).is_empty()
        };
        match self.arriving.iter_mut().find(holds) {
            Some(arriving) => {
                arriving.unnoticed.subtract(region);
                None
            }
            None => Some("is awaited where no split receive has begun"),
        }
    }

    /// Checks that nothing is left over, after the last instruction.
    pub(super) fn finish(&self, instructions: &[Instruction], broken: &mut Vec<Broken>) {
        let last = instructions.last().map_or(InstructionId::from_index(0), |last| last.id);
        broken.extend(self.pilots.iter().map(|pilot| Broken::Message {
            instruction: last,
            message: pilot.message,
            why: "is announced and never sent",
        }));
        let unnoticed = self.arriving.iter().filter(|one| !one.unnoticed.is_empty());
        broken.extend(unnoticed.map(|one| Broken::Arrival {
            instruction: one.begun_by,
            transfer: one.transfer,
            why: "arrives, and nobody awaits all of it",
        }));
    }
}

/// Whether what is read lies in a device's memory.
fn leaves_from_device(source: &Touch<'_>) -> bool {
    source.placement.memory.device().is_some()
}

/// What is wrong with the memory that a node takes part in a collective with: an element lies in two
/// places, or is both given and overwritten.
fn overlap(participation: &Participation) -> Option<&'static str> {
    let mut seen = Region::empty();
    for part in participation.sources.iter().chain(&participation.targets) {
        if !seen.intersection(&part.region).is_empty() {
            return Some("has an element twice");
        }
        seen.union_with(&part.region);
    }
    None
}
