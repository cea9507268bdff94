//! Which tag a payload has. Owns the proof that no two payloads can be mixed up;
//! knows neither MPI nor memory.
//!
//! Message ids have 64 bits, tags may have 15. So both ends of a pair number its
//! payloads: the sender in the order in which it announces them, the receiver in
//! the order in which the pilots arrive, which is the same, because MPI keeps
//! the order of messages with one tag. Number `n` has the tag `n mod W`.
//!
//! Let `L` be the first number that has not arrived. The receiver posts receives
//! for numbers in `L .. L + W` only. It tells the sender how far `L` is now and
//! then, and the sender offers numbers below what it was last told plus `W`
//! only, which is never more than `L + W`. Whatever has not arrived is at least
//! `L`. So all payloads that are posted or under way at a time are in a span of
//! `W` numbers, and their tags differ.
//!
//! Nobody waits for ever: number `n + W` waits until `n` has arrived, and nothing
//! that `n` waits for can wait for `n + W`, since payloads are announced in the
//! order of the tasks that need them.

use std::collections::VecDeque;

/// A payload's number within its pair of sender and receiver.
pub(crate) type PayloadNumber = u64;

/// The tag of a payload.
pub(crate) fn tag(number: PayloadNumber, window: u64) -> i32 {
    i32::try_from(number % window).expect("windows are as large as tags at most")
}

/// The sender's side of a pair.
#[derive(Debug)]
pub(crate) struct SendWindow {
    size: u64,
    announced: PayloadNumber,
    arrived: PayloadNumber,
}

impl SendWindow {
    /// Before anything has been sent. `size` is the number of tags.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, announced: 0, arrived: 0 }
    }

    /// The number of the next payload that is announced.
    pub(crate) fn announce(&mut self) -> PayloadNumber {
        self.announced += 1;
        self.announced - 1
    }

    /// Whether a payload may be offered by now.
    pub(crate) fn admits(&self, number: PayloadNumber) -> bool {
        number - self.arrived.min(number) < self.size
    }

    /// The receiver tells that all numbers below `arrived` have arrived. `false`
    /// if that cannot be.
    #[must_use]
    pub(crate) fn acknowledge(&mut self, arrived: PayloadNumber) -> bool {
        let sound = (self.arrived..=self.announced).contains(&arrived);
        if sound {
            self.arrived = arrived;
        }
        sound
    }
}

/// The receiver's side of a pair.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    size: u64,
    announced: PayloadNumber,
    /// All below have arrived.
    arrived: PayloadNumber,
    /// Whether numbers from `arrived` on have arrived, as far as any has.
    ahead: VecDeque<bool>,
    /// What the sender has been told.
    told: PayloadNumber,
}

impl ReceiveWindow {
    /// Before anything has arrived. `size` is the number of tags.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, announced: 0, arrived: 0, ahead: VecDeque::new(), told: 0 }
    }

    /// The number of the payload whose pilot has arrived.
    pub(crate) fn announce(&mut self) -> PayloadNumber {
        self.announced += 1;
        self.announced - 1
    }

    /// Whether a payload may be expected by now.
    pub(crate) fn admits(&self, number: PayloadNumber) -> bool {
        number - self.arrived < self.size
    }

    /// A payload has arrived. Returns what the sender must be told now, if
    /// anything: rarely, as it costs a message, but before the sender must wait
    /// for it. O(1), amortised.
    #[must_use]
    pub(crate) fn arrive(&mut self, number: PayloadNumber) -> Option<PayloadNumber> {
        let position = usize::try_from(number - self.arrived).expect("numbers are close together");
        if self.ahead.len() <= position {
            self.ahead.resize(position + 1, false);
        }
        self.ahead[position] = true;
        while self.ahead.front() == Some(&true) {
            self.ahead.pop_front();
            self.arrived += 1;
        }
        let due = self.arrived - self.told >= (self.size / 4).max(1);
        due.then(|| {
            self.told = self.arrived;
            self.arrived
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// What one payload is at.
    #[derive(Clone, Copy, Default, PartialEq)]
    struct Payload {
        offered: bool,
        expected: bool,
        arrived: bool,
    }

    proptest! {
        /// Both sides ask for things in any order; whatever the windows admit
        /// happens, arrivals in any order too. No two payloads that are open at
        /// a time share a tag, and all arrive in the end.
        #[test]
        fn open_tags_differ_and_all_arrive(
            size in 1..9_u64,
            count in 1..24_usize,
            order in prop::collection::vec((any::<Index>(), 0..3_u8), 0..400),
        ) {
            let mut pair = (SendWindow::new(size), ReceiveWindow::new(size));
            let mut payloads = vec![Payload::default(); count];
            for number in 0..count as u64 {
                prop_assert_eq!((pair.0.announce(), pair.1.announce()), (number, number));
            }
            let eager = (0..count).flat_map(|_| (0..count).flat_map(|at| (0..3).map(move |what| (at, what))));
            let steps = order.iter().map(|(at, what)| (at.index(count), *what));
            for (at, what) in steps.chain(eager) {
                step(&mut pair, &mut payloads, at, what);
                let open = (0..).zip(&payloads).filter(|(_, p)| (p.offered || p.expected) && !p.arrived);
                let mut tags: Vec<_> = open.map(|(number, _)| tag(number, size)).collect();
                let open = tags.len();
                tags.sort_unstable();
                tags.dedup();
                prop_assert_eq!(tags.len(), open);
            }
            prop_assert!(payloads.iter().all(|payload| payload.arrived));
        }
    }

    fn step(
        (send, receive): &mut (SendWindow, ReceiveWindow),
        payloads: &mut [Payload],
        at: usize,
        what: u8,
    ) {
        let (number, payload) = (at as u64, &mut payloads[at]);
        match what {
            0 => payload.offered |= send.admits(number),
            1 => payload.expected |= payload.arrived || receive.admits(number),
            _ if payload.offered && payload.expected && !payload.arrived => {
                payload.arrived = true;
                if let Some(arrived) = receive.arrive(number) {
                    assert!(send.acknowledge(arrived));
                }
            }
            _ => {}
        }
    }

    #[test]
    fn nonsense_is_not_acknowledged() {
        let mut window = SendWindow::new(4);
        let _ = (window.announce(), window.announce());
        assert!(window.acknowledge(1));
        assert!(!window.acknowledge(0));
        assert!(!window.acknowledge(3));
        assert!(window.acknowledge(2));
    }

    #[test]
    fn wide_windows_tell_nothing() {
        let mut window = ReceiveWindow::new(1 << 31);
        for _ in 0..1000 {
            let number = window.announce();
            assert_eq!(window.arrive(number), None);
        }
    }
}
