//! The port's verbs: which of them write, which only look, and how urgent they are.

use async_trait::async_trait;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::balance::Load;
use evenkeel_core::{AttemptKey, JobId, JobNo, NodeNo, Shard, Slot, Span, Timestamp};
use evenkeel_store::{
    Applied, Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, ClaimWindow, Claimed,
    ClosedAttempt, DueJob, Finish, FinishResult, Fire, FireDelayed, Fired, Job, JobCommand,
    JobCounts, JobCursor, JobFilter, JobSort, JobStore, Joined, LookAhead, Member, NamedJob,
    NewJob, NewNode, NodeStore, Now, OwnedAttempt, Page, PageRequest, Ping, Pinged, Postpone,
    Prune, Pruned, QueuePosition, Registered, Requeue, RunCancelled, ScheduleStore, Scope,
    SlotLoad, StoreError, Supersede, Trigger, Triggered, WaitingAttempt,
};

use rusqlite::Connection;

use crate::clock::{resolve, system_time};
use crate::queue::Urgency::{Batch, Command, End};
use crate::{
    SqliteStore, fire, jobs, lists, nodes, openings, orders, purge, runs, schedules, supersede,
    trigger, waiting,
};

#[async_trait]
impl JobStore for SqliteStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError> {
        let tenant = scope.tenant;
        // Here, and not by the writer, whom everybody waits for.
        let loads: Vec<_> =
            jobs.iter().map(|job| Load::of(&job.definition, None, job.next_at?)).collect();
        self.writer
            .write(Command, jobs.len() * 2, move |session| {
                jobs::register(session.connection(), tenant, &jobs, &loads, now)
            })
            .await
    }

    async fn register_paused(
        &self,
        scope: &Scope,
        job: NewJob,
        now: Now,
    ) -> Result<Registered, StoreError> {
        let tenant = scope.tenant;
        let job = NewJob { next_at: None, ..job };
        self.writer
            .write(Command, 6, move |session| {
                jobs::register_paused(session.connection(), tenant, &job, now)
            })
            .await
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| jobs::get(db, tenant, id)).await
    }

    async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Option<(Job, Timestamp)>, StoreError> {
        let job = self.get(scope, id).await?;
        Ok(job.map(|job| (job, system_time())))
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, StoreError> {
        let (tenant, filter) = (scope.tenant, filter.clone());
        self.readers.read(move |db| lists::list(db, tenant, &filter, sort, page)).await
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        orders: Vec<JobCommand>,
        now: Now,
    ) -> Result<Vec<Applied>, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, orders.len() * 4, move |session| {
                orders::order(session.connection(), tenant, &orders, now)
            })
            .await
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Result<u64, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Batch, limit as usize, move |session| {
                purge::purge(session.connection(), tenant, id, limit)
            })
            .await
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        let (tenant, ids) = (scope.tenant, ids.to_vec());
        self.readers.read(move |db| jobs::get_jobs(db, tenant, &ids)).await
    }

    async fn ids_of_numbers(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<JobId>>, StoreError> {
        let (tenant, numbers) = (scope.tenant, numbers.to_vec());
        self.readers.read(move |db| jobs::ids_of_numbers(db, tenant, &numbers)).await
    }

    async fn jobs_named(
        &self,
        scope: &Scope,
        name: &str,
        limit: u32,
    ) -> Result<Vec<NamedJob>, StoreError> {
        let (tenant, name) = (scope.tenant, name.to_owned());
        self.readers.read(move |db| jobs::jobs_named(db, tenant, &name, limit)).await
    }

    async fn job_counts(&self, scope: &Scope) -> Result<JobCounts, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| lists::job_counts(db, tenant)).await
    }

    async fn all_job_counts(&self) -> Result<JobCounts, StoreError> {
        self.engine_readers.read(lists::all_job_counts).await
    }

    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        ask: Trigger,
        now: Now,
    ) -> Result<Triggered, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 2, move |session| {
                trigger::trigger(session.connection(), tenant, id, ask, now)
            })
            .await
    }

    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError> {
        let (tenant, slots) = (scope.tenant, slots.to_vec());
        self.readers.read(move |db| openings::slot_loads(db, tenant, &slots, limit)).await
    }
}

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<DueJob>, StoreError> {
        self.engine_readers
            .read(move |db| schedules::load_due(db, shard, until, after, limit))
            .await
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Result<Vec<DueJob>, StoreError> {
        let jobs = jobs.to_vec();
        self.engine_readers.read(move |db| schedules::load_jobs(db, &jobs)).await
    }

    async fn look_ahead(
        &self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Result<LookAhead, StoreError> {
        let shards = shards.to_vec();
        let now = resolve(now);
        // Most looks find nothing changed, and then the writer is left in peace.
        let (changed, wakes) = self
            .engine_readers
            .read(move |db| {
                let changed = schedules::changed_jobs(db, &shards, limit)?;
                Ok((changed, schedules::due_wakes(db, &shards, until, limit)?))
            })
            .await?;
        if changed.is_empty() {
            return Ok(LookAhead { now, changed: Vec::new(), delayed: wakes });
        }
        let changed = self
            .writer
            .write(Batch, changed.len(), move |session| {
                schedules::take_changed(session.connection(), &changed)
            })
            .await?;
        Ok(LookAhead { now, changed, delayed: wakes })
    }

    async fn fire(&self, node: NodeNo, batch: Vec<Fire>, now: Now) -> Result<Fired, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |session| fire::fire(session, node, &batch, now))
            .await
    }

    async fn fire_delayed(
        &self,
        node: NodeNo,
        batch: Vec<FireDelayed>,
        now: Now,
    ) -> Result<Fired, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |session| {
                fire::fire_delayed(session, node, &batch, now)
            })
            .await
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer
            .write(Batch, batch.len() * 2, move |session| {
                supersede::supersede(session.connection(), &batch, now)
            })
            .await
    }

    async fn postpone(&self, batch: &[Postpone]) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer
            .write(Batch, batch.len(), move |session| {
                openings::postpone(session.connection(), &batch)
            })
            .await
    }

    async fn find_closed_windows(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<Vec<ClosedAttempt>, StoreError> {
        let (shards, now) = (shards.to_vec(), resolve(now));
        self.engine_readers.read(move |db| openings::closed(db, &shards, limit, now)).await
    }

    async fn set_claim_windows(
        &self,
        batch: &[(AttemptKey, ClaimWindow)],
    ) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer
            .write(Batch, batch.len(), move |session| {
                openings::reopen(session.connection(), &batch)
            })
            .await
    }
}

