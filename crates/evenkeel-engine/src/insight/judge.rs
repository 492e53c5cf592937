//! Computes the condition (OK, WARNING or ERROR) of each job from its deadline.
//!
//! The store holds a list of at-risk jobs, and the `Judge` loop checks only listed jobs. The
//! transaction that stores a failed or late attempt adds its job to the list of at-risk jobs. The
//! `Judge` loop adds jobs with late starts or long runs, which only a node notices.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::condition::{Condition, Facts, Level, Reason, condition};
use evenkeel_core::shard::shards_of;
use evenkeel_core::{AttemptKey, NodeNo, Shard, Timestamp};
use evenkeel_store::{
    ConditionCounts, EventJob, EventKind, JobToJudge, Judgement, NewEvent, StoreError,
};
use serde_json::json;
use tracing::{info, warn};

use crate::cluster::node_context::{Backoff, NodeContext};
use crate::cluster::store_health::log_trouble;

/// Minimum time between two passes of the `Judge` loop.
const GAP: Duration = Duration::from_millis(100);
/// Poll intervals between two counts of the jobs in each condition.
const POLLS_PER_COUNT: u32 = 5;
/// Maximum number of batches of at-risk jobs that one pass of the `Judge` loop checks. Newly
/// noticed at-risk jobs wait until the pass ends.
const BATCHES_PER_PASS: usize = 100;
/// Number of queued attempts that one pass of the `Judge` loop checks.
const QUEUE_STEP: u32 = 5000;
/// Changes logged per batch.
const LOGGED_MAX: usize = 5;

pub struct Judge {
    ctx: Arc<NodeContext>,
    /// Long attempts whose jobs were already added to the list of at-risk jobs.
    long_attempts: BTreeSet<AttemptKey>,
    /// Queued attempt after which the next pass of the `Judge` loop continues to check the queue.
    queue_seen_to: Option<AttemptKey>,
    counted_at: Option<Duration>,
    /// Nodes with the scheduler role, from which `shards` was computed.
    schedulers: Vec<NodeNo>,
    shards: Vec<Shard>,
}

