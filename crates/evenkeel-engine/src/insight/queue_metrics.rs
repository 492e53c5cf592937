//! Exports queue depth, age of queued attempts, and pools without workers.
//!
//! One node of the cluster reads the queue, which all nodes share. Each node exports how many due
//! jobs wait in its memory. No scheduling decision depends on the exported metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_store::{Member, NodeState, QueueDepths, StoreError, TENS};
use tracing::warn;

use crate::cluster::node_context::NodeContext;

/// Approximate maximum number of queue entries that one computation of the queue metrics counts. In
/// the worst case, the computation reads 400,000 queue entries.
const ROWS_MAX: u32 = 200_000;
/// Maximum number of pools with separate metrics. Each pool is a metric label, and the process
/// keeps all labels in memory until it ends.
const POOLS_MAX: usize = 100;
/// Metric label for all further pools. No pool has this name, because names have no parentheses.
const OTHER_POOLS: &str = "(others)";

const DEPTH: &str = "evenkeel_queue_depth";
const OLDEST: &str = "evenkeel_queue_oldest_seconds";
const PRIORITY: &str = "evenkeel_queue_priority";
const LOWER_BOUND: &str = "evenkeel_queue_depth_is_lower_bound";
const POOL_WORKERS: &str = "evenkeel_pool_workers";
const UNSERVED: &str = "evenkeel_pool_unserved";
const PARKED: &str = "evenkeel_parked";

/// Returns pools that no live worker serves, with the number of their queued attempts.
pub fn unserved_pools(queue: &QueueDepths, members: &[Member]) -> BTreeMap<String, u64> {
    let mut unserved = BTreeMap::new();
    for depth in &queue.depths {
        if !members.iter().any(|member| member.serves(&depth.pool)) {
            *unserved.entry(depth.pool.clone()).or_default() += depth.waiting;
        }
    }
    unserved
}

/// Name and labels of a metric.
type Figure = (&'static str, Vec<(&'static str, String)>);

pub struct QueueMetrics {
    ctx: Arc<NodeContext>,
    cluster: ClusterFigures,
}

/// Metrics that the housekeeping node exports for the whole cluster.
#[derive(Debug, Default)]
struct ClusterFigures {
    shown: BTreeSet<Figure>,
    /// Pools that have separate metrics.
    pools: BTreeSet<String>,
}

impl QueueMetrics {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, cluster: ClusterFigures::default() }
    }

    /// Exports the metrics of this node. If the node is the housekeeping node, also exports the
    /// metrics of the queue.
    pub async fn run_once(&mut self) -> Result<(), StoreError> {
        let ctx = Arc::clone(&self.ctx);
        self.show_own();
        let members = ctx.members.borrow().clone();
        let figures = if ctx.is_housekeeper() {
            let queue = ctx.store.queue_depths(ROWS_MAX).await?;
            self.cluster.figures(&queue, &members, ctx.db_now())
        } else {
            BTreeMap::new()
        };
        self.cluster.show(figures);
        Ok(())
    }

    fn show_own(&self) {
        let ctx = &self.ctx;
        let waiting = ctx.due.lock().upcoming.waiting();
        for (lane, waiting) in Lane::ALL.into_iter().zip(waiting) {
            metrics::gauge!("evenkeel_due_waiting", "lane" => lane.as_str()).set(waiting as f64);
        }
        let oldest = ctx.worker.oldest_running().unwrap_or_default();
        metrics::gauge!("evenkeel_running_oldest_seconds").set(oldest.as_secs_f64());
        let members = ctx.members.borrow();
        let schedulers = members
            .iter()
            .filter(|member| member.roles.scheduler && member.state == NodeState::Live);
        if let Some(at) = schedulers.map(|member| member.last_ping_at).max() {
            let at = at.as_micros() as f64 / 1e6;
            metrics::gauge!("evenkeel_last_check_timestamp_seconds").set(at);
        }
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        // The first pass runs after one poll interval, when the cluster members are known.
        let mut wait = ctx.settings.poll;
        let mut was_ok = true;
        while ctx.pause(wait).await {
            wait = ctx.settings.queue_metrics_every;
            let result = self.run_once().await;
            // Logged once per outage.
            if let Some(error) = result.as_ref().err().filter(|_| was_ok) {
                let error = error as &dyn std::error::Error;
                warn!(
                    error,
                    "reading the queue failed; queue metrics keep their last values until a read succeeds"
                );
            }
            was_ok = result.is_ok();
        }
        // This node stops, so another node exports the metrics of the queue from now on.
        self.cluster.show(BTreeMap::new());
    }
}

