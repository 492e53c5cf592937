//! One life of a node: its loops, from joining to leaving.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_executors::CancelReason;
use evenkeel_store::{Finish, NewNode, Owned, Requeue, Signal, StoreError};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::cluster::db_clock::DbClock;
use crate::cluster::heartbeat::Heartbeat;
use crate::cluster::lease_keeper::LeaseKeeper;
use crate::cluster::lost_attempts::{FormerOwner, Taken};
use crate::cluster::low_watermark::LowWatermark;
use crate::cluster::node_context::{Backoff, NodeContext, instant_now};
use crate::cluster::reaper::Reaper;
use crate::cluster::reconciler::Reconciler;
use crate::engine::Parts;
use crate::insight::at_risk::AtRiskJobs;
use crate::insight::balance_score::BalanceScore;
use crate::insight::event_publisher::{EventPublisher, pass_on_last};
use crate::insight::judge::Judge;
use crate::insight::metrics::Meters;
use crate::insight::queue_metrics::QueueMetrics;
use crate::insight::run_logger::{Notices, RunLogger};
use crate::insight::run_stats::RunStats;
use crate::scheduler::Scheduler;
use crate::scheduler::definitions::Definitions;
use crate::scheduler::node_due::NodeDue;
use crate::scheduler::overlap_waits::OverlapWaits;
use crate::upkeep::auto_pauser::AutoPauser;
use crate::upkeep::limit_release::{LimitRelease, RoomKeeper};
use crate::upkeep::load_recount::LoadRecount;
use crate::upkeep::pruner::Pruner;
use crate::upkeep::reprioritizer::Reprioritizer;
use crate::upkeep::stale_targets::StaleChecker;
use crate::worker::Worker;
use crate::worker::canceller::Canceller;
use crate::worker::claimer::Claimer;
use crate::worker::finisher::Finisher;
use crate::worker::inbox::Inbox;
use crate::worker::recorder::{Recorder, Unsaved, store_last};
use crate::worker::slots::Slots;

/// After the grace, bodies and the store have this long.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// One life and its tasks. Dropping it ends them.
pub struct Life {
    /// What its loops share.
    pub shared: Arc<NodeContext>,
    /// These end with the life.
    always: JoinSet<()>,
    /// Ends when the node stops.
    until_stop: JoinSet<()>,
}

