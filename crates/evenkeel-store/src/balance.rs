//! Counts when jobs run, and moves jobs to other start times so that runs are spread evenly over
//! time.

use evenkeel_core::balance::{LoadProfileKey, Move, Placement, SkipReason};
use evenkeel_core::{JobNo, Span, TenantNo, Timestamp, named_enum};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Maximum number of jobs that one batch of a rebalance moves.
pub const MOVES_MAX: usize = 2000;

/// Number and cost of a tenant's jobs that share one load profile, which means that they run in the
/// same time slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadProfileCount {
    pub tenant: TenantNo,
    pub key: LoadProfileKey,
    /// The stored text of the [`LoadProfile`](evenkeel_core::balance::LoadProfile).
    pub profile: String,
    pub jobs: u64,
    /// Sum of the cost of one run of each job.
    pub cost: Span,
}

/// Rebalances that moved jobs are kept this much longer than mere plans, so that users can see
/// which jobs were moved and can undo the rebalance.
pub const REBALANCES_KEPT: Span = Span::from_secs(7 * 86_400);

/// Number of stored batches of a rebalance that are deleted at once, about 10 MB.
pub const PARTS_PRUNED: u32 = 1000;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Recounted {
    /// The next step of the recount continues after this job; `None` if all jobs were read.
    pub next: Option<JobNo>,
    /// Number of jobs whose cost changed.
    pub changed: u32,
}

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum RebalanceState {
        /// The plan of the rebalance is stored, but no job was moved yet.
        Planned => "planned",
        Running => "running",
        Done => "done",
        Stopped => "stopped",
    }
}

/// A rebalance without its list of moved jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Rebalance {
    pub id: Uuid,
    pub state: RebalanceState,
    /// The earlier rebalance that this rebalance undoes.
    pub undoes: Option<Uuid>,
    /// The later rebalance that undid this rebalance.
    pub undone_by: Option<Uuid>,
    pub created_by: String,
    pub created_at: Timestamp,
    /// When the rebalance last moved jobs, or when it began.
    pub touched_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Number of batches into which the jobs to move are divided.
    pub parts: u32,
    pub parts_done: u32,
    /// Number of jobs that the plan moves.
    pub planned: u64,
    pub moved: u64,
    /// Number of jobs that were not moved because they changed after planning.
    pub changed: u64,
    /// Number of jobs that the plan does not move.
    pub skipped: u64,
    /// The rebalance request and its expected result, as JSON that the store does not interpret.
    pub summary: String,
}

impl Rebalance {
    /// Returns true if the rebalance may begin or continue. A finished or undone rebalance may not
    /// continue. A running rebalance may continue only if it neither began nor moved jobs after
    /// `silent_before`.
    pub fn may_begin(&self, silent_before: Timestamp) -> bool {
        let is_idle = match self.state {
            RebalanceState::Planned | RebalanceState::Stopped => true,
            RebalanceState::Running => self.is_silent(silent_before),
            RebalanceState::Done => false,
        };
        is_idle && self.undone_by.is_none()
    }

    /// Returns true if the rebalance neither began nor moved jobs after `silent_before`.
    pub fn is_silent(&self, silent_before: Timestamp) -> bool {
        self.touched_at.is_none_or(|at| at <= silent_before)
    }

    /// Returns true if the rebalance is finished and moved every planned job.
    pub fn is_complete(&self) -> bool {
        self.state == RebalanceState::Done && self.changed == 0
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum BeganRebalance {
    /// This caller began the rebalance.
    Now(Rebalance),
    /// Nothing changed. Contains the rebalance that prevents the start: the requested rebalance
    /// itself, another running rebalance, or a rebalance that has already completely undone the
    /// same rebalance.
    Other(Rebalance),
}

impl BeganRebalance {
    pub fn into_inner(self) -> Rebalance {
        match self {
            Self::Now(rebalance) | Self::Other(rebalance) => rebalance,
        }
    }
}

/// One stored batch of moved jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RebalancePart {
    /// Moves of the batch, encoded by [`encode_moves`](evenkeel_core::balance::encode_moves).
    pub moves: Vec<u8>,
    /// For each job of the batch, true if the job was moved; `None` until the batch is done.
    pub made: Option<Vec<bool>>,
}

/// One batch of jobs to move.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveBatch {
    pub rebalance: Uuid,
    /// Number of the batch, counted from 0. The batches of a rebalance must be done in order.
    pub part: u32,
    /// Contains at most [`MOVES_MAX`] moves, and each job at most once.
    pub moves: Vec<Move>,
    /// Stored texts of the new load profiles of the moved jobs.
    pub profiles: Vec<(LoadProfileKey, String)>,
    /// True if jobs that have an active run are moved as well.
    pub even_live: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moved {
    /// For each job of the batch, true if the job was moved. A job that changed after planning is
    /// not moved.
    Done(Vec<bool>),
    /// The rebalance is not running, or this batch is already done; nothing changed.
    Stopped,
}

/// Balance scores of a tenant (how evenly its runs are spread over time), saved once per hour.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SavedScore {
    /// The start of the hour.
    pub hour: Timestamp,
    /// Score of how evenly the number of runs is spread over the time slots; the main score for
    /// users.
    pub score: f64,
    /// Score of how evenly only the next run of each job is spread over the time slots.
    pub next_score: f64,
    /// Score of how evenly the cost of the runs is spread over the time slots.
    pub cost_score: f64,
    /// Highest number of runs in one time slot.
    pub peak: f64,
    /// Average number of runs per time slot.
    pub mean: f64,
    pub jobs: u64,
}

