//! Undoes a rebalance.

use std::collections::{BTreeMap, HashMap};

use evenkeel_core::balance::{
    Horizon, LoadProfile, LoadProfileKey, Loads, Move, Placement, Recurrence, SkipReason,
    moved_back,
};
use evenkeel_core::{JobNo, Timestamp};
use evenkeel_store::{Rebalance, RebalanceState, Scope};
use uuid::Uuid;

use super::super::{Balancing, blocking};
use super::plan::{Profiles, count};
use super::{
    LISTED_MAX, PlanSummary, RebalanceConflict, RunningRebalance, Shape, SkippedJob, is_abandoned,
    undo_until,
};
use crate::Result;

impl Balancing {
    /// Undoes a rebalance: each job that still has the start time from the rebalance returns to its
    /// former start time.
    pub async fn undo(&self, scope: &Scope, id: Uuid, by: &str) -> Result<RunningRebalance> {
        let store = &self.balance.store;
        let permit = self.planning_permit().await?;
        let now = store.now().await?;
        let done = self.find_undoable(scope, id, now).await?;
        let (before, known) = {
            let counts = self.tenant_load_profiles(scope).await?;
            let horizon = Horizon::new(self.balance.settings(), now);
            blocking(move || count(horizon, &counts)).await?
        };
        let mut undo_plan = UndoPlan::new(before, known, now);
        for part in 0..done.parts_done {
            let (moves, made) = self.part(scope, id, part).await?;
            let made = moves.into_iter().zip(made.unwrap_or_default());
            let made: Vec<Move> = made.filter_map(|(step, made)| made.then_some(step)).collect();
            let places = self.places(scope, &made).await?;
            for step in &made {
                undo_plan.add(step, places.get(&step.job));
            }
        }
        // The moves of an undo are sorted by job, because the store writes neighbouring jobs
        // faster.
        undo_plan.moves.sort_unstable_by_key(|step| step.job);
        let summary = self.undo_summary(&undo_plan).await?;
        let changed = undo_plan.changed.len() as u64;
        let undo =
            self.save_moves(scope, &undo_plan.moves, changed, &summary, Some(id), by, now).await?;
        drop(permit);
        self.start(scope, &undo, undo_plan.profiles, now).await
    }

    /// Returns the rebalance if it can be undone.
    async fn find_undoable(&self, scope: &Scope, id: Uuid, now: Timestamp) -> Result<Rebalance> {
        let mut done = self.get(scope, id).await?;
        if is_abandoned(&done, now) {
            // The node that executed the rebalance has died, so the rebalance is marked as stopped.
            // If the node of the abandoned rebalance comes back, it finds the rebalance stopped and
            // does not continue.
            done = self.end_stopped(scope, id).await?;
        }
        let why = match done.state {
            RebalanceState::Planned => Some("nothing was moved yet".into()),
            RebalanceState::Running => Some("stop it first, or wait for its end".into()),
            RebalanceState::Done | RebalanceState::Stopped => {
                if let Some(by) = self.undone_by(scope, &done, now).await? {
                    Some(format!("it was undone already, by {by}"))
                } else if done.moved == 0 {
                    Some("it moved nothing".into())
                } else if now >= undo_until(&done) {
                    Some(format!("it could be undone until {}", undo_until(&done)))
                } else {
                    None
                }
            }
        };
        match why {
            None => Ok(done),
            Some(why) => Err(RebalanceConflict::state(&done, why).into()),
        }
    }

    /// Returns the undo that has reverted the rebalance completely, if there is one. An undo is
    /// incomplete if it was stopped, its node died, or it could not move some jobs because they had
    /// just run.
    async fn undone_by(
        &self,
        scope: &Scope,
        done: &Rebalance,
        now: Timestamp,
    ) -> Result<Option<Uuid>> {
        let Some(by) = done.undone_by else { return Ok(None) };
        let Some(undo) = self.balance.store.get_rebalance(scope, by).await? else {
            return Ok(Some(by));
        };
        match undo.state {
            RebalanceState::Running if !is_abandoned(&undo, now) => {
                Err(RebalanceConflict::UnderWay { id: by }.into())
            }
            _ => Ok(undo.is_complete().then_some(by)),
        }
    }

    async fn undo_summary(&self, undo_plan: &UndoPlan) -> Result<PlanSummary> {
        let listed = undo_plan.changed.iter().take(LISTED_MAX).copied();
        let ids = self.ids(listed).await?;
        let reason = SkipReason::Changed.as_str();
        let skipped =
            ids.into_iter().flatten().map(|job| SkippedJob { job, reason: reason.into() });
        let mut by_reason = BTreeMap::new();
        if !undo_plan.changed.is_empty() {
            by_reason.insert(reason.to_owned(), undo_plan.changed.len() as u64);
        }
        Ok(PlanSummary {
            max_moves: None,
            target_score: None,
            filter: None,
            before: Shape::of(&undo_plan.before),
            after: Shape::of(&undo_plan.after),
            skipped_by_reason: by_reason,
            skipped: skipped.collect(),
        })
    }
}

/// Collects the moves that revert a rebalance.
struct UndoPlan {
    now: Timestamp,
    known: Profiles,
    moves: Vec<Move>,
    profiles: HashMap<LoadProfileKey, String>,
    /// Jobs that have changed since the rebalance.
    changed: Vec<JobNo>,
    before: Loads,
    after: Loads,
}

impl UndoPlan {
    fn new(before: Loads, known: Profiles, now: Timestamp) -> Self {
        let after = before.clone();
        let (moves, profiles, changed) = (Vec::new(), HashMap::new(), Vec::new());
        Self { now, known, moves, profiles, changed, before, after }
    }

    /// Adds the reverse of the move `done`, if the job still has the start time from that move.
    fn add(&mut self, done: &Move, placement: Option<&Placement>) {
        let Some((placement, profile, new_at)) = self.reverse(done, placement) else {
            self.changed.push(done.job);
            return;
        };
        let target = profile.moved_to(new_at);
        let text = target.text();
        let key = LoadProfileKey::of(&text);
        self.after.remove(&profile, 1, placement.cost);
        self.after.add(&target, 1, placement.cost);
        self.profiles.entry(key).or_insert(text);
        self.moves.push(Move {
            job: done.job,
            generation: placement.generation,
            old_at: placement.next_at,
            new_at,
            profile: key,
        });
    }

    fn reverse(
        &self,
        done: &Move,
        placement: Option<&Placement>,
    ) -> Option<(Placement, LoadProfile, Timestamp)> {
        let placement = *placement?;
        if placement.generation != done.generation.wrapping_add(1) {
            return None;
        }
        let profile = self.known.get(&placement.profile?)?;
        let Recurrence::Every { every, .. } = profile.recurrence else { return None };
        let new_at = moved_back(done, every, placement.next_at, self.now)?;
        Some((placement, profile.clone(), new_at))
    }
}
