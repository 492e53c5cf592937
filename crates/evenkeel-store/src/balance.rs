//! Verbs that count load and move jobs.

use evenkeel_core::balance::{LoadProfileKey, Move, Placement, SkipReason};
use evenkeel_core::{JobNo, Span, TenantNo, Timestamp};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The maximum number of moves in a batch.
pub const MOVES_MAX: usize = 2000;

/// The number of jobs of a tenant with one load profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadProfileCount {
    pub tenant: TenantNo,
    pub key: LoadProfileKey,
    /// As stored; see [`LoadProfile`](evenkeel_core::balance::LoadProfile).
    pub profile: String,
    pub jobs: u64,
    /// The cost of one run of each of the jobs, added up.
    pub cost: Span,
}

/// Rebalances that moved jobs are kept this much longer than plans, so that users can see what was
/// moved and undo it.
pub const REBALANCES_KEPT: Span = Span::from_secs(7 * 86_400);

/// The number of batches of moves that are deleted at once: about 10 MB.
pub const PARTS_PRUNED: u32 = 1000;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Recounted {
    /// The next step starts after this job; `None` at the end.
    pub next: Option<JobNo>,
    /// The number of jobs whose cost changed.
    pub changed: u32,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RebalanceState {
    /// The plan was shown; no job was moved.
    Planned,
    Running,
    Done,
    Stopped,
}

impl RebalanceState {
    pub const ALL: [Self; 4] = [Self::Planned, Self::Running, Self::Done, Self::Stopped];
}

/// A rebalance without its moves.
#[derive(Clone, PartialEq, Debug)]
pub struct Rebalance {
    pub id: Uuid,
    pub state: RebalanceState,
    /// The rebalance that this one undoes.
    pub undoes: Option<Uuid>,
    /// The rebalance that undid this one.
    pub undone_by: Option<Uuid>,
    pub created_by: String,
    pub created_at: Timestamp,
    /// When jobs were last moved, or when it began.
    pub touched_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The number of batches of moves.
    pub parts: u32,
    pub parts_done: u32,
    /// The number of planned moves.
    pub planned: u64,
    /// The number of jobs that were moved.
    pub moved: u64,
    /// The number of jobs that were not moved because they had changed.
    pub changed: u64,
    /// The number of jobs that the plan left alone.
    pub skipped: u64,
    /// The request and the expected result, as JSON that the store does not read.
    pub summary: String,
}

impl Rebalance {
    /// Returns true if the rebalance may begin or continue: it is not done or undone, and if it is
    /// running, it was not touched after `silent_before`.
    pub fn may_begin(&self, silent_before: Timestamp) -> bool {
        let is_idle = match self.state {
            RebalanceState::Planned | RebalanceState::Stopped => true,
            RebalanceState::Running => self.is_silent(silent_before),
            RebalanceState::Done => false,
        };
        is_idle && self.undone_by.is_none()
    }

    /// Returns true if no job was moved after `silent_before`.
    pub fn is_silent(&self, silent_before: Timestamp) -> bool {
        self.touched_at.is_none_or(|at| at <= silent_before)
    }

    /// Returns true if it is done and made all its moves.
    pub fn is_complete(&self) -> bool {
        self.state == RebalanceState::Done && self.changed == 0
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum BeganRebalance {
    /// The rebalance is running from now on.
    Now(Rebalance),
    /// Nothing changed. Holds what stands in the way: the rebalance itself, another one that is
    /// running, or another one that has undone the same rebalance completely.
    Other(Rebalance),
}

impl BeganRebalance {
    pub fn into_inner(self) -> Rebalance {
        match self {
            Self::Now(rebalance) | Self::Other(rebalance) => rebalance,
        }
    }
}

/// A batch of moves as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RebalancePart {
    /// See [`encode_moves`](evenkeel_core::balance::encode_moves).
    pub moves: Vec<u8>,
    /// Which moves were made; `None` until the batch is done.
    pub made: Option<Vec<bool>>,
}

/// A batch of moves to make.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveBatch {
    pub rebalance: Uuid,
    /// The number of the batch, from 0. It must be the first that is not done.
    pub part: u32,
    /// At most [`MOVES_MAX`], each job once.
    pub moves: Vec<Move>,
    /// The load profiles that the moves lead to, as stored. A move to another profile is not made.
    pub profiles: Vec<(LoadProfileKey, String)>,
    /// Also moves jobs with an active run.
    pub even_live: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moved {
    /// Which moves were made. A job that has changed since the plan is not moved.
    Done(Vec<bool>),
    /// The rebalance is not running or this batch is done already; nothing changed.
    Stopped,
}

/// How evenly the load of a tenant was spread in an hour.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SavedScore {
    /// The start of the hour.
    pub hour: Timestamp,
    /// The score by runs per slot, which users see first.
    pub score: f64,
    /// The score by next runs per slot.
    pub next_score: f64,
    /// The score by cost per slot.
    pub cost_score: f64,
    /// The most runs in one slot.
    pub peak: f64,
    /// The average number of runs in a slot.
    pub mean: f64,
    pub jobs: u64,
}

verbs! {
    /// Verbs that count load and move jobs.
    ///
    /// A job counts from [`register`](crate::JobStore::register) on, with its
    /// [load](evenkeel_core::balance::Load::of), as long as it has a next time. Every verb that
    /// sets or removes a next time, or changes a load profile, updates the counts in the same
    /// transaction. So the counts always equal a recount of the jobs.
    trait BalanceStore {}

    /// Returns all load profiles of jobs, by tenant and key, after `after`.
    read fn load_profiles(after: Option<(TenantNo, LoadProfileKey)>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Returns the load profiles of the scope.
    read fn tenant_load_profiles(scope: &Scope, after: Option<LoadProfileKey>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Updates the cost of up to `limit` jobs after `after`, by number: a job whose cost is below
    /// 4/5 or above 5/4 of its average duration gets that duration as its cost, unless its cost was
    /// stated. The cost of a run is at most [`COST_MAX`]. Jobs that are counted without a next
    /// time, which is an error, are no longer counted. Load profiles without jobs are deleted.
    ///
    /// [`COST_MAX`]: evenkeel_core::balance::COST_MAX
    write fn recount_load(after: Option<JobNo>, limit: u32) -> Recounted;

    /// Returns the scope's active jobs with a next time, by number, after `after`.
    read fn placements(scope: &Scope, after: Option<JobNo>, limit: u32) -> Vec<Placement>;

    /// Returns those of these jobs (at most [`MOVES_MAX`]) that are of the scope, active, and have
    /// a next time.
    read fn placements_of(scope: &Scope, jobs: &[JobNo]) -> Vec<Placement>;

    /// Stores a plan with its moves in batches of at most [`MOVES_MAX`].
    write fn plan_rebalance(scope: &Scope, rebalance: Rebalance, parts: Vec<Vec<u8>>) -> ();

    read fn get_rebalance(scope: &Scope, id: Uuid) -> Option<Rebalance>;

    /// Returns one batch of a rebalance.
    read fn rebalance_part(scope: &Scope, id: Uuid, part: u32) -> Option<RebalancePart>;

    /// Returns the scope's rebalances, newest first, without plans of which no move was started.
    read fn list_rebalances(scope: &Scope, page: PageRequest<(Timestamp, Uuid)>)
        -> Page<Rebalance, (Timestamp, Uuid)>;

    /// Starts or continues a rebalance that [may begin](Rebalance::may_begin), unless another one
    /// of the scope is running and was touched after `silent_before`. A rebalance that undoes
    /// another one marks it as undone; it does not begin if a [complete](Rebalance::is_complete)
    /// rebalance has undone that one already. Of several concurrent callers, one gets
    /// [`BeganRebalance::Now`].
    write fn begin_rebalance(scope: &Scope, id: Uuid, silent_before: Timestamp, now: Now)
        -> Option<BeganRebalance>;

    /// Ends a running rebalance with `state`. Returns it as it is.
    write fn end_rebalance(scope: &Scope, id: Uuid, state: RebalanceState, now: Now)
        -> Option<Rebalance>;

    /// Moves a batch of jobs of the scope in one transaction. A job is moved if it is active, has
    /// the expected generation and next time, is not due, has no active run (unless
    /// [`MoveBatch::even_live`]), if its new time is after the store's now and after its last fired
    /// time, and if its new load profile is given. It gets the new time and a new generation, and
    /// its promise counts from now on. The batch is marked as done with its results. Schedulers are
    /// notified of jobs that are due soon.
    write fn move_jobs(scope: &Scope, batch: MoveBatch, now: Now) -> Moved;

    /// Stores the score of a tenant's hour, unless it is stored already. Returns whether it was
    /// new.
    write fn save_score(tenant: TenantNo, score: SavedScore) -> bool;

    /// Returns up to `limit` scores of the scope for hours from `from` on and before `until`, by
    /// time.
    read fn scores(scope: &Scope, from: Timestamp, until: Timestamp, limit: u32) -> Vec<SavedScore>;

    /// Deletes up to `limit` scores of hours before `scores_before`, up to `limit` plans made
    /// before `plans_before` that were not started, and up to `limit` rebalances planned
    /// [`REBALANCES_KEPT`] before that, unless they are running and were touched since. Their
    /// batches are large, so [`PARTS_PRUNED`] are deleted at once, and a rebalance that has some
    /// left is deleted by a later call. Returns the number of deletions; at least `limit` if there
    /// may be more.
    write fn prune_balance(scores_before: Timestamp, plans_before: Timestamp, limit: u32) -> u64;
}

/// The reason that users see for a move that was not made, since the actual reason is not stored.
pub const NOT_MADE: SkipReason = SkipReason::Changed;