verbs! {
    /// Store operations that count when jobs run and move jobs to other start times.
    ///
    /// The store counts each job with its [`Load`](evenkeel_core::balance::Load::of) from its
    /// registration on, as long as the job has a next scheduled time. Every store operation that
    /// changes a job's next scheduled time or load profile updates the load counts in the same
    /// transaction. The stored load counts therefore always equal a fresh count of all jobs.
    trait BalanceStore {}

    /// Returns the load profiles of all tenants ordered by tenant and key, starting after `after`.
    read fn load_profiles(after: Option<(TenantNo, LoadProfileKey)>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Returns the tenant's load profiles ordered by key, starting after `after`.
    read fn tenant_load_profiles(scope: &Scope, after: Option<LoadProfileKey>, limit: u32)
        -> Vec<LoadProfileCount>;

    /// Updates the cost of up to `limit` jobs, ordered by number, starting after the job `after`.
    /// If the cost of a job is below 4/5 or above 5/4 of its average duration, the average duration
    /// becomes the new cost, unless the user set the cost. The cost of a run is at most
    /// [`COST_MAX`]. Removes jobs without a next scheduled time from the load counts, which repairs
    /// counting errors. Deletes load profiles that no job has.
    ///
    /// [`COST_MAX`]: evenkeel_core::balance::COST_MAX
    write fn recount_load(after: Option<JobNo>, limit: u32) -> Recounted;

    /// Returns the tenant's active jobs that have a next scheduled time, ordered by number,
    /// starting after the job `after`.
    read fn placements(scope: &Scope, after: Option<JobNo>, limit: u32) -> Vec<Placement>;

    /// Returns those of the given jobs that belong to the tenant, are active, and have a next
    /// scheduled time. Takes at most [`MOVES_MAX`] jobs.
    read fn placements_of(scope: &Scope, jobs: &[JobNo]) -> Vec<Placement>;

    /// Stores the plan of a rebalance, with the jobs to move in batches of at most [`MOVES_MAX`].
    write fn plan_rebalance(scope: &Scope, rebalance: Rebalance, parts: Vec<Vec<u8>>) -> ();

    read fn get_rebalance(scope: &Scope, id: Uuid) -> Option<Rebalance>;

    /// Returns one batch of the jobs that a rebalance moves.
    read fn rebalance_part(scope: &Scope, id: Uuid, part: u32) -> Option<RebalancePart>;

    /// Returns the tenant's rebalances, newest first, without plans that were never started.
    read fn list_rebalances(scope: &Scope, page: PageRequest<(Timestamp, Uuid)>)
        -> Page<Rebalance, (Timestamp, Uuid)>;

    /// Starts or continues a rebalance that [may begin](Rebalance::may_begin). Returns
    /// [`BeganRebalance::Other`] if another rebalance of the tenant is running and began or moved
    /// jobs after `silent_before`. A rebalance that undoes an earlier one marks the earlier
    /// rebalance as undone. An undo does not begin if a [complete](Rebalance::is_complete)
    /// rebalance has already undone the same rebalance. If several callers begin a rebalance
    /// concurrently, exactly one caller gets [`BeganRebalance::Now`].
    write fn begin_rebalance(scope: &Scope, id: Uuid, silent_before: Timestamp, now: Now)
        -> Option<BeganRebalance>;

    /// Ends a running rebalance with `state`. Returns the stored rebalance.
    write fn end_rebalance(scope: &Scope, id: Uuid, state: RebalanceState, now: Now)
        -> Option<Rebalance>;

    /// Moves a batch of the tenant's jobs to other start times in one transaction. A job is moved
    /// only if it is active, not due, has the expected generation and next scheduled time, and has
    /// no active run (unless [`MoveBatch::even_live`] is set). The new scheduled time must be in
    /// the future and after the last fired time, and [`MoveBatch::profiles`] must contain the new
    /// load profile. A moved job gets the new scheduled time and a new generation, and deadlines
    /// that it missed before are ignored. The batch is stored as done, with the list of moved jobs.
    /// The store notifies schedulers of moved jobs that are due soon.
    write fn move_jobs(scope: &Scope, batch: MoveBatch, now: Now) -> Moved;

    /// Stores the balance scores of one tenant for one hour, unless that hour already has scores.
    /// Returns true if the balance scores were stored.
    write fn save_score(tenant: TenantNo, score: SavedScore) -> bool;

    /// Returns up to `limit` balance scores of the tenant for the hours from `from` to before
    /// `until`, oldest first.
    read fn scores(scope: &Scope, from: Timestamp, until: Timestamp, limit: u32) -> Vec<SavedScore>;

    /// Deletes up to `limit` balance scores of hours before `scores_before`, and up to `limit`
    /// plans created before `plans_before` that were never started. Also deletes up to `limit`
    /// rebalances that were created more than [`REBALANCES_KEPT`] before `plans_before`, unless a
    /// rebalance is running and began or moved jobs after that time. One call deletes at most
    /// [`PARTS_PRUNED`] batches of rebalances because batches are large; a rebalance with remaining
    /// batches is deleted by a later call. Returns the number of deleted scores, plans and
    /// rebalances, or at least `limit` if more of them may be left.
    write fn prune_balance(scores_before: Timestamp, plans_before: Timestamp, limit: u32) -> u64;
}

/// The reason shown to users for a job that was not moved, since the actual reason is not stored.
pub const NOT_MADE: SkipReason = SkipReason::Changed;
