//! Counts the results and the activity of runs for statistics.
//!
//! Results are counted in memory and the totals are stored at a fixed interval, so firing and
//! finishing do not wait for statistics. A crash of the node loses the run totals of a few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, Span, TenantNo, Timestamp};
use evenkeel_store::{FailureDelta, Finish, FinishResult, Role, RunStatsDelta, Scope, StoreError};
use tracing::debug;

use crate::cluster::node_context::NodeContext;
use crate::insight::activity::{BatchActivity, PendingActivity};
use crate::sync::lock;

/// Maximum number of failure groups (failures with the same fingerprint) in one write of the
/// statistics. Failures of further groups are not counted until the next write.
const GROUPS_MAX: usize = 1_000;
/// Maximum number of stored characters of the error of a failure group.
const ERROR_CHARS_MAX: usize = 1_000;
/// Maximum number of attempts in `ended_elsewhere`, whose results this node must still read (about
/// 1 MB). Further attempts are not counted.
const ENDED_ELSEWHERE_MAX: usize = 20_000;
/// Interval at which a node without new results of runs still writes its statistics.
const WRITE_AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// Totals of ended runs that are not written to the store yet.
#[derive(Debug, Default)]
pub struct PendingStats(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    tenants: BTreeMap<TenantNo, RunStatsDelta>,
    failures: BTreeMap<(TenantNo, Fingerprint), FailureDelta>,
    activity: PendingActivity,
    /// Attempts of this node whose result another node has stored.
    ended_elsewhere: Vec<(TenantNo, AttemptKey)>,
}

struct End<'a> {
    tenant: TenantNo,
    key: AttemptKey,
    outcome: Outcome,
    took: Span,
    at: Timestamp,
    error: Option<&'a str>,
}

impl PendingStats {
    /// Adds results of attempts to the run totals, except results that the store refused.
    pub fn ended(&self, batch: &[Finish], results: &[FinishResult]) {
        let mut sums = lock(&self.0);
        let taken = batch.iter().zip(results).filter(|(_, result)| **result == FinishResult::Done);
        for (finish, _) in taken {
            sums.add(&End {
                tenant: finish.tenant,
                key: finish.key,
                outcome: finish.outcome,
                took: finish.finished_at.since(finish.started_at),
                at: finish.finished_at,
                error: finish.results.error.as_deref(),
            });
        }
    }

    /// Adds the activity of a batch of fires or claims.
    pub fn active(&self, batch: &BatchActivity) {
        lock(&self.0).activity.add(batch);
    }

    pub fn ended_elsewhere(&self, tenant: TenantNo, key: AttemptKey) {
        let mut sums = lock(&self.0);
        if sums.ended_elsewhere.len() < ENDED_ELSEWHERE_MAX {
            sums.ended_elsewhere.push((tenant, key));
        }
    }

    pub fn taken_over(&self, tenant: TenantNo) {
        lock(&self.0).of(tenant).stolen += 1;
    }

    fn take(&self) -> Sums {
        std::mem::take(&mut lock(&self.0))
    }

    /// Adds earlier run totals, which could not be stored, to the current run totals.
    fn put_back(&self, earlier: Sums) {
        let mut sums = lock(&self.0);
        for (tenant, delta) in earlier.tenants {
            sums.of(tenant).merge(&delta);
        }
        sums.activity.put_back(earlier.activity);
        let capacity = ENDED_ELSEWHERE_MAX.saturating_sub(sums.ended_elsewhere.len());
        sums.ended_elsewhere.extend(earlier.ended_elsewhere.into_iter().take(capacity));
        for (key, group) in earlier.failures {
            if sums.failures.len() >= GROUPS_MAX && !sums.failures.contains_key(&key) {
                continue;
            }
            let (count, newer) = (group.count, sums.failures.remove(&key));
            let mut merged = newer.unwrap_or(FailureDelta { count: 0, ..group });
            merged.count += count;
            sums.failures.insert(key, merged);
        }
    }
}

impl Sums {
    fn of(&mut self, tenant: TenantNo) -> &mut RunStatsDelta {
        self.tenants.entry(tenant).or_insert(RunStatsDelta::none(tenant))
    }

