//! Verbs that count load and move jobs.

use evenkeel_core::balance::{LoadProfileKey, Move, Placement, SkipReason};
use evenkeel_core::{JobNo, Span, TenantNo, Timestamp};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Moves in one batch at most.
pub const MOVES_MAX: usize = 2000;

/// How many jobs of a tenant have a rhythm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadProfileCount {
    /// Whose.
    pub tenant: TenantNo,
    /// Its name.
    pub key: LoadProfileKey,
    /// As it is stored; see [`LoadProfile`](evenkeel_core::balance::LoadProfile).
    pub rhythm: String,
    /// So many.
    pub jobs: u64,
    /// What one run of each costs, together.
    pub cost: Span,
}

/// Rebalances that were acted on are kept this much longer than mere plans: people ask what was
/// moved, and take it back.
pub const REBALANCES_KEPT: Span = Span::from_secs(7 * 86_400);

/// So many batches of moves are forgotten at once: about 10 MB.
pub const PARTS_FORGOTTEN: u32 = 1000;

/// How far a walk over all jobs has come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Recounted {
    /// Goes on after this job; `None` at the end.
    pub next: Option<JobNo>,
    /// So many now count for more or less.
    pub changed: u32,
}

/// What becomes of a rebalance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RebalanceState {
    /// It was shown and nothing was moved.
    Planned,
    /// It goes on.
    Running,
    /// It is over.
    Done,
    /// Somebody stopped it.
    Stopped,
}

impl RebalanceState {
    /// In the order of the stored codes.
    pub const ALL: [Self; 4] = [Self::Planned, Self::Running, Self::Done, Self::Stopped];
}

/// A rebalance, but for its moves.
#[derive(Clone, PartialEq, Debug)]
pub struct Rebalance {
    /// Its id.
    pub id: Uuid,
    /// What becomes of it.
    pub state: RebalanceState,
    /// It takes this one back.
    pub undoes: Option<Uuid>,
    /// This one took it back.
    pub undone_by: Option<Uuid>,
    /// Who planned it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When something was last moved, or when it began.
    pub touched_at: Option<Timestamp>,
    /// When it was over or stopped.
    pub ended_at: Option<Timestamp>,
    /// Its moves come in so many batches.
    pub parts: u32,
    /// So many of them are done.
    pub parts_done: u32,
    /// So many moves are planned.
    pub planned: u64,
    /// So many jobs were moved.
    pub moved: u64,
    /// So many were not, because they had changed.
    pub changed: u64,
    /// So many were left alone from the start.
    pub skipped: u64,
    /// What was asked for and what it would come to, as JSON that the store does not read.
    pub summary: String,
}

impl Rebalance {
    /// May it begin, or go on? Not if it is over or was taken back, nor if it goes on and was touched
    /// after `silent_before`.
    pub fn may_begin(&self, silent_before: Timestamp) -> bool {
        let is_idle = match self.state {
            RebalanceState::Planned | RebalanceState::Stopped => true,
            RebalanceState::Running => self.is_silent(silent_before),
            RebalanceState::Done => false,
        };
        is_idle && self.undone_by.is_none()
    }

    /// Was nothing moved after `silent_before`?
    pub fn is_silent(&self, silent_before: Timestamp) -> bool {
        self.touched_at.is_none_or(|at| at <= silent_before)
    }

    /// Is it over, and were all its moves made?
    pub fn is_complete(&self) -> bool {
        self.state == RebalanceState::Done && self.changed == 0
    }
}

/// Did a rebalance begin?
#[derive(Clone, PartialEq, Debug)]
pub enum BeganRebalance {
    /// It goes on, from now on.
    Now(Rebalance),
    /// Nothing was changed. This is in the way: itself as it is, another that goes on, or another
    /// that took back all that it was to take back.
    Other(Rebalance),
}

impl BeganRebalance {
    /// The one that began, or is in the way.
    pub fn into_inner(self) -> Rebalance {
        match self {
            Self::Now(rebalance) | Self::Other(rebalance) => rebalance,
        }
    }
}

/// A batch of a rebalance, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RebalancePart {
    /// See [`encode_moves`](evenkeel_core::balance::encode_moves).
    pub moves: Vec<u8>,
    /// For each move, whether it was made; `None` until the batch is done.
    pub made: Option<Vec<bool>>,
}

/// A batch that is to be moved.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveBatch {
    /// Of which rebalance.
    pub rebalance: Uuid,
    /// Which batch of it, from 0: the one after those that are done.
    pub part: u32,
    /// The moves, no job twice, at most [`MOVES_MAX`].
    pub moves: Vec<Move>,
    /// The rhythms they lead to, as they are stored. A move whose rhythm is not here is not made.
    pub rhythms: Vec<(LoadProfileKey, String)>,
    /// Jobs with a run that is not over are moved as well.
    pub even_live: bool,
}

/// What became of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moved {
    /// For each move, whether it was made: a job that was not what was decided on stays as it is.
    Done(Vec<bool>),
    /// The rebalance does not go on, or has done this batch already; nothing was changed.
    Stopped,
}