#[async_trait]
impl AttemptStore for SqliteStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Result<Claimed, StoreError> {
        let claim = claim.clone();
        self.writer
            .write(Batch, claim.capacity, move |session| runs::claim::claim(session, &claim, now))
            .await
    }

    async fn finish(
        &self,
        node: NodeNo,
        batch: Vec<Finish>,
        alpha: f64,
    ) -> Result<Vec<FinishResult>, StoreError> {
        self.writer
            .write(End, batch.iter().map(runs::finish::rows).sum(), move |session| {
                runs::finish::finish(session.connection(), node, &batch, alpha)
            })
            .await
    }

    async fn requeue(
        &self,
        node: NodeNo,
        batch: Vec<Requeue>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |session| {
                runs::requeue::requeue(session.connection(), node, &batch, now)
            })
            .await
    }

    async fn find_owned(
        &self,
        node: NodeNo,
        keys: &[AttemptKey],
    ) -> Result<Vec<OwnedAttempt>, StoreError> {
        let keys = keys.to_vec();
        self.engine_readers.read(move |db| runs::owned::find(db, node, &keys)).await
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Result<Vec<OwnedAttempt>, StoreError> {
        self.engine_readers.read(move |db| runs::owned::all(db, node, limit)).await
    }

    async fn cancellations(&self, node: NodeNo) -> Result<Vec<Cancellation>, StoreError> {
        self.writer
            .write(Command, 1, move |session| {
                runs::owned::cancellations(session.connection(), node)
            })
            .await
    }

    async fn cancel_run(
        &self,
        scope: &Scope,
        key: AttemptKey,
        now: Now,
    ) -> Result<RunCancelled, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 2, move |session| {
                runs::cancel::cancel_run(session.connection(), tenant, key, now)
            })
            .await
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Result<Vec<WaitingAttempt>, StoreError> {
        let level = ahead.map(|aging| aging.risen(Rise(0), resolve(now)));
        let tenant = scope.tenant;
        self.readers.read(move |db| waiting::waiting_of(db, tenant, job, level)).await
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Result<u32, StoreError> {
        let pools = pools.to_vec();
        self.engine_readers.read(move |db| runs::owned::waiting(db, &pools, limit)).await
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        place: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Result<u32, StoreError> {
        let (pools, now) = (pools.to_vec(), resolve(now));
        let ahead =
            move |db: &Connection| runs::choose::waiting_ahead(db, &pools, place, limit, now);
        self.engine_readers.read(ahead).await
    }

    async fn get_attempt(
        &self,
        scope: &Scope,
        key: AttemptKey,
    ) -> Result<Option<Attempt>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| runs::list::get(db, tenant, key)).await
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, StoreError> {
        let tenant = scope.tenant;
        self.readers
            .read(move |db| match filter.job {
                Some(job) => runs::list::of_job(db, tenant, job, page),
                None => runs::list::of_all(db, tenant, page),
            })
            .await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        let looked = self.engine_readers.read(move |db| runs::prune::look(db, prune)).await?;
        let pruned = looked.pruned(0);
        if looked.rows() == 0 {
            return Ok(pruned);
        }
        let forgotten = self
            .writer
            .write(Batch, looked.rows(), move |session| {
                runs::prune::forget(session.connection(), &looked)
            })
            .await?;
        Ok(Pruned { forgotten, ..pruned })
    }
}

