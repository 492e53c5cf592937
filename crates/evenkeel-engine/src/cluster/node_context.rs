//! State shared by all loops of one node session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::shard::owner_of;
use evenkeel_core::{NodeNo, RunIds, Shard, Timestamp};
use evenkeel_store::{
    EventKind, Events, Finish, FinishResult, Hook, Member, NewEvent, NodeState, Now, Signal, Store,
};
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
    /// Reported progress, output and checkpoints that are not in the store yet, by attempt.
    pub unsaved_notes: UnsavedNotes,
    /// Jobs to be judged.
    pub at_risk: AtRiskJobs,
    /// Jobs whose next run waits for the end of their active run.
    pub overlap_waits: OverlapWaits,
    /// Jobs of this node that are due or due soon, shared by all schedulers of the node.
    pub due: SharedDueJobs,
    pub run_metrics: RunMetrics,
    pub events: Events,
    pub run_log: RunLog,
    pub low_watermark: LowWatermark,
    pub definitions: Definitions,
    pub lease: LeaseKeeper,
    /// Cluster members as of the last ping.
    pub members: watch::Sender<Vec<Member>>,
    /// True as soon as the node must no longer fire jobs or claim attempts.
    pub stopping: watch::Sender<bool>,
    /// Notified when a run of a job that pauses after repeated failures has failed.
    pub failing: Notify,
    /// Notified when another node has declared this node dead.
    pub fenced: Notify,
    /// While true, pings do not raise the low watermark. The reconciler resets `hold_watermark`.
    pub hold_watermark: AtomicBool,
    /// Counts how often this node did not ping for so long that other nodes may have taken over its
    /// shards.
    pub shard_absences: AtomicU64,
}

impl NodeContext {
    /// The store compares all times with the database's clock, not with a node's clock.
    pub const NOW: Now = Now::Database;

    /// Returns a time that the database's clock has certainly reached.
    pub fn db_now(&self) -> Timestamp {
        self.db_clock.now()
    }

    /// True if this node may start attempts: it is not stopping and its lease holds.
    pub fn may_start(&self) -> bool {
        !*self.stopping.borrow() && self.lease.holds(instant_now())
    }

    /// Starts an attempt for which a worker slot was taken.
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

    /// Reports stored results to metrics, log, event listeners and the auto-pauser.
    pub fn report_ended(&self, ends: &[Finish], results: &[FinishResult]) {
        self.run_metrics.ended(ends);
        self.run_log.ended(ends);
        if self.events.has_listeners() {
            let stored = ends.iter().zip(results).filter(|(_, it)| **it == FinishResult::Done);
            self.events.emit(stored.flat_map(|(end, _)| NewEvent::of_end(end)));
        }
        if ends.iter().any(|end| matches!(end.hook, Hook::CountFailure { .. })) {
            self.failing.notify_one();
        }
    }

    fn alive<'a>(&self, members: &'a [Member]) -> impl Iterator<Item = &'a Member> {
        let (now, silent_after) = (self.db_now(), self.settings.leases.silent_after);
        let is_silent = move |member: &Member| now.since(member.last_ping_at) > silent_after;
        members.iter().filter(move |it| it.state == NodeState::Live && !is_silent(it))
    }

    /// Returns the nodes among `members` that are alive and have the scheduler role. All shards are
    /// divided among the live nodes with the scheduler role.
    pub fn schedulers(&self, members: &[Member]) -> Vec<NodeNo> {
        let schedulers = self.alive(members).filter(|member| member.roles.scheduler);
        schedulers.map(|member| member.node).collect()
    }

    /// True if another live node queues or claims attempts.
    pub fn shares_queue(&self) -> bool {
        self.alive(&self.members.borrow()).any(|member| {
            member.node != self.node && (member.roles.scheduler || member.roles.worker)
        })
    }

    /// True if this node is the housekeeping node of the cluster, which is the owner of shard 0.
    /// While nodes join or leave, the cluster may have no or two housekeeping nodes for a moment.
    pub fn is_housekeeper(&self) -> bool {
        let schedulers = self.schedulers(&self.members.borrow());
        owner_of(Shard(0), &schedulers) == Some(self.node)
    }

    /// Requests a pass of the reconciler, because this node may own attempts that it does not know
    /// of.
    pub fn request_reconcile(&self) {
        self.hold_watermark.store(true, Ordering::Release);
        self.worker.needs_reconcile.store(true, Ordering::Release);
    }

    /// True if this node may own attempts that it does not know of. The reconciler finds out.
    pub fn may_own_unknown_attempts(&self) -> bool {
        self.hold_watermark.load(Ordering::Acquire)
            || self.worker.needs_reconcile.load(Ordering::Acquire)
    }

    /// Sends a signal to other loops and nodes without waiting for the store. If the signal is
    /// lost, the receivers notice the change at their next poll.
    pub fn announce(&self, signal: Signal) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = store.announce(signal).await;
        });
    }

    /// Waits for `time`, or until the node stops. Returns false if the node stops.
    pub async fn pause(&self, time: Duration) -> bool {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

/// Returns the current time of Tokio's clock, with which leases are measured.
#[expect(clippy::disallowed_methods, reason = "the simulation pauses Tokio's clock")]
pub fn instant_now() -> Instant {
    Instant::now()
}

/// Waits for the signal `wanted`. The wait also ends if signals were dropped, because the dropped
/// signals may include `wanted`.
pub async fn signalled(signals: &mut broadcast::Receiver<Signal>, wanted: Signal) {
    loop {
        match signals.recv().await {
            Ok(signal) if signal == wanted => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // The signal channel is closed, so callers must rely on polling.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Delay between retries while the store is unreachable. The delay doubles from 50 ms to 1.6 s.
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
