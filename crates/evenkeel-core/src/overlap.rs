//! What becomes of a time that comes while an earlier run still goes on.

use serde::{Deserialize, Serialize};

/// What is done when a job is due and a chain of attempts of it is still live.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The new time is recorded as skipped.
    #[default]
    Skip,
    /// The new time waits for the end of the old run; of several that wait, the newest runs.
    Queue,
    /// Both run side by side.
    Allow,
    /// The old run is ended as superseded, and the new one starts.
    Replace,
}

impl OverlapPolicy {
    /// May a run begin while `live` others go on?
    pub fn may_start(self, live: u32) -> bool {
        live == 0 || self == Self::Allow
    }
}
