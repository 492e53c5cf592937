//! Executes a planned rebalance, batch by batch.

use std::collections::HashMap;
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_core::balance::LoadProfileKey;
use evenkeel_store::{
    BeganRebalance, EventJob, EventKind, MoveBatch, Moved, NewEvent, Now, Rebalance,
    RebalanceState, Scope, Signal, StoreError,
};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use uuid::Uuid;

use super::super::Balancing;
use super::{
    ABANDONED_AFTER, PlanSource, PlanSummary, RebalanceConflict, is_abandoned, plan_expires_at,
    state_name,
};
use crate::jobs::announce;
use crate::{CommandError, Result};

/// Delays in milliseconds between the tries of a node to continue a rebalance after the store has
/// failed. After the last try the node abandons the rebalance, and a request to any node can
/// continue it.
const PAUSES: [u64; 7] = [100, 250, 500, 1000, 2000, 4000, 8000];
/// Maximum number of skipped jobs that are logged one by one.
const LOGGED_MAX: usize = 20;

#[derive(Debug)]
pub struct RunningRebalance {
    pub id: Uuid,
    task: JoinHandle<Result<(), StoreError>>,
}

impl RunningRebalance {
    /// Waits until the rebalance has finished, but at most for the duration `limit`. Returns true
    /// if the rebalance has finished.
    pub async fn wait(self, limit: Duration) -> Result<bool> {
        match tokio::time::timeout(limit, self.task).await {
            Err(_) => Ok(false),
            Ok(Ok(ended)) => ended.map(|()| true).map_err(CommandError::Store),
            Ok(Err(panic)) => Err(StoreError::Refused(panic.into()).into()),
        }
    }
}

impl Balancing {
    /// Starts a rebalance, or continues one that was stopped or abandoned.
    pub async fn begin(
        &self,
        scope: &Scope,
        source: &PlanSource,
        by: &str,
    ) -> Result<RunningRebalance> {
        let store = &self.balance.store;
        match source {
            PlanSource::Plan(id) => {
                let now = store.now().await?;
                let rebalance = self.find_plan(scope, *id, now).await?;
                let checked = self.check(scope, &rebalance, now).await?;
                // A rebalance that is continued does not report changed jobs as an error, and makes
                // the moves that are still possible.
                if !has_begun(&rebalance) {
                    self.refuse_changes(&checked).await?;
                }
                self.start(scope, &rebalance, checked.profiles, now).await
            }
            PlanSource::Fresh(options) => {
                let permit = self.planning_permit().await?;
                let now = store.now().await?;
                let plan = self.plan(scope, options, permit, now).await?;
                let (rebalance, _) = self.save_plan(scope, options, &plan, by, now).await?;
                self.start(scope, &rebalance, plan.profiles, now).await
            }
        }
    }

    /// Returns the rebalance plan with this id if it can be executed.
    async fn find_plan(&self, scope: &Scope, id: Uuid, now: Timestamp) -> Result<Rebalance> {
        let rebalance = self.get(scope, id).await?;
        let refuse = |why: &str| Err(RebalanceConflict::state(&rebalance, why).into());
        if rebalance.undone_by.is_some() {
            return refuse("it was undone; make a new preview");
        }
        match rebalance.state {
            RebalanceState::Done => refuse("its moves were made; make a new preview"),
            RebalanceState::Running if is_abandoned(&rebalance, now) => Ok(rebalance),
            RebalanceState::Running => Err(RebalanceConflict::UnderWay { id }.into()),
            RebalanceState::Stopped if has_begun(&rebalance) => Ok(rebalance),
            RebalanceState::Planned | RebalanceState::Stopped => {
                let until = plan_expires_at(&rebalance);
                if now < until {
                    Ok(rebalance)
                } else {
                    Err(RebalanceConflict::PlanExpired { until }.into())
                }
            }
        }
    }

