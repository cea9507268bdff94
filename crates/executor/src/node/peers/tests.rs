//! What a node hears and says, on a network in memory.

use celerity_idag::{MemoryId, Placement};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, TaskGraph, TaskGraphConfig};

use super::*;
use crate::communicator::{LocalCommunicator, local_cluster};
use crate::copy::ElementArray;
use crate::memory::BasePtr;
use crate::pool::CpuPool;

#[path = "../../../tests/doubles/unwoken.rs"]
mod unwoken;

use unwoken::Unwoken;

fn pair(wrap: impl Fn(LocalCommunicator) -> Box<dyn Communicator>) -> [Peers; 2] {
    let pool = CpuPool::new(1).unwrap();
    let wakers = (0..2).map(|_| Arc::new(|| {}) as crate::polling::Waker).collect();
    let ends = local_cluster(wakers, &pool).into_iter();
    let peers: Vec<_> = ends.map(|end| Peers::new(wrap(end), 16)).collect();
    peers.try_into().unwrap_or_else(|_| unreachable!("two ends"))
}

fn two() -> [Peers; 2] {
    pair(|end| Box::new(end))
}

/// All that an end hears now.
fn heard(peers: &mut Peers) -> Vec<Result<Heard, RunError>> {
    let events: Vec<_> = std::iter::from_fn(|| peers.poll()).collect();
    events.into_iter().map(|event| peers.hear(event, Time::START)).collect()
}

const EXTENT: Box3 = Box3::UNIT;

fn transfer() -> TransferId {
    TransferId { consumer: TaskId::from_index(3), buffer: BufferId::from_index(0) }
}

fn pilot(to: NodeId) -> Pilot {
    let message = MessageId::from_index(0);
    Pilot { to, message, transfer: transfer(), region: EXTENT.into(), from_device: false }
}

fn array(memory: &mut [u8; 8]) -> ElementArray {
    ElementArray { base: BasePtr::of_mut_slice(memory), extent: EXTENT }
}

fn leaving(memory: &mut [u8; 8]) -> Leaving {
    Leaving {
        message: MessageId::from_index(0),
        at: MemoryId::HOST,
        memory: array(memory),
        region: EXTENT.into(),
        elem_size: 8,
    }
}

fn inbound() -> Inbound {
    let allocation = AllocationId::from_index(1);
    let target = Placement { allocation, memory: MemoryId::HOST, extent: EXTENT };
    Inbound { transfer: transfer(), target, region: EXTENT.into(), elem_size: 8 }
}

#[test]
fn a_payload_is_announced_asked_for_and_heard_of_on_both_sides() {
    let (mut source, mut target) = ([7; 8], [0; 8]);
    let [mut sender, mut receiver] = two();
    let (send, receive) = (InstructionId::from_index(4), InstructionId::from_index(9));
    receiver.begin_receive(receive, &inbound()).unwrap();
    assert_eq!(receiver.next_post(), None, "nobody has announced anything");
    assert_eq!(receiver.missing(receive), (EXTENT.into(), vec![]));
    assert!(receiver.expect_into(AllocationId::from_index(1)));
    sender.announce(&pilot(receiver.local()));
    assert_eq!(heard(&mut receiver), [Ok(Heard::Transfers)]);
    let post = receiver.next_post().expect("it is announced");
    assert_eq!(receiver.missing(receive).1, [sender.local()]);
    // SAFETY: both outlive what is under way, which ends in this function.
    unsafe {
        let place = MemoryArray { at: MemoryId::HOST, array: array(&mut target) };
        let places = [(EXTENT, place)].into_iter().collect();
        receiver.receive((post.from, post.message), places, 8);
        sender.send(send, receiver.local(), leaving(&mut source));
    }
    assert_eq!(heard(&mut sender), [Ok(Heard::Sent(send))]);
    assert_eq!(heard(&mut receiver), [Ok(Heard::Transfers)]);
    assert_eq!([receiver.next_received(), receiver.next_received()], [Some(receive), None]);
    assert_eq!(target, [7; 8]);
}

#[test]
fn what_cannot_be_placed_is_an_error_of_the_node_that_hears_it() {
    let [mut sender, mut receiver] = two();
    sender.announce(&pilot(receiver.local()));
    assert_eq!(heard(&mut receiver), [Ok(Heard::Transfers)]);
    let later = TaskId::from_index(4);
    let error = receiver.close_before(later).unwrap_err();
    let node = receiver.local();
    assert!(matches!(&error, RunError::Arbitration { node: at, .. } if *at == node), "{error}");
    receiver.communicator.send_note(sender.local(), &[250, 1]);
    let [Err(error)] = &heard(&mut sender)[..] else { panic!("it means nothing") };
    assert!(error.to_string().contains("2 bytes are no note"), "{error}");
}