impl ClusterFigures {
    fn figures(
        &mut self,
        queue: &QueueDepths,
        members: &[Member],
        now: Timestamp,
    ) -> BTreeMap<Figure, f64> {
        let mut figures = BTreeMap::new();
        for member in members.iter().filter(|member| member.is_live_worker()) {
            for pool in &member.pools {
                let pool = self.label(pool);
                *figures.entry((POOL_WORKERS, pool.clone())).or_default() += 1.0;
                figures.entry((UNSERVED, pool.clone())).or_default();
                for lane in Lane::ALL {
                    figures.entry((DEPTH, in_lane(pool.clone(), lane))).or_default();
                    figures.entry((OLDEST, in_lane(pool.clone(), lane))).or_default();
                }
            }
        }
        let mut by_tens = [0; TENS];
        let others = vec![("pool", OTHER_POOLS.to_owned())];
        let known = queue.depths.iter().map(|depth| (depth, self.label(&depth.pool)));
        let known: Vec<_> = known.collect();
        let beyond = queue.others.iter().map(|depth| (depth, others.clone()));
        for (depth, pool) in known.into_iter().chain(beyond) {
            let labels = in_lane(pool, depth.lane);
            let age = Duration::from(now.since(depth.oldest)).as_secs_f64();
            let oldest: &mut f64 = figures.entry((OLDEST, labels.clone())).or_default();
            *oldest = oldest.max(age);
            *figures.entry((DEPTH, labels)).or_default() += depth.waiting as f64;
            by_tens.iter_mut().zip(depth.by_tens).for_each(|(sum, count)| *sum += count);
        }
        for (pool, waiting) in unserved_pools(queue, members) {
            let pool = self.label(&pool);
            figures.entry((POOL_WORKERS, pool.clone())).or_default();
            *figures.entry((UNSERVED, pool)).or_default() += waiting as f64;
        }
        for (ten, count) in by_tens.into_iter().enumerate() {
            figures.insert((PRIORITY, vec![("priority", priority_range(ten))]), count as f64);
        }
        for (scope, parked) in LimitScope::ALL.into_iter().zip(queue.parked) {
            let labels = vec![("scope", scope.as_str().to_owned())];
            figures.insert((PARKED, labels), parked as f64);
        }
        let is_lower_bound = f64::from(u8::from(queue.is_lower_bound));
        figures.insert((LOWER_BOUND, Vec::new()), is_lower_bound);
        figures
    }

    /// Sets the metrics in `figures`. Resets to 0 all exported metrics that are not in `figures`.
    fn show(&mut self, figures: BTreeMap<Figure, f64>) {
        for (name, labels) in self.shown.iter().filter(|figure| !figures.contains_key(*figure)) {
            metrics::gauge!(*name, labels).set(0.0);
        }
        for ((name, labels), value) in &figures {
            metrics::gauge!(*name, labels).set(*value);
        }
        self.shown.extend(figures.into_keys());
    }

    fn label(&mut self, pool: &str) -> Vec<(&'static str, String)> {
        if !self.pools.contains(pool) && self.pools.len() < POOLS_MAX {
            self.pools.insert(pool.to_owned());
        }
        let known = self.pools.contains(pool);
        vec![("pool", if known { pool } else { OTHER_POOLS }.to_owned())]
    }
}

fn in_lane(pool: Vec<(&'static str, String)>, lane: Lane) -> Vec<(&'static str, String)> {
    [pool, vec![("lane", lane.as_str().to_owned())]].concat()
}

fn priority_range(ten: usize) -> String {
    let first = ten * 10;
    if first >= 100 { first.to_string() } else { format!("{first}-{}", first + 9) }
}

#[cfg(test)]
mod tests;
