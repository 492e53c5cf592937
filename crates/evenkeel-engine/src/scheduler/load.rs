//! Loads jobs that are due soon, and changes of jobs, from the store.

use evenkeel_core::{Shard, Slot, Span};
use evenkeel_store::{DueJob, StoreError};
use tracing::error;

use super::Scheduler;
use crate::cluster::node_context::NodeContext;
use crate::scheduler::job_entry::JobEntry;

/// Jobs are loaded into memory this long before their scheduled time.
const LOAD_AHEAD: Span = Span::from_secs(60);
/// Jobs per query.
const PAGE: u32 = 5000;
/// Maximum number of job shards that one pass of a scheduler loads. Due jobs fire between these
/// passes, so they do not wait until all shards are loaded.
const SHARDS_PER_PASS: usize = 4;

impl Scheduler {
    /// Loads the upcoming jobs of up to four shards whose upcoming jobs are not all in memory yet.
    /// Returns whether the upcoming jobs of all shards are loaded now.
    pub(super) async fn load_shards(&mut self) -> Result<bool, StoreError> {
        let until = Slot::of(self.ctx.db_now().saturating_add(LOAD_AHEAD));
        let behind: Vec<Shard> = {
            let due_jobs = self.ctx.due.lock();
            let loaded = |shard: &Shard| due_jobs.loaded.get(shard).copied().flatten();
            let is_behind = |shard: &Shard| loaded(shard).is_none_or(|loaded| loaded < until);
            self.shards.iter().copied().filter(is_behind).collect()
        };
        for shard in behind.iter().copied().take(SHARDS_PER_PASS) {
            let mut after = None;
            loop {
                let jobs = self.ctx.store.load_due(shard, until, after, PAGE).await?;
                after = jobs.last().map(|job| job.no);
                let is_last = jobs.len() < PAGE as usize;
                for job in jobs {
                    self.learn(job, until);
                }
                if is_last {
                    break;
                }
            }
            self.ctx.due.lock().loaded.insert(shard, Some(until));
        }
        Ok(behind.len() <= SHARDS_PER_PASS)
    }

    pub(super) async fn reload_stale(&mut self) -> Result<(), StoreError> {
        let stale = std::mem::take(&mut self.ctx.due.lock().reload);
        if stale.is_empty() {
            return Ok(());
        }
        let jobs = self.ctx.store.load_jobs(&stale).await;
        let jobs = jobs.inspect_err(|_| self.ctx.due.lock().reload.extend(&stale))?;
        {
            let due_jobs = &mut *self.ctx.due.lock();
            stale.into_iter().for_each(|job| due_jobs.upcoming.remove(job));
        }
        for job in jobs {
            self.learn_changed(job);
        }
        Ok(())
    }

    /// Reads changed jobs and delayed attempts from the store, after a signal or after the poll
    /// interval.
    pub(super) async fn look_ahead_if_needed(&mut self) -> Result<(), StoreError> {
        let own_now = self.ctx.clock.monotonic();
        let polled =
            self.looked_ahead_at.is_none_or(|then| own_now - then >= self.ctx.settings.poll);
        if !self.look_ahead_now && !polled {
            return Ok(());
        }
        let until = self.ctx.db_now().saturating_add(self.ctx.settings.look_ahead);
        let shards: Vec<Shard> = self.shards.iter().copied().collect();
        let found = self.ctx.store.look_ahead(&shards, until, PAGE, NodeContext::NOW).await;
        let found = found.inspect_err(|error| {
            // The store reports each change of a job only once, and the lost answer may have
            // contained a change, so all shards are loaded again.
            if error.unwritable().is_none() {
                self.unload_shards();
            }
        })?;
        self.ctx.db_clock.observe(found.now);
        metrics::gauge!("evenkeel_near_future_jobs")
            .set(self.ctx.due.lock().upcoming.count() as f64);
        self.look_ahead_now = found.changed.len() == PAGE as usize;
        self.looked_ahead_at = Some(own_now);
        for job in found.changed {
            self.learn_changed(job);
        }
        let are_all = found.delayed.len() < PAGE as usize;
        self.delayed.learn(found.delayed, are_all, found.now);
        Ok(())
    }

    /// Updates the copy of a changed job in memory, or removes it if its shard is not loaded.
    fn learn_changed(&self, job: DueJob) {
        let loaded = self.ctx.due.lock().loaded_until(job.no);
        match loaded {
            Some(loaded) => self.learn(job, loaded),
            None => self.ctx.due.lock().upcoming.remove(job.no),
        }
    }

    fn learn(&self, job: DueJob, loaded: Slot) {
        let upcoming = &mut self.ctx.due.lock().upcoming;
        let Some(next_at) = job.next_at.filter(|next| Slot::of(*next) <= loaded) else {
            return upcoming.remove(job.no);
        };
        let known = upcoming.get(job.no);
        if known.is_some_and(|known| {
            (known.generation, known.next_at, known.head) == (job.generation, next_at, job.head)
        }) {
            // The next scheduled time of the job is unchanged, but its run history may have
            // changed.
            return upcoming.refresh(&job);
        }
        match self.ctx.definitions.read(job.no, &job.definition) {
            Ok(definition) => {
                let is_direct = self.is_direct(&definition, job.tenant);
                let mut entry = JobEntry::new(&job, next_at, definition, self.ctx.db_now());
                entry.is_direct = is_direct;
                upcoming.insert(job.no, entry);
            }
            Err(fault) => {
                metrics::counter!("evenkeel_unreadable_jobs_total").increment(1);
                error!(
                    job.no = job.no.0,
                    error = &fault as &dyn std::error::Error,
                    "stored definition of a job cannot be read; the job does not run"
                );
                upcoming.remove(job.no);
            }
        }
    }
}