#[test]
fn what_cannot_be_placed_is_told_with_its_task_where_that_is_known() {
    for tasks in [3, 4] {
        let [mut sender, mut receiver] = two();
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let mut submitted = vec![graph.start()];
        while submitted.len() < tasks {
            graph.epoch(EpochAction::Barrier, &mut submitted);
        }
        submitted.iter().for_each(|task| receiver.stream.task(task, 0, &mut Vec::new()));
        sender.announce(&pilot(receiver.local()));
        sender.announce(&pilot(receiver.local()));
        let heard = heard(&mut receiver);
        let Some(Err(error)) = heard.last() else { panic!("the same twice: {heard:?}") };
        let named =
            error.to_string().contains("got a message for T3 \"barrier\" that it cannot place");
        assert_eq!(named, tasks > 3, "{error}");
    }
}

#[test]
fn a_barrier_is_reached_as_what_it_was_entered_for() {
    let [mut one, mut other] = two();
    let barrier = |instruction| {
        let (instruction, task) = (InstructionId::from_index(instruction), TaskId::from_index(8));
        Barrier { instruction, task, action: EpochAction::Barrier }
    };
    one.enter_barrier(barrier(20));
    assert_eq!(heard(&mut one), []);
    other.enter_barrier(barrier(30));
    assert_eq!(heard(&mut one), [Ok(Heard::Reached(barrier(20)))]);
    assert_eq!(heard(&mut other), [Ok(Heard::Reached(barrier(30)))]);
}

/// The streams say more of what differs, but may have nothing to say.
#[test]
fn that_nodes_are_in_different_epochs_is_an_error_after_a_while() {
    let mut ends = two();
    for (end, epoch) in ends.iter_mut().zip([8, 9]) {
        let (instruction, task) = (InstructionId::from_index(20), TaskId::from_index(epoch));
        end.enter_barrier(Barrier { instruction, task, action: EpochAction::Barrier });
    }
    for end in &mut ends {
        assert_eq!(heard(end), [Ok(Heard::Nothing)]);
        let due = end.apart_until().expect("it waits for a name");
        assert!(due > Time::START && end.check_apart(Time::START).is_ok());
        let error = end.check_apart(due).unwrap_err().to_string();
        assert!(error.contains("N0 waits in epoch T8, but N1 in epoch T9"), "{error}");
        assert_eq!((end.apart_until(), end.check_apart(due)), (None, Ok(())), "it is told once");
    }
}

#[test]
fn a_node_that_has_to_look_asks_for_it_as_long_as_it_waits() {
    use std::time::Duration;

    let lag = Duration::from_micros(5);
    let [woken, _other] = two();
    assert_eq!(woken.attention(|| true, lag), Attention::WhenWoken);
    let [mut sender, mut receiver] = pair(|end| Box::new(Unwoken { end, needs_polling: false }));
    assert_eq!(receiver.attention(|| false, lag), Attention::NowAndThen);
    let closely = Attention::Close(patience(0) + lag);
    assert_eq!(receiver.attention(|| true, lag), closely, "its program waits for peers");
    receiver.begin_receive(InstructionId::from_index(9), &inbound()).unwrap();
    assert_eq!(receiver.attention(|| false, lag), closely, "it expects a pilot");
    let mut source = [7; 8];
    sender.announce(&pilot(receiver.local()));
    assert!(sender.can_do_without(), "nothing is to leave");
    // SAFETY: it outlives both ends, which were made later.
    unsafe { sender.send(InstructionId::from_index(4), receiver.local(), leaving(&mut source)) };
    assert!(!sender.can_do_without());
    sender.forget();
    assert!(sender.can_do_without());
    drop((sender, receiver));
}

#[test]
fn what_could_not_be_scheduled_is_not_compared() {
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let start = graph.start();
    let [mut one, mut other] = two();
    one.task(&start, None).unwrap();
    assert_eq!(heard(&mut other), []);
    one.task(&start, Some(0)).unwrap();
    assert_eq!(heard(&mut other), [Ok(Heard::Nothing)], "a note");
}
