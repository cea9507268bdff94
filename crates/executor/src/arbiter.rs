//! Receive arbitration (instruction-graph preprint, §4.2): brings receive instructions, which
//! know a region but no sender, together with pilots, which know sender and geometry.
//! Knows neither memory nor wires: it says which receive to post, and is told
//! what has arrived.
//!
//! ```
//! use celerity_executor::Arbiter;
//! # use celerity_executor::ArbiterError;
//! # use celerity_cdag::{NodeId, TransferId};
//! # use celerity_idag::*;
//! # use celerity_regions::Box3;
//! # use celerity_tdag::{BufferId, TaskId};
//! # let transfer = TransferId { consumer: TaskId::from_index(3), buffer: BufferId::from_index(0) };
//! # let (here, peer) = (NodeId::from_index(0), NodeId::from_index(1));
//! # let extent = Box3::from_range([8]);
//! # let target = Placement { allocation: AllocationId::from_index(5), memory: MemoryId::HOST, extent };
//! # let inbound = Inbound { transfer, target, region: extent.into(), elem_size: 4 };
//! let receive = InstructionId::from_index(12);
//! let message = MessageId::from_index(0);
//! let mut arbiter = Arbiter::new(here);
//! let pilot = Pilot { to: here, message, transfer, region: extent.into(), from_device: false };
//! arbiter.pilot(peer, pilot)?; // may come first
//! arbiter.begin_receive(receive, &inbound)?;
//! let post = arbiter.next_post().unwrap();
//! assert_eq!((post.from, post.message, post.parts[0]), (peer, message, (extent, target)));
//! arbiter.arrived(peer, message)?;
//! assert_eq!(arbiter.next_completed(), Some(receive));
//! # Ok::<(), ArbiterError>(())
//! ```

use std::collections::VecDeque;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{AllocationId, Inbound, InstructionId, MessageId, Pilot, Placement};
use celerity_regions::{Box3, BoxIndex, Region};
use celerity_tdag::TaskId;
use smallvec::SmallVec;

use crate::window::IdMap;
use landings::{Landing, Landings};
use outstanding::Outstanding;

mod landings;
mod outstanding;
#[cfg(test)]
mod tests;

/// A receive that the communicator must post.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the arbiter will not ask for it again"]
pub struct PostReceive {
    /// The node that sends.
    pub from: NodeId,
    /// The sender's name for the payload.
    pub message: MessageId,
    /// What the data is for.
    pub transfer: TransferId,
    /// The boxes that it brings, in the order in which their pilot names them, each with the allocation that it is written to: inside
    /// of its extent.
    pub parts: SmallVec<[(Box3, Placement); 1]>,
    /// Bytes of one element.
    pub elem_size: u64,
}

/// A pilot or payload that cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ArbiterError {
    /// A pilot for another node.
    #[error("a pilot from {from} for {transfer} is addressed to {to}")]
    Misdirected {
        /// The node that sends.
        from: NodeId,
        /// What it is for.
        transfer: TransferId,
        /// The node that the pilot names as the receiver.
        to: NodeId,
    },
    /// A pilot of which a box is not inside one expected region, or that has none.
    #[error("{from} announces {elements} for {transfer}, but {expected} is expected")]
    OutsideRegion {
        /// The node that sends.
        from: NodeId,
        /// What it is for.
        transfer: TransferId,
        /// The elements that the pilot announces.
        elements: Box3,
        /// The region of the receive that they touch.
        expected: Box<Region>,
    },
    /// A pilot for elements that have been announced before, or that reuses a
    /// message id.
    #[error("{from} announces {elements} for {transfer} again, as {message}")]
    Duplicate {
        /// The node that sends.
        from: NodeId,
        /// What it is for.
        transfer: TransferId,
        /// The elements that the pilot announces.
        elements: Box3,
        /// The sender's name for the payload.
        message: MessageId,
    },
    /// A pilot that no receive of this node asks for.
    #[error("{from} announces {elements} for {transfer}, which nobody here waits for")]
    Unexpected {
        /// The node that sends.
        from: NodeId,
        /// What it is for.
        transfer: TransferId,
        /// The elements that the pilot announces.
        elements: Box3,
    },
    /// A payload that was not asked for.
    #[error("{message} arrived from {from}, but was not asked for")]
    UnknownPayload {
        /// The node that sends.
        from: NodeId,
        /// The sender's name for the payload.
        message: MessageId,
    },
    /// Two receives of one transfer expect the same elements, or an await asks
    /// for what no split receive brings.
    #[error("{instruction} asks for {region} of {transfer}, which does not fit its other receives")]
    InconsistentReceives {
        /// The id of the instruction that came later and does not fit.
        instruction: InstructionId,
        /// What they are for.
        transfer: TransferId,
        /// What it asks for.
        region: Box<Region>,
    },
}

