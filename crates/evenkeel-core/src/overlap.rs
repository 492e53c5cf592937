//! The overlap policy: what happens to a scheduled time that is reached while an earlier run is
//! active.

use serde::{Deserialize, Serialize};

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The new scheduled time is recorded as skipped.
    #[default]
    Skip,
    /// The new scheduled time waits until the active run has finished. If several scheduled times
    /// wait, the job runs only for the newest of them.
    Queue,
    Allow,
    /// The active run is stopped with the outcome `superseded`, and the new run starts.
    Replace,
}

impl OverlapPolicy {
    /// True if a new run may start while `live` earlier runs of the job are active.
    pub fn may_start(self, live: u32) -> bool {
        live == 0 || self == Self::Allow
    }
}
