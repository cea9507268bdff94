//! What a node is told before it runs: how far it may be ahead, who is to hear of it, and which
//! thread computes.

use std::sync::Arc;
use std::time::Duration;

use super::Executor;
use super::stream::StreamSettings;
use super::timing::KernelTimer;
use crate::config::ClusterConfig;
use crate::kernel_times::KernelTimes;
use crate::polling::Waker;
use crate::profile::NodeProfile;
use crate::pulse::UserCalls;
use crate::time::Clock;
use crate::warning::WarningSink;

impl Executor {
    /// The same node, which may be so many horizons ahead of those that it sends to, if the
    /// network [sends ahead](crate::Communicator::sends_ahead): 16 without this call. The same on
    /// all nodes.
    #[must_use]
    pub fn with_lead(mut self, horizons: u64) -> Self {
        self.peers.set_lead(horizons);
        self
    }

    /// The same node of a cluster with this configuration, which a node that runs other tasks is told of.
    #[must_use]
    pub fn configured(mut self, config: &ClusterConfig) -> Self {
        self.peers.set_settings(StreamSettings::of(config));
        self.monitor.set_check(config.check);
        self
    }

    /// The same node in a process whose threads have one core between them: kernels that
    /// are over soon, as the [backend](crate::Backend::share_core) judges, wait for whoever polls. A
    /// [`NodeMachine`](crate::NodeMachine) runs them at the end of a round that has found nothing
    /// to do. On CPU devices its thread must be alone in a `rayon` pool.
    #[must_use]
    pub fn sharing_core(mut self) -> Self {
        self.hardware.share_core();
        self
    }

    /// The same node, which `waker` wakes: threads of collective tasks do, to say something.
    #[must_use]
    pub fn woken_by(self, waker: Waker) -> Self {
        self.peers.wake_by(waker);
        self
    }

    /// Tells `warnings` what there is to be warned of, instead of standard error.
    #[must_use]
    pub fn with_warnings(mut self, warnings: WarningSink) -> Self {
        self.monitor.tell(warnings);
        self
    }

    /// Warns when nothing has happened for `period` though something is to be done,
    /// and then at doubling intervals. The driver has to poll at the
    /// [deadline](Self::deadline). Does nothing if `period` is 0.
    #[must_use]
    pub fn with_watchdog(mut self, period: Duration) -> Self {
        self.monitor.set_watchdog(period);
        self
    }

    /// Tells `calls` what of the user's it is in.
    #[must_use]
    pub(crate) fn with_calls(mut self, calls: &Arc<UserCalls>) -> Self {
        self.calls = calls.clone();
        self
    }

    /// Tells when jobs have begun, by times on `clock`, where it says what runs.
    #[must_use]
    pub(crate) fn noting_begins(mut self, clock: Clock) -> Self {
        self.hardware.note_begins(clock);
        self
    }

    /// Records everything that is executed.
    pub(crate) fn record(&mut self, profile: NodeProfile) {
        self.hardware.time_jobs(profile.clock());
        self.monitor.record(profile);
    }

    /// Tells `table` of each kernel that completes, by times on `clock`.
    pub(crate) fn time_kernels(&mut self, table: KernelTimes, clock: Clock) {
        self.hardware.time_jobs(clock);
        self.monitor.time_kernels(KernelTimer::new(table));
    }
}