/// The open transfers of one node.
///
/// Laws:
/// * pilots and receives may come in any order; a receive is posted as soon as
///   both are there;
/// * each box of a payload lies inside the region of one receive or split receive; several
///   of these may serve one transfer with disjoint regions, and one payload may be for several of them: it is posted when the last of
///   them has begun;
/// * a *receive* completes when all of its region has arrived, in whatever
///   geometry; a *split receive* completes at once and its *await receives*
///   complete as soon as their part has arrived, whether exactly, as part of
///   something larger, or in pieces (instruction-graph preprint, §3.4 a–c).
///
/// Cost: one hash look-up and the region arithmetic of what is still missing,
/// per pilot and per payload.
#[derive(Debug)]
pub struct Arbiter {
    node: NodeId,
    transfers: IdMap<TransferId, Transfer>,
    announced: IdMap<Name, Announced>,
    posts: VecDeque<PostReceive>,
    completed: VecDeque<InstructionId>,
    /// Transfers of earlier consumers are over.
    closed_before: TaskId,
}

/// What is known of a message that has been announced and has not arrived.
#[derive(Clone, Debug)]
enum Announced {
    /// There is no receive yet for so many of its boxes.
    Early(Pilot, usize),
    /// Its receive has been posted.
    Posted(TransferId, Region),
}

/// A message: who sends it, and the sender's number of it.
type Name = (NodeId, MessageId);

#[derive(Debug, Default)]
struct Transfer {
    landings: Landings,
    awaits: SmallVec<[(InstructionId, Outstanding); 2]>,
    /// Messages that lack a receive, around all that they bring.
    waiting: BoxIndex<Name>,
}

