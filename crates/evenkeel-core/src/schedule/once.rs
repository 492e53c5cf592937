//! One time, and never again.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// Runs once: at a time, or as soon as the job exists.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Once {
    /// When; now, if absent or past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// It keeps its promise if it starts within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Span>,
}

impl Once {
    /// The tolerance of jobs that state none.
    pub const TOLERANCE: Span = Span::from_secs(60);

    /// As soon as the job exists.
    pub const NOW: Self = Self { at: None, tolerance: None };

    pub(super) fn first_after(self, now: Timestamp) -> Timestamp {
        self.at.map_or(now, |at| at.max(now))
    }
}
