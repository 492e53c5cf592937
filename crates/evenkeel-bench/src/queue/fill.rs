//! A queue of any depth.

use anyhow::{Context, ensure};
use evenkeel_core::aging::Aging;
use evenkeel_core::chance::Chance;
use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, NodeNo, Span, Timestamp};
use evenkeel_store::{
    DueJob, Fire, FireResult, NewJob, Now, QueueEntry, Registered, Scope, Start, Store, Waited,
};
use indicatif::ProgressBar;

/// Jobs registered in one request.
const BATCH: u64 = 5000;
const EVERY: Span = Span::from_secs(365 * 86_400);
/// With limits, so many keys,
const KEYS: u64 = 1_000;
/// and of each so many at once.
const LIMIT: u32 = 10;
/// Longer than any measurement.
const CENTURY: Span = Span::from_secs(100 * 365 * 86_400);

/// Fills a queue.
pub(super) struct Filling<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) scope: Scope,
    pub(super) chance: &'a dyn Chance,
    pub(super) node: NodeNo,
    pub(super) progress: &'a ProgressBar,
    /// Are they under limits?
    pub(super) limits: bool,
    /// Jobs run once and have keys.
    pub(super) dedup: bool,
}

impl Filling<'_> {
    /// Puts an attempt of each of these jobs into the queue.
    pub(super) async fn queue(&self, jobs: Vec<JobNo>) -> anyhow::Result<()> {
        let now = self.store.now().await?;
        for batch in jobs.chunks(self.store.appetite().batch) {
            let due = self.store.load_jobs(batch).await?;
            let fires = due.iter().map(|job| queued(job, now)).collect::<anyhow::Result<_>>()?;
            let fired = self.store.fire(self.node, fires, Now::At(now)).await?;
            let is_queued = |result: &&FireResult| matches!(result, FireResult::Fired(_));
            let count = fired.results.iter().filter(is_queued).count();
            ensure!(count == batch.len(), "only {count} of {} were queued", batch.len());
            self.progress.inc(count as u64);
        }
        Ok(())
    }

    /// Registers so many jobs.
    pub(super) async fn register(&self, count: u64) -> anyhow::Result<Vec<JobNo>> {
        let now = self.store.now().await?;
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < count {
            let batch = (count - numbers.len() as u64).min(BATCH);
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

/// The next time of a job goes into the queue.
fn queued(job: &DueJob, now: Timestamp) -> anyhow::Result<Fire> {
    let definition: Definition = serde_json::from_str(&job.definition)?;
    let due = job.next_at.context("a job has no next time")?;
    let next = definition.schedule.recurs().then(|| due.saturating_add(EVERY));
    let waited = Waited { since: due, priority: None, aging: &Aging::default() };
    let deadline = due.saturating_add(CENTURY);
    let ticket = QueueEntry::new(&definition, deadline, Span::ZERO, now, waited);
    Ok(Fire {
        job: job.no,
        tenant: job.tenant,
        generation: job.generation,
        due,
        head: job.head,
        idle_only: false,
        skip: None,
        start: Some((due, Start::Queued(ticket))),
        next_at: next,
    })
}
