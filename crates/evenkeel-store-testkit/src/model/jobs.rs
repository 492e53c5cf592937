//! What users do with jobs.

use evenkeel_core::lease::Fence;
use evenkeel_core::run::Outcome;
use evenkeel_core::{
    Attempt, History, JobId, JobNo, Origin, RunKey, Sequence, Shard, Slot, TenantNo, Timestamp,
};
use evenkeel_store::{
    Cause, Changed, Deleted, Job, JobChange, NewJob, Registered, Results, Scope, Standing,
    StoreError, Triggered,
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
        if let Some(name) = name_key(tenant, &new.about) {
            if let Some(taken) = self.names.get(&name).copied() {
                return Registered::NameTaken(self.job(taken).id);
            }
            self.names.insert(name, no);
        }
        self.ids.insert(new.id, no);
        self.jobs.push(JobRow {
            no,
            id: new.id,
            tenant,
            about: new.about,
            definition: new.definition,
            text,
            standing: Standing::Active,
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
            history: History::default(),
            chains: Vec::new(),
            newest_good: None,
            newest_failed: None,
        });
        self.place(no);
        self.tell_if_soon(no, now);
        Registered::Created(no)
    }

    /// Tells the scheduler about a job that it may not have loaded with its slot.
    fn tell_if_soon(&mut self, no: JobNo, now: Timestamp) {
        if self.job(no).slot.is_some_and(|slot| slot <= Slot::of(now).next()) {
            self.tell(no);
        }
    }

    /// Tells the scheduler to load a job anew.
    pub fn tell(&mut self, no: JobNo) {
        self.changed.insert((Shard::of(no), no));
    }

    /// The number of a job that the scope can see.
    pub fn seen(&self, scope: &Scope, id: JobId) -> Option<JobNo> {
        let job = self.find(*self.ids.get(&id)?)?;
        (job.tenant == scope.tenant && !job.is_deleted()).then_some(job.no)
    }

    pub fn view(&self, job: &JobRow) -> Job {
        Job {
            no: job.no,
            id: job.id,
            tenant: job.tenant,
            about: job.about.clone(),
            definition: job.definition.clone(),
            standing: job.standing,
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
            running_since: self.running_since(job),
            running: None,
            retry_count: 0,
            stopped_at: None,
            good_runs: 0,
            bad_runs: 0,
            last_error: None,
        }
    }

    pub fn get(&self, scope: &Scope, id: JobId) -> Option<Job> {
        self.seen(scope, id).and_then(|no| self.find(no)).map(|job| self.view(job))
    }

    pub fn update(
        &mut self,
        scope: &Scope,
        id: JobId,
        change: JobChange,
        now: Timestamp,
    ) -> Result<Changed, StoreError> {
        let text = change.definition.as_ref().map(stored).transpose()?;
        let Some(no) = self.seen(scope, id) else { return Ok(Changed::NotFound) };
        let job = &self.jobs[(no.0 - 1) as usize];
        let other_generation = change.expect_generation.is_some_and(|one| one != job.generation);
        let too_early =
            change.next_at.flatten().is_some_and(|next| Some(next) <= job.last_fired_at);
        if other_generation || too_early {
            return Ok(Changed::Conflict(Box::new(self.view(job))));
        }
        if let Some(about) = change.about {
            let (old, new) = (name_key(scope.tenant, &job.about), name_key(scope.tenant, &about));
            let taken = new.as_ref().and_then(|name| self.names.get(name)).copied();
            if let Some(other) = taken.filter(|other| *other != no) {
                return Ok(Changed::NameTaken(self.job(other).id));
            }
            old.map(|name| self.names.remove(&name));
            new.map(|name| self.names.insert(name, no));
            self.job(no).about = about;
        }
        let job = self.job(no);
        let is_redefined = change.definition.is_some();
        if let (Some(definition), Some(text)) = (change.definition, text) {
            job.definition = definition;
            job.text = text;
        }
        if let Some(next_at) = change.next_at {
            job.next_at = next_at;
            job.since = now;
        }
        job.generation += 1;
        job.updated_at = now;
        self.place(no);
        self.tell_if_soon(no, now);
        self.touch(no);
        if is_redefined {
            self.open_anew(no, now);
        }
        Ok(Changed::Done(Box::new(self.view(&self.jobs[(no.0 - 1) as usize]))))
    }

    pub fn delete(&mut self, scope: &Scope, id: JobId, now: Timestamp) -> Deleted {
        let Some(no) = self.seen(scope, id) else { return Deleted::NotFound };
        let job = self.job(no);
        job.standing = Standing::Deleted;
        job.generation += 1;
        job.updated_at = now;
        if let Some(name) = name_key(scope.tenant, &job.about) {
            self.names.remove(&name);
        }
        self.place(no);
        self.changed.remove(&(Shard::of(no), no));
        let waiting: Vec<RunKey> = self.waiting_of(no).map(|(key, _)| key).collect();
        for key in waiting {
            self.withdraw(key, Outcome::Cancelled, now);
        }
        let of_job = |(_, key): &&(_, RunKey)| key.job_no == no;
        let asked: Vec<_> = self.running.iter().filter(of_job).copied().collect();
        for running in &asked {
            self.cancellations.entry(*running).or_insert(false);
        }
        self.watch.forget(no);
        Deleted::Done(asked.into_iter().map(|(_, key)| key).collect())
    }

    /// Ends an attempt that waits, and with it its chain.
    pub fn withdraw(&mut self, key: RunKey, outcome: Outcome, now: Timestamp) {
        let Some(waiting) = self.stop_waiting(key) else { return };
        let is_wake = matches!(waiting, Waiting::Wake { .. });
        if is_wake && key.attempt == Attempt::FIRST {
            self.link(key);
        }
        let tenant = self.job(key.job_no).tenant;
        let run = self.runs.entry(key).or_insert_with(|| RunRow {
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
        self.end_chain(key.job_no);
    }

    pub fn trigger(&mut self, scope: &Scope, id: JobId, n: u32, now: Timestamp) -> Triggered {
        let Some(no) = self.seen(scope, id) else { return Triggered::NotFound };
        let job = self.job(no);
        if job.standing == Standing::Cancelled {
            return Triggered::Cancelled;
        }
        if !job.definition.overlap.may_start(job.live) {
            return Triggered::Busy;
        }
        job.live += 1;
        let key_of =
            |n| RunKey { sequence: Sequence::new(Origin::Trigger, n), ..RunKey::regular(no, now) };
        let free = (0..Sequence::NUMBERS).map(|more| key_of(n.wrapping_add(more)));
        let key = free.into_iter().find(|key| !self.has_chain(*key)).unwrap_or(key_of(n));
        self.add_wake(key, now);
        self.touch(no);
        Triggered::Accepted(key)
    }

    fn has_chain(&self, key: RunKey) -> bool {
        let (first, last) = attempts_of(key).into_inner();
        let waits = self.waiting.range((key.job_no, first)..=(key.job_no, last)).next().is_some();
        waits || self.runs.range(first..=last).next().is_some()
    }
}

fn name_key(tenant: TenantNo, about: &evenkeel_core::About) -> Option<(TenantNo, String, String)> {
    let name = about.name.clone()?;
    Some((tenant, name, about.configuration.clone().unwrap_or_default()))
}

fn stored(definition: &evenkeel_core::Definition) -> Result<String, StoreError> {
    serde_json::to_string(definition).map_err(|error| StoreError::Refused(Cause::from(error)))
}
