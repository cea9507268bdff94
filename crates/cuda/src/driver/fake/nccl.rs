//! A library of collective operations for fake GPUs. Imitates what may go wrong: groups take their time to get
//! on streams, streams wait there for others, and memory that is not allocated fails the GPU.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use celerity_executor::DeviceStream;

use super::state::{Gate, Operation};
use super::{AddressSpace, FakeDriver, Gpu, STREAMS_FROM, Shared, Transfer};
use crate::nccl::{Joined, JoiningId, Nccl, NcclCall};

/// NCCL on the GPUs of a [`FakeDriver`], between nodes of one process. As the real one, it refuses two that
/// share a GPU.
pub struct FakeNccl {
    driver: Arc<Shared>,
    world: Arc<Mutex<World>>,
}

#[derive(Default)]
struct World {
    ids: u8,
    communicators: Vec<Member>,
    /// By id and the ranks of sender and receiver: messages that wait for their other end.
    sent: BTreeMap<Way, VecDeque<End>>,
    expected: BTreeMap<Way, VecDeque<End>>,
}

type Way = (JoiningId, usize, usize);

/// One of those that have joined.
struct Member {
    id: JoiningId,
    rank: usize,
    ranks: usize,
    gpu: Gpu,
    /// How often it says yet that it is not ready.
    delay: u8,
    /// What its streams wait at.
    gates: Vec<Arc<Gate>>,
    is_given_up: bool,
}

/// One end of a message.
#[derive(Clone)]
struct End {
    gpu: Gpu,
    address: u64,
    bytes: u64,
    group: Arc<Group>,
}

/// Calls that end together.
struct Group {
    missing: Mutex<usize>,
    gate: Arc<Gate>,
}

impl FakeDriver {
    /// A library of collective operations for these GPUs.
    #[must_use]
    pub fn nccl(&self) -> FakeNccl {
        FakeNccl { driver: self.shared.clone(), world: Arc::default() }
    }
}

