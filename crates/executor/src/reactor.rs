//! A thread around state machines: one loop that feeds and polls all of them.
//! Decides when to look, never what to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use crate::contain::end;
use crate::polling::Waker;
use crate::polling::{AWAY, Activity, Attention, BEAT, LONG_ROUND, SLOW_BEAT, SPIN};
use crate::pulse::Pulse;
use crate::sync::Handover;
use crate::sync::atomic::AtomicBool;
use crate::time::Time;

/// What a reactor drives.
pub(crate) trait Machine {
    /// What it is fed with.
    type Input: Send;

    /// Whether nothing comes after this input.
    fn is_last(input: &Self::Input) -> bool;

    /// Takes an input.
    fn feed(&mut self, input: Self::Input);

    /// One round of whatever there is to do.
    fn poll(&mut self, now: Time) -> Activity;

    /// Whether it will never have anything to do again.
    fn is_done(&self) -> bool;

    /// How closely it must be looked at.
    fn attention(&self) -> Attention {
        Attention::WhenWoken
    }

    /// When it wants to be polled at the latest, if nothing happens.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// It could not be polled from then until then.
    fn excuse(&mut self, from: Time, until: Time) {
        let _ = (from, until);
    }
}

/// What wakes the reactor: all of it through one channel.
enum Message<I> {
    Input(usize, I),
    /// Something can be polled.
    Wake,
}

/// Whether a wake-up is in the channel: a burst of them is one message.
#[derive(Default)]
struct Wakeup(AtomicBool);

impl Wakeup {
    /// Something can be polled, which has been published before: calls `send`, unless there is a
    /// wake-up in the channel that has not been answered.
    fn ring(&self, send: impl FnOnce()) {
        if !self.0.swap(true, Handover::WakeUpRung.ordering(Ordering::AcqRel)) {
            send();
        }
    }

    /// The wake-up is taken out of the channel: before the machines are polled, so that what comes
    /// later wakes again. Acquires what those have published who found a wake-up in the channel and
    /// sent none of their own.
    fn answer(&self) {
        self.0.swap(false, Handover::WakeUpAnswered.ordering(Ordering::AcqRel));
    }
}

/// Feeds one machine of a reactor, from any thread. Cheap to clone.
pub(crate) struct Feeder<I> {
    slot: usize,
    channel: Sender<Message<I>>,
}

impl<I> Clone for Feeder<I> {
    fn clone(&self) -> Self {
        Self { slot: self.slot, channel: self.channel.clone() }
    }
}

impl<I> Feeder<I> {
    /// Queues an input. If the run has ended, it is dropped.
    pub(crate) fn feed(&self, input: I) {
        // A closed channel means that the run has ended; whoever cares for the
        // outcome learns it from the node's progress.
        drop(self.channel.send(Message::Input(self.slot, input)));
    }
}

/// The receiving side, before it has machines.
pub(crate) struct Reactor<I> {
    channel: Receiver<Message<I>>,
    sender: Sender<Message<I>>,
    wakeup: Arc<Wakeup>,
    rounds: Arc<AtomicU64>,
    pulse: Arc<Pulse>,
    /// Machines that will get no more input.
    closed: AtomicUsize,
}

