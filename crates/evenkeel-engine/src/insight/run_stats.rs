//! Sums up how runs end, for statistics.
//!
//! Results are added up in memory and stored at an interval, so that firing and finishing do not
//! wait for it. A crash loses the totals of a few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, AttemptNo, Span, TenantNo, Timestamp};
use evenkeel_store::{FailureDelta, Finish, FinishResult, Role, RunStatsDelta, Scope, StoreError};
use tracing::debug;

use crate::cluster::node_context::NodeContext;
use crate::sync::lock;

/// Failure groups per write; further groups are not counted until the next write.
const GROUPS_MAX: usize = 1_000;
/// Stored characters of a group's error.
const ERROR_CHARS_MAX: usize = 1_000;
/// Attempts whose result another node has stored and that wait to be read, at most (about 1 MB).
/// Further ones are not counted.
const ENDED_ELSEWHERE_MAX: usize = 20_000;
/// An idle node still writes at this interval.
const WRITE_AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// Totals that are not stored yet.
#[derive(Debug, Default)]
pub struct PendingStats(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    tenants: BTreeMap<TenantNo, RunStatsDelta>,
    failures: BTreeMap<(TenantNo, Fingerprint), FailureDelta>,
    /// Attempts whose result was stored by another node.
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
    /// Adds stored results; those that the store refused do not count.
    pub fn ended(&self, batch: &[Finish], results: &[FinishResult]) {
        let mut sums = self.lock();
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

    /// Adds an attempt of this node whose result another node has stored.
    pub fn ended_elsewhere(&self, tenant: TenantNo, key: AttemptKey) {
        let mut sums = self.lock();
        if sums.ended_elsewhere.len() < ENDED_ELSEWHERE_MAX {
            sums.ended_elsewhere.push((tenant, key));
        }
    }

    /// Counts an attempt taken over from a lost node.
    pub fn taken_over(&self, tenant: TenantNo) {
        self.lock().of(tenant).stolen += 1;
    }

    fn take(&self) -> Sums {
        std::mem::take(&mut self.lock())
    }

    /// Puts back totals that could not be stored.
    fn put_back(&self, earlier: Sums) {
        let mut sums = self.lock();
        for (tenant, tally) in earlier.tenants {
            sums.of(tenant).merge(&tally);
        }
        let capacity = ENDED_ELSEWHERE_MAX.saturating_sub(sums.ended_elsewhere.len());
        sums.ended_elsewhere.extend(earlier.ended_elsewhere.into_iter().take(capacity));
        for (key, group) in earlier.failures {
            if sums.failures.len() >= GROUPS_MAX && !sums.failures.contains_key(&key) {
                continue;
            }
            let (count, newer) = (group.count, sums.failures.remove(&key));
            let mut kept = newer.unwrap_or(FailureDelta { count: 0, ..group });
            kept.count += count;
            sums.failures.insert(key, kept);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        lock(&self.0)
    }
}

impl Sums {
    fn of(&mut self, tenant: TenantNo) -> &mut RunStatsDelta {
        self.tenants.entry(tenant).or_insert(none_of(tenant))
    }

    fn add(&mut self, end: &End<'_>) {
        let tally = self.of(end.tenant);
        match end.outcome {
            Outcome::Completed | Outcome::PartlyFailed => {
                tally.completed += 1;
                tally.good_duration = tally.good_duration.saturating_add(end.took);
            }
            Outcome::Failed => tally.failed += 1,
            Outcome::TimedOut => tally.timed_out += 1,
            Outcome::Cancelled | Outcome::Superseded => tally.cancelled += 1,
        }
        tally.retries += u64::from(end.key.attempt > AttemptNo::FIRST);
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
        self.tenants.is_empty() && self.failures.is_empty()
    }
}

fn none_of(tenant: TenantNo) -> RunStatsDelta {
    RunStatsDelta {
        tenant,
        completed: 0,
        failed: 0,
        timed_out: 0,
        cancelled: 0,
        retries: 0,
        stolen: 0,
        good_duration: Span::ZERO,
        running: 0,
    }
}

pub struct RunStats {
    ctx: Arc<NodeContext>,
    /// Time of the last write, and the running bodies by tenant then.
    written: Option<(Duration, BTreeMap<TenantNo, u32>)>,
}

impl RunStats {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, written: None }
    }

    /// Stores totals since the last write. Returns whether there were any.
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
        if let Err(error) = ctx.store.add_run_stats(ctx.node, stats, failures, ctx.db_now()).await {
            ctx.worker.stats.put_back(sums);
            return Err(error);
        }
        self.written = Some((now, running));
        Ok(true)
    }

    /// Runs until its task is aborted; bodies of a draining node end, too.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(self.ctx.settings.metrics_interval).await;
            self.try_once().await;
        }
    }

    /// Stores the last totals of a draining node.
    pub async fn run_last(mut self, within: Duration) {
        let _ = tokio::time::timeout(within, self.try_once()).await;
    }

    async fn try_once(&mut self) {
        if let Err(error) = self.run_once().await {
            // The totals are kept. Other loops log a store outage.
            debug!(
                error = &error as &dyn std::error::Error,
                "storing run totals failed; will retry"
            );
        }
    }
}