impl Judge {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self {
            ctx,
            long_attempts: BTreeSet::new(),
            queue_seen_to: None,
            counted_at: None,
            schedulers: Vec::new(),
            shards: Vec::new(),
        }
    }

    /// Adds jobs to the list of at-risk jobs, and computes the condition of listed jobs that are
    /// due for a check. Returns how many were checked.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let schedulers = self.ctx.schedulers(&self.ctx.members.borrow());
        if schedulers != self.schedulers {
            self.shards = shards_of(self.ctx.node, &schedulers);
            self.schedulers = schedulers;
        }
        self.watch().await?;
        if self.shards.is_empty() {
            return Ok(0);
        }
        let judged = self.judge_due().await?;
        self.export_counts().await?;
        Ok(judged)
    }

    async fn watch(&mut self) -> Result<(), StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let batch = ctx.store.batch_sizing().batch;
        let mut jobs = ctx.at_risk.take();
        let long_attempts: BTreeSet<AttemptKey> = ctx
            .worker
            .long_attempts(ctx.settings.long_run_after)
            .into_iter()
            .map(|run| run.key)
            .collect();
        jobs.extend(long_attempts.difference(&self.long_attempts).map(|key| key.job_no));
        self.long_attempts = long_attempts;
        if !self.shards.is_empty() {
            let (after, limit) = (self.queue_seen_to, QUEUE_STEP);
            let store = &ctx.store;
            let found = store.overdue_in_queue(&self.shards, after, limit, NodeContext::NOW).await;
            let found = found.inspect_err(|_| ctx.at_risk.add(&mut jobs))?;
            jobs.extend(found.jobs);
            self.queue_seen_to = found.next;
        }
        jobs.sort_unstable();
        jobs.dedup();
        while !jobs.is_empty() {
            let first = jobs.len().saturating_sub(batch);
            let marked = ctx.store.mark_at_risk(&jobs[first..]).await;
            marked.inspect_err(|_| ctx.at_risk.add(&mut jobs))?;
            jobs.truncate(first);
        }
        Ok(())
    }

    async fn judge_due(&self) -> Result<usize, StoreError> {
        let ctx = &self.ctx;
        let batch = ctx.store.batch_sizing().batch;
        let mut judged = 0;
        for _ in 0..BATCHES_PER_PASS {
            let due = ctx.store.to_judge(&self.shards, batch as u32, NodeContext::NOW).await?;
            ctx.db_clock.observe(due.now);
            let count = due.jobs.len();
            if count == 0 {
                break;
            }
            let judgements: Vec<Judgement> =
                due.jobs.iter().map(|job| self.judgement(job, due.now)).collect();
            let stored = ctx.store.judge(judgements.clone(), NodeContext::NOW).await;
            // If the conditions were certainly not stored, the next pass computes and reports them
            // again.
            if stored.as_ref().err().and_then(StoreError::unwritable).is_none() {
                log_changes(&due.jobs, &judgements);
                if ctx.events.has_listeners() {
                    ctx.events.emit(changes(&due.jobs, &judgements, due.now));
                }
            }
            stored?;
            judged += count;
            if count < batch {
                break;
            }
        }
        Ok(judged)
    }

    fn judgement(&self, job: &JobToJudge, now: Timestamp) -> Judgement {
        let (no, touched) = (job.no, job.touched);
        let judgement =
            |reason, error_at, again_at| Judgement { job: no, touched, reason, error_at, again_at };
        let Ok(definition) = self.ctx.definitions.read(no, &job.definition) else {
            // A job with an unparsable definition cannot run until it is changed, and a change adds
            // the job to the list of at-risk jobs again.
            return judgement(Reason::GivenUp, now, Some(Timestamp::MAX));
        };
        let facts = Facts {
            definition: &definition,
            history: &job.history,
            since: job.since,
            active: job.active,
            next_at: job.next_at,
            last_fired_at: job.last_fired_at,
            live: job.live,
            running_since: job.running_since,
        };
        let found = condition(&facts, now);
        judgement(found.reason, error_at(&found, job, now), found.next_check_at(&facts, now))
    }

    async fn export_counts(&mut self) -> Result<(), StoreError> {
        let now = self.ctx.clock.monotonic();
        let every = self.ctx.settings.poll * POLLS_PER_COUNT;
        if self.counted_at.is_some_and(|then| now.saturating_sub(then) < every) {
            return Ok(());
        }
        let ConditionCounts { jobs, warning, error, held } =
            self.ctx.store.all_condition_counts().await?;
        let ok = jobs.saturating_sub(warning).saturating_sub(error);
        for (condition, count) in [("ok", ok), ("warning", warning), ("error", error)] {
            metrics::gauge!("evenkeel_jobs", "condition" => condition).set(count as f64);
        }
        metrics::gauge!("evenkeel_jobs_held_by_blackout").set(held as f64);
        let slots = &self.ctx.worker.slots;
        metrics::gauge!("evenkeel_bodies").set(slots.busy() as f64);
        metrics::gauge!("evenkeel_workers").set(slots.total() as f64);
        self.counted_at = Some(now);
        Ok(())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        let mut backoff = Backoff::default();
        while !*stopping.borrow_and_update() {
            let wait = match self.run_once().await {
                Ok(_) => {
                    backoff.reset();
                    ctx.settings.poll
                }
                Err(error) => {
                    log_trouble(&error, "computing the conditions of jobs failed; will retry");
                    // A failed pass returns its jobs to `at_risk`, which would wake the `Judge`
                    // loop at once, so pause first.
                    ctx.pause(backoff.next()).await;
                    continue;
                }
            };
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                () = jobs_at_risk(&ctx) => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// Waits until an at-risk job is added, but at least for [`GAP`].
async fn jobs_at_risk(ctx: &NodeContext) {
    tokio::time::sleep(GAP).await;
    ctx.at_risk.added().await;
}

/// Returns the time at which the condition of the job becomes, or became, ERROR.
fn error_at(found: &Condition, job: &JobToJudge, now: Timestamp) -> Timestamp {
    match (found.level(), found.deadline) {
        (_, Some(deadline)) => deadline,
        (Level::Error, None) => job.history.last_end_at.unwrap_or(now),
        (Level::Ok | Level::Warning, None) => Timestamp::MAX,
    }
}

/// Events for changed conditions.
fn changes(
    jobs: &[JobToJudge],
    judgements: &[Judgement],
    now: Timestamp,
) -> impl Iterator<Item = NewEvent> {
    jobs.iter().zip(judgements).filter_map(move |(job, judgement)| {
        let (before, after) = (job.before.unwrap_or(Level::Ok), judgement.reason.level());
        let data = json!({
            "condition": after.as_str(),
            "before": before.as_str(),
            "reason": judgement.reason.as_str(),
        });
        let (kind, about) = (EventKind::JobCondition, EventJob::No(job.no));
        (before != after).then(|| NewEvent::new(kind, job.tenant, about, now, &data))
    })
}

/// Logs jobs whose condition became ERROR, up to a limit, and how many jobs recovered. The number
/// of log lines is limited, because thousands of jobs may become late at once.
fn log_changes(jobs: &[JobToJudge], judgements: &[Judgement]) {
    let (mut worse, mut better) = (0, 0);
    for (job, judgement) in jobs.iter().zip(judgements) {
        let (before, after) = (job.before.unwrap_or(Level::Ok), judgement.reason.level());
        if after == Level::Error && before < after {
            worse += 1;
            if worse <= LOGGED_MAX {
                let reason = judgement.reason.as_str();
                warn!(
                    job.no = job.no.0,
                    reason, "job missed its deadline or will miss it; its condition is now ERROR"
                );
            }
        }
        better += usize::from(before == Level::Error && after < before);
    }
    if worse > LOGGED_MAX {
        let more = worse - LOGGED_MAX;
        warn!(
            jobs.count = more,
            "too many jobs became ERROR to log each of them; logging only the number of further jobs"
        );
    }
    if better > 0 {
        info!(jobs.count = better, "the condition of some jobs is no longer ERROR");
    }
}
