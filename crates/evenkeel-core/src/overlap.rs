//! The overlap policy: what happens to a scheduled time that comes while an earlier run is active.

use serde::{Deserialize, Serialize};

/// What happens when a job is due while an earlier run is active.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The new time is recorded as skipped.
    #[default]
    Skip,
    /// The new time waits for the end of the active run. If several times wait, the newest runs.
    Queue,
    Allow,
    /// The active run is ended as superseded, and the new run starts.
    Replace,
}

impl OverlapPolicy {
    /// True if a run may start while `live` others are active.
    pub fn may_start(self, live: u32) -> bool {
        live == 0 || self == Self::Allow
    }
}
