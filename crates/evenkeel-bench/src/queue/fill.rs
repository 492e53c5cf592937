//! Fills a queue to a given depth.

use anyhow::{Context, ensure};
use evenkeel_core::aging::Aging;
use evenkeel_core::dedup::{Dedup, DedupScope};
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, NodeNo, Span, Timestamp};
use evenkeel_store::{DueJob, Fire, FireResult, NewJob, Now, QueueEntry, QueueWait, Start};

use crate::workload::{CENTURY, Registrar, YEAR};

/// Number of concurrency keys that `--limits` uses.
const KEYS: u64 = 1_000;
/// Limit of each concurrency key.
const LIMIT: u32 = 10;

pub(super) struct QueueFiller<'a> {
    pub(super) registrar: Registrar<'a>,
    pub(super) node: NodeNo,
    /// Give each job a concurrency key with a limit.
    pub(super) limits: bool,
    /// True if the queued runs belong to one-time jobs with deduplication keys.
    pub(super) dedup: bool,
}

impl QueueFiller<'_> {
    /// Puts one attempt of each job in `jobs` into the queue.
    pub(super) async fn queue(&self, jobs: Vec<JobNo>) -> anyhow::Result<()> {
        let Registrar { store, progress, .. } = self.registrar;
        let now = store.now().await?;
        for batch in jobs.chunks(store.batch_sizing().batch) {
            let due = store.load_jobs(batch).await?;
            let fires = due.iter().map(|job| queued(job, now)).collect::<anyhow::Result<_>>()?;
            let fired = store.fire(self.node, fires, Now::At(now)).await?;
            let is_queued = |result: &&FireResult| matches!(result, FireResult::Fired(_));
            let count = fired.results.iter().filter(is_queued).count();
            ensure!(count == batch.len(), "only {count} of {} attempts were queued", batch.len());
            progress.inc(count as u64);
        }
        Ok(())
    }

    pub(super) async fn register(&self, count: u64) -> anyhow::Result<Vec<JobNo>> {
        let now = self.registrar.store.now().await?;
        self.registrar.register(count, |_| self.job(now)).await
    }

    fn job(&self, first: Timestamp) -> anyhow::Result<NewJob> {
        let chance = self.registrar.chance;
        let key = self.limits.then(|| format!("key {}", chance.bits() % KEYS));
        let schedule = if self.dedup {
            Schedule::Once(Once { at: Some(first), tolerance: Some(CENTURY) })
        } else {
            Schedule::Interval(Interval::new(YEAR, None)?.with_tolerance(Some(CENTURY)))
        };
        let definition = Definition {
            priority: Priority::try_from((chance.bits() % 101) as u8)?,
            misfire_after: CENTURY,
            concurrency_key: key,
            concurrency_limit: self.limits.then_some(LIMIT),
            ..Definition::noop(schedule)
        };
        let id = JobId::new(first, chance.ten_bytes());
        let dedup = self.dedup.then(|| Dedup {
            key: format!("https://example.com/{id}"),
            by_target: false,
            scope: DedupScope::Pending,
        });
        let about = About { dedup, ..About::default() };
        Ok(NewJob { id, about, definition, next_at: Some(first) })
    }
}

/// Builds the store command that fires the next run of a job, which puts the run into the queue.
fn queued(job: &DueJob, now: Timestamp) -> anyhow::Result<Fire> {
    let definition: Definition = serde_json::from_str(&job.definition)?;
    let due = job.next_at.context("a job has no next time")?;
    let next = definition.schedule.recurs().then(|| due.saturating_add(YEAR));
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
