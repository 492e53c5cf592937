//! Jobs that run once.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Once {
    /// The scheduled time; without it, or if it is in the past, the job runs as soon as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The deadline: the job must start within this time after its scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Span>,
}

impl Once {
    /// The default tolerance.
    pub const TOLERANCE: Span = Span::from_secs(60);

    pub const NOW: Self = Self { at: None, tolerance: None };

    pub(super) fn first_after(self, now: Timestamp) -> Timestamp {
        self.at.map_or(now, |at| at.max(now))
    }
}
