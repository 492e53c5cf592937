//! One session of a node, which joins the cluster, runs all loops, and drains.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_executors::CancelReason;
use evenkeel_store::{Finish, NewNode, OwnedAttempt, Requeue, Signal, StoreError};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::cluster::db_clock::DbClock;
use crate::cluster::heartbeat::Heartbeat;
use crate::cluster::lease_keeper::LeaseKeeper;
use crate::cluster::lost_attempts::{FormerOwner, GivenBack};
use crate::cluster::low_watermark::LowWatermark;
use crate::cluster::node_context::{Backoff, NodeContext, instant_now};
use crate::cluster::reaper::Reaper;
use crate::cluster::reconciler::Reconciler;
use crate::engine::EngineParts;
use crate::insight::at_risk::AtRiskJobs;
use crate::insight::balance_score::BalanceScore;
use crate::insight::event_publisher::{EventPublisher, publish_rest};
use crate::insight::judge::Judge;
use crate::insight::queue_metrics::QueueMetrics;
use crate::insight::run_logger::{RunLog, RunLogger};
use crate::insight::run_metrics::RunMetrics;
use crate::insight::run_stats::RunStats;
use crate::scheduler::Scheduler;
use crate::scheduler::definitions::Definitions;
use crate::scheduler::due_jobs::SharedDueJobs;
use crate::scheduler::overlap_waits::OverlapWaits;
use crate::upkeep::auto_pauser::AutoPauser;
use crate::upkeep::job_indexer::JobIndexer;
use crate::upkeep::limit_release::{LimitQueueSweeper, LimitRelease};
use crate::upkeep::load_recount::LoadRecount;
use crate::upkeep::pruner::Pruner;
use crate::upkeep::reprioritizer::Reprioritizer;
use crate::upkeep::stale_targets::StaleChecker;
use crate::worker::canceller::Canceller;
use crate::worker::claimer::Claimer;
use crate::worker::finisher::Finisher;
use crate::worker::inbox::Inbox;
use crate::worker::recorder::{Recorder, UnsavedNotes, store_last};
use crate::worker::slots::Slots;
use crate::worker::{Worker, WorkerParts};

/// Time limit for cancelling attempts and storing results after the grace period of a drain.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);

/// One membership in the cluster, from joining until the node is fenced or drained. Dropping the
/// session aborts its loops and running attempts.
pub struct NodeSession {
    pub context: Arc<NodeContext>,
    /// Loops that continue to run while the node drains.
    always: JoinSet<()>,
    /// Loops that end when the node begins to drain.
    until_stop: JoinSet<()>,
}

impl NodeSession {
    pub async fn begin(parts: &EngineParts) -> Result<Self, StoreError> {
        let EngineParts { store, registry, settings, clock, chance, run_ids } = parts;
        let joined_at = instant_now();
        let node = NewNode {
            name: settings.node_name.clone(),
            identity: settings.identity,
            roles: settings.roles,
            pools: if settings.roles.worker { settings.pools.clone() } else { Vec::new() },
        };
        let joined = store.join(&node, NodeContext::NOW).await?;
        let leases = settings.leases;
        let lock_duration = leases.silent_after.saturating_add(leases.grace);
        info!(
            node.no = joined.node.0,
            node.name = settings.node_name,
            check_interval_ms = settings.poll.as_millis() as u64,
            lock_duration_ms = lock_duration.as_millis(),
            "node joined the cluster"
        );
        let holds = Duration::from(settings.leases.bodies_must_end_after());
        let lease = LeaseKeeper::new(joined_at + holds, store.is_shared());
        let db_clock = Arc::new(DbClock::new(Arc::clone(clock)));
        db_clock.observe(joined.now);
        let (ended_in, ended_out) = mpsc::unbounded_channel();
        let worker = Worker::new(WorkerParts {
            slots: Arc::new(Slots::new(settings.workers)),
            registry: Arc::clone(registry),
            lease: lease.watch(),
            clock: Arc::clone(clock),
            db_clock: Arc::clone(&db_clock),
            chance: Arc::clone(chance),
            run_ids: *run_ids,
            ended: ended_in,
            log_bytes: settings.run_log_bytes,
        });
        let shared = Arc::new(NodeContext {
            node: joined.node,
            store: Arc::clone(store),
            settings: Arc::new(settings.clone()),
            clock: Arc::clone(clock),
            db_clock,
            chance: Arc::clone(chance),
            run_ids: *run_ids,
            worker: Arc::new(worker),
            unsaved_notes: UnsavedNotes::default(),
            at_risk: AtRiskJobs::default(),
            overlap_waits: OverlapWaits::default(),
            due: SharedDueJobs::new(settings.aging),
            run_metrics: RunMetrics::default(),
            events: store.events().clone(),
            run_log: RunLog::default(),
            low_watermark: LowWatermark::default(),
            definitions: Definitions::default(),
            lease,
            members: watch::Sender::new(Vec::new()),
            stopping: watch::Sender::new(false),
            failing: Notify::new(),
            fenced: Notify::new(),
            hold_watermark: false.into(),
            shard_absences: 0.into(),
        });
        let _ = store.announce(Signal::Nodes).await;
        Ok(Self::with_tasks(shared, ended_out))
    }

