//! Stores dead letters, and the consecutive failures of jobs.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Origin, TenantNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, DEAD_LETTER_ERROR_MAX, DeadCursor, DeadFilter, DeadLetter, DeadStore, DedupClaim,
    FailingJob, Finish, Now, Page, PageRequest, Redriven, Scope, StoreError, Trigger,
};

use super::ModelStore;
use super::data::{Data, count};
use super::lists::{cut, with_items};

/// Dead letters by the first attempt of their run.
pub(super) type Letters = BTreeMap<AttemptKey, LetterRow>;

pub(super) struct LetterRow {
    tenant: TenantNo,
    attempt: AttemptNo,
    died_at: Timestamp,
    reason: DeathReason,
    outcome: Outcome,
    error: Option<String>,
    redriven: Option<(Timestamp, AttemptKey)>,
}

/// Number of consecutive failures of a job, and its number of successes at the last failure.
#[derive(Copy, Clone, Default)]
pub(super) struct Failing {
    runs: u32,
    succeeded_runs: u64,
    is_due: bool,
}

impl Data {
    /// Applies the failure hook of a stored result: adds a dead letter, or counts a failure.
    pub fn obey_hook(&mut self, finish: &Finish) {
        let key = finish.key.with_attempt(AttemptNo::FIRST);
        match finish.hook {
            Hook::None => {}
            Hook::CountFailure { pause_after } => {
                let job = self.job(key.job_no);
                if job.is_over() {
                    return;
                }
                let succeeded_runs = job.succeeded_runs;
                let failing = self.failing.entry(key.job_no).or_default();
                if failing.succeeded_runs != succeeded_runs {
                    failing.runs = 0;
                }
                failing.runs += 1;
                failing.succeeded_runs = succeeded_runs;
                failing.is_due = failing.runs >= u32::from(pause_after);
            }
            Hook::DeadLetter(reason) => {
                let error = finish.results.error.as_ref();
                let error = error.map(|error| error.chars().take(DEAD_LETTER_ERROR_MAX).collect());
                let message = LetterRow {
                    tenant: finish.tenant,
                    attempt: finish.key.attempt,
                    died_at: finish.finished_at,
                    reason,
                    outcome: finish.outcome,
                    error,
                    redriven: None,
                };
                self.letters_of_dead.entry(key).or_insert(message);
            }
        }
    }

    /// Deletes up to `limit` dead letters of a purged job.
    pub fn purge_dead(&mut self, job: JobNo, limit: u32) -> u64 {
        let of_job = self.letters_of_dead.keys().filter(|key| key.job_no == job);
        let gone: Vec<AttemptKey> = of_job.take(limit as usize).copied().collect();
        gone.iter().for_each(|key| drop(self.letters_of_dead.remove(key)));
        count(gone.len())
    }

    fn message(&self, scope: &Scope, run: AttemptKey) -> Option<DeadLetter> {
        let run = run.with_attempt(AttemptNo::FIRST);
        let row = self.letters_of_dead.get(&run).filter(|row| row.tenant == scope.tenant)?;
        let job = self.find(run.job_no)?;
        Some(DeadLetter {
            key: run.with_attempt(row.attempt),
            job: job.id,
            job_name: job.about.name.clone(),
            died_at: row.died_at,
            reason: row.reason,
            outcome: row.outcome,
            error: row.error.clone(),
            redriven: row.redriven,
        })
    }

    fn list_dead(
        &self,
        scope: &Scope,
        filter: DeadFilter,
        page: PageRequest<DeadCursor>,
    ) -> Page<DeadLetter, DeadCursor> {
        let messages = self.letters_of_dead.keys().filter_map(|key| self.message(scope, *key));
        let passes = |message: &DeadLetter| {
            filter.job.is_none_or(|job| job == message.job)
                && filter.redriven.is_none_or(|redriven| redriven == message.redriven.is_some())
        };
        let mut places: Vec<DeadCursor> =
            messages.filter(passes).map(|message| message.cursor()).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        let page = cut(places, page, |one, other| one < other);
        let mut page = with_items(page, |place| self.message(scope, place.key));
        page.total_is_estimate = page.total > u64::from(COUNTED_MAX);
        page.total = page.total.min(u64::from(COUNTED_MAX));
        page
    }