impl Life {
    /// Joins the cluster and starts all loops.
    pub async fn begin(parts: &Parts) -> Result<Self, StoreError> {
        let Parts { store, registry, settings, clock, chance } = parts;
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
            "node {} joined as number {}",
            settings.node_name,
            joined.node
        );
        let holds = Duration::from(settings.leases.bodies_must_end_after());
        let lease = LeaseKeeper::new(joined_at + holds, store.is_shared());
        let db_clock = Arc::new(DbClock::new(Arc::clone(clock)));
        db_clock.observe(joined.now);
        let (ended_in, ended_out) = mpsc::unbounded_channel();
        let worker = Worker::new(
            Arc::new(Slots::new(settings.workers)),
            Arc::clone(registry),
            lease.watch(),
            Arc::clone(clock),
            Arc::clone(&db_clock),
            Arc::clone(chance),
            ended_in,
        )
        .keeping_log_bytes(settings.run_log_bytes);
        let shared = Arc::new(NodeContext {
            node: joined.node,
            store: Arc::clone(store),
            settings: Arc::new(settings.clone()),
            clock: Arc::clone(clock),
            db_clock,
            chance: Arc::clone(chance),
            worker: Arc::new(worker),
            unsaved: Unsaved::default(),
            suspects: AtRiskJobs::default(),
            awaited: OverlapWaits::default(),
            due: NodeDue::new(settings.aging),
            meters: Meters::default(),
            events: store.events().clone(),
            notices: Notices::default(),
            bound: LowWatermark::default(),
            definitions: Definitions::default(),
            lease,
            members: watch::Sender::new(Vec::new()),
            stopping: watch::Sender::new(false),
            failing: Notify::new(),
            fenced: Notify::new(),
            hold_bound: false.into(),
            shards_away: 0.into(),
        });
        let _ = store.announce(Signal::Nodes).await;
        Ok(Self::with_tasks(shared, ended_out))
    }

    fn with_tasks(life: Arc<NodeContext>, ended: mpsc::UnboundedReceiver<Finish>) -> Self {
        let (mut always, mut until_stop) = (JoinSet::new(), JoinSet::new());
        let share = || Arc::clone(&life);
        always.spawn(Heartbeat::new(share()).run());
        always.spawn(Canceller::new(share()).run());
        always.spawn(Inbox::new(share()).run());
        always.spawn(Recorder::new(share()).run());
        always.spawn(EventPublisher::new(share()).run());
        always.spawn(RunLogger::new(share()).run());
        always.spawn(RunStats::new(share()).run());
        let ended = Arc::new(tokio::sync::Mutex::new(ended));
        let side_by_side = life.store.appetite().side_by_side.max(1);
        for _ in 0..side_by_side {
            always.spawn(Finisher::new(share(), Arc::clone(&ended)).run());
        }
        until_stop.spawn(Reaper::new(share()).run());
        until_stop.spawn(Reconciler::new(share()).run());
        until_stop.spawn(Judge::new(share()).run());
        until_stop.spawn(QueueMetrics::new(share()).run());
        until_stop.spawn(AutoPauser::new(share()).run());
        until_stop.spawn(LimitRelease::new(share()).run());
        until_stop.spawn(RoomKeeper::new(share()).run());
        if life.settings.roles.scheduler {
            for index in 0..side_by_side {
                until_stop.spawn(Scheduler::new(share(), index, side_by_side).run());
            }
            until_stop.spawn(Pruner::new(share()).run());
            let ager = Reprioritizer::new(Arc::clone(&life.store), life.settings.aging);
            until_stop.spawn(ager.run(share()));
            until_stop.spawn(LoadRecount::new(Arc::clone(&life.store)).run(share()));
            let scorer = BalanceScore::new(Arc::clone(&life.store), life.settings.balance);
            until_stop.spawn(scorer.run(share()));
            let (store, chance) = (Arc::clone(&life.store), Arc::clone(&life.chance));
            until_stop.spawn(StaleChecker::new(store, chance, life.settings.stale).run(share()));
        }
        if life.settings.roles.worker {
            until_stop.spawn(Claimer::new(share()).run());
        }
        Self { shared: life, always, until_stop }
    }

    /// Leaves in order: see [`Engine::drain`](crate::Engine::drain).
    pub async fn drain(mut self, grace: Duration) {
        let life = Arc::clone(&self.shared);
        info!(bodies.count = life.worker.slots.busy(), "draining");
        life.stopping.send_replace(true);
        life.worker.slots.close();
        if let Err(error) = life.store.drain(life.node).await {
            warn!(error = &error as &dyn std::error::Error, "others were not told of the drain");
        }
        let _ = life.store.announce(Signal::Nodes).await;
        let deadline = instant_now() + grace.max(Duration::from_secs(1));
        let _ = tokio::time::timeout_at(deadline, async {
            while self.until_stop.join_next().await.is_some() {}
        })
        .await;
        // Whoever still waits for the store would start something; what it left is handed back.
        self.until_stop.shutdown().await;
        wait_until(deadline, || life.worker.busy_count() == 0).await;
        life.worker.cancel_all(CancelReason::ShuttingDown);
        let last = instant_now() + LAST_WORDS;
        wait_until(last, || life.worker.busy_count() == 0).await;
        RunStats::new(Arc::clone(&life)).run_last(LAST_WORDS / 2).await;
        self.hand_back(last).await;
        pass_on_last(&life).await;
    }

    /// Gives back what could not end, trying until `deadline`.
    async fn hand_back(&self, deadline: Instant) {
        let life = &self.shared;
        let lost = life.worker.all_lost();
        let unsaved = lost.iter().filter_map(|(key, _)| life.worker.lost_checkpoint(*key));
        store_last(life, unsaved.collect(), LAST_WORDS / 2).await;
        let mut backoff = Backoff::default();
        loop {
            match self.try_hand_back().await {
                Ok(()) => return,
                Err(error) if instant_now() >= deadline => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        "interrupted runs could not be handed back; other nodes will take them over"
                    );
                    return;
                }
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }

    async fn try_hand_back(&self) -> Result<(), StoreError> {
        let life = &self.shared;
        let own = FormerOwner::own(life);
        // No loop is left that could start anything: what this node has and does not know of never
        // had a body. An answer may have come too late, or never.
        let mut owned = life.store.owned(life.node, u32::MAX >> 1).await?;
        owned.retain(|owned| !life.worker.has(owned.key));
        let lost = |owned: &Owned| own.lost(life, owned, life.worker.lost(owned.key, owned.fence));
        let batch: Vec<Requeue> = owned.iter().map(lost).collect();
        let mut taken = Taken::default();
        if !batch.is_empty() {
            taken = own.give_back(life, batch).await?;
            let _ = life.store.announce(Signal::Ready).await;
        }
        if !taken.failed.is_empty() {
            RunStats::new(Arc::clone(life)).run_last(LAST_WORDS / 2).await;
        }
        let retired = life.store.retire(life.node).await?;
        info!(
            runs.queued = taken.queued.len(),
            runs.failed = taken.failed.len(),
            node.retired = retired,
            "drained; interrupted runs were handed back"
        );
        Ok(())
    }

    /// Waits until a loop ends that should not have.
    pub async fn loop_broke(&mut self) {
        tokio::select! {
            biased;
            Some(_) = self.always.join_next() => {}
            Some(_) = self.until_stop.join_next() => {}
            else => std::future::pending().await,
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.shared.stopping.send_replace(true);
        self.shared.worker.abort_all();
    }
}

async fn wait_until(deadline: Instant, done: impl Fn() -> bool) {
    while !done() && instant_now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
