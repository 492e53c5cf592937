//! Which jobs a rebalance moves, and where to.

use std::collections::HashMap;

use super::loads::Loads;
use super::moves::Move;
use super::rhythm::{Rhythm, RhythmKey};
use super::settings::BalanceSettings;
use super::spread::Spread;
use crate::ids::JobNo;
use crate::time::{Span, Timestamp};

/// A job that has a next time, as far as moving it is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Which.
    pub job: JobNo,
    /// Its own number; see [`ToPlace::seed`](super::ToPlace::seed).
    pub seed: u64,
    /// Its generation.
    pub generation: i32,
    /// Its next regular time.
    pub next_at: Timestamp,
    /// The last that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// A run of it is not over.
    pub is_live: bool,
    /// Its rhythm, if it is in the plan.
    pub rhythm: Option<RhythmKey>,
    /// What each of its runs costs.
    pub cost: Span,
}

/// Why a job stays where it is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SkipReason {
    /// A run of it is not over.
    JobRunning,
    /// It runs soon.
    ProtectionWindow,
    /// It was placed a short time ago.
    PlacementCooldown,
    /// Its time is not chosen by load.
    NotMovable,
    /// It was changed since the plan was made.
    Changed,
}

impl SkipReason {
    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobRunning => "job_running",
            Self::ProtectionWindow => "protection_window",
            Self::PlacementCooldown => "placement_cooldown",
            Self::NotMovable => "not_movable",
            Self::Changed => "changed",
        }
    }
}

/// What a rebalance is to reach.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Wanted {
    /// With so many moves at most.
    pub max_moves: Option<u64>,
    /// No more than it takes to this score.
    pub target_score: Option<f64>,
}

/// What a rebalance does.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The moves.
    pub moves: Vec<Move>,
    /// The rhythms they lead to, as they are stored.
    pub rhythms: HashMap<RhythmKey, String>,
    /// Jobs that stay because they must, by number.
    pub skipped: Vec<(JobNo, SkipReason)>,
    /// How evenly runs are spread without it.
    pub before: Spread,
    /// And with it.
    pub after: Spread,
    /// Load without it.
    pub loads_before: Loads,
    /// And with it.
    pub loads_after: Loads,
}

/// Plans a rebalance of `jobs` (in the order of their numbers) among the load of `own`, their
/// tenant's, and of `all`, both of which hold the jobs where they are.
pub fn plan(
    _settings: &BalanceSettings,
    _jobs: &[Placement],
    _rhythms: &HashMap<RhythmKey, Rhythm>,
    _own: &Loads,
    _all: &Loads,
    _wanted: Wanted,
    _now: Timestamp,
) -> Plan {
    unimplemented!()
}

/// The time to which a job that was moved by `done` goes back, if its next time is `next_at` now;
/// `None` if it is no longer on the rhythm that the move gave it.
pub fn moved_back(
    _done: &Move,
    _every: Span,
    _next_at: Timestamp,
    _now: Timestamp,
) -> Option<Timestamp> {
    unimplemented!()
}