    fn redrive(&mut self, scope: &Scope, run: AttemptKey, now: Timestamp) -> Redriven {
        let Some(message) = self.message(scope, run) else { return Redriven::NotFound };
        if let Some((_, before)) = message.redriven {
            return Redriven::AlreadyRedriven(before);
        }
        let no = run.job_no;
        let Some(job) = self.find(no).filter(|job| !job.is_deleted()) else {
            return Redriven::JobGone;
        };
        let view = self.view(job);
        if let Err(refusal) = view.facts().apply(Command::Trigger) {
            return Redriven::NotAllowed(refusal);
        }
        let wanted = DedupClaim::by_run(&view, DedupPurpose::RunAgain, now);
        if let Some(holder) = self.kept_out_by(scope.tenant, wanted.as_ref(), now) {
            return Redriven::Duplicate(holder);
        }
        if !job.definition.overlap.may_start(job.live) {
            return Redriven::Busy;
        }
        self.take_key(scope.tenant, wanted.as_ref(), no, now);
        let key = self.begin_run(
            no,
            Origin::Redrive,
            Trigger { n: 0, priority: None, idle_only: false },
            now,
        );
        self.touch(no);
        let message = self.letters_of_dead.get_mut(&run.with_attempt(AttemptNo::FIRST));
        if let Some(message) = message {
            message.redriven = Some((now, key));
        }
        Redriven::Accepted(key)
    }

    fn prune_dead(&mut self, before: Timestamp, keep: u32, limit: u32) -> u64 {
        let mut places: Vec<(DeadCursor, TenantNo)> = self
            .letters_of_dead
            .iter()
            .map(|(key, row)| (DeadCursor { died_at: row.died_at, key: *key }, row.tenant))
            .collect();
        places.sort_unstable();
        let old = places.iter().filter(|(place, _)| place.died_at < before);
        let mut gone: Vec<AttemptKey> =
            old.map(|(place, _)| place.key).take(limit as usize).collect();
        let tenants: BTreeSet<TenantNo> = places.iter().map(|(_, tenant)| *tenant).collect();
        let mut beyond = Vec::new();
        for tenant in tenants {
            let of_tenant = places.iter().rev().filter(|(_, of)| *of == tenant);
            let left = of_tenant.map(|(place, _)| place.key).filter(|key| !gone.contains(key));
            beyond.extend(left.skip(keep as usize));
        }
        beyond.truncate(limit as usize);
        gone.append(&mut beyond);
        gone.iter().for_each(|key| drop(self.letters_of_dead.remove(key)));
        count(gone.len())
    }

    fn list_failing(&self, limit: u32) -> Vec<FailingJob> {
        let due = self.failing.iter().filter(|(_, failing)| failing.is_due);
        let jobs = due.filter_map(|(no, failing)| {
            let job = self.find(*no).filter(|job| job.succeeded_runs == failing.succeeded_runs)?;
            Some(FailingJob {
                no: *no,
                id: job.id,
                tenant: job.tenant,
                failures: failing.runs,
                generation: job.generation,
                definition: job.text.clone(),
            })
        });
        jobs.take(limit as usize).collect()
    }
}

#[async_trait]
impl DeadStore for ModelStore {
    async fn list_dead(
        &self,
        scope: &Scope,
        filter: DeadFilter,
        page: PageRequest<DeadCursor>,
    ) -> Result<Page<DeadLetter, DeadCursor>, StoreError> {
        Ok(self.lock().list_dead(scope, filter, page))
    }

    async fn get_dead(
        &self,
        scope: &Scope,
        run: AttemptKey,
    ) -> Result<Option<DeadLetter>, StoreError> {
        Ok(self.lock().message(scope, run))
    }

    async fn are_dead(&self, runs: &[AttemptKey]) -> Result<Vec<bool>, StoreError> {
        let data = self.lock();
        let is_dead = |run: &AttemptKey| {
            data.letters_of_dead.contains_key(&run.with_attempt(AttemptNo::FIRST))
        };
        Ok(runs.iter().map(is_dead).collect())
    }

    async fn redrive(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        now: Now,
    ) -> Result<Vec<Redriven>, StoreError> {
        let (mut data, now) = (self.lock(), self.resolve(now));
        Ok(runs.iter().map(|run| data.redrive(scope, *run, now)).collect())
    }

    async fn delete_dead(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
    ) -> Result<Vec<bool>, StoreError> {
        let mut data = self.lock();
        let mut delete = |run: &AttemptKey| {
            let is_there = data.message(scope, *run).is_some();
            if is_there {
                data.letters_of_dead.remove(&run.with_attempt(AttemptNo::FIRST));
            }
            is_there
        };
        Ok(runs.iter().map(&mut delete).collect())
    }

    async fn prune_dead(
        &self,
        before: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64, StoreError> {
        Ok(self.lock().prune_dead(before, keep, limit))
    }

    async fn list_failing(&self, limit: u32) -> Result<Vec<FailingJob>, StoreError> {
        Ok(self.lock().list_failing(limit))
    }

    async fn prune_failing(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        let mut data = self.lock();
        data.failing.retain(|job, _| !jobs.contains(job));
        Ok(())
    }
}
