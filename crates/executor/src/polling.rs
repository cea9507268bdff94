//! How closely state machines are looked at, and every time that a thread of the engine looks,
//! waits or stays away for. One place, since they are chosen against each other: what one thread
//! spares by sleeping, another may wait for.
//!
//! These times decide when somebody looks, and which thread runs a kernel. They decide nothing of
//! what is done, or of what waits for what: that is the state machines', which read them for two
//! things, [how long they ask to be looked at](Attention), and how long a node that shares its core
//! puts computing off.

use std::sync::Arc;
use std::time::Duration;

/// Called from any thread when there is something to poll; must not block.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What a round of polling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a node that is busy wants another round"]
pub enum Activity {
    /// Something happened, or more is queued: poll again.
    Busy,
    /// Nothing will happen before a submission or a wake-up.
    Idle,
}

/// How closely a state machine must be looked at while nothing wakes its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// Not at all: every event wakes.
    WhenWoken,
    /// Every few milliseconds: it waits for nothing, but peers may want something.
    NowAndThen,
    /// Closely: something that it waits for may happen unnoticed, and if all goes well
    /// it does within this time from the last thing that happened.
    Close(Duration),
}

// A thread that waits.

/// How long an idle reactor keeps looking before it sleeps. Waking a sleeping thread takes some
/// ten microseconds, so a wait shorter than that is better spent awake, and a longer one is not.
pub(crate) const SPIN: Duration = Duration::from_micros(20);

/// How long a reactor that waits for a network sleeps between two looks, once it has looked
/// without rest for as long as it was [asked](Attention::Close) to.
pub(crate) const BEAT: Duration = Duration::from_micros(50);

/// How long it sleeps if it waits for nothing, but cannot be woken by peers that want something.
pub(crate) const SLOW_BEAT: Duration = Duration::from_millis(2);

/// A round that takes longer has moved data, even if nothing has ended with it: a reactor that
/// looks without rest begins to count again.
pub(crate) const LONG_ROUND: Duration = Duration::from_micros(20);

// How long a node asks to be looked at without rest.

/// How long looking at the network without rest pays while so many bytes are on their way:
/// what is waited for comes within 200 µs or not soon, later by as much as the bytes take
/// at 4 GB/s. What takes more than a millisecond is not much longer if it ends unnoticed
/// for some ten microseconds.
pub(crate) fn patience(bytes: u64) -> Duration {
    let (least, most) = (Duration::from_micros(200), Duration::from_millis(1));
    (least + Duration::from_nanos(bytes / 4)).min(least + most)
}

/// Peers that have as much to compute as this node are late by as much as that takes, if they
/// are. A node that computes on its own thread, so that nobody else of its process wants the
/// core, looks without rest for so much longer, at most.
pub(crate) const LONGEST_LAG: Duration = Duration::from_millis(10);

/// In so many rounds of polling, in each of which it gives way, a node lets what it sends leave
/// before it computes. A peer that waits for the data takes it in the first few; one that does
/// not is busy itself. A round without events takes about a microsecond on a network that has
/// to be looked at. With 64, two processes of mesh lost 4 to 7 % of their time to it, in which neither looked.
pub(crate) const ROUNDS_TO_LEAVE: u32 = 16;

/// The same as time, for where a round takes long: on a core that others want, giving way so often
/// took up to a second with 64 rounds.
pub(crate) const TIME_TO_LEAVE: Duration = Duration::from_micros(100);

// How long a thread of the engine may be away.

/// What handing a kernel to another thread and hearing of its end takes where that thread
/// sleeps, at least: kernels that are over sooner run on the thread that polls.
pub(crate) const SHORT_KERNEL: Duration = Duration::from_micros(10);

/// How long a thread that looks at the network may be away to compute, where it has the only
/// core. Peers may have to wait for it meanwhile, if the network moves data only while both
/// sides look, as they would for a program that calls no MPI in its loops.
pub(crate) const BRIEF_KERNEL: Duration = Duration::from_millis(50);

/// In a round that takes longer, machines may have missed what they wanted to be polled for.
pub(crate) const AWAY: Duration = Duration::from_millis(1);

// Who watches.

/// How long the end of a run that has failed may take before somebody says what it waits for: a
/// moment for what runs, and not so long that who has pressed Ctrl-C presses it again.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Time between two looks of who watches the threads of the engine, at least.
pub(crate) const LEAST_BETWEEN_LOOKS: Duration = Duration::from_millis(1);

// Who waits for other nodes.

/// A thread in a collective operation asks whoever it waits for, once in an operation, after so
/// long: whether that one will come at all. Most come much earlier.
pub(crate) const ASK_AFTER: Duration = Duration::from_millis(200);

/// How long a node that waits in another epoch than others do waits for the task streams, which
/// name the first task that differs. All nodes have sent their hashes before they have entered an
/// epoch, so that two messages are on their way at most.
pub(crate) const NAMING: Duration = Duration::from_secs(2);

// The end of a trace.

/// How long the process that joins the parts of a trace waits for those of the others.
pub(crate) const PART_PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks for them.
pub(crate) const PART_BEAT: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_what_is_under_way_to_an_end() {
        assert_eq!(patience(0), Duration::from_micros(200));
        assert_eq!(patience(400_000), Duration::from_micros(300));
        assert_eq!(patience(u64::MAX), Duration::from_micros(1200));
    }

    #[test]
    fn the_closest_attention_is_the_greatest() {
        let close = |micros| Attention::Close(Duration::from_micros(micros));
        let all = [Attention::WhenWoken, Attention::NowAndThen, close(1), close(2)];
        assert!(all.is_sorted());
    }
}
