//! Targets.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Shard, TenantNo, Timestamp};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, JobState, NewTarget, Now, Page, PageRequest,
    Scope, StaleTarget, StaleTargets, StoreError, Target, TargetFields, TargetStore, is_stale,
};

use super::ModelStore;
use super::data::{Data, JobRow, count};
use super::lists::{cut, with_items};

/// Targets by tenant and number. Values of a target that depend on its jobs are computed when the
/// target is read.
pub(super) type Targets = BTreeMap<(TenantNo, i64), TargetRow>;

pub(super) struct TargetRow {
    fields: TargetFields,
    generation: i32,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// The last success of jobs that no longer refer to the target.
    last_success_at: Option<Timestamp>,
}

impl TargetRow {
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.name.as_deref()
    }
}

impl JobRow {
    /// Returns the last success of the job since it refers to its current target.
    fn success_for_target(&self) -> Option<Timestamp> {
        self.history.last_good_end_at.filter(|at| self.target_since.is_none_or(|since| *at > since))
    }
}

impl Data {
    /// Changes the target of a job. The last success of the job stays with its old target.
    pub(super) fn leave_target(&mut self, no: JobNo, target: Option<i64>, now: Timestamp) {
        let job = self.job(no);
        let (tenant, left, success) = (job.tenant, job.about.target, job.success_for_target());
        (job.about.target, job.target_since) = (target, Some(now));
        if let Some(row) = left.and_then(|number| self.targets.get_mut(&(tenant, number))) {
            row.last_success_at = row.last_success_at.max(success);
        }
    }

    /// Returns all jobs that refer to a target.
    fn naming(&self, tenant: TenantNo, number: i64) -> impl Iterator<Item = &JobRow> {
        self.jobs.iter().filter(move |job| job.tenant == tenant && job.about.target == Some(number))
    }

    fn last_success_of(&self, tenant: TenantNo, number: i64) -> Option<Timestamp> {
        let left = self.targets.get(&(tenant, number)).and_then(|row| row.last_success_at);
        left.max(self.naming(tenant, number).filter_map(JobRow::success_for_target).max())
    }

