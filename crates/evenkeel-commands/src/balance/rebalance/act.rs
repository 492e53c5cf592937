//! Acting on a plan, batch by batch.

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
    Outlook, RebalanceConflict, SILENT_AFTER, Subject, is_silent, plan_expires_at, state_word,
};
use crate::CommandError;
use crate::jobs::announce;

/// How long to wait before a store that does not answer is asked again, in milliseconds. After all
/// of them, the rebalance is left to whoever finds it.
const PAUSES: [u64; 7] = [100, 250, 500, 1000, 2000, 4000, 8000];
/// Jobs that were left alone are named in the log up to here.
const LOGGED_MAX: usize = 20;

const REBALANCES: &str = "scheduler_rebalance_total";
const PLACEMENTS: &str = "scheduler_placements_total";
const MOVED: &str = "scheduler_rebalance_jobs_moved";
const SKIPPED: &str = "scheduler_rebalance_jobs_skipped";

/// A rebalance that goes on, whether or not somebody waits for it.
#[derive(Debug)]
pub struct Running {
    /// Which.
    pub id: Uuid,
    task: JoinHandle<Result<(), StoreError>>,
}

impl Running {
    /// Waits for its end, but no longer than this; says whether it has come.
    pub async fn wait(self, limit: Duration) -> Result<bool, CommandError> {
        match tokio::time::timeout(limit, self.task).await {
            Err(_) => Ok(false),
            Ok(Ok(ended)) => ended.map(|()| true).map_err(CommandError::Store),
            Ok(Err(panic)) => Err(CommandError::Store(StoreError::Refused(panic.into()))),
        }
    }
}

impl Balancing {
    /// Begins a rebalance, or goes on with one that was stopped or left alone.
    pub async fn begin(
        &self,
        scope: &Scope,
        subject: &Subject,
        by: &str,
    ) -> Result<Running, CommandError> {
        let store = &self.balance.store;
        match subject {
            Subject::Plan(id) => {
                let now = store.now().await?;
                let rebalance = self.plan_to_act_on(scope, *id, now).await?;
                let checked = self.check(scope, &rebalance, now).await?;
                // Whoever began it has been told; now it is about what is left.
                if !has_begun(&rebalance) {
                    self.refuse_changes(&checked).await?;
                }
                self.start(scope, &rebalance, checked.rhythms, now).await
            }
            Subject::Fresh(options) => {
                let turn = self.turn().await?;
                let now = store.now().await?;
                let plan = self.draft(scope, options, turn, now).await?;
                let (rebalance, _) = self.keep_plan(scope, options, &plan, by, now).await?;
                self.start(scope, &rebalance, plan.rhythms, now).await
            }
        }
    }