impl Arbiter {
    /// An arbiter for the receives of `node`.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            transfers: IdMap::default(),
            announced: IdMap::default(),
            posts: VecDeque::new(),
            completed: VecDeque::new(),
            closed_before: TaskId::from_index(0),
        }
    }

    /// Begins a *receive*; it will come out of
    /// [`next_completed`](Self::next_completed).
    ///
    /// # Errors
    /// If it does not fit the transfer's other receives, or pilots that have
    /// come before it do not fit it.
    pub fn begin_receive(
        &mut self,
        instruction: InstructionId,
        inbound: &Inbound,
    ) -> Result<(), ArbiterError> {
        if inbound.region.is_empty() {
            self.completed.push_back(instruction);
            return Ok(());
        }
        self.begin(instruction, Some(instruction), inbound)
    }

    /// Begins a *split receive*, which counts as complete from then on.
    ///
    /// # Errors
    /// As for [`begin_receive`](Self::begin_receive).
    pub fn begin_split_receive(
        &mut self,
        instruction: InstructionId,
        inbound: &Inbound,
    ) -> Result<(), ArbiterError> {
        self.begin(instruction, None, inbound)
    }

    /// Begins an *await receive* of a split receive that has begun; it will
    /// come out of [`next_completed`](Self::next_completed).
    ///
    /// # Errors
    /// If no split receive of the transfer brings the region.
    pub fn begin_await(
        &mut self,
        instruction: InstructionId,
        transfer: TransferId,
        region: &Region,
    ) -> Result<(), ArbiterError> {
        let open = self.transfers.entry(transfer).or_default();
        let split = |landing: &&Landing| {
            landing.receive.is_none() && landing.inbound.region.contains(region)
        };
        let Some(landing) = open.landings.iter().find(split) else {
            let region = Box::new(region.clone());
            return Err(ArbiterError::InconsistentReceives { instruction, transfer, region });
        };
        let missing = landing.missing.intersection(region);
        if missing.is_empty() {
            self.completed.push_back(instruction);
        } else {
            open.awaits.push((instruction, Outstanding::of(&missing)));
        }
        Ok(())
    }

    /// Takes notice of what a peer will send.
    ///
    /// # Errors
    /// If the pilot does not fit what is expected, as far as that is known by
    /// now; [`close_before`](Self::close_before) finds the rest.
    pub fn pilot(&mut self, from: NodeId, pilot: Pilot) -> Result<(), ArbiterError> {
        #[cfg(feature = "mutants")]
        let pilot = self.mistaken(pilot);
        let Pilot { to, transfer, message, ref region, .. } = pilot;
        if to != self.node {
            return Err(ArbiterError::Misdirected { from, transfer, to });
        }
        let elements = region.boxes().first().copied().unwrap_or(Box3::EMPTY);
        if transfer.consumer < self.closed_before {
            return Err(ArbiterError::Unexpected { from, transfer, elements });
        }
        if self.announced.contains_key(&(from, message)) {
            return Err(ArbiterError::Duplicate { from, transfer, elements, message });
        }
        if region.is_empty() {
            let expected = Box::default();
            return Err(ArbiterError::OutsideRegion { from, transfer, elements, expected });
        }
        let open = self.transfers.entry(transfer).or_default();
        let found = open.landings.of_all(region);
        match found.iter().filter(|landing| landing.is_none()).count() {
            0 => {
                let post = open.announce(from, &pilot, &found)?;
                self.post(post, pilot.region);
            }
            #[cfg(feature = "mutants")]
            _ if celerity_mutants::Mutant::EarlyPilotDropped.is_active() => {}
            lacking => {
                open.waiting.insert(region.bounding_box(), (from, message));
                self.announced.insert((from, message), Announced::Early(pilot, lacking));
            }
        }
        Ok(())
    }

    /// A posted payload is in place.
    ///
    /// # Errors
    /// If the payload was not posted.
    pub fn arrived(&mut self, from: NodeId, message: MessageId) -> Result<(), ArbiterError> {
        let Some(Announced::Posted(transfer, region)) = self.announced.remove(&(from, message))
        else {
            return Err(ArbiterError::UnknownPayload { from, message });
        };
        let open = self.transfers.get_mut(&transfer).expect("posted payloads keep transfers open");
        region.boxes().iter().for_each(|part| open.land(part, &mut self.completed));
        if open.is_over() {
            self.transfers.remove(&transfer);
        }
        Ok(())
    }

    /// The next receive to post, if there is one.
    pub fn next_post(&mut self) -> Option<PostReceive> {
        self.posts.pop_front()
    }

    /// The next receive or await that is complete, if there is one.
    pub fn next_completed(&mut self) -> Option<InstructionId> {
        self.completed.pop_front()
    }

    /// Ends the transfers for consumers before `task`: all their receives have
    /// completed, so every announcement must have been used. O(open transfers and messages under way).
    ///
    /// # Errors
    /// [`ArbiterError::Unexpected`] for a pilot that found no receive.
    pub fn close_before(&mut self, task: TaskId) -> Result<(), ArbiterError> {
        self.closed_before = task;
        let early = |(name, announced): (&Name, &Announced)| match announced {
            Announced::Early(pilot, _) if pilot.transfer.consumer < task => {
                let landings = &self.transfers[&pilot.transfer].landings;
                let mut boxes = pilot.region.boxes().iter();
                let lacks = boxes.find(|part| landings.of(part).is_none());
                Some((name.0, pilot.transfer, lacks.copied().unwrap_or(Box3::EMPTY)))
            }
            _ => None,
        };
        if let Some((from, transfer, elements)) = self.announced.iter().find_map(early) {
            return Err(ArbiterError::Unexpected { from, transfer, elements });
        }
        self.transfers.retain(|id, open| {
            debug_assert!(id.consumer >= task || open.awaits.is_empty(), "{id} is still awaited");
            id.consumer >= task
        });
        Ok(())
    }

    /// Whether something can still arrive in `allocation`.
    #[must_use]
    pub fn expects_into(&self, allocation: AllocationId) -> bool {
        let landings = self.transfers.values().flat_map(|open| open.landings.iter());
        landings
            .filter(|landing| landing.inbound.target.allocation == allocation)
            .any(|landing| !landing.missing.is_empty())
    }

    /// Whether a receive that has begun still lacks pilots. O(open transfers),
    /// which are few.
    #[must_use]
    pub fn expects_pilots(&self) -> bool {
        let mut landings = self.transfers.values().flat_map(|open| open.landings.iter());
        landings.any(|landing| !landing.unannounced.is_empty())
    }

    /// What a receive or await that has begun still waits for; `None` if it has
    /// completed or never began. O(open transfers): for reports.
    #[must_use]
    pub fn missing(&self, instruction: InstructionId) -> Option<Region> {
        self.open_part(instruction).map(|(_, missing)| missing)
    }

    /// The nodes that have announced, and not yet sent, some of what a receive or
    /// await still waits for, in ascending order. O(open transfers): for reports.
    #[must_use]
    pub fn announced_by(&self, instruction: InstructionId) -> Vec<NodeId> {
        let Some((transfer, missing)) = self.open_part(instruction) else { return Vec::new() };
        let on_its_way = self.announced.iter().filter(|(_, announced)| match announced {
            Announced::Posted(of, region) => *of == transfer && missing.intersects(region),
            Announced::Early(..) => false,
        });
        let mut nodes: Vec<_> = on_its_way.map(|((from, _), _)| *from).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn open_part(&self, instruction: InstructionId) -> Option<(TransferId, Region)> {
        let receive = |open: &Transfer| {
            let mut landings = open.landings.iter();
            let landing = landings.find(|landing| landing.receive == Some(instruction))?;
            Some(landing.missing.to_region())
        };
        let awaited = |open: &Transfer| {
            let (_, missing) = open.awaits.iter().find(|(waiting, _)| *waiting == instruction)?;
            Some(missing.to_region())
        };
        self.transfers.iter().find_map(|(transfer, open)| {
            let missing = receive(open).or_else(|| awaited(open))?;
            Some((*transfer, missing))
        })
    }

    fn begin(
        &mut self,
        instruction: InstructionId,
        receive: Option<InstructionId>,
        inbound: &Inbound,
    ) -> Result<(), ArbiterError> {
        let transfer = inbound.transfer;
        let open = self.transfers.entry(transfer).or_default();
        if open.landings.expect_some_of(&inbound.region) {
            let region = Box::new(inbound.region.clone());
            return Err(ArbiterError::InconsistentReceives { instruction, transfer, region });
        }
        let expected = Outstanding::of(&inbound.region);
        let complete = open.take_complete(&mut self.announced, inbound, &expected);
        open.landings.push(Landing {
            receive,
            inbound: inbound.clone(),
            unannounced: expected.clone(),
            missing: expected,
        });
        let announce = |(from, pilot): (NodeId, Pilot)| {
            let found = open.landings.of_all(&pilot.region);
            Ok((open.announce(from, &pilot, &found)?, pilot.region))
        };
        let posts: SmallVec<[_; 2]> =
            complete.into_iter().map(announce).collect::<Result<_, _>>()?;
        posts.into_iter().for_each(|(post, region)| self.post(post, region));
        Ok(())
    }

    #[cfg(feature = "mutants")]
    fn mistaken(&self, pilot: Pilot) -> Pilot {
        let same_buffer =
            |open: &&TransferId| open.buffer == pilot.transfer.buffer && **open != pilot.transfer;
        let other = self.transfers.keys().filter(same_buffer).min_by_key(|open| open.consumer);
        celerity_mutants::Mutant::PilotMatchedByBuffer.alter(pilot, |pilot| Pilot {
            transfer: other.copied().unwrap_or(pilot.transfer),
            ..pilot
        })
    }

    fn post(&mut self, post: PostReceive, region: Region) {
        let posted = Announced::Posted(post.transfer, region);
        self.announced.insert((post.from, post.message), posted);
        self.posts.push_back(post);
    }
}

