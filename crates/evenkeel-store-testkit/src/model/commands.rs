//! Commands on existing jobs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, Origin, Shard, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, DedupClaim, JobChange, JobCommand, JobState, Scope, StoreError,
    Trigger,
};

use super::data::{Data, attempts_of, count};
use super::jobs::{name_key, stored};

impl Data {
    pub fn order(
        &mut self,
        scope: &Scope,
        orders: Vec<JobCommand>,
        now: Timestamp,
    ) -> Result<Vec<Applied>, StoreError> {
        orders.into_iter().map(|order| self.apply_one(scope, order, now)).collect()
    }

    fn apply_one(
        &mut self,
        scope: &Scope,
        order: JobCommand,
        now: Timestamp,
    ) -> Result<Applied, StoreError> {
        let Some(job) = self.get(scope, order.id) else { return Ok(Applied::NotFound) };
        let no = job.no;
        let effect = match job.facts().apply(order.action.command()) {
            Ok(effect) => effect,
            Err(refusal) => return Ok(Applied::NotAllowed(refusal)),
        };
        let is_other = order.if_generation.is_some_and(|one| one != job.generation)
            || order.if_fired.is_some_and(|one| one != job.fired);
        let too_early = order.action.next_at().is_some_and(|next| Some(next) <= job.last_fired_at);
        if is_other || too_early {
            return Ok(Applied::Stale(Box::new(job)));
        }
        if let Action::Change(change) = &order.action
            && let Some(other) = self.namesake(scope, no, change)
        {
            return Ok(Applied::NameTaken(other));
        }
        let wanted = DedupClaim::by_command(&order, &job, now);
        if let Some(other) = self.kept_out_by(scope.tenant, wanted.as_ref(), now) {
            return Ok(Applied::Duplicate(other));
        }
        self.let_go(scope.tenant, DedupClaim::released_key(&order, &job), no);
        self.take_key(scope.tenant, wanted.as_ref(), no, now);
        let mut run = None;
        if effect.state != job.state {
            self.job(no).note = order.action.note().map(Into::into);
            self.failing.remove(&no);
        }
        match order.action {
            Action::Pause | Action::Suspend { .. } | Action::Cancel => {
                self.stop(no, effect.state, now);
            }
            Action::Delete => {
                self.stop(no, effect.state, now);
                self.leave_target(no, None, now);
            }
            Action::Resume { next_at } => {
                let job = self.job(no);
                (job.state, job.stopped_at) = (effect.state, None);
                // If a resume command contains no next scheduled time, the resumed job has none.
                if next_at.is_some() {
                    (job.next_at, job.since) = (next_at, now);
                }
            }
            Action::Retry { n, next_at } => {
                let job = self.job(no);
                if job.next_at.is_none() && next_at.is_some() {
                    (job.next_at, job.since) = (next_at, now);
                }
                let ask = Trigger { n, priority: None, idle_only: false };
                run = Some(self.begin_run(no, Origin::Trigger, ask, now));
            }
            Action::Change(change) => self.change(scope, no, *change, now)?,
        }
        let job = self.job(no);
        job.generation += 1;
        job.updated_at = now;
        self.place(no);
        self.recount(no);
        self.tell_if_soon(no, now);
        let mut withdrawn: Vec<AttemptKey> = Vec::new();
        if effect.withdraws {
            withdrawn.extend(self.waiting_of(no).map(|(key, _)| key));
            withdrawn.sort_unstable();
            for key in &withdrawn {
                self.withdraw(*key, Outcome::Cancelled, now);
            }
            if !withdrawn.is_empty() {
                self.tell_of_end(no);
            }
        }
        let running = self.running_of(no);
        if effect.ends_running {
            for running in &running {
                self.cancellations.entry(*running).or_insert(false);
            }
            self.changed.remove(&(Shard::of(no), no));
            self.at_risk.forget(no);
        }
        self.touch(no);
        let running = running.into_iter().map(|(_, key)| key).collect();
        let job = self.get(scope, order.id);
        Ok(Applied::Done(Box::new(CommandEffect { job, running, withdrawn, run })))
    }

    fn stop(&mut self, no: JobNo, state: JobState, now: Timestamp) {
        let paused = self.find(no).filter(|_| state == JobState::Paused);
        let now = paused.map_or(now, |job| self.view(job).stop_at(now));
        let job = self.job(no);
        job.state = state;
        job.stopped_at = Some(now);
        job.next_at = None;
        let name = name_key(job.tenant, &job.about).filter(|_| state == JobState::Deleted);
        name.map(|name| self.names.remove(&name));
    }

    /// Finds another job that already has the new name of a changed job.
    fn namesake(&self, scope: &Scope, no: JobNo, change: &JobChange) -> Option<JobId> {
        let name = name_key(scope.tenant, change.about.as_ref()?)?;
        let other = self.names.get(&name).filter(|other| **other != no)?;
        self.find(*other).map(|job| job.id)
    }

    fn change(
        &mut self,
        scope: &Scope,
        no: JobNo,
        change: JobChange,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let text = change.definition.as_ref().map(stored).transpose()?;
        if let Some(about) = change.about {
            let old = name_key(scope.tenant, &self.job(no).about);
            let new = name_key(scope.tenant, &about);
            old.map(|name| self.names.remove(&name));
            new.map(|name| self.names.insert(name, no));
            if self.job(no).about.target != about.target {
                self.leave_target(no, about.target, now);
            }
            self.job(no).about = about;
        }
        let job = self.job(no);
        if let Some(next_at) = change.next_at {
            job.next_at = next_at.filter(|_| job.state == JobState::Active);
            job.since = now;
        }
        if let (Some(definition), Some(text)) = (change.definition, text) {
            job.definition = definition;
            job.text = text;
            self.open_anew(no, now);
        }
        Ok(())
    }

    pub fn purge(&mut self, scope: &Scope, id: JobId, limit: u32) -> u64 {
        let deleted = self.ids.get(&id).and_then(|no| self.find(*no));
        let deleted = deleted.filter(|job| job.tenant == scope.tenant && job.is_deleted());
        let Some(job) = deleted else { return 0 };
        let (no, run_links) = (job.no, job.run_links.clone());
        let mut deleted = self.purge_dead(no, limit);
        for chain in run_links.iter().rev() {
            if deleted >= u64::from(limit) {
                break;
            }
            let attempt = AttemptNo::FIRST;
            let (scheduled_at, sequence) = (chain.scheduled_at, chain.sequence);
            let first = AttemptKey { scheduled_at, job_no: no, sequence, attempt };
            let attempts: Vec<AttemptKey> =
                self.runs.range(attempts_of(first)).map(|(key, _)| *key).collect();
            let goes_on = |key: &AttemptKey| self.runs[key].status == AttemptStatus::Running;
            if attempts.iter().any(goes_on) {
                continue;
            }
            for key in &attempts {
                self.runs.remove(key);
                self.forget_leftovers(*key);
            }
            deleted += count(attempts.len());
        }
        deleted
    }
}