    /// The plan, if it may be acted on.
    async fn plan_to_act_on(
        &self,
        scope: &Scope,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Rebalance, CommandError> {
        let found = self.balance.store.get_rebalance(scope, id).await?;
        let rebalance = found.ok_or(CommandError::NotFound)?;
        let refuse =
            |why: &str| Err(CommandError::Rebalance(RebalanceConflict::state(&rebalance, why)));
        if rebalance.undone_by.is_some() {
            return refuse("it was undone; make a new preview");
        }
        match rebalance.state {
            RebalanceState::Done => refuse("its moves were made; make a new preview"),
            RebalanceState::Running if is_silent(&rebalance, now) => Ok(rebalance),
            RebalanceState::Running => {
                Err(CommandError::Rebalance(RebalanceConflict::UnderWay { id }))
            }
            RebalanceState::Stopped if has_begun(&rebalance) => Ok(rebalance),
            RebalanceState::Planned | RebalanceState::Stopped => {
                let until = plan_expires_at(&rebalance);
                if now >= until {
                    return Err(CommandError::Rebalance(RebalanceConflict::PlanExpired { until }));
                }
                Ok(rebalance)
            }
        }
    }

    /// Lets a rebalance go on in a task of its own.
    pub(super) async fn start(
        &self,
        scope: &Scope,
        rebalance: &Rebalance,
        rhythms: HashMap<LoadProfileKey, String>,
        now: Timestamp,
    ) -> Result<Running, CommandError> {
        let id = rebalance.id;
        let silent_before = now.saturating_sub(SILENT_AFTER);
        let store = &self.balance.store;
        let begun = store.begin_rebalance(scope, id, silent_before, Now::Database).await?;
        let begun = match begun.ok_or(CommandError::NotFound)? {
            BeganRebalance::Now(begun) => begun,
            BeganRebalance::Other(other) => {
                return Err(CommandError::Rebalance(in_the_way(id, &other)));
            }
        };
        let mover = Mover {
            balancing: self.clone(),
            scope: *scope,
            id,
            rhythms,
            even_live: rebalance.undoes.is_some(),
        };
        self.tell(scope, EventKind::RebalanceStarted, now, &begun);
        let task = tokio::spawn(mover.run().in_current_span());
        Ok(Running { id, task })
    }

    /// Tells those who listen.
    fn tell(&self, scope: &Scope, kind: EventKind, at: Timestamp, about: &Rebalance) {
        let events = self.balance.store.events();
        if !events.has_listeners() {
            return;
        }
        let mut data = json!({"rebalance_id": about.id, "undoes": about.undoes});
        if kind == EventKind::RebalanceStarted {
            data["planned_total"] = about.planned.into();
        } else {
            data["state"] = state_word(about.state).into();
            data["moved_total"] = about.moved.into();
            data["skipped_total"] = (about.skipped + about.changed).into();
        }
        let (tenant, job, run) = (scope.tenant, EventJob::None, None);
        events.emit([NewEvent { kind, tenant, job, run, at, data: data.to_string() }]);
    }

    /// Stops a rebalance that goes on: batches that are done stay done.
    pub async fn stop(&self, scope: &Scope, id: Uuid) -> Result<(), CommandError> {
        let store = &self.balance.store;
        let found = store.get_rebalance(scope, id).await?.ok_or(CommandError::NotFound)?;
        let refuse = |rebalance: &Rebalance| {
            let why = "there is nothing to stop";
            Err(CommandError::Rebalance(RebalanceConflict::state(rebalance, why)))
        };
        if found.state != RebalanceState::Running {
            return refuse(&found);
        }
        let ended = store.end_rebalance(scope, id, RebalanceState::Stopped, Now::Database).await?;
        let ended = ended.ok_or(CommandError::NotFound)?;
        if ended.state == RebalanceState::Stopped { Ok(()) } else { refuse(&ended) }
    }
}

/// Has it moved something, or goes on? Then whoever acts on it wants the rest of it, as far as that can
/// still be had.
fn has_begun(rebalance: &Rebalance) -> bool {
    rebalance.state == RebalanceState::Running || rebalance.parts_done > 0
}

/// Why a rebalance did not begin, if this is in its way.
fn in_the_way(id: Uuid, other: &Rebalance) -> RebalanceConflict {
    if other.state == RebalanceState::Running {
        return RebalanceConflict::UnderWay { id: other.id };
    }
    let why = if other.id != id {
        format!("what it takes back was undone already, by {}", other.id)
    } else if other.undone_by.is_some() {
        "it was undone; make a new preview".into()
    } else {
        "its moves were made; make a new preview".into()
    };
    RebalanceConflict::state(other, why)
}

/// Makes the moves of one rebalance.
struct Mover {
    balancing: Balancing,
    scope: Scope,
    id: Uuid,
    /// The rhythms they lead to, as they are stored.
    rhythms: HashMap<LoadProfileKey, String>,
    even_live: bool,
}

impl Mover {
    async fn run(self) -> Result<(), StoreError> {
        let mut pauses = PAUSES.iter();
        let ended = loop {
            let error = match self.go_on().await {
                Ok(ended) => break ended,
                Err(error) => error,
            };
            let pause = pauses.next().filter(|_| error.is_outage());
            let Some(pause) = pause else {
                tracing::error!(
                    rebalance.id = %self.id, error = &error as &dyn std::error::Error,
                    "a rebalance was left in the middle"
                );
                return Err(error.after_changes());
            };
            // Whether the last batch was moved is unknown; going on begins with looking.
            tracing::warn!(
                rebalance.id = %self.id, error = &error as &dyn std::error::Error,
                "a rebalance waits for the store"
            );
            tokio::time::sleep(Duration::from_millis(*pause)).await;
        };
        if let Some(ended) = ended {
            let at = ended.ended_at.unwrap_or(ended.created_at);
            self.balancing.tell(&self.scope, EventKind::RebalanceFinished, at, &ended);
            self.log(&ended).await;
        }
        Ok(())
    }

