//! One time, and never again.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// Runs once: at a time, or as soon as the job exists.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Once {
    /// When; now, if absent or past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

impl Once {
    /// A one-off job keeps its promise if it starts within this time.
    pub const TOLERANCE: Span = Span::from_secs(60);

    pub(super) fn first_after(self, now: Timestamp) -> Timestamp {
        self.at.map_or(now, |at| at.max(now))
    }
}