    /// Executes a rebalance in its own task.
    pub(super) async fn start(
        &self,
        scope: &Scope,
        rebalance: &Rebalance,
        profiles: HashMap<LoadProfileKey, String>,
        now: Timestamp,
    ) -> Result<RunningRebalance> {
        let id = rebalance.id;
        let silent_before = now.saturating_sub(ABANDONED_AFTER);
        let store = &self.balance.store;
        let begun = store.begin_rebalance(scope, id, silent_before, Now::Database).await?;
        let begun = match begun.ok_or(CommandError::NotFound)? {
            BeganRebalance::Now(begun) => begun,
            BeganRebalance::Other(other) => return Err(why_blocked(id, &other).into()),
        };
        let (balancing, even_live) = (self.clone(), rebalance.undoes.is_some());
        let mover = Mover { balancing, scope: *scope, id, profiles, even_live };
        self.emit(scope, EventKind::RebalanceStarted, now, &begun);
        let task = tokio::spawn(mover.run().in_current_span());
        Ok(RunningRebalance { id, task })
    }

    fn emit(&self, scope: &Scope, kind: EventKind, at: Timestamp, about: &Rebalance) {
        let events = self.balance.store.events();
        if !events.has_listeners() {
            return;
        }
        let mut data = json!({"rebalance_id": about.id, "undoes": about.undoes});
        if kind == EventKind::RebalanceStarted {
            data["planned_total"] = about.planned.into();
        } else {
            data["state"] = state_name(about.state).into();
            data["moved_total"] = about.moved.into();
            data["skipped_total"] = (about.skipped + about.changed).into();
        }
        let (tenant, job, run) = (scope.tenant, EventJob::None, None);
        events.emit([NewEvent { kind, tenant, job, run, at, data: data.to_string() }]);
    }

    /// Stops a running rebalance. Jobs that the rebalance has already moved keep their new start
    /// times.
    pub async fn stop(&self, scope: &Scope, id: Uuid) -> Result<()> {
        let mut found = self.get(scope, id).await?;
        if found.state == RebalanceState::Running {
            found = self.end_stopped(scope, id).await?;
            if found.state == RebalanceState::Stopped {
                return Ok(());
            }
        }
        Err(RebalanceConflict::state(&found, "there is nothing to stop").into())
    }
}

/// True if the rebalance is running or has already moved jobs. Continuing a rebalance makes the
/// remaining moves that are still possible.
fn has_begun(rebalance: &Rebalance) -> bool {
    rebalance.state == RebalanceState::Running || rebalance.parts_done > 0
}

/// Returns why the rebalance `other` prevents the start of the rebalance `id`.
fn why_blocked(id: Uuid, other: &Rebalance) -> RebalanceConflict {
    if other.state == RebalanceState::Running {
        return RebalanceConflict::UnderWay { id: other.id };
    }
    let why = if other.id != id {
        format!("the rebalance was undone already, by {}", other.id)
    } else if other.undone_by.is_some() {
        "it was undone; make a new preview".into()
    } else {
        "its moves were made; make a new preview".into()
    };
    RebalanceConflict::state(other, why)
}

struct Mover {
    balancing: Balancing,
    scope: Scope,
    id: Uuid,
    /// Load profiles of the moved jobs, as stored texts.
    profiles: HashMap<LoadProfileKey, String>,
    even_live: bool,
}

impl Mover {
    async fn run(self) -> Result<(), StoreError> {
        let mut pauses = PAUSES.iter();
        let ended = loop {
            let error = match self.make_moves().await {
                Ok(ended) => break ended,
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_outage()) else {
                tracing::error!(
                    rebalance.id = %self.id, error = &error as &dyn std::error::Error,
                    "rebalance failed; an operator can continue or undo it"
                );
                return Err(error.after_changes());
            };
            // It is unknown whether the store has moved the last batch of jobs, so the next try
            // first checks which batches were moved.
            tracing::warn!(
                rebalance.id = %self.id, error = &error as &dyn std::error::Error,
                "store unavailable; the rebalance will be retried"
            );
            tokio::time::sleep(Duration::from_millis(*pause)).await;
        };
        if let Some(ended) = ended {
            let at = ended.ended_at.unwrap_or(ended.created_at);
            self.balancing.emit(&self.scope, EventKind::RebalanceFinished, at, &ended);
            self.log(&ended).await;
        }
        Ok(())
    }