impl Transfer {
    /// Takes out the early pilots that lack nothing once a receive begins, of which all is still `expected`.
    fn take_complete(
        &mut self,
        announced: &mut IdMap<Name, Announced>,
        inbound: &Inbound,
        expected: &Outstanding,
    ) -> SmallVec<[(NodeId, Pilot); 2]> {
        let mut complete: SmallVec<[Name; 2]> = SmallVec::new();
        for (_, name) in self.waiting.sharing(&inbound.region.bounding_box()) {
            let Some(Announced::Early(pilot, lacking)) = announced.get_mut(name) else {
                unreachable!("{} of {} is early", name.1, name.0)
            };
            let boxes = pilot.region.boxes().iter();
            let found = boxes.filter(|part| expected.intersects_box(part)).count();
            // A box that lies in two receives is found twice. It is refused when it is announced.
            *lacking = lacking.saturating_sub(found);
            if *lacking == 0 {
                complete.push(*name);
            }
        }
        let take = |name: Name| {
            let Some(Announced::Early(pilot, _)) = announced.remove(&name) else {
                unreachable!("as just seen")
            };
            self.waiting.remove(&pilot.region.bounding_box(), &name);
            (name.0, pilot)
        };
        complete.into_iter().map(take).collect()
    }

    /// Takes notice of a pilot, whose boxes are for the landings at the positions `found`.
    fn announce(
        &mut self,
        from: NodeId,
        pilot: &Pilot,
        found: &[Option<usize>],
    ) -> Result<PostReceive, ArbiterError> {
        let Pilot { message, transfer, .. } = *pilot;
        let mut elem_size = 0;
        let mut parts = SmallVec::with_capacity(found.len());
        for (&elements, position) in pilot.region.boxes().iter().zip(found) {
            let outside = || {
                let expected = Box::default();
                ArbiterError::OutsideRegion { from, transfer, elements, expected }
            };
            let landing = self.landings.at(position.ok_or_else(outside)?);
            landing.announce(from, pilot, &elements)?;
            let target = landing.inbound.target;
            elem_size = landing.inbound.elem_size;
            parts.push((elements, target));
        }
        Ok(PostReceive { from, message, transfer, parts, elem_size })
    }

    /// Counts `arrived` in, and appends what that completes.
    fn land(&mut self, arrived: &Box3, completed: &mut VecDeque<InstructionId>) {
        self.landings.land(arrived, |receive| completed.push_back(receive));
        self.awaits.retain(|(instruction, missing)| {
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::AwaitEndsWithFirstMessage.is_active()
                && missing.intersects_box(arrived)
            {
                *missing = Outstanding::default();
            }
            missing.take(arrived);
            if missing.is_empty() {
                completed.push_back(*instruction);
            }
            !missing.is_empty()
        });
    }

    fn is_over(&self) -> bool {
        self.landings.is_empty() && self.awaits.is_empty() && self.waiting.is_empty()
    }
}