impl FakeNccl {
    fn lock(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    fn push(&self, stream: &DeviceStream, operation: Operation) {
        let raw = stream.stream.addr().checked_sub(STREAMS_FROM).expect("a stream of this driver");
        self.driver.lock().streams[raw].push_back(operation);
        self.driver.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    /// A group as messages between pairs, each of which has two ends.
    fn messages(&self, calls: &[NcclCall]) -> Vec<(bool, usize, u64, u64)> {
        let others = || (0..self.ranks).filter(|other| *other != self.rank);
        let mut ends = Vec::new();
        for call in calls {
            match *call {
                NcclCall::Send { address, bytes, to } => ends.push((true, to, address, bytes)),
                NcclCall::Receive { address, bytes, from } => {
                    ends.push((false, from, address, bytes));
                }
                NcclCall::AllGather { own, all, bytes } => {
                    ends.extend(others().map(|to| (true, to, own, bytes)));
                    let at = |from: usize| all + from as u64 * bytes;
                    ends.extend(others().map(|from| (false, from, at(from), bytes)));
                    assert_eq!(own, at(self.rank), "fake all-gathers are in place");
                }
                NcclCall::Broadcast { address, bytes, root } if root == self.rank => {
                    ends.extend(others().map(|to| (true, to, address, bytes)));
                }
                NcclCall::Broadcast { address, bytes, root } => {
                    ends.push((false, root, address, bytes));
                }
            }
        }
        ends
    }
}

/// Moves what both ends have come to.
fn meet(world: &Mutex<World>, driver: &Shared, way: Way) -> Result<(), String> {
    let mut world = lock(world);
    let World { sent, expected, .. } = &mut *world;
    let (sent, expected) = (sent.entry(way).or_default(), expected.entry(way).or_default());
    while let (Some(source), Some(target)) = (sent.front(), expected.front()) {
        if source.bytes != target.bytes {
            return Err(format!("{} bytes are sent and {} expected", source.bytes, target.bytes));
        }
        let ends = [source, target].map(|end| (AddressSpace::Gpu(end.gpu), end.address));
        driver.lock().memory.copy(&Transfer::flat(ends[0], ends[1], source.bytes))?;
        for end in [sent.pop_front(), expected.pop_front()].into_iter().flatten() {
            let mut missing = lock(&end.group.missing);
            *missing -= 1;
            if *missing == 0 {
                end.group.gate.open();
            }
        }
    }
    Ok(())
}

impl Nccl for FakeNccl {
    fn id(&self) -> Result<JoiningId, String> {
        let mut world = self.lock();
        world.ids += 1;
        Ok([world.ids; 128])
    }

    fn join(&self, id: &JoiningId, rank: usize, ranks: usize) -> Result<Joined, String> {
        let current = self.driver.lock().adopted.get(&std::thread::current().id()).copied();
        let gpu = current.expect("the calling thread works for a GPU");
        let (id, delay, gates) = (*id, 2, Vec::new());
        let member = Member { id, rank, ranks, gpu, delay, gates, is_given_up: false };
        let mut world = self.lock();
        world.communicators.push(member);
        Ok(Joined(world.communicators.len() - 1))
    }

    fn is_ready(&self, joined: Joined) -> Result<bool, String> {
        let mut world = self.lock();
        let own = &world.communicators[joined.0];
        let (id, ranks, gpu) = (own.id, own.ranks, own.gpu);
        let same = world.communicators.iter().filter(|other| other.id == id);
        let (all, sharing) = same.fold((0, 0), |(all, sharing), other| {
            (all + 1, sharing + usize::from(other.gpu == gpu))
        });
        let own = &mut world.communicators[joined.0];
        own.delay = own.delay.saturating_sub(1);
        match (all == ranks, sharing > 1) {
            (true, true) => Err("NCCL says: invalid usage (Duplicate GPU detected)".to_owned()),
            (all_there, _) => Ok(all_there && own.delay == 0),
        }
    }

    unsafe fn start(
        &self,
        joined: Joined,
        stream: &DeviceStream,
        calls: &[NcclCall],
    ) -> Result<(), String> {
        let (gate, mut world) = (Arc::<Gate>::default(), self.lock());
        let own = &mut world.communicators[joined.0];
        own.delay = 2;
        own.gates.push(gate.clone());
        let (id, rank, gpu, ends) = (own.id, own.rank, own.gpu, own.messages(calls));
        drop(world);
        let group = Arc::new(Group { missing: Mutex::new(ends.len()), gate: gate.clone() });
        let (driver, world) = (self.driver.clone(), self.world.clone());
        let come = move || {
            for (is_sent, other, address, bytes) in ends {
                let end = End { gpu, address, bytes, group: group.clone() };
                let way = if is_sent { (id, rank, other) } else { (id, other, rank) };
                let mut locked = lock(&world);
                let World { sent, expected, .. } = &mut *locked;
                let ends = if is_sent { sent } else { expected };
                ends.entry(way).or_default().push_back(end);
                drop(locked);
                meet(&world, &driver, way)?;
            }
            Ok(())
        };
        self.push(stream, Operation::Foreign(Box::new(come)));
        self.push(stream, Operation::Until(gate));
        Ok(())
    }

    fn abandon(&self, joined: Joined) {
        let mut world = self.lock();
        let own = &mut world.communicators[joined.0];
        assert!(!std::mem::replace(&mut own.is_given_up, true), "given up once");
        own.gates.iter().for_each(|gate| gate.open());
        let (id, rank) = (own.id, own.rank);
        let World { sent, expected, .. } = &mut *world;
        // Nobody touches its memory any more.
        for (way, ends) in sent.iter_mut().chain(expected) {
            if way.0 == id && [way.1, way.2].contains(&rank) {
                ends.clear();
            }
        }
        drop(world);
        self.driver.changed.notify_all();
    }
}