    /// Makes the remaining moves of the rebalance. Returns the rebalance if all its moves are made
    /// or if it was stopped.
    async fn make_moves(&self) -> Result<Option<Rebalance>, StoreError> {
        let store = &self.balancing.balance.store;
        loop {
            let Some(found) = store.get_rebalance(&self.scope, self.id).await? else {
                return Ok(None);
            };
            match found.state {
                RebalanceState::Running => {}
                RebalanceState::Stopped => return Ok(Some(found)),
                RebalanceState::Planned | RebalanceState::Done => return Ok(None),
            }
            if self.move_from(&found).await? {
                let done = RebalanceState::Done;
                return store.end_rebalance(&self.scope, self.id, done, Now::Database).await;
            }
        }
    }

    /// Makes the moves of the rebalance in all batches from the first unfinished batch on. Returns
    /// false if the rebalance was stopped or another node made some of the moves.
    async fn move_from(&self, found: &Rebalance) -> Result<bool, StoreError> {
        let Self { balancing, scope, .. } = self;
        let store = &balancing.balance.store;
        let read = |part: u32| async move {
            if part < found.parts {
                balancing.part(scope, found.id, part).await.map(|(moves, _)| moves)
            } else {
                Ok(Vec::new())
            }
        };
        let announce_moved = |is_moved: bool| async move {
            if is_moved {
                announce(&**store, Signal::Jobs).await;
            }
        };
        let mut moves = read(found.parts_done).await?;
        for part in found.parts_done..found.parts {
            let mut profiles: Vec<_> = moves
                .iter()
                .filter_map(|step| Some((step.profile, self.profiles.get(&step.profile)?.clone())))
                .collect();
            profiles.sort_unstable();
            profiles.dedup();
            let even_live = self.even_live;
            let batch = MoveBatch { rebalance: self.id, part, moves, profiles, even_live };
            let moving = store.move_jobs(scope, batch, Now::Database);
            // While the jobs of one batch are moved, the next batch is read, and the moves of the
            // previous batch are announced to the other nodes.
            let was_moved = part > found.parts_done;
            let (moved, next, ()) = tokio::join!(moving, read(part + 1), announce_moved(was_moved));
            if moved? == Moved::Stopped {
                let now = store.get_rebalance(scope, self.id).await?;
                let is_unchanged = now.as_ref().is_some_and(|now| {
                    now.state == RebalanceState::Running && now.parts_done == part
                });
                if is_unchanged {
                    let row = format!("rebalance {}", self.id);
                    let why = "the rebalance neither moves nor stops";
                    return Err(StoreError::corrupt(row, "parts_done", why));
                }
                return Ok(false);
            }
            balancing.balance.invalidate();
            moves = next?;
        }
        announce_moved(true).await;
        Ok(true)
    }

    async fn log(&self, ended: &Rebalance) {
        let Rebalance { moved, skipped, changed, state, .. } = ended;
        let all_skipped = skipped + changed;
        metrics::counter!("scheduler_rebalance_total").increment(1);
        metrics::counter!("scheduler_placements_total", "type" => "rebalance").increment(*moved);
        metrics::gauge!("scheduler_rebalance_jobs_moved").set(*moved as f64);
        metrics::gauge!("scheduler_rebalance_jobs_skipped").set(all_skipped as f64);
        let Ok(summary) = PlanSummary::of(ended) else { return };
        let named = &summary.skipped[..summary.skipped.len().min(LOGGED_MAX)];
        for skipped in named {
            tracing::warn!(job_id = %skipped.job, reason = skipped.reason, "job skipped during rebalance");
        }
        let skipped = all_skipped.saturating_sub(named.len() as u64);
        if skipped > 0 {
            tracing::warn!(
                skipped,
                "a rebalance skipped too many jobs to log each of them; logging only the number of further jobs"
            );
        }
        let score = self.balancing.score(&self.scope).await.ok();
        let what = match state {
            RebalanceState::Stopped => "rebalance stopped",
            _ if ended.undoes.is_some() => "rebalance undone",
            _ => "full rebalance completed",
        };
        tracing::info!(
            rebalance.id = %self.id, moved, skipped = all_skipped,
            old_score = summary.before.score, new_score = score, "{what}",
        );
    }
}
