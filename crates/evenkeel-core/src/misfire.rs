//! What becomes of times that passed while nothing could fire.

use serde::{Deserialize, Serialize};

/// What is done with scheduled times that are too late.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// The newest of them runs, the others are recorded as skipped.
    #[default]
    Last,
    /// None runs.
    Skip,
    /// They run one after the other, the newest [`MisfirePolicy::ALL_MAX`] of them.
    All,
}

impl MisfirePolicy {
    /// How many missed times [`MisfirePolicy::All`] makes up for.
    pub const ALL_MAX: u64 = 100;
}
