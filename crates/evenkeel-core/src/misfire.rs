//! The misfire policy: what happens to scheduled times that were missed.

use serde::{Deserialize, Serialize};

/// What happens to scheduled times for which no run has started within `misfire_after`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// The job runs once, for the newest missed scheduled time; older missed times are recorded as
    /// skipped.
    #[default]
    Last,
    /// The job does not run for missed scheduled times.
    Skip,
    /// The job runs for each of the newest [`MisfirePolicy::ALL_MAX`] missed scheduled times, one
    /// after the other.
    All,
}

impl MisfirePolicy {
    pub const ALL_MAX: u64 = 100;
}
