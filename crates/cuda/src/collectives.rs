//! Collective operations between the first GPUs of nodes, by [NCCL](Nccl): one stream, on which each operation
//! is the copies that make dense what does not lie in one piece, a group of calls, and the copies back. Decides
//! neither which operations there are nor when they begin.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_executor::{
    CollectiveExchange, CollectiveTerms, Copied, CopyId, DeviceCollectives, WindowError,
};

use crate::driver::{Driver, DriverError, Event, Gpu};
use crate::memory::AllocationStream;
use crate::nccl::{Joined, JoiningId, Nccl};
use crate::ordered::{Events, OrderedStream};

mod part;

use part::Part;

/// How long a GPU waits for others to join: most of what the library does then, which is a second or two, is to
/// find out how they reach each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// The operations of one node's first GPU.
pub(crate) struct CudaCollectives {
    driver: Arc<dyn Driver>,
    nccl: Arc<dyn Nccl>,
    terms: CollectiveTerms,
    gpu: Gpu,
    max_pitch: u64,
    fence: Arc<AllocationStream>,
    side: OrderedStream,
    joined: Option<Joined>,
    /// When the GPU began to join.
    since: Instant,
    place: (NodeId, usize),
    /// What has been begun and is not on the stream, in order.
    waiting: VecDeque<(CopyId, Part)>,
    /// What the library is putting on the stream.
    starting: Option<(CopyId, Part)>,
    /// What is on the stream: the events behind it.
    pending: VecDeque<(CopyId, Event)>,
    failed: Vec<CopyId>,
    /// Why nothing succeeds any more.
    fault: Option<String>,
    events: Events,
}

impl CudaCollectives {
    /// Those of a GPU with so long strides of copies, whose memory this tells of.
    ///
    /// # Errors
    /// If the driver makes no stream.
    pub(crate) fn new(
        driver: &Arc<dyn Driver>,
        nccl: Arc<dyn Nccl>,
        terms: CollectiveTerms,
        (gpu, max_pitch, fence): (Gpu, u64, Arc<AllocationStream>),
    ) -> Result<Self, DriverError> {
        let side = OrderedStream::new(&**driver, gpu)?;
        Ok(Self {
            driver: driver.clone(),
            nccl,
            terms,
            gpu,
            max_pitch,
            fence,
            side,
            joined: None,
            since: Instant::now(),
            place: (NodeId::from_index(0), 1),
            waiting: VecDeque::new(),
            starting: None,
            pending: VecDeque::new(),
            failed: Vec::new(),
            fault: None,
            events: Events::new(gpu),
        })
    }

    /// Lets this thread call the library for the GPU.
    fn adopt(&self) -> Result<(), String> {
        self.driver.adopt_thread(self.gpu).map_err(|error| error.to_string())
    }

    /// Puts on the stream what can be put there now.
    fn advance(&mut self) {
        loop {
            if let Some((id, part)) = self.starting.take() {
                match self.is_started() {
                    Ok(false) => return self.starting = Some((id, part)),
                    Ok(true) => self.end(id, &part),
                    Err(why) => self.fail(id, &part, why),
                }
            }
            let Some((id, mut part)) = self.waiting.pop_front() else { return };
            match self.start(&mut part) {
                Ok(()) => self.starting = Some((id, part)),
                Err(why) => self.fail(id, &part, why),
            }
        }
    }

    fn is_started(&self) -> Result<bool, String> {
        self.nccl.is_ready(self.joined.ok_or("it has been given up")?)
    }