    fn with_tasks(ctx: Arc<NodeContext>, ended: mpsc::UnboundedReceiver<Finish>) -> Self {
        let (mut always, mut until_stop) = (JoinSet::new(), JoinSet::new());
        let share = || Arc::clone(&ctx);
        always.spawn(Heartbeat::new(share()).run());
        always.spawn(Canceller { ctx: share() }.run());
        always.spawn(Inbox { ctx: share() }.run());
        always.spawn(Recorder { ctx: share() }.run());
        always.spawn(EventPublisher::new(share()).run());
        always.spawn(RunLogger { ctx: share() }.run());
        always.spawn(RunStats::new(share()).run());
        let ended = Arc::new(tokio::sync::Mutex::new(ended));
        let parallel_batches = ctx.store.batch_sizing().parallel_batches.max(1);
        for _ in 0..parallel_batches {
            always.spawn(Finisher::new(share(), Arc::clone(&ended)).run());
        }
        until_stop.spawn(Reaper::new(share()).run());
        until_stop.spawn(Reconciler::new(share()).run());
        until_stop.spawn(Judge::new(share()).run());
        until_stop.spawn(QueueMetrics::new(share()).run());
        until_stop.spawn(AutoPauser { ctx: share() }.run());
        until_stop.spawn(LimitRelease { ctx: share() }.run());
        until_stop.spawn(LimitQueueSweeper::new(share()).run());
        if ctx.settings.roles.scheduler {
            for index in 0..parallel_batches {
                until_stop.spawn(Scheduler::new(share(), index, parallel_batches).run());
            }
            until_stop.spawn(Pruner::new(share()).run());
            let ager = Reprioritizer::new(Arc::clone(&ctx.store), ctx.settings.aging);
            until_stop.spawn(ager.run(share()));
            until_stop.spawn(LoadRecount::new(Arc::clone(&ctx.store)).run(share()));
            until_stop.spawn(JobIndexer::new(Arc::clone(&ctx.store)).run(share()));
            let scorer = BalanceScore::new(Arc::clone(&ctx.store), ctx.settings.balance);
            until_stop.spawn(scorer.run(share()));
            let (store, chance) = (Arc::clone(&ctx.store), Arc::clone(&ctx.chance));
            until_stop.spawn(StaleChecker::new(store, chance, ctx.settings.stale).run(share()));
        }
        if ctx.settings.roles.worker {
            until_stop.spawn(Claimer::new(share()).run());
        }
        Self { context: ctx, always, until_stop }
    }