    fn add(&mut self, end: &End<'_>) {
        self.activity.ended(end.tenant, end.at, end.outcome, end.took);
        self.of(end.tenant).add_ended(end.key.attempt, end.outcome, end.took);
        if end.outcome.is_failure() {
            self.add_failure(end);
        }
    }

    fn add_failure(&mut self, end: &End<'_>) {
        let error = end.error.unwrap_or(match end.outcome {
            Outcome::TimedOut => "timed out",
            _ => "failed without an error message",
        });
        let fingerprint = Fingerprint::of(error);
        let key = (end.tenant, fingerprint);
        if self.failures.len() >= GROUPS_MAX && !self.failures.contains_key(&key) {
            return;
        }
        let error = || error.chars().take(ERROR_CHARS_MAX).collect();
        let group = self.failures.entry(key).or_insert_with(|| FailureDelta {
            tenant: end.tenant,
            fingerprint,
            count: 0,
            newest: end.key,
            at: end.at,
            error: error(),
        });
        group.count += 1;
        if end.at > group.at {
            (group.newest, group.at, group.error) = (end.key, end.at, error());
        }
    }

    fn is_empty(&self) -> bool {
        self.tenants.is_empty() && self.failures.is_empty() && self.activity.is_empty()
    }
}

pub struct RunStats {
    ctx: Arc<NodeContext>,
    /// Time of the last write, with the number of running attempts per tenant at that time.
    written: Option<(Duration, BTreeMap<TenantNo, u32>)>,
}

impl RunStats {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, written: None }
    }

    /// Stores the totals of runs since the last write. Returns false if there was nothing to store.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let mut sums = ctx.worker.stats.take();
        if let Err(error) = look_up(&ctx, &mut sums).await {
            ctx.worker.stats.put_back(sums);
            return Err(error);
        }
        let running = ctx.worker.running_by_tenant();
        let now = ctx.clock.monotonic();
        let must_write = !sums.is_empty()
            || self.written.as_ref().is_none_or(|(then, written)| {
                *written != running || now.saturating_sub(*then) >= WRITE_AT_LEAST_EVERY
            });
        if !must_write {
            return Ok(false);
        }
        for (tenant, count) in &running {
            sums.of(*tenant).running = *count;
        }
        let stats = sums.tenants.values().copied().collect();
        let failures = sums.failures.values().cloned().collect();
        let (activity, at) = (sums.activity.deltas(), ctx.db_now());
        if let Err(error) = ctx.store.add_run_stats(ctx.node, stats, failures, activity, at).await {
            ctx.worker.stats.put_back(sums);
            return Err(error);
        }
        self.written = Some((now, running));
        Ok(true)
    }

    /// The loop also runs while the node drains, because attempts of a draining node finish.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(self.ctx.settings.metrics_interval).await;
            self.try_once().await;
        }
    }

    pub async fn run_last(mut self, within: Duration) {
        let _ = tokio::time::timeout(within, self.try_once()).await;
    }

    async fn try_once(&mut self) {
        if let Err(error) = self.run_once().await {
            // The totals of runs are kept in memory for the next try. A store outage is logged by
            // other loops.
            debug!(
                error = &error as &dyn std::error::Error,
                "storing run statistics failed; will retry"
            );
        }
    }
}

/// Reads the results that other nodes have stored for attempts of this node, and adds these results
/// to the run totals.
async fn look_up(ctx: &NodeContext, sums: &mut Sums) -> Result<(), StoreError> {
    while let Some((tenant, key)) = sums.ended_elsewhere.last().copied() {
        let scope = Scope { tenant, role: Role::Viewer };
        let run = ctx.store.get_attempt(&scope, key).await?;
        // An attempt is removed from `ended_elsewhere` only after its result was read, so a failed
        // read is repeated.
        sums.ended_elsewhere.pop();
        let Some(run) = run else { continue };
        let Some(outcome) = run.status.outcome() else { continue };
        let (Some(began), Some(at)) = (run.started_at, run.finished_at) else { continue };
        let (took, error) = (at.since(began), run.results.error.as_deref());
        sums.add(&End { tenant, key: run.key, outcome, took, at, error });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
