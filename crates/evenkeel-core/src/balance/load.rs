//! The load of one job.

use super::load_profile::{LoadProfile, LoadProfileKey};
use crate::job::Definition;
use crate::time::{Span, Timestamp};

/// The assumed cost of a run until a run of the job has succeeded.
pub const ASSUMED_COST: Span = Span::from_secs(60);

/// Maximum cost of a run, so that sums over many jobs do not overflow.
pub const COST_MAX: Span = Span::from_secs(30 * 86_400);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    pub key: LoadProfileKey,
    /// The job's load profile as JSON, in the form that is stored.
    pub profile: String,
    /// At most [`COST_MAX`].
    pub cost: Span,
    /// True if the user set the cost; then measured durations do not change it.
    pub is_stated: bool,
}

impl Load {
    /// Returns the load of a job whose next scheduled time is `next_at` and whose successful runs
    /// take `average`.
    pub fn of(definition: &Definition, average: Option<Span>, next_at: Timestamp) -> Option<Self> {
        let profile = LoadProfile::of(definition, next_at)?.text();
        let stated = definition.cost.or(definition.average_override);
        let cost = stated.or(average).unwrap_or(ASSUMED_COST).min(COST_MAX);
        Some(Self { key: LoadProfileKey::of(&profile), profile, cost, is_stated: stated.is_some() })
    }
}
