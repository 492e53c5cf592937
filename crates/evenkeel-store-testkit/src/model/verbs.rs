//! Implements the traits of the store interface. Each store operation takes the lock once, so it is
//! one transaction.

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::{AttemptKey, JobId, JobNo, NodeNo, Shard, Slot, Span, Timestamp};
use evenkeel_store::{
    Applied, Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, ClaimWindow, Claimed,
    ClosedAttempt, DueJob, Finish, FinishResult, Fire, FireDelayed, Fired, Job, JobCommand,
    JobCounts, JobCursor, JobFilter, JobSort, JobStore, Joined, LookAhead, Member, NamedJob,
    NewJob, NewNode, NodeStore, Now, OwnedAttempt, Page, PageRequest, Ping, Pinged, Postpone,
    Prune, Pruned, QueuePosition, RecentRun, Registered, Requeue, RunAttempt, RunCancelled,
    ScheduleStore, Scope, SlotLoad, StoreError, Supersede, Trigger, Triggered, WaitingAttempt,
};

use super::ModelStore;

type Answer<T> = Result<T, StoreError>;

#[async_trait]
impl JobStore for ModelStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Answer<Vec<Registered>> {
        self.lock().register(scope, jobs, self.resolve(now))
    }

    async fn register_paused(&self, scope: &Scope, job: NewJob, now: Now) -> Answer<Registered> {
        let (mut data, now) = (self.lock(), self.resolve(now));
        let (id, job) = (job.id, NewJob { next_at: None, ..job });
        let made = data.register(scope, vec![job], now)?.remove(0);
        if matches!(made, Registered::Created { .. }) {
            data.order(scope, vec![JobCommand::pause(id)], now)?;
        }
        Ok(made)
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Answer<Option<Job>> {
        Ok(self.lock().get(scope, id))
    }

    async fn get_with_now(&self, scope: &Scope, id: JobId) -> Answer<Option<(Job, Timestamp)>> {
        Ok(self.lock().get(scope, id).map(|job| (job, self.resolve(Now::Database))))
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Answer<Page<Job, JobCursor>> {
        let now = self.resolve(Now::Database);
        Ok(self.lock().list_jobs(scope, (filter, now), sort, page))
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        orders: Vec<JobCommand>,
        now: Now,
    ) -> Answer<Vec<Applied>> {
        self.lock().order(scope, orders, self.resolve(now))
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Answer<u64> {
        Ok(self.lock().purge(scope, id, limit))
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Answer<Vec<Job>> {
        Ok(self.lock().get_jobs(scope, ids))
    }

    async fn ids_of_numbers(&self, scope: &Scope, numbers: &[i64]) -> Answer<Vec<Option<JobId>>> {
        Ok(self.lock().ids_of_numbers(scope, numbers))
    }

    async fn jobs_named(&self, scope: &Scope, name: &str, limit: u32) -> Answer<Vec<NamedJob>> {
        Ok(self.lock().jobs_named(scope, name, limit))
    }

    async fn index_jobs(&self, _: u32) -> Answer<bool> {
        // The model searches the texts of all jobs, so it needs no index.
        Ok(false)
    }

    async fn job_counts(&self, scope: &Scope) -> Answer<JobCounts> {
        Ok(self.lock().job_counts(scope, self.resolve(Now::Database)))
    }

    async fn all_job_counts(&self) -> Answer<JobCounts> {
        Ok(self.lock().all_job_counts(self.resolve(Now::Database)))
    }

    async fn trigger(&self, scope: &Scope, id: JobId, ask: Trigger, now: Now) -> Answer<Triggered> {
        Ok(self.lock().trigger(scope, id, ask, self.resolve(now)))
    }

    async fn slot_loads(&self, scope: &Scope, slots: &[Slot], limit: u32) -> Answer<Vec<SlotLoad>> {
        Ok(self.lock().slot_loads(scope, slots, limit))
    }
}

#[async_trait]
impl ScheduleStore for ModelStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Answer<Vec<DueJob>> {
        Ok(self.lock().load_due(shard, until, after, limit))
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Answer<Vec<DueJob>> {
        Ok(self.lock().load_jobs(jobs))
    }

    async fn look_ahead(
        &self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Answer<LookAhead> {
        Ok(self.lock().look_ahead(shards, until, limit, self.resolve(now)))
    }

    async fn fire(&self, node: NodeNo, batch: Vec<Fire>, now: Now) -> Answer<Fired> {
        Ok(self.lock().fire(node, batch, self.resolve(now)))
    }

    async fn fire_delayed(&self, node: NodeNo, batch: Vec<FireDelayed>, now: Now) -> Answer<Fired> {
        Ok(self.lock().fire_delayed(node, batch, self.resolve(now)))
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Answer<()> {
        self.lock().supersede(batch, self.resolve(now));
        Ok(())
    }

    async fn postpone(&self, batch: &[Postpone]) -> Answer<()> {
        self.lock().postpone(batch);
        Ok(())
    }

    async fn find_closed_windows(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Answer<Vec<ClosedAttempt>> {
        Ok(self.lock().closed(shards, limit, self.resolve(now)))
    }

    async fn set_claim_windows(&self, batch: &[(AttemptKey, ClaimWindow)]) -> Answer<()> {
        self.lock().reopen(batch);
        Ok(())
    }
}

#[async_trait]
impl AttemptStore for ModelStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Answer<Claimed> {
        Ok(self.lock().claim(claim, self.resolve(now)))
    }

    async fn finish(
        &self,
        node: NodeNo,
        batch: Vec<Finish>,
        alpha: f64,
    ) -> Answer<Vec<FinishResult>> {
        Ok(self.lock().finish(node, batch, alpha))
    }

    async fn requeue(&self, node: NodeNo, batch: Vec<Requeue>, now: Now) -> Answer<Vec<bool>> {
        Ok(self.lock().requeue(node, batch, self.resolve(now)))
    }

    async fn find_owned(&self, node: NodeNo, keys: &[AttemptKey]) -> Answer<Vec<OwnedAttempt>> {
        Ok(self.lock().find_owned(node, keys))
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Answer<Vec<OwnedAttempt>> {
        Ok(self.lock().owned(node, limit))
    }

    async fn cancellations(&self, node: NodeNo) -> Answer<Vec<Cancellation>> {
        Ok(self.lock().cancellations(node))
    }

    async fn cancel_run(&self, scope: &Scope, key: AttemptKey, now: Now) -> Answer<RunCancelled> {
        Ok(self.lock().cancel_run(scope, key, self.resolve(now)))
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Answer<Vec<WaitingAttempt>> {
        Ok(self.lock().waiting_attempts(scope, job, ahead, self.resolve(now)))
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Answer<u32> {
        Ok(self.lock().waiting(pools, limit))
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        place: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Answer<u32> {
        Ok(self.lock().waiting_ahead(pools, place, limit, self.resolve(now)))
    }

    async fn get_attempt(&self, scope: &Scope, key: AttemptKey) -> Answer<Option<Attempt>> {
        Ok(self.lock().get_run(scope, key))
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Answer<Page<Attempt, AttemptKey>> {
        Ok(self.lock().list_runs(scope, filter, page))
    }

    async fn attempts_of_runs(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        newest: u32,
    ) -> Answer<Vec<RunAttempt>> {
        Ok(self.lock().attempts_of_runs(scope, runs, newest))
    }

    async fn recent_runs(
        &self,
        scope: &Scope,
        jobs: &[JobId],
        each: u32,
    ) -> Answer<Vec<RecentRun>> {
        Ok(self.lock().recent_runs(scope, jobs, each))
    }

    async fn prune(&self, prune: Prune) -> Answer<Pruned> {
        Ok(self.lock().prune(prune))
    }
}

#[async_trait]
impl NodeStore for ModelStore {
    async fn join(&self, node: &NewNode, now: Now) -> Answer<Joined> {
        Ok(self.lock().join(node, self.resolve(now)))
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Answer<Pinged> {
        Ok(self.lock().ping(ping, self.resolve(now)))
    }

    async fn begin_steal(&self, victim: NodeNo, silent_after: Span, now: Now) -> Answer<bool> {
        Ok(self.lock().begin_steal(victim, silent_after, self.resolve(now)))
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Answer<bool> {
        Ok(self.lock().steal(victim, challenged_at, grace, self.resolve(now)))
    }

    async fn drain(&self, node: NodeNo) -> Answer<()> {
        self.lock().drain(node);
        Ok(())
    }

    async fn retire(&self, node: NodeNo) -> Answer<bool> {
        Ok(self.lock().retire(node))
    }

    async fn members(&self) -> Answer<(Timestamp, Vec<Member>)> {
        Ok(((self.clock)(), self.lock().members()))
    }
}