impl<I: Send + 'static> Reactor<I> {
    pub(crate) fn new() -> Self {
        let (sender, channel) = unbounded();
        Self {
            channel,
            sender,
            wakeup: Arc::default(),
            rounds: Arc::default(),
            pulse: Arc::default(),
            closed: AtomicUsize::new(0),
        }
    }

    /// The way to the machine at a position.
    pub(crate) fn feeder(&self, slot: usize) -> Feeder<I> {
        Feeder { slot, channel: self.sender.clone() }
    }

    /// Wakes the reactor from any thread. A burst of calls costs one message.
    pub(crate) fn waker(&self) -> Waker {
        let (wakeup, sender) = (self.wakeup.clone(), self.sender.clone());
        Arc::new(move || wakeup.ring(|| drop(sender.send(Message::Wake))))
    }

    /// Rounds that the loop has made.
    pub(crate) fn rounds(&self) -> Arc<AtomicU64> {
        self.rounds.clone()
    }

    /// What its thread is at, for others.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        self.pulse.clone()
    }

    /// Polls `machines` until all are done, with the time since `start`.
    pub(crate) fn run<M: Machine<Input = I>>(&self, machines: &mut [M], start: Instant) {
        let clock = || Time::elapsed(start);
        let (mut begin, mut attention) = (clock(), closest(machines));
        // When something has happened last.
        let mut busy = Time::START;
        while !machines.iter().all(M::is_done) {
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.pulse.beat(begin);
            let activity = self.round(machines, attention, begin);
            let end = clock();
            if activity == Activity::Busy || end.since(begin) > LONG_ROUND {
                busy = end;
            }
            if end.since(begin) > AWAY {
                machines.iter_mut().for_each(|machine| machine.excuse(begin, end));
            }
            attention = closest(machines);
            begin = match (activity, attention) {
                (Activity::Busy, _) => end,
                // On a busy machine the process that we wait for may need this core.
                (_, Attention::Close(patience)) if end.since(busy) < patience => {
                    std::thread::yield_now();
                    clock()
                }
                _ if machines.iter().all(M::is_done) => end,
                _ => {
                    self.pulse.rest();
                    self.wait(machines, attention, (start, end));
                    clock()
                }
            };
        }
        self.pulse.rest();
    }

    /// Drops inputs until all machines have been closed: what is left of a run
    /// whose machines are gone.
    pub(crate) fn discard_until_closed<M: Machine<Input = I>>(&self, machines: usize) {
        while self.closed.load(Ordering::Relaxed) < machines
            && let Ok(message) = self.channel.recv()
        {
            self.count_closed::<M>(&message);
            drop(end(message));
        }
    }

    /// Feeds and polls the machines. While something is due from a network they are fed one
    /// message: an input is a microsecond's work, and a burst of them would keep waiting
    /// what arrives meanwhile.
    fn round<M: Machine<Input = I>>(
        &self,
        machines: &mut [M],
        attention: Attention,
        now: Time,
    ) -> Activity {
        let most = match attention {
            Attention::Close(_) => 1,
            Attention::NowAndThen | Attention::WhenWoken => usize::MAX,
        };
        let mut fed = 0;
        while fed < most
            && let Ok(message) = self.channel.try_recv()
        {
            self.deliver(message, machines);
            fed += 1;
        }
        // There may be more of them.
        let mut activity = if fed == most { Activity::Busy } else { Activity::Idle };
        for machine in machines {
            if machine.poll(now) == Activity::Busy {
                activity = Activity::Busy;
            }
        }
        activity
    }

    /// Waits for the next message: awake at first, then asleep. Returns early if
    /// a machine has to be polled.
    fn wait<M: Machine<Input = I>>(
        &self,
        machines: &mut [M],
        attention: Attention,
        (start, idle_since): (Instant, Time),
    ) {
        let idle_since = start + idle_since.since(Time::START);
        let beat = match attention {
            Attention::WhenWoken => None,
            Attention::NowAndThen => Some(SLOW_BEAT),
            Attention::Close(_) => Some(BEAT),
        };
        while beat != Some(BEAT) && self.channel.is_empty() && idle_since.elapsed() < SPIN {
            std::thread::yield_now();
        }
        let deadlines = machines.iter().filter_map(M::deadline);
        // One that the clock cannot tell never comes.
        let deadlines = deadlines.filter_map(|time| start.checked_add(time.since(Time::START)));
        let message = match beat.map(|beat| idle_since + beat).into_iter().chain(deadlines).min() {
            Some(deadline) => self.channel.recv_deadline(deadline),
            None => self.channel.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        // The reactor holds a sender, so the channel is never disconnected.
        if let Ok(message) = message {
            // To take an input may be all of the work.
            self.pulse.beat(Time::elapsed(start));
            self.deliver(message, machines);
        }
    }

    fn deliver<M: Machine<Input = I>>(&self, message: Message<I>, machines: &mut [M]) {
        self.count_closed::<M>(&message);
        match message {
            Message::Input(slot, input) => machines[slot].feed(input),
            Message::Wake => self.wakeup.answer(),
        }
    }

    fn count_closed<M: Machine<Input = I>>(&self, message: &Message<I>) {
        if let Message::Input(_, input) = message
            && M::is_last(input)
        {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How closely the one of the machines has to be looked at that needs it most.
fn closest<M: Machine>(machines: &[M]) -> Attention {
    machines.iter().map(M::attention).max().unwrap_or(Attention::WhenWoken)
}

#[cfg(all(loom, test))]
mod interleavings {
    use loom::sync::atomic::AtomicU64;

    use super::*;
    use crate::sync::weakened;

    #[test]
    fn whoever_rings_is_polled_for_afterwards() {
        loom::model(|| {
            let wakeup = Arc::new(Wakeup::default());
            // What there is to poll, and wake-ups in the channel.
            let published = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let channel = Arc::new(AtomicU64::new(0));
            let ringing = |index: usize| {
                let (wakeup, published) = (wakeup.clone(), published.clone());
                let channel = channel.clone();
                loom::thread::spawn(move || {
                    published[index].store(1, Ordering::Relaxed);
                    wakeup.ring(|| {
                        channel.fetch_add(1, Ordering::Release);
                    });
                })
            };
            let threads = [0, 1].map(ringing);
            let mut seen = [0; 2];
            let mut round = || {
                if channel.load(Ordering::Acquire) > 0 {
                    channel.fetch_sub(1, Ordering::Acquire);
                    wakeup.answer();
                    seen = [0, 1].map(|index| published[index].load(Ordering::Relaxed));
                }
            };
            round();
            round();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // A reactor that sleeps now is woken by what is in the channel, and by nothing else.
            round();
            round();
            assert_eq!(seen, [1, 1]);
            assert_eq!(channel.load(Ordering::Relaxed), 0, "a burst is one message at a time");
        });
    }

    #[test]
    fn a_wake_up_that_publishes_nothing_is_noticed() {
        for place in [Handover::WakeUpRung, Handover::WakeUpAnswered] {
            let said = weakened::run(place, whoever_rings_is_polled_for_afterwards);
            let said = said.unwrap_or_else(|| panic!("loom must see {place:?}"));
            assert!(said.contains("left == right"), "{place:?}: {said}");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Notes what happens to it, and is done when it has been fed a 0.
    struct Noting {
        attention: Attention,
        seen: Vec<&'static str>,
        done: bool,
    }

    impl Machine for Noting {
        type Input = u8;

        fn is_last(input: &u8) -> bool {
            *input == 0
        }

        fn feed(&mut self, input: u8) {
            self.seen.push("fed");
            self.done |= Self::is_last(&input);
        }

        fn poll(&mut self, _: Time) -> Activity {
            self.seen.push("polled");
            Activity::Idle
        }

        fn is_done(&self) -> bool {
            self.done
        }

        fn attention(&self) -> Attention {
            self.attention
        }
    }

    /// What happens to a machine that three inputs wait for.
    fn seen_with(attention: Attention) -> Vec<&'static str> {
        let reactor = Reactor::new();
        for input in [1, 2, 0] {
            reactor.feeder(0).feed(input);
        }
        let mut machines = [Noting { attention, seen: Vec::new(), done: false }];
        reactor.run(&mut machines, Instant::now());
        let [machine] = machines;
        machine.seen
    }

    #[test]
    fn who_waits_for_the_network_looks_at_it_between_inputs() {
        let seen = seen_with(Attention::Close(Duration::from_micros(1)));
        assert_eq!(seen, ["fed", "polled", "fed", "polled", "fed", "polled"]);
    }

    #[test]
    fn others_take_a_burst_at_once() {
        for attention in [Attention::WhenWoken, Attention::NowAndThen] {
            assert_eq!(seen_with(attention), ["fed", "fed", "fed", "polled"]);
        }
    }
}
