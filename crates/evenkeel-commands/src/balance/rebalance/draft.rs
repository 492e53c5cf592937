//! Making plans.

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

use super::super::{Balancing, apart};
use super::{
    LISTED_MAX, MoveShown, Outlook, PlanOptions, Previewed, Shape, SkippedJob, plan_expires_at,
};
use crate::CommandError;

/// LoadProfiles that are read at once.
const RHYTHMS_STEP: u32 = 5_000;
/// Jobs whose places are read at once.
const PLACEMENTS_STEP: u32 = 10_000;
/// Jobs that pass a filter and are read at once.
const FILTER_STEP: u32 = 500;
/// What gains most is moved first, unless there is more than this: neighbours in the store, moved
/// together, are written together.
const BY_GAIN_MAX: usize = 50_000;

impl Balancing {
    /// Plans a rebalance and keeps the plan, so that it can be acted on as it was shown.
    pub async fn preview(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        by: &str,
    ) -> Result<Previewed, CommandError> {
        let turn = self.turn().await?;
        // What is decided is about the time after the wait.
        let now = self.balance.store.now().await?;
        let plan = self.draft(scope, options, turn, now).await?;
        let (rebalance, outlook) = self.keep_plan(scope, options, &plan, by, now).await?;
        let first: Vec<Move> = plan.moves.iter().take(LISTED_MAX).copied().collect();
        let mut moves = self.shown(&first, |_| None).await?;
        self.add_names(scope, &mut moves).await?;
        Ok(Previewed { expires_at: plan_expires_at(&rebalance), rebalance, outlook, moves })
    }

    /// Plans a rebalance, for whoever has the turn.
    pub(in super::super) async fn draft(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        turn: OwnedSemaphorePermit,
        now: Timestamp,
    ) -> Result<Plan, CommandError> {
        // Read now, not what is known: it must fit the places of the jobs.
        let counts = self.tenant_load_profiles(scope).await?;
        let jobs = match &options.filter {
            None => self.all_placements(scope).await?,
            Some(filter) => self.filtered_placements(scope, filter).await?,
        };
        let all = self.balance.all_loads(now).await?;
        let (settings, wanted) = (*self.balance.settings(), options.wanted);
        apart(move || {
            let _turn = turn;
            let (own, rhythms) = count(Horizon::new(&settings, now), &counts);
            plan(&settings, &jobs, &rhythms, &own, &all, wanted, now)
        })
        .await
    }

    /// The scope's load as it is now, not as it is known: people compare what they see with what
    /// they did a moment ago.
    pub(in super::super) async fn own_loads(
        &self,
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Loads, CommandError> {
        let counts = self.tenant_load_profiles(scope).await?;
        let horizon = Horizon::new(self.balance.settings(), now);
        // There may be many rhythms.
        apart(move || count(horizon, &counts).0).await
    }

    /// Waits until nobody else makes a plan.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, CommandError> {
        Arc::clone(&self.planning).acquire_owned().await.map_err(|closed| {
            // Nobody ever closes it.
            CommandError::Store(StoreError::Refused(closed.into()))
        })
    }