    /// Drains the node; see [`Engine::drain`](crate::Engine::drain).
    pub async fn drain(mut self, grace: Duration) {
        let ctx = Arc::clone(&self.context);
        info!(bodies.count = ctx.worker.slots.busy(), "draining");
        ctx.stopping.send_replace(true);
        ctx.worker.slots.close();
        if let Err(error) = ctx.store.drain(ctx.node).await {
            warn!(
                error = &error as &dyn std::error::Error,
                "could not store that this node is shutting down; other nodes notice the shutdown when its pings stop"
            );
        }
        let _ = ctx.store.announce(Signal::Nodes).await;
        let deadline = instant_now() + grace.max(Duration::from_secs(1));
        let _ = tokio::time::timeout_at(deadline, async {
            while self.until_stop.join_next().await.is_some() {}
        })
        .await;
        // Abort loops that still wait for the store, because the store's answer could make them
        // start an attempt. `hand_back` requeues attempts that were claimed but not started.
        self.until_stop.shutdown().await;
        wait_until(deadline, || ctx.worker.busy_count() == 0).await;
        ctx.worker.cancel_all(CancelReason::ShuttingDown);
        let last = instant_now() + SHUTDOWN_TIME;
        wait_until(last, || ctx.worker.busy_count() == 0).await;
        RunStats::new(Arc::clone(&ctx)).run_last(SHUTDOWN_TIME / 2).await;
        self.hand_back(last).await;
        publish_rest(&ctx).await;
    }

    /// Requeues or fails attempts that have not finished. Retries until `deadline`.
    async fn hand_back(&self, deadline: Instant) {
        let ctx = &self.context;
        let lost = ctx.worker.all_lost();
        let unsaved = lost.iter().filter_map(|(key, _)| ctx.worker.lost_checkpoint(*key));
        store_last(ctx, unsaved.collect(), SHUTDOWN_TIME / 2).await;
        let mut backoff = Backoff::default();
        loop {
            match self.try_hand_back().await {
                Ok(()) => return,
                Err(error) if instant_now() >= deadline => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        "interrupted attempts were not returned to the queue; other nodes take them over"
                    );
                    return;
                }
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }

    async fn try_hand_back(&self) -> Result<(), StoreError> {
        let ctx = &self.context;
        let own = FormerOwner::own(ctx);
        // All loops that could start attempts have ended before this function is called. If the
        // node does not know an attempt that it owns in the store, the answer to the claim was late
        // or lost, and the attempt never started.
        let mut owned = ctx.store.list_owned(ctx.node, u32::MAX >> 1).await?;
        owned.retain(|owned| !ctx.worker.has(owned.key));
        let lost =
            |owned: &OwnedAttempt| own.lost(ctx, owned, ctx.worker.lost(owned.key, owned.fence));
        let batch: Vec<Requeue> = owned.iter().map(lost).collect();
        let mut taken = GivenBack::default();
        if !batch.is_empty() {
            taken = own.give_back(ctx, batch).await?;
            let _ = ctx.store.announce(Signal::Ready).await;
        }
        if !taken.failed.is_empty() {
            RunStats::new(Arc::clone(ctx)).run_last(SHUTDOWN_TIME / 2).await;
        }
        let retired = ctx.store.retire(ctx.node).await?;
        info!(
            runs.queued = taken.queued.len(),
            runs.failed = taken.failed.len(),
            node.retired = retired,
            "node drained; interrupted attempts were returned to the queue"
        );
        Ok(())
    }

    /// Waits until a loop ends unexpectedly.
    pub async fn loop_ended(&mut self) {
        tokio::select! {
            biased;
            Some(_) = self.always.join_next() => {}
            Some(_) = self.until_stop.join_next() => {}
            else => std::future::pending().await,
        }
    }
}

impl Drop for NodeSession {
    fn drop(&mut self) {
        self.context.stopping.send_replace(true);
        self.context.worker.abort_all();
    }
}

async fn wait_until(deadline: Instant, done: impl Fn() -> bool) {
    while !done() && instant_now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
