//! Counts jobs by load profile, and moves jobs to other start times.

use std::collections::BTreeMap;
use std::ops::Bound;

use evenkeel_core::balance::{COST_MAX, Load, LoadProfileKey, Move, Placement};
use evenkeel_core::{JobNo, Span, TenantNo, Timestamp};
use evenkeel_store::{
    JobState, LoadProfileCount, MoveBatch, Moved, RebalanceState, Recounted, Scope,
};

use super::data::{Data, JobRow, count};

/// The load profile and cost with which a job is counted.
#[derive(Copy, Clone)]
pub(super) struct Counted {
    key: LoadProfileKey,
    cost: Span,
    is_stated: bool,
}

/// The jobs that share one load profile. There is at least one such job.
pub(super) struct Together {
    profile: String,
    jobs: u64,
    cost: Span,
}

pub(super) type LoadProfiles = BTreeMap<(TenantNo, LoadProfileKey), Together>;

impl JobRow {
    /// Returns the next scheduled time if the job is active.
    fn plans(&self) -> Option<Timestamp> {
        self.next_at.filter(|_| self.state == JobState::Active)
    }

    fn placement(&self) -> Option<Placement> {
        let next_at = self.plans()?;
        Some(Placement {
            job: self.no,
            seed: self.id.seed(),
            generation: self.generation,
            next_at,
            last_fired_at: self.last_fired_at,
            placed_at: self.since,
            is_live: self.live > 0,
            profile: self.counted.map(|counted| counted.key),
            cost: self.counted.map_or(Span::ZERO, |counted| counted.cost),
        })
    }

    /// Returns true if the job has not changed since the rebalance plan was made, and may be moved
    /// to the new start time.
    fn can_move(&self, to: &Move, even_live: bool, now: Timestamp) -> bool {
        self.plans() == Some(to.old_at)
            && self.generation == to.generation
            && (even_live || self.live == 0)
            && to.new_at > now
            && to.old_at > now
            && Some(to.new_at) > self.last_fired_at
    }
}

impl Data {
    /// Updates the job counts of load profiles after a change of a job's next scheduled time, state
    /// or definition.
    pub fn recount(&mut self, no: JobNo) {
        let job = self.job(no);
        let average = job.history.average_good_duration;
        let load = job.plans().and_then(|at| Load::of(&job.definition, average, at));
        let counted = load.as_ref().map(|load| Counted {
            key: load.key,
            cost: load.cost,
            is_stated: load.is_stated,
        });
        self.count_as(no, counted, load.map(|load| load.profile).unwrap_or_default());
    }

    fn count_as(&mut self, no: JobNo, counted: Option<Counted>, profile: String) {
        let job = self.job(no);
        let tenant = job.tenant;
        let old = std::mem::replace(&mut job.counted, counted);
        if let Some(new) = counted {
            let fresh = || Together { profile, jobs: 0, cost: Span::ZERO };
            let together = self.profiles.entry((tenant, new.key)).or_insert_with(fresh);
            together.jobs += 1;
            together.cost = together.cost.saturating_add(new.cost);
        }
        if let Some(old) = old
            && let Some(together) = self.profiles.get_mut(&(tenant, old.key))
        {
            together.jobs -= 1;
            together.cost = together.cost.saturating_sub(old.cost);
            if together.jobs == 0 {
                self.profiles.remove(&(tenant, old.key));
            }
        }
    }

    pub fn list_rhythms(
        &self,
        of: Option<TenantNo>,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Vec<LoadProfileCount> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let own = self.profiles.range((from, Bound::Unbounded));
        let own = own.filter(|((tenant, _), _)| of.is_none_or(|of| of == *tenant));
        own.take(limit as usize)
            .map(|((tenant, key), together)| LoadProfileCount {
                tenant: *tenant,
                key: *key,
                profile: together.profile.clone(),
                jobs: together.jobs,
                cost: together.cost,
            })
            .collect()
    }

    pub fn recount_load(&mut self, after: Option<JobNo>, limit: u32) -> Recounted {
        let numbers = self.jobs.iter().map(|job| job.no).filter(|no| Some(*no) > after);
        let numbers: Vec<JobNo> = numbers.take(limit as usize).collect();
        let mut changed = 0;
        for no in &numbers {
            let job = self.job(*no);
            let counted = job.counted.filter(|counted| !counted.is_stated);
            let (Some(counted), Some(takes)) = (counted, job.history.average_good_duration) else {
                continue;
            };
            let takes = takes.min(COST_MAX);
            let (cost, average) = (counted.cost.as_micros(), takes.as_micros());
            if cost * 5 < average * 4 || cost * 4 > average * 5 {
                self.count_as(*no, Some(Counted { cost: takes, ..counted }), String::new());
                changed += 1;
            }
        }
        let full = numbers.len() == limit as usize;
        Recounted { next: numbers.last().copied().filter(|_| full), changed }
    }

    pub fn placements(&self, scope: &Scope, after: Option<JobNo>, limit: u32) -> Vec<Placement> {
        let own = self.jobs.iter().filter(|job| job.tenant == scope.tenant);
        let rest = own.filter(|job| Some(job.no) > after).filter_map(JobRow::placement);
        rest.take(limit as usize).collect()
    }

    pub fn placements_of(&self, scope: &Scope, jobs: &[JobNo]) -> Vec<Placement> {
        let found = jobs.iter().filter_map(|no| self.find(*no));
        let own = found.filter(|job| job.tenant == scope.tenant);
        own.filter_map(JobRow::placement).collect()
    }

    pub fn move_jobs(&mut self, scope: &Scope, batch: MoveBatch, now: Timestamp) -> Moved {
        let profiles: BTreeMap<LoadProfileKey, String> = batch.profiles.into_iter().collect();
        let place = (scope.tenant, batch.rebalance);
        let goes_on = self.rebalances.get(&place).is_some_and(|(rebalance, parts)| {
            rebalance.state == RebalanceState::Running
                && rebalance.parts_done == batch.part
                && count(parts.len()) > u64::from(batch.part)
        });
        if !goes_on {
            return Moved::Stopped;
        }
        let moves = batch.moves.iter();
        let made: Vec<bool> =
            moves.map(|to| self.move_job(scope, to, &profiles, batch.even_live, now)).collect();
        if let Some((rebalance, parts)) = self.rebalances.get_mut(&place) {
            let moved = count(made.iter().filter(|made| **made).count());
            rebalance.parts_done += 1;
            rebalance.touched_at = Some(now);
            rebalance.moved += moved;
            rebalance.changed += count(made.len()) - moved;
            parts[batch.part as usize].made = Some(made.clone());
        }
        Moved::Done(made)
    }

    fn move_job(
        &mut self,
        scope: &Scope,
        to: &Move,
        profiles: &BTreeMap<LoadProfileKey, String>,
        even_live: bool,
        now: Timestamp,
    ) -> bool {
        let own = self.find(to.job).filter(|job| job.tenant == scope.tenant);
        if !own.is_some_and(|job| job.can_move(to, even_live, now)) {
            return false;
        }
        let Some(profile) = profiles.get(&to.profile).cloned() else { return false };
        let job = self.job(to.job);
        job.next_at = Some(to.new_at);
        job.generation += 1;
        job.since = now;
        if let Some(counted) = job.counted {
            self.count_as(to.job, Some(Counted { key: to.profile, ..counted }), profile);
        }
        self.place(to.job);
        self.tell_if_soon(to.job, now);
        true
    }
}
