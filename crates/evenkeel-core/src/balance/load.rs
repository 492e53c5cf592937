//! What a job counts for.

use super::load_profile::{LoadProfile, LoadProfileKey};
use crate::job::Definition;
use crate::time::{Span, Timestamp};

/// What a run is taken to cost until one was seen to its end.
pub const ASSUMED_COST: Span = Span::from_secs(60);

/// No run is counted for more than this, so that sums of many jobs stay in range.
pub const COST_MAX: Span = Span::from_secs(30 * 86_400);

/// What a job counts for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The name of its rhythm.
    pub key: LoadProfileKey,
    /// Its rhythm, as it is stored.
    pub rhythm: String,
    /// What each of its runs costs; at most [`COST_MAX`].
    pub cost: Span,
    /// Somebody said so: it does not follow what its runs take.
    pub is_stated: bool,
}

impl Load {
    /// What a job counts for that has its next regular time at `next_at` and whose good runs take
    /// `average`.
    pub fn of(definition: &Definition, average: Option<Span>, next_at: Timestamp) -> Option<Self> {
        let rhythm = LoadProfile::of(definition, next_at)?.text();
        let stated = definition.cost.or(definition.average_override);
        let cost = stated.or(average).unwrap_or(ASSUMED_COST).min(COST_MAX);
        Some(Self { key: LoadProfileKey::of(&rhythm), rhythm, cost, is_stated: stated.is_some() })
    }
}
