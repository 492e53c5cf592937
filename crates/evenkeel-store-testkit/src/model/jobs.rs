//! Store operations on jobs for API users.

use std::collections::BTreeSet;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::status::Command;
use evenkeel_core::{
    AttemptKey, AttemptNo, History, JobId, JobNo, Origin, Sequence, Shard, Slot, Span, TenantNo,
    Timestamp,
};
use evenkeel_store::{
    Cause, DedupClaim, Job, JobState, LAST_ERROR_MAX, NamedJob, NewJob, Registered, Results, Scope,
    StoreError, Trigger, Triggered,
};

use super::data::{Data, JobRow, RunRow, Waiting, attempts_of, count};

impl Data {
    pub fn register(
        &mut self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError> {
        let texts: Result<Vec<String>, _> =
            jobs.iter().map(|job| stored(&job.definition)).collect();
        let jobs = jobs.into_iter().zip(texts?);
        Ok(jobs.map(|(job, text)| self.register_one(scope.tenant, job, text, now)).collect())
    }

    fn register_one(
        &mut self,
        tenant: TenantNo,
        new: NewJob,
        text: String,
        now: Timestamp,
    ) -> Registered {
        let no = JobNo(count(self.jobs.len()) as i64 + 1);
        let wanted = DedupClaim::by_new(&new, now);
        if let Some(other) = self.kept_out_by(tenant, wanted.as_ref(), now) {
            return Registered::Duplicate(other);
        }
        if let Some(name) = name_key(tenant, &new.about) {
            if let Some(taken) = self.names.get(&name).copied() {
                return Registered::NameTaken(self.job(taken).id);
            }
            self.names.insert(name, no);
        }
        self.take_key(tenant, wanted.as_ref(), no, now);
        self.ids.insert(new.id, no);
        let of_tenant = (tenant, 0)..=(tenant, i64::MAX);
        let number = self.numbers.range(of_tenant).next_back().map_or(1, |((_, last), _)| last + 1);
        self.numbers.insert((tenant, number), no);
        self.jobs.push(JobRow {
            no,
            id: new.id,
            number,
            tenant,
            about: new.about,
            definition: new.definition,
            text,
            state: JobState::Active,
            stopped_at: None,
            note: None,
            generation: 1,
            created_at: now,
            updated_at: now,
            since: now,
            next_at: new.next_at,
            slot: None,
            last_fired_at: None,
            live: 0,
            executions: 0,
            fired: 0,
            last_outcome: None,
            succeeded_runs: 0,
            failed_runs: 0,
            history: History::default(),
            run_links: Vec::new(),
            newest_good: None,
            newest_failed: None,
            counted: None,
            target_since: None,
        });
        self.place(no);
        self.recount(no);
        self.tell_if_soon(no, now);
        Registered::Created { no, number }
    }

    /// Notifies the scheduler of a job that is due so soon that the scheduler may have loaded its
    /// time slot already.
    pub fn tell_if_soon(&mut self, no: JobNo, now: Timestamp) {
        if self.job(no).slot.is_some_and(|slot| slot <= Slot::of(now).next()) {
            self.notify_scheduler(no);
        }
    }

    /// Notifies the scheduler that it must load a job again.
    pub fn notify_scheduler(&mut self, no: JobNo) {
        self.changed.insert((Shard::of(no), no));
    }

    /// Returns the internal number of a job of the tenant.
    pub fn seen(&self, scope: &Scope, id: JobId) -> Option<JobNo> {
        let job = self.find(*self.ids.get(&id)?)?;
        (job.tenant == scope.tenant && !job.is_deleted()).then_some(job.no)
    }

    pub fn view(&self, job: &JobRow) -> Job {
        let running = self.newest_running(job);
        let keys = self.waiting_of(job.no).map(|(key, _)| key);
        let newest = keys.chain(running.map(|(key, _)| key)).max();
        Job {
            no: job.no,
            id: job.id,
            number: job.number,
            tenant: job.tenant,
            about: job.about.clone(),
            definition: job.definition.clone(),
            state: job.state,
            generation: job.generation,
            created_at: job.created_at,
            updated_at: job.updated_at,
            next_at: job.next_at,
            last_fired_at: job.last_fired_at,
            live: job.live,
            waiting: self.waiting_of(job.no).count() as u32,
            executions: job.executions,
            last_outcome: job.last_outcome,
            history: job.history,
            since: job.since,
            fired: job.fired,
            running_since: running.map(|(_, since)| since),
            running: running.map(|(key, _)| key),
            retry_count: newest.map_or(0, |key| key.attempt.0),
            stopped_at: job.stopped_at,
            note: job.note.clone(),
            succeeded_runs: job.succeeded_runs,
            failed_runs: job.failed_runs,
            last_error: self.last_error(job),
        }
    }

    fn last_error(&self, job: &JobRow) -> Option<String> {
        let key =
            job.newest_failed.filter(|_| job.last_outcome.is_some_and(Outcome::is_failure))?;
        let error = self.runs.get(&key)?.results.error.as_ref()?;
        Some(error.chars().take(LAST_ERROR_MAX).collect())
    }

    pub fn get(&self, scope: &Scope, id: JobId) -> Option<Job> {
        self.seen(scope, id).and_then(|no| self.find(no)).map(|job| self.view(job))
    }

    pub fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Vec<Job> {
        let ids: BTreeSet<&JobId> = ids.iter().collect();
        ids.into_iter().filter_map(|id| self.get(scope, *id)).collect()
    }

    pub fn ids_of_numbers(&self, scope: &Scope, numbers: &[i64]) -> Vec<Option<JobId>> {
        let find = |number: &i64| self.find(*self.numbers.get(&(scope.tenant, *number))?);
        let seen = |job: &JobRow| (!job.is_deleted()).then_some(job.id);
        numbers.iter().map(|number| find(number).and_then(seen)).collect()
    }

    pub fn jobs_named(&self, scope: &Scope, name: &str, limit: u32) -> Vec<NamedJob> {
        let has_name = |job: &&JobRow| {
            job.tenant == scope.tenant
                && !job.is_deleted()
                && job.about.name.as_deref() == Some(name)
        };
        let mut named: Vec<NamedJob> = self
            .jobs
            .iter()
            .filter(has_name)
            .map(|job| NamedJob { id: job.id, configuration: job.about.configuration.clone() })
            .collect();
        named.sort_by(|one, other| one.configuration.cmp(&other.configuration));
        named.truncate(limit as usize);
        named
    }

    /// Finishes a waiting attempt and its run.
    pub fn withdraw(&mut self, key: AttemptKey, outcome: Outcome, now: Timestamp) {
        let Some(waiting) = self.stop_waiting(key) else { return };
        let is_wake = matches!(waiting, Waiting::Delayed { .. });
        if is_wake && key.attempt == AttemptNo::FIRST {
            self.link(key);
        }
        let tenant = self.job(key.job_no).tenant;
        let run = self.runs.entry(key).or_insert_with(|| RunRow {
            priority: None,
            tenant,
            status: outcome.into(),
            fence: Fence::NONE,
            crashes: 0,
            node: None,
            number: None,
            started_at: None,
            finished_at: None,
            results: Results::default(),
            skipped: None,
        });
        run.status = outcome.into();
        run.finished_at = Some(now);
        self.job(key.job_no).last_outcome = Some(outcome);
        self.end_chain(key.job_no);
    }

    pub fn trigger(&mut self, scope: &Scope, id: JobId, ask: Trigger, now: Timestamp) -> Triggered {
        let Some(no) = self.seen(scope, id) else { return Triggered::NotFound };
        let job = &self.jobs[(no.0 - 1) as usize];
        let view = self.view(job);
        if let Err(refusal) = view.facts().apply(Command::Trigger) {
            return Triggered::NotAllowed(refusal);
        }
        if ask.idle_only && job.live > 0 {
            return Triggered::Busy;
        }
        let wanted = DedupClaim::by_run(&view, DedupPurpose::Run, now);
        if let Some(holder) = self.kept_out_by(scope.tenant, wanted.as_ref(), now) {
            let run = self.ids.get(&holder).and_then(|no| self.run_instead(*no));
            return Triggered::Duplicate { job: holder, run };
        }
        if !job.definition.overlap.may_start(job.live) {
            return Triggered::Busy;
        }
        self.take_key(scope.tenant, wanted.as_ref(), no, now);
        let key = self.begin_run(no, Origin::Trigger, ask, now);
        self.touch(no);
        Triggered::Accepted(key)
    }

    /// Adds a waiting run that is not part of the schedule, such as a triggered run.
    pub fn begin_run(
        &mut self,
        no: JobNo,
        origin: Origin,
        ask: Trigger,
        now: Timestamp,
    ) -> AttemptKey {
        let Trigger { n, priority, .. } = ask;
        let job = self.job(no);
        job.live += 1;
        let tick = Span::from_micros(1);
        let at = job.stopped_at.map_or(now, |stopped_at| now.max(stopped_at.saturating_add(tick)));
        let key_of =
            |n| AttemptKey { sequence: Sequence::new(origin, n), ..AttemptKey::regular(no, at) };
        let free = (0..Sequence::NUMBERS).map(|more| key_of(n.wrapping_add(more)));
        let key = free.into_iter().find(|key| !self.has_chain(*key)).unwrap_or(key_of(n));
        self.add_delayed(key, at, priority);
        key
    }

    fn has_chain(&self, key: AttemptKey) -> bool {
        let (first, last) = attempts_of(key).into_inner();
        let waits = self.waiting.range((key.job_no, first)..=(key.job_no, last)).next().is_some();
        waits || self.runs.range(first..=last).next().is_some()
    }
}

pub(super) fn name_key(
    tenant: TenantNo,
    about: &evenkeel_core::About,
) -> Option<(TenantNo, String, String)> {
    let name = about.name.clone()?;
    Some((tenant, name, about.configuration.clone().unwrap_or_default()))
}

pub(super) fn stored(definition: &evenkeel_core::Definition) -> Result<String, StoreError> {
    serde_json::to_string(definition).map_err(|error| StoreError::Refused(Cause::from(error)))
}
