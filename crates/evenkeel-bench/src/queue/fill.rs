//! Fills a queue to a given depth.

use anyhow::{Context, ensure};
use evenkeel_core::aging::Aging;
use evenkeel_core::chance::Chance;
use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, NodeNo, Span, Timestamp};
use evenkeel_store::{
    DueJob, Fire, FireResult, NewJob, Now, QueueEntry, QueueWait, Registered, Scope, Start, Store,
};
use indicatif::ProgressBar;

use crate::workload::{BATCH, CENTURY};

const EVERY: Span = Span::from_secs(365 * 86_400);
/// Number of concurrency keys that `--limits` uses.
const KEYS: u64 = 1_000;
/// Limit of each concurrency key.
const LIMIT: u32 = 10;

pub(super) struct QueueFiller<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) scope: Scope,
    pub(super) chance: &'a dyn Chance,
    pub(super) node: NodeNo,
    pub(super) progress: &'a ProgressBar,
    /// Give each job a concurrency key with a limit.
    pub(super) limits: bool,
    /// Use one-time jobs with deduplication keys.
    pub(super) dedup: bool,
}

impl QueueFiller<'_> {
    /// Queues one attempt of each of these jobs.
    pub(super) async fn queue(&self, jobs: Vec<JobNo>) -> anyhow::Result<()> {
        let now = self.store.now().await?;
        for batch in jobs.chunks(self.store.batch_sizing().batch) {
            let due = self.store.load_jobs(batch).await?;
            let fires = due.iter().map(|job| queued(job, now)).collect::<anyhow::Result<_>>()?;
            let fired = self.store.fire(self.node, fires, Now::At(now)).await?;
            let is_queued = |result: &&FireResult| matches!(result, FireResult::Fired(_));
            let count = fired.results.iter().filter(is_queued).count();
            ensure!(count == batch.len(), "only {count} of {} attempts were queued", batch.len());
            self.progress.inc(count as u64);
        }
        Ok(())
    }

    pub(super) async fn register(&self, count: u64) -> anyhow::Result<Vec<JobNo>> {
        let now = self.store.now().await?;
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < count {
            let batch = (count - numbers.len() as u64).min(BATCH as u64);
            let jobs = (0..batch).map(|_| self.job(now)).collect::<anyhow::Result<Vec<_>>>()?;
            let registered = self.store.register(&self.scope, jobs, Now::At(now)).await?;
            numbers.extend(registered.iter().filter_map(|answer| match answer {
                Registered::Created { no, .. } => Some(*no),
                Registered::NameTaken(_) | Registered::Duplicate(_) => None,
            }));
            self.progress.inc(batch);
        }
        Ok(numbers)
    }

    fn job(&self, first: Timestamp) -> anyhow::Result<NewJob> {
        let interval = Interval::new(EVERY, None)?.with_tolerance(Some(CENTURY));
        let key = self.limits.then(|| format!("key {}", self.chance.bits() % KEYS));
        let once = Once { at: Some(first), tolerance: Some(CENTURY) };
        let schedule = match self.dedup {
            false => Schedule::Interval(interval),
            true => Schedule::Once(once),
        };
        let definition = Definition {
            priority: Priority::try_from((self.chance.bits() % 101) as u8)?,
            misfire_after: CENTURY,
            concurrency_key: key,
            concurrency_limit: self.limits.then_some(LIMIT),
            ..Definition::noop(schedule)
        };
        let id = JobId::new(first, self.chance.ten_bytes());
        let dedup = self.dedup.then(|| Dedup {
            key: format!("https://example.com/{id}"),
            by_target: false,
            scope: DedupScope::Pending,
        });
        let about = About { dedup, ..About::default() };
        Ok(NewJob { id, about, definition, next_at: Some(first) })
    }
}

/// Builds the command that fires the next run of a job into the queue.
fn queued(job: &DueJob, now: Timestamp) -> anyhow::Result<Fire> {
    let definition: Definition = serde_json::from_str(&job.definition)?;
    let due = job.next_at.context("a job has no next time")?;
    let next = definition.schedule.recurs().then(|| due.saturating_add(EVERY));
    let wait = QueueWait { since: due, priority: None, aging: &Aging::default() };
    let deadline = due.saturating_add(CENTURY);
    let entry = QueueEntry::new(&definition, deadline, Span::ZERO, now, wait);
    Ok(Fire {
        job: job.no,
        tenant: job.tenant,
        generation: job.generation,
        due,
        head: job.head,
        idle_only: false,
        skip: None,
        start: Some((due, Start::Queued(entry))),
        next_at: next,
    })
}
