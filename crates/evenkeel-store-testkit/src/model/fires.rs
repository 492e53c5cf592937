//! Store operations of the scheduler.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, NodeNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    DelayedAttempt, DueJob, Fire, FireDelayed, FireResult, Fired, JobState, LookAhead, Postpone,
    Results, Start,
};

use super::data::{Data, RunRow, Waiting};

impl Data {
    pub fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Vec<DueJob> {
        let first = (shard, Slot(i32::MIN), JobNo(i64::MIN));
        let last = (shard, until, JobNo(i64::MAX));
        let numbers = self.due.range(first..=last).map(|(_, _, no)| *no);
        let mut numbers: Vec<JobNo> = numbers.filter(|no| Some(*no) > after).collect();
        numbers.sort_unstable();
        numbers.truncate(limit as usize);
        self.load_jobs(&numbers)
    }

    pub fn load_jobs(&self, jobs: &[JobNo]) -> Vec<DueJob> {
        let found = jobs.iter().filter_map(|no| self.find(*no));
        found.filter(|job| !job.is_over()).map(|job| job.due_job()).collect()
    }

    pub fn look_ahead(
        &mut self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Timestamp,
    ) -> LookAhead {
        let limit = limit as usize;
        LookAhead {
            now,
            changed: self.take_changed(shards, limit),
            delayed: self.due_delayed(shards, until, limit),
        }
    }

    fn take_changed(&mut self, shards: &[Shard], limit: usize) -> Vec<DueJob> {
        let of_shard = |shard: &Shard| {
            let (first, last) = (JobNo(i64::MIN), JobNo(i64::MAX));
            self.changed.range((*shard, first)..=(*shard, last)).copied()
        };
        let told: Vec<_> = shards.iter().flat_map(of_shard).take(limit).collect();
        for changed in &told {
            self.changed.remove(changed);
        }
        let numbers: Vec<JobNo> = told.into_iter().map(|(_, no)| no).collect();
        self.load_jobs(&numbers)
    }

    fn due_delayed(&self, shards: &[Shard], until: Timestamp, limit: usize) -> Vec<DelayedAttempt> {
        let (earliest, latest) =
            (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        let of_shard = |shard: &Shard| {
            let first = (*shard, earliest, AttemptKey::regular(JobNo(i64::MIN), earliest));
            let last = (*shard, until, AttemptKey::regular(JobNo(i64::MAX), latest));
            self.delayed.range(first..=last).take(limit).map(|(_, due, key)| (*due, *key))
        };
        let mut delayed: Vec<_> = shards.iter().flat_map(of_shard).collect();
        delayed.sort_unstable();
        delayed.truncate(limit);
        delayed
            .into_iter()
            .filter_map(|(due, key)| {
                self.find(key.job_no).map(|job| DelayedAttempt {
                    due,
                    key,
                    has_checkpoint: self.checkpoint_of(key).is_some(),
                    priority: self.delayed_priority(key),
                    job: job.due_job(),
                })
            })
            .collect()
    }

    pub fn fire(&mut self, node: NodeNo, batch: Vec<Fire>, now: Timestamp) -> Fired {
        let live = self.is_live(node);
        let one = |fire| if live { self.fire_job(node, fire, now) } else { FireResult::Stale };
        Fired { now, results: batch.into_iter().map(one).collect() }
    }

    fn fire_job(&mut self, node: NodeNo, fire: Fire, now: Timestamp) -> FireResult {
        let Some(job) = self.find(fire.job) else { return FireResult::Stale };
        let as_decided = job.state == JobState::Active
            && job.generation == fire.generation
            && job.next_at == Some(fire.due)
            && job.head() == fire.head;
        if !as_decided {
            return FireResult::Stale;
        }
        if fire.due > now {
            return FireResult::Early;
        }
        if fire.idle_only && job.live > 0 {
            return FireResult::Busy { retry_pending: self.retry_pending(fire.job) };
        }
        let (tenant, executions) = (job.tenant, job.executions);
        if let Some(skip) = fire.skip {
            let key = AttemptKey::regular(fire.job, skip.from);
            self.link(key);
            let record = RunRow {
                priority: None,
                tenant,
                status: AttemptStatus::Skipped,
                fence: Fence::NONE,
                crashes: 0,
                node: None,
                number: Some(executions),
                started_at: None,
                finished_at: Some(now),
                results: Results::default(),
                skipped: Some(skip),
            };
            self.runs.insert(key, record);
        }
        let fired_at = fire.start.as_ref().map(|(time, _)| *time);
        let fence = match fire.start {
            Some((time, start)) => {
                let key = AttemptKey::regular(fire.job, time);
                self.link(key);
                self.job(fire.job).live += 1;
                self.begin(node, key, start, now)
            }
            None => Fence::NONE,
        };
        let job = self.job(fire.job);
        let skipped_to = fire.skip.map(|skip| skip.to);
        job.last_fired_at = job.last_fired_at.max(fired_at).max(skipped_to);
        job.next_at = fire.next_at;
        job.fired += u64::from(fired_at.is_some());
        self.place(fire.job);
        if fire.next_at.is_none() {
            self.recount(fire.job);
        }
        FireResult::Fired(fence)
    }

    fn retry_pending(&self, job: JobNo) -> bool {
        self.waiting_of(job).any(|(key, waiting)| {
            key.attempt > AttemptNo::FIRST && matches!(waiting, Waiting::Delayed { .. })
        })
    }

    pub fn fire_delayed(&mut self, node: NodeNo, batch: Vec<FireDelayed>, now: Timestamp) -> Fired {
        let live = self.is_live(node);
        let one = |delayed| {
            if live { self.fire_one_delayed(node, delayed, now) } else { FireResult::Stale }
        };
        Fired { now, results: batch.into_iter().map(one).collect() }
    }

    fn fire_one_delayed(
        &mut self,
        node: NodeNo,
        delayed: FireDelayed,
        now: Timestamp,
    ) -> FireResult {
        let key = delayed.key;
        match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Delayed { due, .. }) if *due == delayed.due => {}
            Some(Waiting::Delayed { .. } | Waiting::Ready(_)) | None => return FireResult::Stale,
        }
        if delayed.due > now {
            return FireResult::Early;
        }
        let priority = self.delayed_priority(key);
        self.stop_waiting(key);
        if key.attempt == AttemptNo::FIRST {
            self.link(key);
        }
        let fence = self.begin(node, key, delayed.start, now);
        if let Some(run) = self.runs.get_mut(&key) {
            run.priority = priority;
        }
        FireResult::Fired(fence)
    }

    pub fn postpone(&mut self, batch: &[Postpone]) {
        for Postpone { due, key, until } in batch {
            match self.waiting.get(&(key.job_no, *key)) {
                Some(Waiting::Delayed { due: known, .. }) if known == due => {}
                Some(Waiting::Delayed { .. } | Waiting::Ready(_)) | None => continue,
            }
            let priority = self.delayed_priority(*key);
            self.stop_waiting(*key);
            self.add_delayed(*key, *until, priority);
        }
    }

    fn begin(&mut self, node: NodeNo, key: AttemptKey, start: Start, now: Timestamp) -> Fence {
        match start {
            Start::Claimed => self.start(node, key, Fence::NONE.next(), 0, now),
            Start::Queued(entry) => {
                self.enqueue(key, entry, Fence::NONE, 0);
                Fence::NONE
            }
        }
    }
}
