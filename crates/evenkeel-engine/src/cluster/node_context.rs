//! What all loops of one life of a node share.

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

/// One life of a node, from joining until it is fenced or retired.
pub struct NodeContext {
    /// Its number.
    pub node: NodeNo,
    /// The database.
    pub store: Arc<dyn Store>,
    /// How it is set up.
    pub settings: Arc<Settings>,
    /// Its own clocks.
    pub clock: Arc<dyn Clock>,
    /// The database's clock.
    pub db_clock: Arc<DbClock>,
    /// Chance.
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
    /// Its bodies.
    pub worker: Arc<Worker>,
    /// What bodies said that the store has not taken yet.
    pub unsaved_notes: UnsavedNotes,
    /// Jobs that the judge is to look at.
    pub at_risk: AtRiskJobs,
    /// Runs whose end a due time of their job waits for.
    pub overlap_waits: OverlapWaits,
    /// What is due soon, for all its schedulers.
    pub due: SharedDueJobs,
    /// What is measured at every start.
    pub run_metrics: RunMetrics,
    /// What it has to tell those who listen.
    pub events: Events,
    /// What it has to say in the log.
    pub run_log: RunLog,
    /// From when on it has something open.
    pub low_watermark: LowWatermark,
    /// Definitions in use.
    pub definitions: Definitions,
    /// Its lease.
    pub lease: LeaseKeeper,
    /// Who takes part, as of the last ping.
    pub members: watch::Sender<Vec<Member>>,
    /// It schedules and claims nothing more.
    pub stopping: watch::Sender<bool>,
    /// A run has failed that counts towards a pause of its job.
    pub failing: Notify,
    /// The store has declared it dead.
    pub fenced: Notify,
    /// Until the reconciler has seen that nothing is left behind, the bound of open attempts stays.
    pub hold_watermark: AtomicBool,
    /// Rises when others may have looked after this node's shards for a while.
    pub shard_absences: AtomicU64,
}

impl NodeContext {
    /// Which clock the store judges by.
    pub const NOW: Now = Now::Database;

    /// What the database's clock has surely reached.
    pub fn db_now(&self) -> Timestamp {
        self.db_clock.now()
    }

    /// May it start anything?
    pub fn may_start(&self) -> bool {
        !*self.stopping.borrow() && self.lease.holds(instant_now())
    }

    /// Starts the body of an attempt that has a place.
    pub fn start(&self, attempt: AttemptToStart) {
        if self.events.are_listened() {
            let data = json!({
                "node": self.settings.node_name,
                "scheduled_at": attempt.key.scheduled_at,
                "retry_attempt": attempt.key.attempt.0,
            });
            let (key, at) = (attempt.key, attempt.started_at);
            let event = NewEvent::of_run(EventKind::RunStarted, attempt.tenant, key, at, &data);
            self.events.tell([event]);
        }
        self.run_log.started(attempt.key);
        self.worker.start(attempt);
    }

    /// Those of `members` that share the shards.
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

    /// Do other nodes put runs into the queue, or take runs from it?
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

    /// Does it do what one node does for all? That is who looks after the first shard; while
    /// members come and go, it may be nobody or two.
    pub fn is_housekeeper(&self) -> bool {
        let schedulers = self.schedulers(&self.members.borrow());
        owner_of(Shard(0), &schedulers) == Some(self.node)
    }

    /// Something may have happened in the store that this node does not know of.
    pub fn request_reconcile(&self) {
        self.hold_watermark.store(true, Ordering::Release);
        self.worker.needs_reconcile.store(true, Ordering::Release);
    }

    /// May there be attempts in the store that are this node's without its knowing?
    pub fn may_own_unknown_attempts(&self) -> bool {
        self.hold_watermark.load(Ordering::Acquire)
            || self.worker.needs_reconcile.load(Ordering::Acquire)
    }

    /// Waits `time`, or until the node stops. Says whether it goes on.
    pub async fn pause(&self, time: Duration) -> bool {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

/// Now, on the clock that leases of bodies are kept on.
#[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a simulation holds")]
pub fn instant_now() -> Instant {
    Instant::now()
}

/// Waits until somebody sends `wanted`, or until it may have been missed.
pub async fn signalled(signals: &mut broadcast::Receiver<Signal>, wanted: Signal) {
    loop {
        match signals.recv().await {
            Ok(signal) if signal == wanted => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // Then only the poll is left.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Waits between tries at a store that does not answer: longer each time, never long.
#[derive(Debug, Default)]
pub struct Backoff(u32);

impl Backoff {
    /// How long to wait now.
    pub fn next(&mut self) -> Duration {
        self.0 = (self.0 + 1).min(6);
        Duration::from_millis(25) * 2_u32.pow(self.0)
    }

    /// The store answers again.
    pub fn reset(&mut self) {
        self.0 = 0;
    }
}