#[async_trait]
impl NodeStore for SqliteStore {
    async fn join(&self, node: &NewNode, now: Now) -> Result<Joined, StoreError> {
        let node = node.clone();
        self.writer
            .write(Command, 1, move |session| nodes::join(session.connection(), &node, now))
            .await
    }

    async fn ping(&self, ping: &Ping, now: Now) -> Result<Pinged, StoreError> {
        let ping = ping.clone();
        // First in line: a node that cannot say that it lives must end what it runs.
        self.writer
            .write(Command, ping.long_runs.len() + 1, move |session| {
                nodes::ping(session, &ping, now)
            })
            .await
    }

    async fn begin_steal(
        &self,
        victim: NodeNo,
        silent_after: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Command, 1, move |session| {
                nodes::begin_steal(session.connection(), victim, silent_after, now)
            })
            .await
    }

    async fn steal(
        &self,
        victim: NodeNo,
        challenged_at: Timestamp,
        grace: Span,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Command, 1, move |session| {
                nodes::steal(session.connection(), victim, challenged_at, grace, now)
            })
            .await
    }

    async fn drain(&self, node: NodeNo) -> Result<(), StoreError> {
        self.writer.write(Command, 1, move |session| nodes::drain(session.connection(), node)).await
    }

    async fn retire(&self, node: NodeNo) -> Result<bool, StoreError> {
        self.writer.write(Command, 1, move |session| nodes::retire(session, node)).await
    }

    async fn members(&self) -> Result<(Timestamp, Vec<Member>), StoreError> {
        let members = self.engine_readers.read(nodes::members).await?;
        Ok((system_time(), members))
    }
}
