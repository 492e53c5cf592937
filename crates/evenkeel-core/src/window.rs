//! The one idea: when a schedule may start next, and by when it must.

use crate::time::Timestamp;

/// The answer every schedule gives, whatever its kind.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StartWindow {
    /// Nothing starts before this. A retry or a blackout moves it.
    pub can_start_by: Timestamp,
    /// To keep its promise it must have started by then. Nothing but the schedule moves it.
    pub should_start_by: Timestamp,
}

impl StartWindow {
    /// The same promise, not startable before `moment`.
    pub fn not_before(self, moment: Timestamp) -> Self {
        Self { can_start_by: self.can_start_by.max(moment), ..self }
    }
}