/// How evenly a tenant's load was spread in an hour.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SavedScore {
    /// When the hour began.
    pub hour: Timestamp,
    /// By runs, in slots: the score that people see first.
    pub score: f64,
    /// By next runs, in slots.
    pub next_score: f64,
    /// By cost, in slots.
    pub cost_score: f64,
    /// The most runs in one slot.
    pub peak: f64,
    /// Runs in a slot on average.
    pub mean: f64,
    /// So many jobs.
    pub jobs: u64,
}

verbs! {
    /// How load is counted and moved.
    ///
    /// A job counts from [`register`](crate::JobStore::register) on, as
    /// [`Load::of`](evenkeel_core::balance::Load::of) says, as long as it has a next time. Every verb that
    /// gives or takes a job its next time, or changes its rhythm, keeps the counts in the same
    /// transaction: they are always what counting the jobs anew would give.
    trait BalanceStore {}

    /// All rhythms that some job has, by tenant and key, after `after`.
    read fn load_profiles(after: Option<(TenantNo, LoadProfileKey)>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Those of the scope.
    read fn tenant_load_profiles(scope: &Scope, after: Option<LoadProfileKey>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Counts up to `limit` jobs that were registered before load was counted; says how many it
    /// found.
    write fn count_uncounted(limit: u32) -> u32;

    /// Looks at up to `limit` jobs after `after`, by number: those that count for less than four
    /// fifths or more than five quarters of what their good runs take now count for that, unless
    /// their cost was stated; no run counts for more than [`COST_MAX`]. Jobs that count though they
    /// have no next time, which should not be, count no more. LoadProfiles that no job has are forgotten
    /// on the way.
    ///
    /// [`COST_MAX`]: evenkeel_core::balance::COST_MAX
    write fn recount_load(after: Option<JobNo>, limit: u32) -> Recounted;

    /// The scope's active jobs that have a next time, by number, after `after`.
    read fn placements(scope: &Scope, after: Option<JobNo>, limit: u32) -> Vec<Placement>;

    /// Those of these jobs, at most [`MOVES_MAX`], that are the scope's, active, and have a next
    /// time.
    read fn placements_of(scope: &Scope, jobs: &[JobNo]) -> Vec<Placement>;

    /// Keeps a plan: its moves in batches of at most [`MOVES_MAX`].
    write fn plan_rebalance(scope: &Scope, rebalance: Rebalance, parts: Vec<Vec<u8>>) -> ();

    /// The rebalance with this id.
    read fn get_rebalance(scope: &Scope, id: Uuid) -> Option<Rebalance>;

    /// One of its batches.
    read fn rebalance_part(scope: &Scope, id: Uuid, part: u32) -> Option<RebalancePart>;

    /// The scope's rebalances that moved something or do, newest first; plans that were only shown
    /// are left out.
    read fn list_rebalances(scope: &Scope, page: PageRequest<(Timestamp, Uuid)>)
        -> Page<Rebalance, (Timestamp, Uuid)>;

    /// Lets a rebalance go on that [may begin](Rebalance::may_begin), if no other of the scope does
    /// that was touched after `silent_before`. One that undoes another marks that as undone by it,
    /// and does not begin if yet another is [complete](Rebalance::is_complete) that did so. Of many
    /// who begin one, one is told that it begins now.
    write fn begin_rebalance(scope: &Scope, id: Uuid, silent_before: Timestamp, now: Now)
        -> Option<BeganRebalance>;

    /// Ends a rebalance that goes on: it is over, or `Stopped`. Answers with what it is like.
    write fn end_rebalance(scope: &Scope, id: Uuid, state: RebalanceState, now: Now)
        -> Option<Rebalance>;

    /// Moves a batch of jobs of the scope, one transaction: each that is active, has the generation
    /// and the next time that were decided on, is not due, has no run that is not over (unless `even_live`),
    /// and whose new time is after the store's now and its last fired time, gets the new time, a
    /// new generation, and is placed now, if its new rhythm is given. The batch counts as done, and what was made of it is
    /// kept. Schedulers are told of what is due soon.
    write fn move_jobs(scope: &Scope, batch: MoveBatch, now: Now) -> Moved;

    /// Keeps the score of a tenant's hour, unless it is there; says whether it was new.
    write fn save_score(tenant: TenantNo, score: SavedScore) -> bool;

    /// The scope's scores of hours from `from` on and before `until`, by time; at most `limit`.
    read fn scores(scope: &Scope, from: Timestamp, until: Timestamp, limit: u32) -> Vec<SavedScore>;

    /// Forgets up to `limit` scores of hours before `scores_before`, as many plans made before
    /// `plans_before` that nobody acted on, and as many rebalances planned [`REBALANCES_KEPT`] before
    /// that which do not go on, or were not touched since then. Of their batches, which are large,
    /// [`PARTS_FORGOTTEN`] at once, and what has some left waits for the next time. Says how many; at
    /// least `limit` if there may be more.
    write fn prune_balance(scores_before: Timestamp, plans_before: Timestamp, limit: u32) -> u64;
}

/// Why a move was not made is not kept; whoever asks later is told this.
pub const NOT_MADE: SkipReason = SkipReason::Changed;
