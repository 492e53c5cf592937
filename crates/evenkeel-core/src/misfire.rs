//! The misfire policy: what happens to scheduled times that were missed.

use serde::{Deserialize, Serialize};

/// What happens to scheduled times that are late by more than `misfire_after`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// The newest missed time runs; the others are recorded as skipped.
    #[default]
    Last,
    /// No missed time runs.
    Skip,
    /// The newest [`MisfirePolicy::ALL_MAX`] missed times run one after the other.
    All,
}

impl MisfirePolicy {
    pub const ALL_MAX: u64 = 100;
}