    /// Puts all on the stream that comes before the library's own work, and that.
    fn start(&mut self, part: &mut Part) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let joined = self.joined.ok_or("it has not joined")?;
        self.fill(part).map_err(|error| error.to_string())?;
        let calls = part.calls();
        if calls.is_empty() {
            return Ok(());
        }
        self.adopt()?;
        let stream = self.driver.native(self.side.stream).map_err(|error| error.to_string())?;
        // SAFETY: the node's promise in `begin`, of its memory; the dense part is the stream's.
        unsafe { self.nccl.start(joined, &stream, &calls) }
    }

    /// Makes dense what is sent and does not lie in one piece.
    fn fill(&mut self, part: &mut Part) -> Result<(), DriverError> {
        self.side.follow(&*self.driver, &self.fence)?;
        if let Some(bytes) = part.dense_bytes() {
            let address = self.driver.alloc(self.side.stream, bytes)?;
            part.give(address);
        }
        for transfer in part.packing(self.max_pitch) {
            // SAFETY: sources are the node's promise in `begin`; the dense part is the stream's.
            unsafe { self.driver.copy(self.side.stream, &transfer)? };
        }
        Ok(())
    }

    /// Puts all on the stream that comes behind the library's work.
    fn end(&mut self, id: CopyId, part: &Part) {
        let unpacked = self.unpack(part);
        self.free(part);
        let (driver, stream) = (&*self.driver, self.side.stream);
        match unpacked.and_then(|()| self.events.record(driver, stream)) {
            Ok(event) => self.pending.push_back((id, event)),
            Err(error) => self.give_up(id, error.to_string()),
        }
    }

    fn unpack(&self, part: &Part) -> Result<(), DriverError> {
        for transfer in part.unpacking(self.max_pitch) {
            // SAFETY: targets are the node's promise in `begin`; the dense part is the stream's.
            unsafe { self.driver.copy(self.side.stream, &transfer)? };
        }
        Ok(())
    }

    /// Gives dense memory back, when the stream has got there.
    fn free(&self, part: &Part) {
        if let Some(dense) = part.dense() {
            // SAFETY: it was allocated on this stream, where all that uses it is already. A part comes to
            // its end once: behind its copies, or by failing before that.
            unsafe { self.driver.free(self.side.stream, dense) };
        }
    }

    /// An operation has failed before all of it was on the stream.
    fn fail(&mut self, id: CopyId, part: &Part, why: String) {
        self.give_up(id, why);
        self.free(part);
    }

    /// An operation, and so all later ones, has failed; some of it may be on the stream.
    fn give_up(&mut self, id: CopyId, why: String) {
        self.fault.get_or_insert(why);
        self.abandon();
        // What has failed on the GPU is reported by its node.
        drop(self.driver.synchronize(self.side.stream));
        self.failed.push(id);
    }

    fn abandon(&mut self) {
        if let Some(joined) = self.joined.take() {
            // The library finds the GPU by the communicator.
            drop(self.adopt());
            self.nccl.abandon(joined);
        }
    }

    fn failure(&self, id: CopyId) -> Copied {
        let why = self.fault.clone().unwrap_or_else(|| "an earlier one has failed".to_owned());
        Copied { id, outcome: Err(why) }
    }
}

// SAFETY: an operation is told when the event behind it has happened, or when its stream has run empty.
unsafe impl DeviceCollectives for CudaCollectives {
    fn terms(&self) -> CollectiveTerms {
        self.terms
    }

    fn invite(&mut self) -> Result<Vec<u8>, WindowError> {
        self.adopt()?;
        Ok(self.nccl.id()?.to_vec())
    }

    fn join(&mut self, card: &[u8], node: NodeId, nodes: usize) -> Result<(), WindowError> {
        let id: JoiningId = card.try_into().map_err(|_| "node 0's card makes no sense")?;
        self.adopt()?;
        self.joined = Some(self.nccl.join(&id, node.slot(), nodes)?);
        self.place = (node, nodes);
        self.since = Instant::now();
        Ok(())
    }

    fn joined(&mut self) -> Option<Result<(), WindowError>> {
        match self.is_started() {
            Ok(false) if self.since.elapsed() < PATIENCE => None,
            Ok(false) => Some(Err(format!("not all GPUs have joined in {} s", PATIENCE.as_secs()))),
            Ok(true) => Some(Ok(())),
            Err(why) => Some(Err(why)),
        }
    }

    unsafe fn begin(&mut self, id: CopyId, exchange: &CollectiveExchange) {
        self.waiting.push_back((id, Part::new(exchange, self.place, self.gpu)));
        self.advance();
    }

    fn poll(&mut self) -> Option<Copied> {
        self.advance();
        if let Some(id) = self.failed.pop() {
            return Some(self.failure(id));
        }
        let (id, event) = *self.pending.front()?;
        let outcome = match self.driver.query(event) {
            Ok(false) => return None,
            Ok(true) => self.fault.clone().map_or(Ok(()), Err),
            Err(error) => Err(error.to_string()),
        };
        self.pending.pop_front();
        self.events.give_back(event);
        if let Err(why) = &outcome {
            self.fault.get_or_insert_with(|| why.clone());
        }
        Some(Copied { id, outcome })
    }

    fn abort(&mut self) {
        self.fault.get_or_insert_with(|| "the run was aborted".to_owned());
        self.abandon();
        if let Some((id, part)) = self.starting.take() {
            self.fail(id, &part, "the run was aborted".to_owned());
        }
    }
}

impl Drop for CudaCollectives {
    fn drop(&mut self) {
        self.abandon();
        drop(self.driver.synchronize(self.side.stream));
        // SAFETY: it was made here, and this is its last use.
        unsafe { self.driver.destroy_stream(self.side.stream) };
        for event in self.events.spare().chain(self.pending.iter().map(|(_, event)| *event)) {
            // SAFETY: it was made here, its stream has run empty, and this is its last use.
            unsafe { self.driver.destroy_event(event) };
        }
    }
}

#[cfg(test)]
mod tests;
