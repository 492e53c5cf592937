//! Plans a rebalance and saves the plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::balance::{
    Horizon, LoadProfile, LoadProfileKey, Loads, Move, Placement, Plan, encode_moves, plan,
};
use evenkeel_core::{JobId, JobNo, Timestamp};
use evenkeel_store::{
    COMMANDS_MAX, JobFilter, JobSort, LoadProfileCount, MOVES_MAX, PageRequest, Rebalance,
    RebalanceState, Scope, StoreError,
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::super::{Balancing, blocking};
use super::{
    LISTED_MAX, ListedMove, PlanOptions, PlanPreview, PlanSummary, Shape, SkippedJob,
    plan_expires_at,
};
use crate::Result;

/// Number of load profiles per store request.
const PROFILES_STEP: u32 = 5_000;
/// Number of job start times per store request.
const PLACEMENTS_STEP: u32 = 10_000;
/// Number of filtered jobs per store request.
const FILTER_STEP: u32 = 500;
/// Maximum number of moves in a plan whose moves with the largest gain are made first. The moves of
/// larger plans are made in the order of job numbers, because the store writes neighbouring jobs
/// faster.
const BY_GAIN_MAX: usize = 50_000;

/// Load profiles (the time slots of a job's runs) by key.
pub(super) type Profiles = HashMap<LoadProfileKey, LoadProfile>;

impl Balancing {
    /// Plans a rebalance and saves the plan, so that exactly this plan can be executed later.
    pub async fn preview(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        by: &str,
    ) -> Result<PlanPreview> {
        let permit = self.planning_permit().await?;
        // The clock is read after the wait for the planning permit, so that the plan does not begin
        // in the past.
        let now = self.balance.store.now().await?;
        let plan = self.plan(scope, options, permit, now).await?;
        let (rebalance, summary) = self.save_plan(scope, options, &plan, by, now).await?;
        let first: Vec<Move> = plan.moves.iter().take(LISTED_MAX).copied().collect();
        let mut moves = self.shown(&first, |_| None).await?;
        self.add_names(scope, &mut moves).await?;
        Ok(PlanPreview { expires_at: plan_expires_at(&rebalance), rebalance, summary, moves })
    }

    /// Plans a rebalance; `permit` ensures that only one rebalance plan is made at a time.
    pub(in super::super) async fn plan(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        permit: OwnedSemaphorePermit,
        now: Timestamp,
    ) -> Result<Plan> {
        // The expected load is not taken from the cache, because the load profiles must match the
        // stored start times of the jobs.
        let counts = self.tenant_load_profiles(scope).await?;
        let jobs = match &options.filter {
            None => self.all_placements(scope).await?,
            Some(filter) => self.filtered_placements(scope, filter).await?,
        };
        let all = self.balance.all_loads(now).await?;
        let (settings, wanted) = (*self.balance.settings(), options.wanted);
        let plan = blocking(move || {
            let _permit = permit;
            let (own, profiles) = count(Horizon::new(&settings, now), &counts);
            plan(&settings, &jobs, &profiles, &own, &all, wanted, now)
        });
        Ok(plan.await?)
    }

    /// Returns the expected load of the tenant from the store instead of the cache, so that clients
    /// see the effect of their last change.
    pub(crate) async fn own_loads(&self, scope: &Scope, now: Timestamp) -> Result<Loads> {
        let counts = self.tenant_load_profiles(scope).await?;
        let horizon = Horizon::new(self.balance.settings(), now);
        Ok(blocking(move || count(horizon, &counts).0).await?)
    }

    /// Waits until no other rebalance plan is being made.
    pub(super) async fn planning_permit(&self) -> Result<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.planning).acquire_owned().await;
        Ok(permit.map_err(|closed| StoreError::Refused(closed.into()))?)
    }

    /// Returns a permit to plan a rebalance, or `None` if another rebalance plan is being made.
    pub(in super::super) fn try_planning_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.planning).try_acquire_owned().ok()
    }

    pub(super) async fn save_plan(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        plan: &Plan,
        by: &str,
        now: Timestamp,
    ) -> Result<(Rebalance, PlanSummary)> {
        let listed: Vec<_> = plan.skipped.iter().take(LISTED_MAX).collect();
        let ids = self.ids(listed.iter().map(|(job, _)| *job)).await?;
        let skipped = listed.iter().zip(ids).filter_map(|((_, reason), job)| {
            Some(SkippedJob { job: job?, reason: reason.as_str().into() })
        });
        let summary = PlanSummary {
            max_moves: options.wanted.max_moves,
            target_score: options.wanted.target_score,
            filter: options.filter_document.clone(),
            before: Shape::new(plan.before, &plan.loads_before),
            after: Shape::new(plan.after, &plan.loads_after),
            skipped_by_reason: plan
                .skipped_by_reason()
                .into_iter()
                .map(|(reason, count)| (reason.as_str().into(), count))
                .collect(),
            skipped: skipped.collect(),
        };
        let skipped = plan.skipped.len() as u64;
        let rebalance =
            self.save_moves(scope, &plan.moves, skipped, &summary, None, by, now).await?;
        Ok((rebalance, summary))
    }

    /// Saves the moves of a rebalance plan under a new id.
    #[expect(clippy::too_many_arguments, reason = "each is a field of the stored rebalance")]
    pub(super) async fn save_moves(
        &self,
        scope: &Scope,
        moves: &[Move],
        skipped: u64,
        summary: &PlanSummary,
        undoes: Option<Uuid>,
        by: &str,
        now: Timestamp,
    ) -> Result<Rebalance> {
        let moves = execution_order(moves);
        let parts: Vec<Vec<u8>> = moves.chunks(MOVES_MAX).map(encode_moves).collect();
        let summary = serde_json::to_string(summary)
            .map_err(|error| StoreError::corrupt("a plan", "summary", error))?;
        let rebalance = Rebalance {
            id: JobId::new(now, self.chance.ten_bytes()).0,
            state: RebalanceState::Planned,
            undoes,
            undone_by: None,
            created_by: by.into(),
            created_at: now,
            touched_at: None,
            ended_at: None,
            parts: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            parts_done: 0,
            planned: moves.len() as u64,
            moved: 0,
            changed: 0,
            skipped,
            summary,
        };
        self.balance.store.plan_rebalance(scope, rebalance.clone(), parts).await?;
        Ok(rebalance)
    }

    pub(super) async fn tenant_load_profiles(
        &self,
        scope: &Scope,
    ) -> Result<Vec<LoadProfileCount>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.balance.store.tenant_load_profiles(scope, after, PROFILES_STEP).await?;
            let is_last = page.len() < PROFILES_STEP as usize;
            after = page.last().map(|count| count.key);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn all_placements(&self, scope: &Scope) -> Result<Vec<Placement>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.balance.store.placements(scope, after, PLACEMENTS_STEP).await?;
            let is_last = page.len() < PLACEMENTS_STEP as usize;
            after = page.last().map(|placement| placement.job);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn filtered_placements(
        &self,
        scope: &Scope,
        filter: &JobFilter,
    ) -> Result<Vec<Placement>> {
        let store = &self.balance.store;
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let page = PageRequest { limit: FILTER_STEP, offset: 0, after };
            let page = store.list_jobs(scope, filter, JobSort::default(), page).await?;
            jobs.extend(page.items.iter().map(|job| job.no));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        jobs.sort_unstable();
        jobs.dedup();
        let mut placements = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(MOVES_MAX) {
            placements.extend(store.placements_of(scope, jobs).await?);
        }
        placements.sort_unstable_by_key(|placement| placement.job);
        Ok(placements)
    }

    /// Returns the moves of a rebalance with the public ids of the moved jobs. `made` tells for
    /// each index whether that move was made.
    pub(super) async fn shown(
        &self,
        moves: &[Move],
        made: impl Fn(usize) -> Option<bool>,
    ) -> Result<Vec<ListedMove>> {
        let ids = self.ids(moves.iter().map(|step| step.job)).await?;
        let shown = moves.iter().zip(ids).enumerate().filter_map(|(place, (step, job))| {
            Some(ListedMove {
                job: job?,
                name: None,
                old_at: step.old_at,
                new_at: step.new_at,
                made: made(place),
            })
        });
        Ok(shown.collect())
    }

    /// Returns the public ids of jobs of the tenant.
    pub(super) async fn ids(
        &self,
        jobs: impl Iterator<Item = JobNo>,
    ) -> Result<Vec<Option<JobId>>> {
        let jobs: Vec<JobNo> = jobs.collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let titles = self.balance.store.job_titles(&jobs).await?;
        Ok(titles.into_iter().map(|title| Some(title?.id)).collect())
    }

    async fn add_names(&self, scope: &Scope, moves: &mut [ListedMove]) -> Result<()> {
        let ids: Vec<JobId> = moves.iter().map(|step| step.job).collect();
        let mut names = HashMap::new();
        for ids in ids.chunks(COMMANDS_MAX) {
            let jobs = self.balance.store.get_jobs(scope, ids).await?;
            names.extend(jobs.into_iter().map(|job| (job.id, job.about.name)));
        }
        for step in moves {
            step.name = names.remove(&step.job).flatten();
        }
        Ok(())
    }
}