/// Reads results that other nodes have stored, and adds them.
async fn look_up(ctx: &NodeContext, sums: &mut Sums) -> Result<(), StoreError> {
    while let Some((tenant, key)) = sums.ended_elsewhere.last().copied() {
        let scope = Scope { tenant, role: Role::Viewer };
        let run = ctx.store.get_attempt(&scope, key).await?;
        // Only after success, so that a failed read is repeated.
        sums.ended_elsewhere.pop();
        let Some(run) = run else { continue };
        let outcome = match run.status {
            AttemptStatus::Completed => Outcome::Completed,
            AttemptStatus::PartlyFailed => Outcome::PartlyFailed,
            AttemptStatus::Failed => Outcome::Failed,
            AttemptStatus::TimedOut => Outcome::TimedOut,
            AttemptStatus::Cancelled => Outcome::Cancelled,
            AttemptStatus::Superseded => Outcome::Superseded,
            AttemptStatus::Pending | AttemptStatus::Running | AttemptStatus::Skipped => continue,
        };
        let (Some(began), Some(at)) = (run.started_at, run.finished_at) else { continue };
        let (took, error) = (at.since(began), run.results.error.as_deref());
        sums.add(&End { tenant, key: run.key, outcome, took, at, error });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobNo;
    use evenkeel_core::lease::Fence;
    use evenkeel_store::{Attachments, Results, Then};

    use super::*;

    fn end(secs: i64, attempt: u16, outcome: Outcome, error: Option<&str>) -> Finish {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let key = AttemptKey::regular(JobNo(1), at(secs)).with_attempt(AttemptNo(attempt));
        Finish {
            key,
            fence: Fence(1),
            tenant: TenantNo(1),
            outcome,
            started_at: at(secs),
            finished_at: at(secs + 2),
            results: Results { error: error.map(Into::into), ..Results::default() },
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            attachments: Attachments::default(),
            judge: false,
            unstored_since: None,
            hook: evenkeel_store::Hook::None,
        }
    }

    #[test]
    fn only_stored_results_count() {
        let stats = PendingStats::default();
        let batch = [
            end(1, 0, Outcome::Completed, None),
            end(2, 1, Outcome::Completed, None),
            end(3, 0, Outcome::Completed, None),
            end(4, 0, Outcome::Superseded, None),
            end(5, 2, Outcome::TimedOut, None),
        ];
        use FinishResult::{AlreadyDone, Done, LeaseLost};
        stats.ended(&batch, &[Done, Done, AlreadyDone, Done, LeaseLost]);
        let sums = stats.take();
        let tally = sums.tenants[&TenantNo(1)];
        assert_eq!((tally.completed, tally.cancelled, tally.retries), (2, 1, 1));
        assert_eq!((tally.timed_out, tally.good_duration), (0, Span::from_secs(4)));
        assert!(stats.take().is_empty());
    }

    #[test]
    fn similar_failures_form_one_group_with_the_newest_error() {
        let stats = PendingStats::default();
        let batch = [
            end(1, 0, Outcome::Failed, Some("no route to 10.0.0.1")),
            end(9, 0, Outcome::Failed, Some("no route to 10.0.0.2")),
            end(5, 0, Outcome::Failed, Some("no route to 10.0.0.3")),
            end(6, 0, Outcome::TimedOut, None),
        ];
        stats.ended(&batch, &[FinishResult::Done; 4]);
        let sums = stats.take();
        let groups: Vec<(u64, &str)> =
            sums.failures.values().map(|group| (group.count, group.error.as_str())).collect();
        assert_eq!(groups.len(), 2);
        assert!(groups.contains(&(3, "no route to 10.0.0.2")));
        assert!(groups.contains(&(1, "timed out")));
    }

    #[test]
    fn totals_survive_a_failed_write() {
        let stats = PendingStats::default();
        let failed = end(1, 0, Outcome::Failed, Some("oh"));
        stats.ended(std::slice::from_ref(&failed), &[FinishResult::Done]);
        let unwritten = stats.take();
        stats.ended(&[end(2, 0, Outcome::Failed, Some("oh"))], &[FinishResult::Done]);
        stats.put_back(unwritten);
        let sums = stats.take();
        assert_eq!(sums.tenants[&TenantNo(1)].failed, 2);
        let group = sums.failures.values().next().unwrap();
        assert_eq!((group.count, group.at), (2, Timestamp::from_micros(4_000_000)));
    }

    #[test]
    fn failure_groups_are_bounded() {
        let stats = PendingStats::default();
        fill(&stats, GROUPS_MAX + 100, 'x');
        let sums = stats.take();
        assert_eq!(sums.failures.len(), GROUPS_MAX);
        assert_eq!(sums.tenants[&TenantNo(1)].failed, GROUPS_MAX as u64 + 100);
    }

    /// Adds `count` different errors.
    fn fill(stats: &PendingStats, count: usize, prefix: char) {
        for n in 0..count {
            let message = |digit: u8| char::from(digit + b'a' - b'0');
            let error: String =
                std::iter::once(prefix).chain(n.to_string().bytes().map(message)).collect();
            let failed = end(1, 0, Outcome::Failed, Some(&error));
            stats.ended(&[failed], &[FinishResult::Done]);
        }
    }

    #[test]
    fn totals_put_back_stay_within_the_bounds() {
        let stats = PendingStats::default();
        let key = AttemptKey::regular(JobNo(1), Timestamp::from_micros(1));
        fill(&stats, GROUPS_MAX, 'x');
        for _ in 0..ENDED_ELSEWHERE_MAX + 5 {
            stats.ended_elsewhere(TenantNo(1), key);
        }
        let unwritten = stats.take();
        assert_eq!(unwritten.ended_elsewhere.len(), ENDED_ELSEWHERE_MAX);
        fill(&stats, 100, 'y');
        for _ in 0..5 {
            stats.ended_elsewhere(TenantNo(1), key);
        }
        stats.put_back(unwritten);
        let sums = stats.take();
        assert_eq!(
            (sums.failures.len(), sums.ended_elsewhere.len()),
            (GROUPS_MAX, ENDED_ELSEWHERE_MAX)
        );
        assert_eq!(sums.tenants[&TenantNo(1)].failed, GROUPS_MAX as u64 + 100);
    }

    #[test]
    fn long_error_is_truncated() {
        let stats = PendingStats::default();
        let error = "é".repeat(ERROR_CHARS_MAX + 1);
        stats.ended(&[end(1, 0, Outcome::Failed, Some(&error))], &[FinishResult::Done]);
        let sums = stats.take();
        let kept = &sums.failures.values().next().unwrap().error;
        assert_eq!(kept.chars().count(), ERROR_CHARS_MAX);
    }

    #[test]
    fn thousands_of_results_stored_by_other_nodes_are_kept() {
        let stats = PendingStats::default();
        for n in 0..5_000 {
            stats.ended_elsewhere(
                TenantNo(1),
                AttemptKey::regular(JobNo(n), Timestamp::from_micros(1)),
            );
        }
        assert_eq!(stats.take().ended_elsewhere.len(), 5_000);
    }
}