    /// The turn to make a plan, if nobody else does.
    pub(in super::super) fn turn_at_once(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.planning).try_acquire_owned().ok()
    }

    /// Keeps a plan of the scope.
    pub(super) async fn keep_plan(
        &self,
        scope: &Scope,
        options: &PlanOptions,
        plan: &Plan,
        by: &str,
        now: Timestamp,
    ) -> Result<(Rebalance, Outlook), CommandError> {
        let listed: Vec<_> = plan.skipped.iter().take(LISTED_MAX).collect();
        let ids = self.ids(listed.iter().map(|(job, _)| *job)).await?;
        let skipped = listed.iter().zip(ids).filter_map(|((_, reason), job)| {
            Some(SkippedJob { job: job?, reason: reason.as_str().into() })
        });
        let outlook = Outlook {
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
            self.keep_moves(scope, &plan.moves, skipped, &outlook, None, by, now).await?;
        Ok((rebalance, outlook))
    }

    /// Keeps moves under a new id.
    #[expect(clippy::too_many_arguments, reason = "each is a field of what is kept")]
    pub(super) async fn keep_moves(
        &self,
        scope: &Scope,
        moves: &[Move],
        skipped: u64,
        outlook: &Outlook,
        undoes: Option<Uuid>,
        by: &str,
        now: Timestamp,
    ) -> Result<Rebalance, CommandError> {
        let moves = as_they_are_made(moves);
        let parts: Vec<Vec<u8>> = moves.chunks(MOVES_MAX).map(encode_moves).collect();
        let summary = serde_json::to_string(outlook)
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

    /// The rhythms of the scope's jobs.
    pub(super) async fn tenant_load_profiles(
        &self,
        scope: &Scope,
    ) -> Result<Vec<LoadProfileCount>, CommandError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.balance.store.tenant_load_profiles(scope, after, RHYTHMS_STEP).await?;
            let is_last = page.len() < RHYTHMS_STEP as usize;
            after = page.last().map(|count| count.key);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn all_placements(&self, scope: &Scope) -> Result<Vec<Placement>, CommandError> {
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
    ) -> Result<Vec<Placement>, CommandError> {
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

    /// Moves as they are shown: `made` says what became of each, by its place.
    pub(super) async fn shown(
        &self,
        moves: &[Move],
        made: impl Fn(usize) -> Option<bool>,
    ) -> Result<Vec<MoveShown>, CommandError> {
        let ids = self.ids(moves.iter().map(|one| one.job)).await?;
        let shown = moves.iter().zip(ids).enumerate().filter_map(|(place, (one, job))| {
            Some(MoveShown {
                job: job?,
                name: None,
                old_at: one.old_at,
                new_at: one.new_at,
                made: made(place),
            })
        });
        Ok(shown.collect())
    }

    /// The public ids of jobs that are known to be the scope's.
    pub(super) async fn ids(
        &self,
        jobs: impl Iterator<Item = JobNo>,
    ) -> Result<Vec<Option<JobId>>, CommandError> {
        let jobs: Vec<JobNo> = jobs.collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let titles = self.balance.store.job_titles(&jobs).await?;
        Ok(titles.into_iter().map(|title| Some(title?.id)).collect())
    }

    async fn add_names(&self, scope: &Scope, moves: &mut [MoveShown]) -> Result<(), CommandError> {
        let ids: Vec<JobId> = moves.iter().map(|one| one.job).collect();
        let mut names = HashMap::new();
        for ids in ids.chunks(COMMANDS_MAX) {
            let jobs = self.balance.store.get_jobs(scope, ids).await?;
            names.extend(jobs.into_iter().map(|job| (job.id, job.about.name)));
        }
        for one in moves {
            one.name = names.remove(&one.job).flatten();
        }
        Ok(())
    }
}

/// The load of rhythms, and the rhythms by their keys. One that a newer version wrote counts for
/// nothing, and its jobs are not moved.
pub(super) fn count(
    horizon: Horizon,
    counts: &[LoadProfileCount],
) -> (Loads, HashMap<LoadProfileKey, LoadProfile>) {
    let mut loads = Loads::new(horizon);
    let mut rhythms = HashMap::with_capacity(counts.len());
    for (count, rhythm) in readable(counts) {
        loads.add(&rhythm, count.jobs, count.cost);
        rhythms.insert(count.key, rhythm);
    }
    (loads, rhythms)
}

/// The rhythms that can be read.
pub(super) fn readable(
    counts: &[LoadProfileCount],
) -> impl Iterator<Item = (&LoadProfileCount, LoadProfile)> {
    counts.iter().filter_map(|count| Some((count, serde_json::from_str(&count.rhythm).ok()?)))
}

/// What gains most first, as it was planned; of very many, by job.
fn as_they_are_made(moves: &[Move]) -> Cow<'_, [Move]> {
    let mut moves = Cow::Borrowed(moves);
    if moves.len() > BY_GAIN_MAX {
        moves.to_mut().sort_unstable_by_key(|one| one.job);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(count: usize) -> Vec<Move> {
        let at = Timestamp::from_micros(1);
        let to =
            |no| Move { job: no, generation: 1, old_at: at, new_at: at, rhythm: LoadProfileKey(1) };
        (0..count as i64).rev().map(|no| to(JobNo(no))).collect()
    }

    #[test]
    fn only_very_many_moves_leave_the_order_of_their_gain() {
        let some = planned(BY_GAIN_MAX);
        assert_eq!(*as_they_are_made(&some), some[..]);
        let many = planned(BY_GAIN_MAX + 1);
        assert!(as_they_are_made(&many).is_sorted_by_key(|one| one.job));
    }
}