    fn target(&self, tenant: TenantNo, number: i64) -> Option<Target> {
        let row = self.targets.get(&(tenant, number))?;
        Some(Target {
            number,
            fields: row.fields.clone(),
            last_success_at: self.last_success_of(tenant, number),
            jobs: count(self.naming(tenant, number).count()),
            generation: row.generation,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    fn holder(&self, tenant: TenantNo, source_id: Option<&String>) -> Option<i64> {
        let wanted = source_id?;
        let mut own = self.targets.iter().filter(|((of, _), _)| *of == tenant);
        let has = |row: &TargetRow| row.fields.source_id.as_ref() == Some(wanted);
        own.find(|(_, row)| has(row)).map(|((_, number), _)| *number)
    }

    fn create_target(&mut self, scope: &Scope, new: NewTarget, now: Timestamp) -> CreatedTarget {
        let tenant = scope.tenant;
        let next = self.next_targets.get(&tenant).copied().unwrap_or(1);
        let free = |number: &i64| !self.targets.contains_key(&(tenant, *number));
        let number = new.number.or_else(|| (next..).find(free)).unwrap_or(next);
        let there = self.targets.contains_key(&(tenant, number)).then_some(number);
        let there = there.or_else(|| self.holder(tenant, new.fields.source_id.as_ref()));
        if let Some(target) = there.and_then(|number| self.target(tenant, number)) {
            return CreatedTarget::Exists(target);
        }
        if new.number.is_none() {
            self.next_targets.insert(tenant, number + 1);
        }
        let row = TargetRow {
            fields: new.fields,
            generation: 1,
            created_at: now,
            updated_at: now,
            last_success_at: None,
        };
        self.targets.insert((tenant, number), row);
        let made = self.target(tenant, number).expect("the target was just inserted");
        CreatedTarget::Created(made)
    }

    fn change_target(
        &mut self,
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Timestamp,
    ) -> ChangedTarget {
        let Some(before) = self.target(scope.tenant, number) else {
            return ChangedTarget::NotFound;
        };
        if if_generation.is_some_and(|wanted| wanted != before.generation) {
            return ChangedTarget::Stale(before);
        }
        let holder = self.holder(scope.tenant, fields.source_id.as_ref());
        if let Some(other) = holder.filter(|holder| *holder != number) {
            return ChangedTarget::SourceTaken(other);
        }
        if let Some(row) = self.targets.get_mut(&(scope.tenant, number)) {
            row.fields = fields;
            row.generation += 1;
            row.updated_at = now;
        }
        self.target(scope.tenant, number).map_or(ChangedTarget::NotFound, ChangedTarget::Done)
    }

    fn delete_target(&mut self, scope: &Scope, number: i64, detach: bool) -> DeletedTarget {
        let Some(target) = self.target(scope.tenant, number) else {
            return DeletedTarget::NotFound;
        };
        if target.jobs > 0 && !detach {
            return DeletedTarget::InUse(target.jobs);
        }
        let named: Vec<JobNo> = self.naming(scope.tenant, number).map(|job| job.no).collect();
        for no in named {
            let job = self.job(no);
            (job.about.target, job.target_since) = (None, None);
            job.generation += 1;
            if job.next_at.is_some() {
                self.changed.insert((Shard::of(no), no));
            }
        }
        self.targets.remove(&(scope.tenant, number));
        DeletedTarget::Done { detached: target.jobs }
    }

    fn stale_target(&self, (tenant, number): (TenantNo, i64)) -> StaleTarget {
        let naming = || self.naming(tenant, number);
        let runs =
            |job: &&JobRow| job.state == JobState::Active && !job.definition.executor.is_none();
        let active = || naming().filter(runs);
        StaleTarget {
            tenant,
            number,
            last_success_at: self.last_success_of(tenant, number),
            job: active().next().map(|job| job.id),
            next_at: active().filter_map(|job| job.next_at).min(),
            is_live: naming().any(|job| job.live > 0),
        }
    }
}

#[async_trait]
impl TargetStore for ModelStore {
    async fn create_target(
        &self,
        scope: &Scope,
        target: NewTarget,
        now: Now,
    ) -> Result<CreatedTarget, StoreError> {
        Ok(self.lock().create_target(scope, target, self.resolve(now)))
    }

    async fn get_targets(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<Target>>, StoreError> {
        let data = self.lock();
        Ok(numbers.iter().map(|number| data.target(scope.tenant, *number)).collect())
    }

    async fn target_urls(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<HashMap<i64, Option<String>>, StoreError> {
        let data = self.lock();
        let url = |number: &i64| {
            Some((*number, data.targets.get(&(scope.tenant, *number))?.fields.url.clone()))
        };
        Ok(numbers.iter().filter_map(url).collect())
    }

    async fn list_targets(
        &self,
        scope: &Scope,
        page: PageRequest<i64>,
    ) -> Result<Page<Target, i64>, StoreError> {
        let data = self.lock();
        let own = data.targets.keys().filter(|(tenant, _)| *tenant == scope.tenant);
        let numbers = own.map(|(_, number)| *number).collect();
        let page = cut(numbers, page, |one, other| one > other);
        Ok(with_items(page, |number| data.target(scope.tenant, *number)))
    }

    async fn change_target(
        &self,
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> Result<ChangedTarget, StoreError> {
        let now = self.resolve(now);
        Ok(self.lock().change_target(scope, number, if_generation, fields, now))
    }

    async fn delete_target(
        &self,
        scope: &Scope,
        number: i64,
        detach: bool,
    ) -> Result<DeletedTarget, StoreError> {
        Ok(self.lock().delete_target(scope, number, detach))
    }

    async fn jobs_of_target(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<(JobNo, JobId)>, StoreError> {
        let data = self.lock();
        let naming = data.naming(scope.tenant, number);
        let rest = naming.filter(|job| after.is_none_or(|after| job.no > after));
        Ok(rest.take(limit as usize).map(|job| (job.no, job.id)).collect())
    }

    async fn stale_targets(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, i64)>,
        limit: u32,
    ) -> Result<StaleTargets, StoreError> {
        let data = self.lock();
        let rest = data.targets.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let looked: Vec<_> = rest.take(limit as usize).collect();
        let is_full = looked.len() == limit as usize;
        let next = looked.last().filter(|_| is_full).map(|(key, _)| **key);
        let found = looked.into_iter().map(|(key, row)| (data.stale_target(*key), row));
        let stale = found.filter(|(it, row)| is_stale(it.last_success_at, row.created_at, before));
        Ok(StaleTargets { targets: stale.map(|(it, _)| it).collect(), next })
    }
}