/// Sums up the expected load of load profiles, and returns the parsed load profiles by key. A load
/// profile that a newer version of Evenkeel wrote is skipped, so its jobs are not moved.
pub(super) fn count(horizon: Horizon, counts: &[LoadProfileCount]) -> (Loads, Profiles) {
    let mut loads = Loads::new(horizon);
    let mut profiles = HashMap::with_capacity(counts.len());
    for (count, profile) in readable(counts) {
        loads.add(&profile, count.jobs, count.cost);
        profiles.insert(count.key, profile);
    }
    (loads, profiles)
}

pub(super) fn readable(
    counts: &[LoadProfileCount],
) -> impl Iterator<Item = (&LoadProfileCount, LoadProfile)> {
    counts.iter().filter_map(|count| Some((count, serde_json::from_str(&count.profile).ok()?)))
}

/// Sorts the moves of a rebalance in the order of execution. Keeps the order by gain, or sorts by
/// job if there are more than [`BY_GAIN_MAX`] moves.
fn execution_order(moves: &[Move]) -> Cow<'_, [Move]> {
    let mut moves = Cow::Borrowed(moves);
    if moves.len() > BY_GAIN_MAX {
        moves.to_mut().sort_unstable_by_key(|step| step.job);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(count: usize) -> Vec<Move> {
        let at = Timestamp::from_micros(1);
        let to = |no| Move {
            job: no,
            generation: 1,
            old_at: at,
            new_at: at,
            profile: LoadProfileKey(1),
        };
        (0..count as i64).rev().map(|no| to(JobNo(no))).collect()
    }

    #[test]
    fn execution_order_is_by_gain_unless_there_are_very_many_moves() {
        let some = planned(BY_GAIN_MAX);
        assert_eq!(*execution_order(&some), some[..]);
        let many = planned(BY_GAIN_MAX + 1);
        assert!(execution_order(&many).is_sorted_by_key(|step| step.job));
    }
}