    /// Makes the moves that are left. Answers with the rebalance if this ended it, or found it
    /// stopped.
    async fn go_on(&self) -> Result<Option<Rebalance>, StoreError> {
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
                let ended = store.end_rebalance(&self.scope, self.id, done, Now::Database).await?;
                return Ok(ended);
            }
        }
    }

    /// Makes moves from the first batch that is not done; says whether all are made. If not, it was
    /// stopped, or somebody else made some.
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
        let tell = |is_moved: bool| async move {
            if is_moved {
                announce(&**store, Signal::Jobs).await;
            }
        };
        let mut moves = read(found.parts_done).await?;
        for part in found.parts_done..found.parts {
            let mut rhythms: Vec<_> = moves
                .iter()
                .filter_map(|one| Some((one.rhythm, self.rhythms.get(&one.rhythm)?.clone())))
                .collect();
            rhythms.sort_unstable();
            rhythms.dedup();
            let even_live = self.even_live;
            let batch = MoveBatch { rebalance: self.id, part, moves, rhythms, even_live };
            let moving = store.move_jobs(scope, batch, Now::Database);
            // The next batch is read while this one is moved, and schedulers hear of the one before.
            let was_moved = part > found.parts_done;
            let (moved, next, ()) = tokio::join!(moving, read(part + 1), tell(was_moved));
            if moved? == Moved::Stopped {
                let now = store.get_rebalance(scope, self.id).await?;
                let goes_on = now.as_ref().is_some_and(|now| {
                    now.state == RebalanceState::Running && now.parts_done == part
                });
                if goes_on {
                    let row = format!("rebalance {}", self.id);
                    return Err(StoreError::corrupt(
                        row,
                        "parts_done",
                        "it neither moves nor stops",
                    ));
                }
                return Ok(false);
            }
            balancing.balance.outdate();
            moves = next?;
        }
        tell(true).await;
        Ok(true)
    }

    async fn log(&self, ended: &Rebalance) {
        let Rebalance { moved, skipped, changed, state, .. } = ended;
        let all_skipped = skipped + changed;
        metrics::counter!(REBALANCES).increment(1);
        metrics::counter!(PLACEMENTS, "type" => "rebalance").increment(*moved);
        metrics::gauge!(MOVED).set(*moved as f64);
        metrics::gauge!(SKIPPED).set(all_skipped as f64);
        let Ok(outlook) = Outlook::of(ended) else { return };
        let named = &outlook.skipped[..outlook.skipped.len().min(LOGGED_MAX)];
        for skipped in named {
            tracing::warn!(job_id = %skipped.job, reason = skipped.reason, "job skipped during rebalance");
        }
        let skipped = all_skipped.saturating_sub(named.len() as u64);
        if skipped > 0 {
            tracing::warn!(skipped, "more jobs were skipped during rebalance");
        }
        let score = self.balancing.score(&self.scope).await.ok();
        let what = match state {
            RebalanceState::Stopped => "rebalance stopped",
            _ if ended.undoes.is_some() => "rebalance undone",
            _ => "full rebalance completed",
        };
        tracing::info!(
            rebalance.id = %self.id, moved, skipped = all_skipped,
            old_score = outlook.before.score, new_score = score, "{what}",
        );
    }
}
