//! State that all loops of one node session share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::shard::owner_of;
use evenkeel_core::{NodeNo, RunIds, Shard, Timestamp};
use evenkeel_store::{EventKind, Events, Member, NewEvent, NodeState, Now, Signal, Store};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::cluster::db_clock::DbClock;
use crate::cluster::lease_keeper::LeaseKeeper;
use crate::cluster::low_watermark::LowWatermark;
use crate::insight::at_risk::AtRiskJobs;
use crate::insight::run_logger::RunLog;
use crate::insight::run_metrics::RunMetrics;
use crate::scheduler::definitions::Definitions;
use crate::scheduler::due_jobs::SharedDueJobs;
use crate::scheduler::overlap_waits::OverlapWaits;
use crate::settings::Settings;
use crate::worker::Worker;
use crate::worker::open_attempt::AttemptToStart;
use crate::worker::recorder::UnsavedNotes;

pub struct NodeContext {
    pub node: NodeNo,
    pub store: Arc<dyn Store>,
    pub settings: Arc<Settings>,
    pub clock: Arc<dyn Clock>,
    pub db_clock: Arc<DbClock>,
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
    pub worker: Arc<Worker>,
    /// Progress, output and checkpoints that the store has not accepted yet.
    pub unsaved_notes: UnsavedNotes,
    /// Jobs to be judged.
    pub at_risk: AtRiskJobs,
    /// Due times that wait for the end of an active run of their job.
    pub overlap_waits: OverlapWaits,
    /// Due and upcoming jobs of all schedulers of this node.
    pub due: SharedDueJobs,
    pub run_metrics: RunMetrics,
    pub events: Events,
    pub run_log: RunLog,
    pub low_watermark: LowWatermark,
    pub definitions: Definitions,
    pub lease: LeaseKeeper,
    /// Cluster members as of the last ping.
    pub members: watch::Sender<Vec<Member>>,
    /// True once the node must not schedule or claim any more.
    pub stopping: watch::Sender<bool>,
    /// Notified when a failed run counts towards pausing its job.
    pub failing: Notify,
    /// Notified when the store has declared this node dead.
    pub fenced: Notify,
    /// While true, pings do not raise the low watermark. Cleared by the reconciler.
    pub hold_watermark: AtomicBool,
    /// Incremented when other nodes may have handled this node's shards for a while.
    pub shard_absences: AtomicU64,
}

impl NodeContext {
    /// The clock by which the store decides.
    pub const NOW: Now = Now::Database;

    /// Returns a time that the database's clock has certainly reached.
    pub fn db_now(&self) -> Timestamp {
        self.db_clock.now()
    }

    /// True if this node may start attempts: it is not stopping and its lease holds.
    pub fn may_start(&self) -> bool {
        !*self.stopping.borrow() && self.lease.holds(instant_now())
    }

    /// Starts the body of an attempt for which a slot was taken.
    pub fn start(&self, attempt: AttemptToStart) {
        if self.events.has_listeners() {
            let data = json!({
                "node": self.settings.node_name,
                "scheduled_at": attempt.key.scheduled_at,
                "retry_attempt": attempt.key.attempt.0,
            });
            let (key, at) = (attempt.key, attempt.started_at);
            let event = NewEvent::of_run(EventKind::RunStarted, attempt.tenant, key, at, &data);
            self.events.emit([event]);
        }
        self.run_log.started(attempt.key);
        self.worker.start(attempt);
    }

    /// Returns the live schedulers among `members`; they share the shards.
    pub fn schedulers(&self, members: &[Member]) -> Vec<NodeNo> {
        let silent_after = self.settings.leases.silent_after;
        let now = self.db_now();
        members
            .iter()
            .filter(|member| member.roles.scheduler && member.state == NodeState::Live)
            .filter(|member| now.since(member.last_ping_at) <= silent_after)
            .map(|member| member.node)
            .collect()
    }

    /// True if other live nodes put attempts into the queue or claim them.
    pub fn shares_queue(&self) -> bool {
        let silent_after = self.settings.leases.silent_after;
        let now = self.db_now();
        self.members.borrow().iter().any(|member| {
            member.node != self.node
                && member.state == NodeState::Live
                && (member.roles.scheduler || member.roles.worker)
                && now.since(member.last_ping_at) <= silent_after
        })
    }

    /// True if this node does the work that one node does for the whole cluster. That is the owner
    /// of shard 0. While members change, there may be none or two.
    pub fn is_housekeeper(&self) -> bool {
        let schedulers = self.schedulers(&self.members.borrow());
        owner_of(Shard(0), &schedulers) == Some(self.node)
    }

    /// Requests a reconcile, because the store may have assigned attempts to this node that it does
    /// not know of.
    pub fn request_reconcile(&self) {
        self.hold_watermark.store(true, Ordering::Release);
        self.worker.needs_reconcile.store(true, Ordering::Release);
    }

    /// True until the reconciler has ruled out that this node owns attempts that it does not know
    /// of.
    pub fn may_own_unknown_attempts(&self) -> bool {
        self.hold_watermark.load(Ordering::Acquire)
            || self.worker.needs_reconcile.load(Ordering::Acquire)
    }

    /// Signals other loops and nodes without waiting for the store. A lost signal delays them by
    /// one poll.
    pub fn announce(&self, signal: Signal) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = store.announce(signal).await;
        });
    }

    /// Waits for `time` or until the node stops. Returns false if it stops.
    pub async fn pause(&self, time: Duration) -> bool {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

/// The current time on Tokio's clock, on which leases are measured.
#[expect(clippy::disallowed_methods, reason = "the simulation pauses Tokio's clock")]
pub fn instant_now() -> Instant {
    Instant::now()
}

/// Waits until `wanted` is signalled, or until it may have been missed.
pub async fn signalled(signals: &mut broadcast::Receiver<Signal>, wanted: Signal) {
    loop {
        match signals.recv().await {
            Ok(signal) if signal == wanted => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // Without signals, only polling is left.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Delay between retries at an unreachable store: doubles from 50 ms to 1.6 s.
#[derive(Debug, Default)]
pub struct Backoff(u32);

impl Backoff {
    pub fn next(&mut self) -> Duration {
        self.0 = (self.0 + 1).min(6);
        Duration::from_millis(25) * 2_u32.pow(self.0)
    }

    pub fn reset(&mut self) {
        self.0 = 0;
    }
}
